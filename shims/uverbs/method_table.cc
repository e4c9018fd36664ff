// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/method_table.h"

#include "shims/uverbs/device.h"
#include "shims/uverbs/object_table.h"

namespace vabi {
namespace {

constexpr uint16_t kNoLimit = 0xffff;

// UVERBS_ATTR_UHW(): any length, optional.
constexpr AttrSpec kUhwIn = {.id = VABI_C(UVERBS_ATTR_UHW_IN),
                             .kind = AttrKind::kPtrIn,
                             .max = AttrSize::Bytes(kNoLimit)};
constexpr AttrSpec kUhwOut = {.id = VABI_C(UVERBS_ATTR_UHW_OUT),
                              .kind = AttrKind::kPtrOut,
                              .max = AttrSize::Bytes(kNoLimit)};

bool ObjectMissing(const Device& device, const AttrSpec& spec) {
  switch (spec.kind) {
    case AttrKind::kIdr:
    case AttrKind::kFd:
    case AttrKind::kIdrsArray:
      break;
    default:
      return false;
  }
  if (spec.object == ObjectType::kPrivate || spec.object == ObjectType::kAny) return false;
  return !ObjectServed(device, spec.object);
}

bool IsObject(const AttrSpec& spec) {
  return spec.kind == AttrKind::kIdr || spec.kind == AttrKind::kFd;
}

}  // namespace

size_t AttrSize::In(const World& world) const {
  switch (of) {
    case Of::kStruct:
      return world.Size(static_cast<StructId>(value));
    case Of::kFieldEnd:
      return world.End(static_cast<FieldId>(value));
    default:
      return value;
  }
}

MethodTable::MethodTable(const Device& device) {
  const std::span<const MethodSpec> generic[] = {
      DeviceMethods(), CqMethods(), QpMethods(),       SrqMethods(),        WqMethods(),
      MrMethods(),     DmMethods(), CountersMethods(), AsyncEventMethods(), DestroyMethods(),
      UnmodelledMethods()};
  for (const auto& methods : generic) {
    for (const MethodSpec& spec : methods) Add(device, spec);
  }
  for (const MethodSpec& spec : device.driver().PrivateMethods()) {
    if (spec.handler != nullptr) Add(device, spec);
  }
  for (const MethodSpec& spec : device.driver().PrivateMethods()) {
    if (spec.handler != nullptr) continue;
    const World& world = device.world();
    const MethodRow& row = MethodRows()[Index(spec.id)];
    const auto object = world.Constant(row.object), method = world.Constant(row.method);
    if (!object || !method) continue;
    const auto found =
        methods_.find(Key(static_cast<uint16_t>(*object), static_cast<uint16_t>(*method)));
    if (found != methods_.end()) AddAttributes(device, spec, &found->second);
  }
}

void MethodTable::Add(const Device& device, const MethodSpec& spec) {
  const World& world = device.world();
  const MethodRow& row = MethodRows()[Index(spec.id)];
  const auto object = world.Constant(row.object), method = world.Constant(row.method);
  if (!object || !method || !world.Served(spec.id) || !device.Offers(spec.needs)) return;
  CompiledMethod compiled;
  compiled.spec = &spec;
  compiled.name = row.name;
  // uapi_finalize_disable: a mandatory handle of an object that is not there makes the method uncallable.
  for (const AttrSpec& attribute : spec.attributes) {
    if (attribute.mandatory && world.Constant(attribute.id) && ObjectMissing(device, attribute)) return;
  }
  AddAttributes(device, spec, &compiled);
  methods_[Key(static_cast<uint16_t>(*object), static_cast<uint16_t>(*method))] = std::move(compiled);
}

void MethodTable::AddAttributes(const Device& device, const MethodSpec& spec, CompiledMethod* method) {
  const World& world = device.world();
  const auto add = [&](const AttrSpec& attribute, bool is_udata) {
    const auto id = world.Constant(attribute.id);
    if (!id) return;
    const size_t max = attribute.max.In(world);
    method->attributes.push_back({static_cast<uint16_t>(*id), is_udata,
                                  static_cast<uint16_t>(attribute.min.In(world)),
                                  static_cast<uint16_t>(max < kNoLimit ? max : kNoLimit), &attribute});
    if (IsObject(attribute) && attribute.access == Access::kDestroy) {
      method->destroys = static_cast<int>(method->attributes.size()) - 1;
    }
  };
  for (const AttrSpec& attribute : spec.attributes) add(attribute, false);
  if (spec.has_udata && !method->has_udata) {
    method->has_udata = true;
    add(kUhwIn, true);
    add(kUhwOut, true);
  }
}

namespace {

struct MethodNumber {
  const char* name;
  uint16_t object, method;
};
constexpr MethodNumber kNumbers[] = {
#define VABI_METHOD_NUMBER(name, object, method) {name, object, method},
#include "shims/uverbs/method_numbers.def"
};

}  // namespace

const char* MethodTable::NameOf(const World& world, uint16_t object, uint16_t method) {
  for (const MethodRow& row : MethodRows()) {
    const auto object_id = world.Constant(row.object), method_id = world.Constant(row.method);
    if (object_id && method_id && *object_id == object && *method_id == method) return row.name;
  }
  for (const MethodNumber& row : kNumbers) {
    if (row.object == object && row.method == method) return row.name;
  }
  return nullptr;
}

bool MethodTable::HasPrivateObject(uint64_t id) const {
  for (const auto& [key, method] : methods_) {
    if (key >> 16 == id) return true;
  }
  return false;
}

}  // namespace vabi
