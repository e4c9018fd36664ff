// SPDX-License-Identifier: BSD-2-Clause
// What handlers of ioctl methods see (include/rdma/uverbs_ioctl.h, ib_core_uverbs.c).
#include <cerrno>
#include <cstring>

#include "shims/sys/sys.h"
#include "shims/uverbs/command.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/ioctl_state.h"

namespace vabi {

bool IoctlCall::Has(ConstId attribute) const { return state->Find(attribute) != nullptr; }

size_t IoctlCall::Length(ConstId attribute) const {
  const AttrValue* value = state->Find(attribute);
  return value == nullptr ? 0 : value->length;
}

uint64_t IoctlCall::UserAddress(ConstId attribute) const {
  const AttrValue* value = state->Find(attribute);
  return value == nullptr ? 0 : value->data;
}

std::span<const uint8_t> IoctlCall::Bytes(ConstId attribute) const {
  AttrValue* value = state->Find(attribute);
  if (value == nullptr) return {};
  if (value->extra >= 0) return state->copies[static_cast<size_t>(value->extra)];
  return {reinterpret_cast<const uint8_t*>(&value->data), value->length};
}

int IoctlCall::CopyIn(ConstId attribute, void* to, size_t size) const {
  const AttrValue* value = state->Find(attribute);
  if (value == nullptr) return -ENOENT;
  const size_t copied = value->length < size ? value->length : size;
  if (value->extra >= 0) {
    std::memcpy(to, state->copies[static_cast<size_t>(value->extra)].data(), copied);
  } else if (value->length <= sizeof(value->data)) {
    std::memcpy(to, &value->data, copied);
  } else if (sys::CopyFromUser(to, value->data, copied) != 0) {
    return -EFAULT;
  }
  std::memset(static_cast<uint8_t*>(to) + copied, 0, size - copied);
  return 0;
}

int IoctlCall::GetConst(ConstId attribute, uint64_t* value) const {
  const AttrValue* found = state->Find(attribute);
  if (found == nullptr) return -ENOENT;
  *value = found->data;
  return 0;
}

int IoctlCall::GetFlags(ConstId attribute, uint64_t allowed, uint64_t* value) {
  *value = 0;
  const AttrValue* found = state->Find(attribute);
  if (found == nullptr) return 0;
  if (found->length == 8) {
    *value = found->data;
  } else if (found->length == 4) {
    *value = static_cast<uint32_t>(found->data);
  } else {
    return Refuse(RuleId::ioctl_flags_length);
  }
  if (Violates(RuleId::ioctl_flags_unknown, (*value & ~allowed) != 0)) {
    return Refuse(RuleId::ioctl_flags_unknown);
  }
  return 0;
}

int IoctlCall::EnumId(ConstId attribute) const {
  const AttrValue* value = state->Find(attribute);
  return value == nullptr ? -ENOENT : value->enum_id;
}

// uverbs_set_output: flags of the attribute in the caller's array.
int IoctlCall::MarkWritten(ConstId attribute) {
  AttrValue* value = state->Find(attribute);
  if (value == nullptr) return -ENOENT;
  const uint16_t flags =
      static_cast<uint16_t>(value->user_flags | world.Flag(VABI_C(UVERBS_ATTR_F_VALID_OUTPUT)));
  const uint64_t address =
      state->user_attributes + value->user_index * sizeof(UserAttr) + offsetof(UserAttr, flags);
  if (trace::Reply(address, &flags, sizeof(flags)) != 0) return Refuse(RuleId::response_fault);
  return 0;
}

int IoctlCall::CopyOut(ConstId attribute, const void* from, size_t size) {
  const AttrValue* value = state->Find(attribute);
  if (value == nullptr) return -ENOENT;
  const size_t copied = value->length < size ? value->length : size;
  if (trace::Reply(value->data, from, copied) != 0) return Refuse(RuleId::response_fault);
  return MarkWritten(attribute);
}

int IoctlCall::CopyOutOrZero(ConstId attribute, const void* from, size_t size) {
  const AttrValue* value = state->Find(attribute);
  if (value == nullptr) return -ENOENT;
  if (UdataOut(value->data, value->length).ClearFrom(size) != 0)
    return Refuse(RuleId::response_fault);
  return CopyOut(attribute, from, size);
}

Object* IoctlCall::GetObject(ConstId attribute) const {
  const AttrValue* value = state->Find(attribute);
  return value == nullptr ? nullptr : value->object;
}

std::span<Object* const> IoctlCall::GetObjects(ConstId attribute) const {
  const AttrValue* value = state->Find(attribute);
  if (value == nullptr || value->extra < 0) return {};
  return state->arrays[static_cast<size_t>(value->extra)];
}

void IoctlCall::Created(ConstId attribute, std::unique_ptr<Object> object) {
  AttrValue* value = state->Find(attribute);
  if (value == nullptr || state->new_index < 0) return;
  Introduce(*object, file);
  object->handle = state->new_handle;
  value->object = object.get();
  state->made = std::move(object);
}

std::shared_ptr<File> IoctlCall::GetFile(ConstId attribute) const {
  const AttrValue* value = state->Find(attribute);
  if (value == nullptr || value->extra < 0) return nullptr;
  return state->files[static_cast<size_t>(value->extra)];
}

void IoctlCall::CreatedFile(ConstId attribute, std::shared_ptr<File> made) {
  if (state->Find(attribute) == nullptr || state->new_fd < 0) return;
  made->set_backing_fd(state->new_fd);
  state->made_file = std::move(made);
}

}  // namespace vabi
