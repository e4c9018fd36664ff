// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/show.h"

#include <algorithm>
#include <cstdio>

namespace vabi::facts {
namespace {

std::string Columns(uint32_t offset, uint32_t size) {
  char text[32];
  std::snprintf(text, sizeof text, "  %5u %5u  ", offset, size);
  return text;
}

std::string Declared(const Field& field) {
  std::string text = field.type + (field.name.empty() ? "" : " ") + field.name;
  for (size_t i = 0; i < field.dims.size(); ++i) {
    text += "[" + (i == 0 && field.flexible ? "" : std::to_string(field.dims[i])) + "]";
  }
  if (field.is_bitfield()) {
    text +=
        " : " + std::to_string(field.bit_width) + "  from bit " + std::to_string(field.bit_offset);
  }
  if (!field.via.empty()) text += "  by " + field.via + "(" + field.via_arg + ", …)";
  return text;
}

void AddFields(std::string& out, const Struct& record, uint32_t base, const std::string& indent) {
  for (const Field& field : record.fields) {
    out += Columns(base + field.offset, field.size) + indent + Declared(field) + "\n";
    if (field.record) AddFields(out, *field.record, base + field.offset, indent + "  ");
  }
}

std::string Show(const Struct& record, const Header& header, Arch arch) {
  std::string out = std::string(record.is_union ? "union " : "struct ") + record.name + "  " +
                    std::to_string(record.size) + " bytes, alignment " +
                    std::to_string(record.align);
  if (record.packed) out += ", packed";
  out += "  <" + header.path + ">  " + std::string(ArchName(arch)) + "\n";
  AddFields(out, record, 0, "");
  return out;
}

std::string Hex(int64_t value) {
  char text[40];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string Show(const std::string& name, int64_t value, const std::string& of,
                 const Header& header) {
  return name + " = " + std::to_string(value) + " (" + Hex(value) + ")  " + of + "  <" +
         header.path + ">\n";
}

// Number of edits between two texts, counted up to `limit`.
size_t Distance(const std::string& a, const std::string& b, size_t limit) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0], best = row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t next =
          std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = row[j];
      row[j] = next;
      best = std::min(best, next);
    }
    if (best > limit) return limit + 1;
  }
  return row[b.size()];
}

}  // namespace

std::string ShowSnapshot(const Snapshot& snapshot) {
  std::string out = snapshot.name() + "  (" + snapshot.stack() + ")\n";
  for (const auto& [key, value] : snapshot.source()) {
    out.append("  ").append(key).append(": ").append(value).append("\n");
  }
  for (const Header& header : snapshot.headers()) {
    size_t counts[4] = {};
    for (const Decl& decl : header.decls) ++counts[decl.index()];
    char line[160];
    std::snprintf(line, sizeof line, "  %-34s %s  %3zu structs %3zu enums %3zu macros\n",
                  header.path.c_str(), header.digest.c_str(), counts[2], counts[1], counts[0]);
    out += line;
  }
  return out;
}

std::string ShowName(const Snapshot& snapshot, const std::string& name, Arch arch) {
  std::string out;
  if (size_t dot = name.find('.'); dot != std::string::npos) {
    auto field = snapshot.FindField(name.substr(0, dot), name.substr(dot + 1), arch);
    if (!field) return "";
    return name + ": " + std::to_string(field->size) + " bytes at " +
           std::to_string(field->offset) + ", " + Declared(*field->field) + "  " +
           std::string(ArchName(arch)) + "\n";
  }
  snapshot.ForEachStruct(
      [&](const Header& header, const Struct& record) {
        if (record.name == name) out += Show(record, header, arch);
      },
      arch);
  snapshot.ForEachEnum([&](const Header& header, const Enum& e) {
    std::string of = "enum" + (e.name.empty() ? "" : " " + e.name);
    if (e.name == name) {
      out += of + "  <" + header.path + ">\n";
      for (const auto& [value_name, value] : e.values) {
        out += "  " + std::to_string(value) + "  " + value_name + "\n";
      }
    }
    for (const auto& [value_name, value] : e.values) {
      if (value_name == name) out += Show(name, value, of, header);
    }
  });
  snapshot.ForEachMacro([&](const Header& header, const Macro& macro) {
    if (macro.name != name) return;
    if (auto value = snapshot.Constant(name, arch); macro.value && value) {
      out += Show(name, *value, "macro " + macro.body, header);
    } else {
      out += "macro " + name + macro.params + " " + macro.body + "  <" + header.path + ">\n";
    }
  });
  return out;
}

std::vector<std::string> AllNames(const Snapshot& snapshot) {
  std::vector<std::string> names;
  snapshot.ForEachStruct(
      [&](const Header&, const Struct& record) { names.push_back(record.name); });
  snapshot.ForEachEnum([&](const Header&, const Enum& e) {
    if (!e.name.empty()) names.push_back(e.name);
    for (const auto& [name, value] : e.values) names.push_back(name);
  });
  snapshot.ForEachMacro([&](const Header&, const Macro& macro) { names.push_back(macro.name); });
  return names;
}

std::vector<std::string> NearestNames(const std::string& name,
                                      const std::vector<std::string>& known) {
  std::vector<std::pair<size_t, std::string>> near;
  size_t limit = 2 + name.size() / 4;
  for (const std::string& candidate : known) {
    bool begins = !name.empty() && candidate.starts_with(name);
    size_t distance = begins ? 0 : Distance(name, candidate, limit);
    if (distance <= limit) near.emplace_back(distance, candidate);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (size_t i = 0; i < near.size() && i < 3; ++i) names.push_back(near[i].second);
  return names;
}

}  // namespace vabi::facts
