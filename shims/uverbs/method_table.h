// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_METHOD_TABLE_H_
#define VABI_SHIMS_UVERBS_METHOD_TABLE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "shims/uverbs/ioctl_spec.h"

// The ioctl methods of one device in one kernel, with attribute numbers and sizes resolved from its facts:
// what uverbs_uapi.c builds from the declarations (uapi_merge_def, uapi_finalize_disable, uapi_finalize).

namespace vabi {

class Device;

struct CompiledAttr {
  uint16_t id;
  bool is_udata;
  uint16_t min, max;
  const AttrSpec* spec;
};

struct CompiledMethod {
  const MethodSpec* spec = nullptr;
  const char* name = nullptr;  // "CQ.CREATE"
  bool has_udata = false;
  int destroys = -1;  // index of the attribute with Access::kDestroy
  std::vector<CompiledAttr> attributes;

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
    const auto found = methods_.find(Key(object, method));
    return found == methods_.end() ? nullptr : &found->second;
  }
  // Name of a method whether this device has it or not; null: the fake kernel does not know it.
  static const char* NameOf(const World& world, uint16_t object, uint16_t method);
  // An object that a driver brings.
  bool HasPrivateObject(uint64_t id) const;

 private:
  static uint32_t Key(uint16_t object, uint16_t method) { return uint32_t{object} << 16 | method; }
  void Add(const Device& device, const MethodSpec& spec);
  void AddAttributes(const Device& device, const MethodSpec& spec, CompiledMethod* method);

  std::unordered_map<uint32_t, CompiledMethod> methods_;
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
