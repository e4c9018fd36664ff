// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/diff.h"

#include <algorithm>
#include <map>
#include <set>

namespace vabi::facts {
namespace {

// What a class means where nothing more is known: default danger and reason.
struct ClassRow {
  ChangeClass change_class;
  const char* name;
  bool dangerous;
  const char* why;
};
constexpr ClassRow kClasses[] = {
    {ChangeClass::kAdded, "added", false, "who does not know it does not use it"},
    {ChangeClass::kAppended, "appended", false,
     "an older kernel writes less, an older library asks for less"},
    {ChangeClass::kEnumAppended, "enum_appended", false, "a new number, taken by nothing else"},
    {ChangeClass::kZeroFilled, "zero_filled", false,
     "an older library sends less, which counts as zeros; an older kernel takes the rest only as "
     "zeros"},
    {ChangeClass::kCarvedReserved, "carved_reserved", false,
     "libraries must have sent the reserved member as zero"},
    {ChangeClass::kCarvedPadding, "carved_padding", true,
     "nothing made an older library clear the padding, which now has a meaning"},
    {ChangeClass::kRenamed, "renamed", false,
     "same layout, same meaning; sources need the new name"},
    {ChangeClass::kSentinel, "sentinel", false, "follows its enum; never sent"},
    {ChangeClass::kRealigned, "realigned", false,
     "matters only where it is a member of something else"},
    {ChangeClass::kRedefined, "redefined", false, "concerns sources, not what is sent"},
    {ChangeClass::kOtherMeaning, "other_meaning", true, "the same bytes say something else now"},
    {ChangeClass::kMoved, "moved", true, "the two sides look for it at different places"},
    {ChangeClass::kResized, "resized", true,
     "the two sides disagree about its length and what follows it"},
    {ChangeClass::kRetyped, "retyped", true, "the same bytes are read in another way"},
    {ChangeClass::kRenumbered, "renumbered", true,
     "the two sides mean different things by the same number"},
    {ChangeClass::kRetired, "retired", true,
     "what an older library sends there is ignored, or refused as non-zero"},
    {ChangeClass::kRemoved, "removed", true, "an older library still uses it"},
};

const ClassRow& RowOf(ChangeClass change_class) {
  return *std::find_if(std::begin(kClasses), std::end(kClasses),
                       [&](const ClassRow& row) { return row.change_class == change_class; });
}

Change MakeChange(ChangeClass change_class, std::string header, std::string subject,
                  std::string before, std::string after) {
  const ClassRow& row = RowOf(change_class);
  Change change;
  change.change_class = change_class;
  change.dangerous = row.dangerous;
  change.header = std::move(header);
  change.subject = std::move(subject);
  change.before = std::move(before);
  change.after = std::move(after);
  change.why = row.why;
  return change;
}

// A member that is no in-place record, with its place in the whole struct.
struct Leaf {
  std::string path;
  std::string_view name;  // last part of the path
  const Field* field;
  uint32_t first_bit, bits;  // flexible arrays: 0 bits
  // The arm of the outermost union that it belongs to, by path: "wr.rdma" for "wr.rdma.rkey"; empty
  // outside unions.
  std::string arm;

