// SPDX-License-Identifier: BSD-2-Clause
//
// What changed between two snapshots, and which of it can hurt a library that was built with the
// other one.
#ifndef VABI_HARNESS_FACTS_DIFF_H_
#define VABI_HARNESS_FACTS_DIFF_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/facts/snapshot.h"

namespace vabi::facts {

enum class ChangeClass {
  kAdded,           // a header, struct, constant or another arm of a union
  kAppended,        // members after the former end of a reply
  kEnumAppended,    // a value above all that the enum had
  kZeroFilled,      // members after the former end of a request: an older kernel takes them only as
                    // zeros
  kCarvedReserved,  // a member where there was a reserved one
  kCarvedPadding,   // a member where there was nothing but alignment
  kRenamed,         // same place and type, a name that says the same
  kSentinel,        // a count or maximum that follows its enum
  kRealigned,       // same members, another alignment
  kRedefined,       // text of a macro that is no number
  kOtherMeaning,    // same place, a name that says something else
  kMoved,
  kResized,
  kRetyped,
  kRenumbered,
  kRetired,  // a member that is reserved now
  kRemoved,
};

struct Change {
  ChangeClass change_class = ChangeClass::kAdded;
  bool dangerous = false;
  bool same_place = false;    // a member of the same place and length that has another name
  std::vector<Arch> archs{};  // where it shows
  std::string header{};
  std::string subject{};          // "struct rxe_av", "rxe_av.dmac", "RDMA_NLDEV_ATTR_MAX"
  std::string before{}, after{};  // "" when there was, or is, nothing
  std::string why{};              // why it is dangerous, or what makes it harmless
};

// "carved_padding"
std::string_view ClassName(ChangeClass change_class);

// All changes, in the order of B's headers and declarations, what is only in A last in each header.
// Both snapshots are compared in all architectures that they share.
std::vector<Change> Diff(const Snapshot& a, const Snapshot& b);

// The changes between two layouts of one struct; `archs` is left empty.
std::vector<Change> DiffStruct(const std::string& header, const Struct& a, const Struct& b);

// Of these changes, those of structs called `names` and of their members. Constants are left out.
std::vector<Change> OfStructs(std::vector<Change> changes, const std::set<std::string>& names);

bool AnyDangerous(const std::vector<Change>& changes);

// Plain text for a terminal, dangerous ones first; Markdown; JSON as documented in
// reference-headers/README.md.
std::string RenderText(const Snapshot& a, const Snapshot& b, const std::vector<Change>& changes);
std::string RenderMarkdown(const Snapshot& a, const Snapshot& b,
                           const std::vector<Change>& changes);
std::string RenderJson(const Snapshot& a, const Snapshot& b, const std::vector<Change>& changes);

// True for names that mark a member as without meaning: reserved, rsvd1, pad_2, __empty_x.
bool IsReservedName(std::string_view name);

// True when two member names say the same thing: "rsvd" and "reserved2", "sq_npsn" and "npsn".
bool SimilarNames(std::string_view a, std::string_view b);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_DIFF_H_
