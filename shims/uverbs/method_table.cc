// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/method_table.h"

#include <string_view>

#include "shims/uverbs/device.h"
#include "shims/uverbs/object_table.h"

namespace vabi {
namespace {

constexpr uint16_t kNoLimit = 0xffff;

// UVERBS_ATTR_UHW(): any length, optional.
constexpr AttrSpec kUhwIn = {
    .id = VABI_C(UVERBS_ATTR_UHW_IN), .kind = AttrKind::kPtrIn, .max = AttrSize::Bytes(kNoLimit)};
constexpr AttrSpec kUhwOut = {
    .id = VABI_C(UVERBS_ATTR_UHW_OUT), .kind = AttrKind::kPtrOut, .max = AttrSize::Bytes(kNoLimit)};

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
  const std::span<const MethodSpec> sources[] = {
      DeviceMethods(),     CqMethods(),      QpMethods(),         SrqMethods(),
      WqMethods(),         MrMethods(),      DmMethods(),         CountersMethods(),
      AsyncEventMethods(), DestroyMethods(), UnmodelledMethods(), device.driver().PrivateMethods()};
  size_t methods = 0, attributes = 0;
  for (const auto& source : sources) {
    methods += source.size();
    // Two more for the driver's own request and reply.
    for (const MethodSpec& spec : source) attributes += spec.attributes.size() + 2;
  }
  methods_.reserve(methods);
  // Methods hold spans of these: they must not move.
  attributes_.reserve(attributes);
  for (const auto& source : sources) {
    for (const MethodSpec& spec : source) {
      if (spec.handler != nullptr || spec.unmodelled != nullptr) Add(device, spec);
    }
  }
  std::stable_sort(methods_.begin(), methods_.end(),
                   [](const CompiledMethod& a, const CompiledMethod& b) { return a.key < b.key; });
}

void MethodTable::Add(const Device& device, const MethodSpec& spec) {
  const World& world = device.world();
  const MethodRow& row = MethodRows()[Index(spec.id)];
  const auto object = world.Constant(row.object), method = world.Constant(row.method);
  if (!object || !method || !world.Served(spec.id) || !device.Offers(spec.needs)) return;
  // uapi_finalize_disable: a mandatory handle of an object that is not there makes the method
  // uncallable.
  for (const AttrSpec& attribute : spec.attributes) {
    if (attribute.mandatory && world.Constant(attribute.id) && ObjectMissing(device, attribute))
      return;
  }
  CompiledMethod compiled;
  compiled.key =
      static_cast<uint32_t>(static_cast<uint16_t>(*object)) << 16 | static_cast<uint16_t>(*method);
  compiled.spec = &spec;
  compiled.name = row.name;
  const size_t first = attributes_.size();
  AddAttributes(device, spec, first, &compiled);
  // What the driver adds to a generic method (ADD_UVERBS_ATTRIBUTES_SIMPLE).
  for (const MethodSpec& more : device.driver().PrivateMethods()) {
    if (more.handler == nullptr && more.id == spec.id)
      AddAttributes(device, more, first, &compiled);
  }
  compiled.attributes = std::span<const CompiledAttr>(attributes_).subspan(first);
  methods_.push_back(compiled);
}

void MethodTable::AddAttributes(const Device& device, const MethodSpec& spec, size_t first,
                                CompiledMethod* method) {
  const World& world = device.world();
  const auto add = [&](const AttrSpec& attribute, bool is_udata) {
    const auto id = world.Constant(attribute.id);
    if (!id) return;
    const size_t max = attribute.max.In(world);
    attributes_.push_back({static_cast<uint16_t>(*id), is_udata,
                           static_cast<uint16_t>(attribute.min.In(world)),
                           static_cast<uint16_t>(max < kNoLimit ? max : kNoLimit), &attribute});
    if (IsObject(attribute) && attribute.access == Access::kDestroy) {
      method->destroys = static_cast<int>(attributes_.size() - first) - 1;
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

// UVERBS_ID_DRIVER_NS
constexpr uint16_t kPrivateIds = 0x1000;

struct MethodNumber {
  const char* name;
  uint16_t object, method;
};
constexpr MethodNumber kNumbers[] = {
#define VABI_METHOD_NUMBER(name, object, method) {name, object, method},
#include "shims/uverbs/method_numbers.def"
};

}  // namespace

const char* MethodTable::NameOf(const World& world, std::span<const MethodSpec> own,
                                uint16_t object, uint16_t method) {
  // Drivers number what is theirs alike: bnxt_re's ALLOC_PAGE is mlx5's DEVX.
  const auto is_own = [own](std::string_view name) {
    return std::any_of(own.begin(), own.end(), [name](const MethodSpec& spec) {
      return MethodRows()[Index(spec.id)].name == name;
    });
  };
  const bool is_private = object >= kPrivateIds || method >= kPrivateIds;
  for (size_t i = 0; i < MethodRows().size(); ++i) {
    const MethodRow& row = MethodRows()[i];
    if (*row.name == '\0') continue;
    const auto object_id = world.Constant(row.object), method_id = world.Constant(row.method);
    if (object_id && method_id && *object_id == object && *method_id == method &&
        (!is_private || is_own(row.name)))
      return row.name;
  }
  for (const MethodNumber& row : kNumbers) {
    if (row.object == object && row.method == method && (!is_private || is_own(row.name)))
      return row.name;
  }
  return nullptr;
}

bool MethodTable::HasPrivateObject(uint64_t id) const {
  return std::any_of(methods_.begin(), methods_.end(),
                     [id](const CompiledMethod& method) { return method.key >> 16 == id; });
}

}  // namespace vabi