  uint32_t end_bit() const { return first_bit + bits; }
  bool reserved() const { return IsReservedName(name); }
  bool Overlaps(const Leaf& other) const {
    return first_bit < other.end_bit() && other.first_bit < end_bit();
  }
  bool SamePlace(const Leaf& other) const {
    return first_bit == other.first_bit && bits == other.bits;
  }
};

void AddLeaves(const Struct& record, const std::string& prefix, const std::string& arm,
               uint32_t base, std::vector<Leaf>& leaves) {
  for (const Field& field : record.fields) {
    std::string path = prefix;
    if (!field.name.empty()) path += (prefix.empty() ? "" : ".") + field.name;
    // An anonymous struct in a union has no path of its own: its first member stands for it.
    std::string own = field.name.empty() && field.record && !field.record->fields.empty()
                          ? path + "/" + field.record->fields[0].name
                          : path;
    const std::string& field_arm = record.is_union && arm.empty() ? own : arm;
    if (field.record && field.dims.empty()) {
      AddLeaves(*field.record, path, field_arm, base + field.offset, leaves);
      continue;
    }
    Leaf leaf{path, field.name, &field, (base + field.offset) * 8, field.size * 8, field_arm};
    if (field.is_bitfield()) {
      leaf.first_bit = base * 8 + field.bit_offset;
      leaf.bits = field.bit_width;
    }
    leaves.push_back(std::move(leaf));
  }
}

std::vector<Leaf> LeavesOf(const Struct& record) {
  std::vector<Leaf> leaves;
  AddLeaves(record, "", "", 0, leaves);
  return leaves;
}

// "__u32 mode @40", "__u8[6] rsvd @74", "__u32 low:3 @8"
std::string Describe(const Leaf& leaf) {
  std::string text = leaf.field->type;
  for (size_t i = 0; i < leaf.field->dims.size(); ++i) {
    bool open = i == 0 && leaf.field->flexible;
    text += "[" + (open ? "" : std::to_string(leaf.field->dims[i])) + "]";
  }
  text += " " + leaf.path;
  if (leaf.field->is_bitfield()) text += ":" + std::to_string(leaf.field->bit_width);
  return text + " @" + std::to_string(leaf.first_bit / 8);
}

// "__aligned_u64" is a "__u64" whose alignment is compared as part of the layout.
std::string PlainType(const Leaf& leaf) {
  std::string type = leaf.field->type;
  constexpr std::string_view kAligned = "__aligned_";
  if (type.starts_with(kAligned)) type.replace(0, kAligned.size(), "__");
  for (uint32_t dim : leaf.field->dims) type += "[" + std::to_string(dim) + "]";
  return type;
}

std::string StructSubject(const Struct& record) {
  return (record.is_union ? "union " : "struct ") + record.name;
}

// Replies are named so throughout the headers: ib_uverbs_query_port_resp, ocrdma_alloc_pd_uresp.
bool IsReply(const Struct& record) { return record.name.find("resp") != std::string::npos; }

class StructDiff {
 public:
  StructDiff(std::string header, const Struct& a, const Struct& b, std::vector<Change>& out)
      : header_(std::move(header)), a_(a), b_(b), old_(LeavesOf(a)), new_(LeavesOf(b)), out_(out) {
    for (const Leaf& leaf : old_) {
      old_by_path_.emplace(leaf.path, &leaf);
      old_arms_.insert(leaf.arm);
    }
    for (const Leaf& leaf : new_) {
      new_by_path_.emplace(leaf.path, &leaf);
      new_arms_.insert(leaf.arm);
    }
  }

  void Run() {
    size_t before = out_.size();
    CompareKept();
    FindRenamed();
    CompareArms();
    ClassifyNew();
    ClassifyGone();
    CompareWhole(out_.size() != before);
  }

 private:
  Change& Add(ChangeClass change_class, const std::string& path, std::string before,
              std::string after) {
    std::string subject = path.empty() ? StructSubject(b_) : b_.name + "." + path;
    out_.push_back(MakeChange(change_class, header_, subject, std::move(before), std::move(after)));
    return out_.back();
  }

  // Members that both have. Reserved ones come and go with their neighbours.
  void CompareKept() {
    for (const Leaf& leaf : new_) {
      auto found = old_by_path_.find(leaf.path);
      if (found == old_by_path_.end() || leaf.reserved()) continue;
      const Leaf& old = *found->second;
      if (leaf.first_bit != old.first_bit) {
        Add(ChangeClass::kMoved, leaf.path, Describe(old), Describe(leaf));
      }
      if (leaf.bits != old.bits) {
        Add(ChangeClass::kResized, leaf.path, Size(old), Size(leaf));
      } else if (PlainType(leaf) != PlainType(old) &&
                 !(leaf.field->flexible && old.field->flexible &&
                   leaf.field->type == old.field->type)) {
        Add(ChangeClass::kRetyped, leaf.path, Describe(old), Describe(leaf));
      }
    }
  }

