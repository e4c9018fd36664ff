// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/assertions.h"

#include <limits>

#include "harness/facts/text.h"

namespace vabi::facts {
namespace {

void Assert(std::string& out, const std::string& what, uint64_t value) {
  out += "_Static_assert(" + what + " == " + std::to_string(value) + ", \"" + what + "\");\n";
}

// FUNCTION(TYPE BETWEEN MEMBER)
std::string Call(std::string_view function, std::string_view type, std::string_view between,
                 std::string_view member) {
  std::string text(function);
  text.append("(").append(type).append(between).append(member).append(")");
  return text;
}

void AssertFields(std::string& out, const std::string& type, const std::string& path,
                  const Struct& record, uint32_t base) {
  for (const Field& field : record.fields) {
    uint32_t offset = base + field.offset;
    std::string member = path;
    if (!field.name.empty()) AddItem(member, field.name, ".");
    // C has no way to ask for the place of a bitfield, nor for that of an anonymous member.
    if (!field.name.empty() && !field.is_bitfield()) {
      Assert(out, Call("offsetof", type, ", ", member), offset);
      if (!field.flexible) Assert(out, Call("sizeof((", type, " *)0)->", member), field.size);
    }
    if (field.record && field.dims.empty()) AssertFields(out, type, member, *field.record, offset);
  }
}

void AssertConstant(std::string& out, const std::string& name, int64_t value) {
  // The least number has no literal of its own.
  std::string literal = value == std::numeric_limits<int64_t>::min()
                            ? "(-9223372036854775807LL - 1)"
                            : std::to_string(value) + "LL";
  out += "_Static_assert((long long)(" + name + ") == " + literal + ", \"" + name + "\");\n";
}

}  // namespace

std::string WriteAssertions(const Header& header, Arch arch) {
  // Alone and first, as the header must stand; only then what some macros need.
  std::string out =
      "#include <" + header.path + ">\n#include <stddef.h>\n#include <linux/netlink.h>\n";
  for (const Decl& decl : header.decls) {
    if (auto* top = std::get_if<Struct>(&decl)) {
      const Struct& record = LayoutFor(*top, arch);
      std::string type = (record.is_union ? "union " : "struct ") + record.name;
      Assert(out, "sizeof(" + type + ")", record.size);
      Assert(out, "_Alignof(" + type + ")", record.align);
      AssertFields(out, type, "", record, 0);
    } else if (auto* e = std::get_if<Enum>(&decl)) {
      for (const auto& [name, value] : e->values) AssertConstant(out, name, value);
    } else if (auto* macro = std::get_if<Macro>(&decl)) {
      if (!macro->value) continue;
      bool differs = arch == Arch::kI386 && macro->value_i386;
      AssertConstant(out, macro->name, differs ? *macro->value_i386 : *macro->value);
    } else if (auto* type = std::get_if<Typedef>(&decl)) {
      bool i386 = arch == Arch::kI386;
      Assert(out, "sizeof(" + type->name + ")", i386 ? type->size_i386 : type->size);
      Assert(out, "_Alignof(" + type->name + ")", i386 ? type->align_i386 : type->align);
    }
  }
  return out;
}

}  // namespace vabi::facts
