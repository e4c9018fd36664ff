// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_METHOD_TABLE_H_
#define VABI_SHIMS_UVERBS_METHOD_TABLE_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "shims/uverbs/ioctl_spec.h"

// The ioctl methods of one device in one kernel, with attribute numbers and sizes resolved from its
// facts: what uverbs_uapi.c builds from the declarations (uapi_merge_def, uapi_finalize_disable,
// uapi_finalize).

namespace vabi {

class Device;

struct CompiledAttr {
  uint16_t id;
  bool is_udata;
  uint16_t min, max;
  const AttrSpec* spec;
};

struct CompiledMethod {
  uint32_t key = 0;  // object << 16 | method
  const MethodSpec* spec = nullptr;
  const char* name = nullptr;  // "CQ.CREATE"
  bool has_udata = false;
  int destroys = -1;  // index of the attribute with Access::kDestroy
  std::span<const CompiledAttr> attributes;

  int Find(uint16_t id) const {
    for (size_t i = 0; i < attributes.size(); ++i) {
      if (attributes[i].id == id) return static_cast<int>(i);
    }
    return -1;
  }
};

class MethodTable {
 public:
  explicit MethodTable(const Device& device);
  const CompiledMethod* Find(uint16_t object, uint16_t method) const {
    const uint32_t key = uint32_t{object} << 16 | method;
    const auto found = std::lower_bound(methods_.begin(), methods_.end(), key, Before);
    return found == methods_.end() || found->key != key ? nullptr : &*found;
  }
  // Name of a method whether this device has it or not; null: the fake kernel does not know it.
  // own: what the device's driver brings.
  static const char* NameOf(const World& world, std::span<const MethodSpec> own, uint16_t object,
                            uint16_t method);
  // An object that a driver brings.
  bool HasPrivateObject(uint64_t id) const;

 private:
  static bool Before(const CompiledMethod& method, uint32_t key) { return method.key < key; }
  void Add(const Device& device, const MethodSpec& spec);
  // first: where the method's attributes start.
  void AddAttributes(const Device& device, const MethodSpec& spec, size_t first,
                     CompiledMethod* method);

  // Each process builds this when it looks for devices: two pieces of memory, by key and by method.
  std::vector<CompiledMethod> methods_;
  std::vector<CompiledAttr> attributes_;
};

// The generic methods, from methods_*.cc.
std::span<const MethodSpec> DeviceMethods();
std::span<const MethodSpec> CqMethods();
std::span<const MethodSpec> QpMethods();
std::span<const MethodSpec> SrqMethods();
std::span<const MethodSpec> WqMethods();
std::span<const MethodSpec> MrMethods();
std::span<const MethodSpec> DmMethods();
std::span<const MethodSpec> CountersMethods();
std::span<const MethodSpec> AsyncEventMethods();
std::span<const MethodSpec> DestroyMethods();
std::span<const MethodSpec> UnmodelledMethods();

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_METHOD_TABLE_H_