  static std::string Size(const Leaf& leaf) {
    return Describe(leaf) + ", " +
           (leaf.bits % 8 ? std::to_string(leaf.bits) + " bits"
                          : std::to_string(leaf.bits / 8) + " bytes");
  }

  // A member that is gone and one that is new in exactly its place.
  void FindRenamed() {
    for (const Leaf& leaf : new_) {
      if (old_by_path_.count(leaf.path)) continue;
      const Leaf* old = nullptr;
      for (const Leaf& candidate : old_) {
        if (!candidate.SamePlace(leaf) || new_by_path_.count(candidate.path) ||
            matched_.count(&candidate))
          continue;
        // Another arm of a union is no successor, unless both are nothing but this member.
        bool alone = candidate.arm == candidate.path && leaf.arm == leaf.path;
        if (candidate.arm != leaf.arm && !alone) continue;
        // Of several arms of a union, the one that is called alike.
        if (!old || SimilarNames(candidate.name, leaf.name)) old = &candidate;
      }
      if (!old || old->reserved()) continue;
      matched_.insert(old);
      matched_.insert(&leaf);
      if (leaf.reserved()) {
        Add(ChangeClass::kRetired, old->path, Describe(*old), Describe(leaf));
        continue;
      }
      bool same = PlainType(*old) == PlainType(leaf) && SimilarNames(old->name, leaf.name);
      Add(same ? ChangeClass::kRenamed : ChangeClass::kOtherMeaning, leaf.path, Describe(*old),
          Describe(leaf))
          .same_place = true;
    }
  }

  // Arms of a union that came or went as a whole.
  void CompareArms() {
    std::set<std::string> told;
    for (const Leaf& leaf : new_) {
      if (leaf.arm.empty() || old_arms_.count(leaf.arm) || old_by_path_.count(leaf.path) ||
          matched_.count(&leaf))
        continue;
      bool over_arms = false;
      for (const Leaf& old : old_) over_arms |= old.Overlaps(leaf) && !old.arm.empty();
      bool over_others = false;
      for (const Leaf& old : old_)
        over_others |= old.Overlaps(leaf) && old.arm.empty() && !old.reserved();
      if (!over_arms || over_others) continue;
      matched_.insert(&leaf);
      if (told.insert(leaf.arm).second) {
        Add(ChangeClass::kAdded, ArmPath(leaf), "", Describe(leaf)).why =
            "another arm of a union; the others stay";
      }
    }
    for (const Leaf& old : old_) {
      if (old.arm.empty() || new_arms_.count(old.arm) || matched_.count(&old) || old.reserved())
        continue;
      // Still there, in another anonymous struct: __DECLARE_FLEX_ARRAY wraps members so.
      if (new_by_path_.count(old.path)) continue;
      matched_.insert(&old);
      if (told.insert(old.arm).second) Add(ChangeClass::kRemoved, ArmPath(old), Describe(old), "");
    }
  }

  static std::string ArmPath(const Leaf& leaf) { return leaf.arm.substr(0, leaf.arm.find('/')); }

  void ClassifyNew() {
    std::string appended;
    for (const Leaf& leaf : new_) {
      if (old_by_path_.count(leaf.path) || matched_.count(&leaf)) continue;
      std::vector<const Leaf*> under;
      for (const Leaf& old : old_) {
        if (old.Overlaps(leaf)) under.push_back(&old);
      }
      if (under.empty() && leaf.first_bit >= a_.size * 8) {
        appended += (appended.empty() ? "" : ", ") + Describe(leaf);
      } else if (leaf.reserved() || leaf.bits == 0) {
        continue;
      } else if (under.empty()) {
        Change& change = Add(ChangeClass::kCarvedPadding, leaf.path, "padding", Describe(leaf));
        if (IsReply(b_)) {
          change.dangerous = false;
          change.why = "an older library does not look at the padding of a reply";
        }
      } else {
        ClassifyOver(leaf, under);
      }
    }
    if (appended.empty()) return;
    Add(IsReply(b_) ? ChangeClass::kAppended : ChangeClass::kZeroFilled, "",
        std::to_string(a_.size) + " bytes", std::to_string(b_.size) + " bytes: " + appended);
    grown_ = true;
  }

