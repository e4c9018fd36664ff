// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_ATTR_SPEC_H_
#define VABI_SHIMS_UVERBS_ATTR_SPEC_H_

#include "shims/uverbs/ioctl_spec.h"

// Attribute declarations that read like the kernel's UVERBS_ATTR_* (include/rdma/uverbs_ioctl.h).

namespace vabi::attr {

inline constexpr bool kMandatory = true, kOptional = false;

constexpr AttrSpec Idr(ConstId id, ObjectType object, Access access, bool mandatory) {
  return {
      .id = id, .kind = AttrKind::kIdr, .mandatory = mandatory, .object = object, .access = access};
}
constexpr AttrSpec Fd(ConstId id, ObjectType object, Access access, bool mandatory) {
  return {
      .id = id, .kind = AttrKind::kFd, .mandatory = mandatory, .object = object, .access = access};
}
constexpr AttrSpec RawFd(ConstId id, bool mandatory) {
  return {.id = id, .kind = AttrKind::kRawFd, .mandatory = mandatory};
}
// UVERBS_ATTR_TYPE: exactly so many bytes.
constexpr AttrSpec In(ConstId id, uint16_t bytes, bool mandatory) {
  return {.id = id,
          .kind = AttrKind::kPtrIn,
          .mandatory = mandatory,
          .min = AttrSize::Bytes(bytes),
          .max = AttrSize::Bytes(bytes)};
}
constexpr AttrSpec Out(ConstId id, uint16_t bytes, bool mandatory) {
  return {.id = id,
          .kind = AttrKind::kPtrOut,
          .mandatory = mandatory,
          .min = AttrSize::Bytes(bytes),
          .max = AttrSize::Bytes(bytes)};
}
constexpr AttrSpec OutType(ConstId id, StructId type, bool mandatory) {
  return {.id = id,
          .kind = AttrKind::kPtrOut,
          .mandatory = mandatory,
          .min = AttrSize::Struct(type),
          .max = AttrSize::Struct(type)};
}
constexpr AttrSpec InType(ConstId id, StructId type, bool mandatory) {
  return {.id = id,
          .kind = AttrKind::kPtrIn,
          .mandatory = mandatory,
          .min = AttrSize::Struct(type),
          .max = AttrSize::Struct(type)};
}
// UVERBS_ATTR_STRUCT: at least up to the end of `last`; more must be zero.
constexpr AttrSpec InStruct(ConstId id, StructId type, FieldId last, bool mandatory) {
  return {.id = id,
          .kind = AttrKind::kPtrIn,
          .mandatory = mandatory,
          .zero_trailing = true,
          .min = AttrSize::End(last),
          .max = AttrSize::Struct(type)};
}
constexpr AttrSpec OutStruct(ConstId id, StructId type, FieldId last, bool mandatory) {
  return {.id = id,
          .kind = AttrKind::kPtrOut,
          .mandatory = mandatory,
          .zero_trailing = true,
          .min = AttrSize::End(last),
          .max = AttrSize::Struct(type)};
}
// UVERBS_ATTR_MIN_SIZE
constexpr AttrSpec InMin(ConstId id, uint16_t bytes, bool mandatory, bool alloc_and_copy = false) {
  return {.id = id,
          .kind = AttrKind::kPtrIn,
          .mandatory = mandatory,
          .alloc_and_copy = alloc_and_copy,
          .min = AttrSize::Bytes(bytes),
          .max = AttrSize::Bytes(0xffff)};
}
constexpr AttrSpec OutMin(ConstId id, uint16_t bytes, bool mandatory) {
  return {.id = id,
          .kind = AttrKind::kPtrOut,
          .mandatory = mandatory,
          .min = AttrSize::Bytes(bytes),
          .max = AttrSize::Bytes(0xffff)};
}
// UVERBS_ATTR_CONST_IN: a number in 8 bytes. UVERBS_ATTR_FLAGS_IN: 4 or 8.
constexpr AttrSpec Const(ConstId id, bool mandatory) { return In(id, 8, mandatory); }
constexpr AttrSpec Flags(ConstId id, bool mandatory) {
  return {.id = id,
          .kind = AttrKind::kPtrIn,
          .mandatory = mandatory,
          .min = AttrSize::Bytes(4),
          .max = AttrSize::Bytes(8)};
}

}  // namespace vabi::attr

#endif  // VABI_SHIMS_UVERBS_ATTR_SPEC_H_
