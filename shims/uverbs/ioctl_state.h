// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_IOCTL_STATE_H_
#define VABI_SHIMS_UVERBS_IOCTL_STATE_H_

#include <array>
#include <memory>
#include <vector>

#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/method_table.h"

// What the front end keeps of one ioctl: the kernel's struct bundle_priv.

namespace vabi {

inline constexpr int kMaxMethodAttributes = 48;

// struct ib_uverbs_attr: it never changed since it has this form (v18 headers).
struct UserAttr {
  uint16_t attr_id;
  uint16_t len;
  uint16_t flags;
  uint8_t elem_id;        // attr_data.enum_data.elem_id; low byte of attr_data.reserved
  uint8_t elem_reserved;  // attr_data.enum_data.reserved
  uint64_t data;
};
static_assert(sizeof(UserAttr) == 16);

// One attribute of the method that the caller has given.
struct AttrValue {
  bool present;
  uint8_t enum_id;
  uint16_t length;
  uint16_t user_index;  // where it stands in the caller's array
  uint16_t user_flags;
  uint64_t data;   // pointer, number or inline bytes
  Object* object;  // kIdr: what was found, or made
  int32_t extra;   // index into copies, files or arrays; -1: none
};

struct IoctlCall::State {
  const CompiledMethod* method = nullptr;
  uint64_t user_attributes = 0;  // address of the caller's attribute array
  std::array<AttrValue, kMaxMethodAttributes> values;
  std::vector<std::vector<uint8_t>> copies;
  std::vector<std::shared_ptr<File>> files;
  std::vector<std::vector<Object*>> arrays;
  // kNew: at most one a method
  int new_index = -1;
  uint32_t new_handle = 0;
  int new_fd = -1;
  std::unique_ptr<Object> made;
  std::shared_ptr<File> made_file;
  std::unique_ptr<Object> destroyed;  // kept for the handler's reply

  AttrValue* Find(ConstId attribute) {
    for (size_t i = 0; i < method->attributes.size(); ++i) {
      if (method->attributes[i].spec->id == attribute)
        return values[i].present ? &values[i] : nullptr;
    }
    return nullptr;
  }
};

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_IOCTL_STATE_H_