  // A new member that lies over old ones.
  void ClassifyOver(const Leaf& leaf, const std::vector<const Leaf*>& under) {
    std::string before;
    bool all_reserved = true, all_stay = true;
    for (const Leaf* old : under) {
      before += (before.empty() ? "" : ", ") + Describe(*old);
      all_reserved &= old->reserved();
      // A matched one has its own line.
      auto now = new_by_path_.find(old->path);
      all_stay &= old->reserved() || matched_.count(old) ||
                  (now != new_by_path_.end() && now->second->SamePlace(*old));
    }
    if (all_reserved) {
      Add(ChangeClass::kCarvedReserved, leaf.path, before, Describe(leaf));
    } else if (all_stay) {
      Add(ChangeClass::kAdded, leaf.path, "", Describe(leaf)).why =
          "another arm of a union; the others stay";
    } else {
      Add(ChangeClass::kOtherMeaning, leaf.path, before, Describe(leaf));
      for (const Leaf* old : under) matched_.insert(old);
    }
  }

  void ClassifyGone() {
    for (const Leaf& old : old_) {
      if (new_by_path_.count(old.path) || matched_.count(&old) || old.reserved()) continue;
      const Leaf* reserved = nullptr;
      bool only_reserved = true;
      for (const Leaf& leaf : new_) {
        if (!leaf.Overlaps(old)) continue;
        only_reserved &= leaf.reserved();
        reserved = &leaf;
      }
      if (reserved && only_reserved) {
        Add(ChangeClass::kRetired, old.path, Describe(old), Describe(*reserved));
      } else {
        Add(ChangeClass::kRemoved, old.path, Describe(old), "");
      }
    }
  }

  void CompareWhole(bool members_changed) {
    std::string before = std::to_string(a_.size) + " bytes",
                after = std::to_string(b_.size) + " bytes";
    if (b_.size < a_.size) {
      Add(ChangeClass::kResized, "", before, after).why =
          "shorter: what an older side expects at the end is not there";
    } else if (b_.size > a_.size && !grown_) {
      Change& change = Add(ChangeClass::kResized, "", before, after);
      // Only reserved members or padding at the end.
      if (!members_changed)
        change.why = "longer with no member to show for it: legacy commands compare sizes exactly";
    }
    if (a_.align != b_.align) {
      Add(ChangeClass::kRealigned, "", "alignment " + std::to_string(a_.align),
          "alignment " + std::to_string(b_.align));
    }
  }

