// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_IOCTL_SPEC_H_
#define VABI_SHIMS_UVERBS_IOCTL_SPEC_H_

#include <cstdint>
#include <span>

#include "harness/world/world.h"
#include "shims/uverbs/objects.h"

// How an ioctl method declares its attributes (the kernel's UVERBS_ATTR_* declarations). The front
// end checks lengths, reserved fields, duplicates, flags and handles from these tables, in the
// caller's order; handlers see only what passed.

namespace vabi {

class IoctlCall;

enum class AttrKind : uint8_t { kPtrIn, kPtrOut, kIdr, kFd, kRawFd, kEnumIn, kIdrsArray };
enum class Access : uint8_t { kRead, kWrite, kNew, kDestroy };

// Bytes: a number, a structure of this kernel, or up to the end of one of its fields.
struct AttrSize {
  enum class Of : uint8_t { kNumber, kStruct, kFieldEnd } of = Of::kNumber;
  uint16_t value = 0;

  static constexpr AttrSize Bytes(uint16_t n) { return {Of::kNumber, n}; }
  static constexpr AttrSize Struct(StructId id) { return {Of::kStruct, static_cast<uint16_t>(id)}; }
  static constexpr AttrSize End(FieldId id) { return {Of::kFieldEnd, static_cast<uint16_t>(id)}; }
  size_t In(const World& world) const;
};

struct AttrSpec {
  ConstId id;  // absent from this kernel's headers: the kernel does not know the attribute
  AttrKind kind;
  bool mandatory = false;
  bool zero_trailing = false;   // a longer attribute is fine while its tail is zero
  bool alloc_and_copy = false;  // copied, and so faulted, when the attribute is processed
  AttrSize min = {}, max = {};  // pointer kinds: bytes; kIdrsArray: number of handles
  ObjectType object = ObjectType::kPd;
  uint16_t private_type = 0;  // with ObjectType::kPrivate: ConstId of the driver's object
  Access access = Access::kRead;
  std::span<const AttrSpec> variants = {};  // kEnumIn: by element number
};

struct MethodSpec {
  MethodId id;
  Op needs;  // the method exists only where the driver has this operation
  std::span<const AttrSpec> attributes;
  // Null in Driver::PrivateMethods(): adds attributes to a generic method
  // (ADD_UVERBS_ATTRIBUTES_SIMPLE).
  int (*handler)(IoctlCall&);
  bool has_udata = false;  // takes UVERBS_ATTR_UHW_IN and UHW_OUT
  // The method is there, and the fake kernel does not know what it does: every call is unmodelled.
  const char* unmodelled = nullptr;
};

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_IOCTL_SPEC_H_
