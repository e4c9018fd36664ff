// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <map>

#include "harness/facts/cursor.h"
#include "harness/facts/diff.h"

namespace vabi::facts {
namespace {

std::string ArchNote(const Snapshot& a, const Change& change) {
  if (change.archs.size() == a.archs().size() || change.archs.empty()) return "";
  return " (" + std::string(ArchName(change.archs[0])) + " only)";
}

std::string FromTo(const Change& change) {
  if (change.before.empty()) return change.after;
  if (change.after.empty()) return change.before + " → gone";
  return change.before + " → " + change.after;
}

size_t CountDangerous(const std::vector<Change>& changes) {
  return static_cast<size_t>(std::count_if(changes.begin(), changes.end(),
                                           [](const Change& change) { return change.dangerous; }));
}

std::string Padded(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string Verdict(const std::vector<Change>& changes) {
  if (changes.empty()) return "no difference";
  return std::to_string(changes.size()) + " changes, " + std::to_string(CountDangerous(changes)) +
         " dangerous";
}

// A pipe would end the cell.
std::string Cell(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

}  // namespace

std::string RenderText(const Snapshot& a, const Snapshot& b, const std::vector<Change>& changes) {
  std::string out = a.name() + " → " + b.name() + ": " + Verdict(changes) + "\n";
  size_t class_width = 0, subject_width = 0;
  for (const Change& change : changes) {
    class_width = std::max(class_width, ClassName(change.change_class).size());
    subject_width = std::max(subject_width, std::min<size_t>(change.subject.size(), 48));
  }
  for (bool dangerous : {true, false}) {
    std::string header;
    for (const Change& change : changes) {
      if (change.dangerous != dangerous) continue;
      if (header.empty()) out += dangerous ? "\ndangerous\n" : "\ncompatible\n";
      if (change.header != header) out += "  " + change.header + "\n";
      header = change.header;
      out += "    " + Padded(std::string(ClassName(change.change_class)), class_width) + "  " +
             Padded(change.subject, subject_width) + "  " + FromTo(change) + ArchNote(a, change) +
             "\n";
      if (dangerous) out += std::string(class_width + 6, ' ') + change.why + "\n";
    }
  }
  return out;
}

std::string RenderMarkdown(const Snapshot& a, const Snapshot& b,
                           const std::vector<Change>& changes) {
  std::string out = "# " + a.name() + " → " + b.name() + "\n\n" + Verdict(changes) + ".\n";
  for (bool dangerous : {true, false}) {
    bool first = true;
    for (const Change& change : changes) {
      if (change.dangerous != dangerous) continue;
      if (first) {
        out += dangerous ? "\n## Dangerous\n\n" : "\n## Compatible\n\n";
        out += "| class | header | what | before | after | why |\n|---|---|---|---|---|---|\n";
      }
      first = false;
      out += "| " + std::string(ClassName(change.change_class)) + ArchNote(a, change) + " | " +
             change.header + " | `" + Cell(change.subject) + "` | " + Cell(change.before) + " | " +
             Cell(change.after) + " | " + change.why + " |\n";
    }
  }
  return out;
}

std::string RenderJson(const Snapshot& a, const Snapshot& b, const std::vector<Change>& changes) {
  Json list = Json::array(), classes = Json::object();
  for (const Change& change : changes) {
    Json archs = Json::array();
    for (Arch arch : change.archs) archs.push_back(ArchName(arch));
    list.push_back({{"class", ClassName(change.change_class)},
                    {"dangerous", change.dangerous},
                    {"arch", archs},
                    {"header", change.header},
                    {"subject", change.subject},
                    {"before", change.before},
                    {"after", change.after},
                    {"why", change.why}});
    std::string name(ClassName(change.change_class));
    classes[name] = classes.value(name, 0) + 1;
  }
  Json out = {
      {"format", 1},
      {"from", a.name()},
      {"to", b.name()},
      {"summary",
       {{"changes", changes.size()}, {"dangerous", CountDangerous(changes)}, {"classes", classes}}},
      {"changes", list}};
  return out.dump(1) + "\n";
}

}  // namespace vabi::facts