  std::string header_;
  const Struct& a_;
  const Struct& b_;
  std::vector<Leaf> old_, new_;
  std::map<std::string, const Leaf*> old_by_path_, new_by_path_;
  std::set<std::string> old_arms_, new_arms_;
  std::set<const Leaf*> matched_;
  bool grown_ = false;
  std::vector<Change>& out_;
};

bool SameMembers(const Struct& a, const Struct& b) {
  std::vector<Change> changes;
  StructDiff("", a, b, changes).Run();
  return changes.empty();
}

// The struct of B that has taken the place of one that A had.
const Struct* Successor(const Snapshot& a, const Snapshot& b, const Header& header,
                        const Struct& gone) {
  // A macro may lead the old name to the new one.
  if (const Macro* macro = b.FindMacro(gone.name)) {
    const Struct* heir = b.FindStruct(macro->body);
    if (heir && SameMembers(gone, *heir)) return heir;
  }
  const Header* now = b.FindHeader(header.path);
  if (!now) return nullptr;
  for (const Decl& decl : now->decls) {
    auto* record = std::get_if<Struct>(&decl);
    if (record && !a.FindStruct(record->name) && !record->fields.empty() &&
        SameMembers(gone, *record))
      return record;
  }
  return nullptr;
}

std::vector<Change> DiffStructs(const Snapshot& a, const Snapshot& b, Arch arch) {
  std::vector<Change> changes;
  std::set<std::string> heirs;
  std::vector<Change> gone;
  a.ForEachStruct(
      [&](const Header& header, const Struct& record) {
        if (b.FindStruct(record.name)) return;
        std::string before = std::to_string(record.size) + " bytes";
        if (const Struct* heir = Successor(a, b, header, record)) {
          heirs.insert(heir->name);
          gone.push_back(
              MakeChange(ChangeClass::kRenamed, header.path, StructSubject(record), before,
                         StructSubject(*heir) + ", " + std::to_string(heir->size) + " bytes"));
        } else if (b.FindHeader(header.path)) {  // else its header says it
          gone.push_back(
              MakeChange(ChangeClass::kRemoved, header.path, StructSubject(record), before, ""));
        }
      },
      arch);
  b.ForEachStruct(
      [&](const Header& header, const Struct& record) {
        const Struct* old = a.FindStruct(record.name, arch);
        if (old) {
          StructDiff(header.path, *old, record, changes).Run();
        } else if (!heirs.count(record.name) && a.FindHeader(header.path)) {
          changes.push_back(MakeChange(ChangeClass::kAdded, header.path, StructSubject(record), "",
                                       std::to_string(record.size) + " bytes"));
        }
      },
      arch);
  changes.insert(changes.end(), gone.begin(), gone.end());
  return changes;
}

struct ConstantInfo {
  int64_t value = 0;
  bool is_unsigned = false;
  std::string header{};
  const Enum* owner = nullptr;  // null for a macro
};
using Constants = std::map<std::string, ConstantInfo>;

Constants ConstantsOf(const Snapshot& snapshot, Arch arch) {
  Constants constants;
  snapshot.ForEachEnum([&](const Header& header, const Enum& e) {
    for (const auto& [name, value] : e.values) constants[name] = {value, false, header.path, &e};
  });
  snapshot.ForEachMacro([&](const Header& header, const Macro& macro) {
    auto value = snapshot.Constant(macro.name, arch);
    if (macro.value && value)
      constants.try_emplace(macro.name,
                            ConstantInfo{*value, macro.is_unsigned, header.path, nullptr});
  });
  return constants;
}

std::string Number(const ConstantInfo& constant) {
  return constant.is_unsigned ? std::to_string(static_cast<uint64_t>(constant.value))
                              : std::to_string(constant.value);
}

int64_t Highest(const Enum& e) {
  int64_t highest = e.values.empty() ? 0 : e.values[0].second;
  for (const auto& [name, value] : e.values) highest = std::max(highest, value);
  return highest;
}

bool HasWord(std::string_view name, std::string_view word) {
  for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    bool starts = at == 0 || name[at - 1] == '_',
         ends = at + word.size() == name.size() || name[at + word.size()] == '_';
    if (starts && ends) return true;
  }
  return false;
}

// The last of an enum, or a number beyond its values, called a maximum or a count.
bool IsSentinel(const std::string& name, const ConstantInfo& constant) {
  if (!constant.owner || constant.value != Highest(*constant.owner)) return false;
  for (std::string_view word : {"MAX", "NUM", "LAST", "END", "COUNT"}) {
    if (HasWord(name, word)) return true;
  }
  return false;
}

// The enum that B has in place of one of A's: same name, or for anonymous ones a value in common.
bool SameEnum(const Enum& a, const Enum& b) {
  if (!a.name.empty() || !b.name.empty()) return a.name == b.name;
  for (const auto& [name, value] : a.values) {
    for (const auto& [other, ignored] : b.values) {
      if (name == other) return true;
    }
  }
  // All its names changed at once: numbers alone must do.
  return a.values.size() == b.values.size() && a.values.front().second == b.values.front().second &&
         a.values.back().second == b.values.back().second;
}

// The last two words of NAME_OF_A_CONSTANT.
std::string_view LastWords(std::string_view name) {
  size_t last = name.rfind('_');
  size_t before = last == std::string_view::npos || last == 0 ? last : name.rfind('_', last - 1);
  return before == std::string_view::npos ? name : name.substr(before);
}

// What it means that a number has another name now: prefixes change with fashion, the last words
// say what it is.
ChangeClass RenamedConstant(std::string_view before, std::string_view after) {
  if (HasWord(before, "RESERVED")) return ChangeClass::kCarvedReserved;
  return LastWords(before) == LastWords(after) ? ChangeClass::kRenamed : ChangeClass::kOtherMeaning;
}

std::vector<Change> DiffConstants(const Snapshot& a, const Snapshot& b, Arch arch) {
  Constants before = ConstantsOf(a, arch), after = ConstantsOf(b, arch);
  std::vector<Change> changes;
  std::set<std::string> heirs;
  for (const auto& [name, old] : before) {
    auto now = after.find(name);
    if (now != after.end()) {
      if (now->second.value == old.value) continue;
      // What was a macro beside an enum may have become its last value.
      bool sentinel = (IsSentinel(name, old) && IsSentinel(name, now->second)) ||
                      (!old.owner && IsSentinel(name, now->second));
      changes.push_back(MakeChange(sentinel ? ChangeClass::kSentinel : ChangeClass::kRenumbered,
                                   now->second.header, name, Number(old), Number(now->second)));
      continue;
    }
    if (!b.FindHeader(old.header)) continue;
    const std::string* heir = nullptr;
    for (const auto& [other, candidate] : after) {
      if (candidate.value != old.value || candidate.header != old.header || before.count(other))
        continue;
      bool same_home = old.owner && candidate.owner && SameEnum(*old.owner, *candidate.owner);
      if (same_home && !IsSentinel(name, old)) heir = &other;
    }
    if (heir) {
      heirs.insert(*heir);
      changes.push_back(
          MakeChange(RenamedConstant(name, *heir), old.header, name, Number(old), *heir));
    } else if (IsSentinel(name, old)) {
      changes.push_back(MakeChange(ChangeClass::kSentinel, old.header, name, Number(old), ""));
    } else {
      changes.push_back(MakeChange(ChangeClass::kRemoved, old.header, name, Number(old), ""));
    }
  }
  for (const auto& [name, now] : after) {
    if (before.count(name) || heirs.count(name) || !a.FindHeader(now.header)) continue;
    bool above = false;
    if (now.owner) {
      for (const auto& [sibling, value] : now.owner->values) {
        auto old = before.find(sibling);
        if (old == before.end() || !old->second.owner) continue;
        // A sentinel makes room for what is appended before it.
        int64_t highest = 0;
        for (const auto& [old_name, old_value] : old->second.owner->values) {
          if (!IsSentinel(old_name, before.at(old_name))) highest = std::max(highest, old_value);
        }
        above = now.value > highest;
        break;
      }
    }
    changes.push_back(MakeChange(above ? ChangeClass::kEnumAppended : ChangeClass::kAdded,
                                 now.header, name, "", Number(now)));
  }
  return changes;
}

// Macros without a number and typedefs: the same for all architectures.
std::vector<Change> DiffText(const Snapshot& a, const Snapshot& b) {
  std::vector<Change> changes;
  b.ForEachMacro([&](const Header& header, const Macro& macro) {
    const Macro* old = a.FindMacro(macro.name);
    if (!old || (old->value && macro.value) || old->body.empty()) return;
    if (old->body != macro.body || old->params != macro.params) {
      changes.push_back(MakeChange(ChangeClass::kRedefined, header.path, macro.name,
                                   old->params + " " + old->body, macro.params + " " + macro.body));
    }
  });
  for (const Header& header : b.headers()) {
    if (!a.FindHeader(header.path))
      changes.push_back(MakeChange(ChangeClass::kAdded, header.path, header.path, "", "header"));
  }
  for (const Header& header : a.headers()) {
    if (!b.FindHeader(header.path)) {
      changes.push_back(MakeChange(ChangeClass::kRemoved, header.path, header.path, "header", ""));
    }
  }
  return changes;
}

bool SameChange(const Change& a, const Change& b) {
  return a.change_class == b.change_class && a.header == b.header && a.subject == b.subject &&
         a.before == b.before && a.after == b.after;
}

// One line for what shows in both architectures.
void MergeArch(std::vector<Change>& all, std::vector<Change> more, Arch arch) {
  for (Change& change : more) {
    auto same = std::find_if(all.begin(), all.end(),
                             [&](const Change& c) { return SameChange(c, change); });
    if (same == all.end()) {
      change.archs = {arch};
      all.push_back(std::move(change));
    } else {
      same->archs.push_back(arch);
    }
  }
}

}  // namespace

