// SPDX-License-Identifier: BSD-2-Clause
//
// What a set of UAPI headers declares, as laid out by the compiler. The file format that holds it
// is described in reference-headers/README.md.
#ifndef VABI_HARNESS_FACTS_MODEL_H_
#define VABI_HARNESS_FACTS_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace vabi::facts {

// All architectures here are little-endian with 8-bit bytes.
enum class Arch { kX86_64, kI386 };

struct Struct;

// One member of a struct or union. All offsets are relative to the record that holds the member.
struct Field {
  std::string name{};   // empty for an anonymous struct or union
  std::string type{};   // as declared, without name and dimensions; "struct" or "union" where it is
                        // defined in place
  uint32_t offset = 0;  // bytes
  uint32_t size = 0;    // bytes, the whole array; 0 for a flexible array
  // Array dimensions, outermost first; empty for no array. A flexible array has 0 as its first one.
  std::vector<uint32_t> dims{};
  bool flexible = false;  // declared with [] or [0]: as many elements as the sender likes
  bool zero_length =
      false;  // of the two, [0]: same layout, but a compiler may order code in another way
  std::string dims_text{};  // the dimensions as written, when they are not a plain number
  // For a bitfield: its first bit (counted from the start of the record) and its width. Width 0:
  // not a bitfield.
  uint32_t bit_offset = 0;
  uint32_t bit_width = 0;
  // The macro that declared the member, and the type it was given: RDMA_UAPI_PTR and "void *".
  // Libraries redefine these macros, so a header without them would mean something else there.
  std::string via{};
  std::string via_arg{};
  // Earlier member whose in-place type this one shares: `union {...} sgid_addr, dgid_addr;`.
  std::string same_type_as{};
  // The members, when the type is defined in place.
  std::shared_ptr<const Struct> record{};

  bool is_bitfield() const { return bit_width != 0; }
};

// A struct or union.
struct Struct {
  std::string name{};  // without keyword; empty for a type defined in place
  bool is_union = false;
  uint32_t size = 0;   // bytes, sizeof
  uint32_t align = 0;  // bytes, alignof; 0 where it is not recorded (types defined in place)
  bool packed = false;
  uint32_t aligned = 0;  // of an explicit aligned attribute; 0 for none
  std::vector<Field> fields{};
  // The 32-bit layout, where it differs.
  std::shared_ptr<const Struct> i386{};
};

struct Enum {
  std::string name{};  // empty for an anonymous one
  std::vector<std::pair<std::string, int64_t>> values{};
};

struct Macro {
  std::string name{};
  std::string params{};  // "( _type , _name )" for a function-like macro, else empty
  std::string body{};    // tokens separated by one space
  // Present for an integer constant expression. Values over INT64_MAX keep their bit pattern and
  // set is_unsigned.
  std::optional<int64_t> value{};
  std::optional<int64_t> value_i386{};  // only where it differs
  bool is_unsigned = false;
  bool needs_prelude = false;  // has its value only after other headers were included
};

struct Typedef {
  std::string name{};
  std::string text{};  // the declaration, tokens separated by one space
  uint32_t size = 0, align = 0;
  uint32_t size_i386 = 0, align_i386 = 0;
};

using Decl = std::variant<Macro, Enum, Struct, Typedef>;

struct Header {
  std::string path{};                   // as user space includes it: "rdma/mlx5-abi.h"
  std::string digest{};                 // first 8 digits of the SHA-256 of its facts file
  std::vector<std::string> includes{};  // "<linux/types.h>"
  std::vector<Decl> decls{};            // in the header's order
};

// Where a snapshot comes from: "kind", and per kind "tag", "commit", "kernel_commit", "date",
// "package", "version" …
using Source = std::vector<std::pair<std::string, std::string>>;

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_MODEL_H_
