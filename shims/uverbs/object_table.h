// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_OBJECT_TABLE_H_
#define VABI_SHIMS_UVERBS_OBJECT_TABLE_H_

#include <optional>

#include "shims/uverbs/device.h"
#include "shims/uverbs/objects.h"

// The generic uverbs objects, and what a driver needs for each (uverbs_std_types*.c:
// UAPI_DEF_OBJ_NEEDS_FN).

namespace vabi {

struct ObjectRow {
  ObjectType type;
  ConstId id;  // UVERBS_OBJECT_…
  Op needs;
  Op needs_too;
};

const ObjectRow* FindObjectRow(ObjectType type);
// The type of a generic object by its number in this kernel; nothing when it has none.
std::optional<ObjectType> ObjectTypeOf(const World& world, uint64_t object_id);
// The device has the object: uapi_get_object finds it.
bool ObjectServed(const Device& device, ObjectType type);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_OBJECT_TABLE_H_