std::string_view ClassName(ChangeClass change_class) { return RowOf(change_class).name; }

std::vector<Change> DiffStruct(const std::string& header, const Struct& a, const Struct& b) {
  std::vector<Change> changes;
  StructDiff(header, a, b, changes).Run();
  return changes;
}

std::vector<Change> OfStructs(std::vector<Change> changes, const std::set<std::string>& names) {
  std::erase_if(changes, [&](const Change& change) {
    std::string name = change.subject;
    for (std::string_view keyword : {"struct ", "union "}) {
      if (name.starts_with(keyword)) name.erase(0, keyword.size());
    }
    return !names.count(name.substr(0, name.find('.')));
  });
  return changes;
}

bool AnyDangerous(const std::vector<Change>& changes) {
  return std::any_of(changes.begin(), changes.end(),
                     [](const Change& change) { return change.dangerous; });
}

bool IsReservedName(std::string_view name) {
  if (name.starts_with("__empty_")) return true;
  while (name.starts_with('_')) name.remove_prefix(1);
  // revd: a misspelling that irdma_alloc_ucontext_resp has.
  for (std::string_view word :
       {"reserved", "rsvd", "revd", "resv", "rsv", "padding", "pad", "unused"}) {
    if (!name.starts_with(word)) continue;
    std::string_view rest = name.substr(word.size());
    if (rest.find_first_not_of("_0123456789abcdef") == std::string_view::npos) return true;
  }
  return false;
}

