// SPDX-License-Identifier: BSD-2-Clause
//
// Layouts as a compiler put them into a binary: the BTF of kernel modules, the DWARF of libraries.
// Both hold only types that code refers to: what is absent there need not be absent from the ABI.
#ifndef VABI_HARNESS_FACTS_BINARY_H_
#define VABI_HARNESS_FACTS_BINARY_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/facts/diff.h"
#include "harness/facts/model.h"
#include "harness/facts/result.h"
#include "harness/facts/snapshot.h"

namespace vabi::facts {

// One definition of a struct or union, and where it stands. Fields whose type is a struct or union
// have their members in `record`, also where that type has a name.
struct BinaryStruct {
  Struct layout{};
  std::string file{};  // the first binary that has it: "ib_uverbs", "libmlx5.so.1"
};

struct BinaryTypes {
  // Several definitions of a name where compilation units disagree.
  std::map<std::string, std::vector<BinaryStruct>> structs{};
  std::map<std::string, int64_t> enumerators{};
  std::vector<std::string> files{};   // that were read
  std::vector<std::string> silent{};  // that hold no type information

  // Adds a definition unless an equal one is there.
  void Add(Struct layout, const std::string& file);
};

// The types called `names` in the DWARF of one ELF file. A file without DWARF goes into `silent`.
// Error when the file is no ELF file.
Result<BinaryTypes> ReadDwarf(const std::filesystem::path& file,
                              const std::set<std::string>& names);

// What a binary says of one struct that differs from the facts. `before` in the change is the
// facts' side, `after` the binary's.
struct LayoutDifference {
  Change change{};
  std::string file{};
};

struct LayoutReport {
  std::vector<std::string> equal{};   // structs that the binary lays out as the facts do
  std::vector<std::string> absent{};  // structs of the facts that the binary does not hold
  std::vector<LayoutDifference> differences{};

  bool dangerous() const;
};

// Compares each struct of the facts with its definitions in the binary, by place and size of every
// member; spelling of types is not compared. Enumerators too, when the binary has any.
LayoutReport CompareLayouts(const Snapshot& facts, const BinaryTypes& binary);

// The facts as the binary has them: each struct that it lays out otherwise, and each enumerator
// that it numbers otherwise, takes the binary's side; all that it does not hold stays as `base`
// says. What is replaced holds for x86_64 only, and so does the whole snapshot then. `source` gets
// "base" and "replaced".
Result<Snapshot> TakeLayouts(const Snapshot& base, const BinaryTypes& binary, std::string name,
                             Source source);

// Names of all structs and unions of the snapshot.
std::set<std::string> StructNames(const Snapshot& snapshot);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_BINARY_H_