bool SimilarNames(std::string_view a, std::string_view b) {
  if (IsReservedName(a) || IsReservedName(b)) return IsReservedName(a) && IsReservedName(b);
  auto plain = [](std::string_view name) {
    std::string out;
    for (char c : name) {
      if (c != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return out;
  };
  std::string x = plain(a), y = plain(b);
  constexpr size_t kTelling = 3;  // shorter ones are part of anything
  if (std::min(x.size(), y.size()) < kTelling) return x == y;
  return x.find(y) != std::string::npos || y.find(x) != std::string::npos;
}

std::vector<Change> Diff(const Snapshot& a, const Snapshot& b) {
  std::vector<Change> changes;
  for (Arch arch : a.archs()) {
    if (std::find(b.archs().begin(), b.archs().end(), arch) == b.archs().end()) continue;
    MergeArch(changes, DiffStructs(a, b, arch), arch);
    MergeArch(changes, DiffConstants(a, b, arch), arch);
    MergeArch(changes, DiffText(a, b), arch);
  }
  std::map<std::string, size_t> order;
  for (const Header& header : b.headers()) order.emplace(header.path, order.size());
  for (const Header& header : a.headers()) order.emplace(header.path, order.size());
  std::stable_sort(changes.begin(), changes.end(), [&](const Change& x, const Change& y) {
    return order[x.header] < order[y.header];
  });
  return changes;
}

}  // namespace vabi::facts
