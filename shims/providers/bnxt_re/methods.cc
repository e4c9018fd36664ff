// SPDX-License-Identifier: BSD-2-Clause
// uapi.c (up to 6.18 in ib_verbs.c): pages of doorbells, toggle memory, doorbell regions
#include "shims/providers/bnxt_re/driver.h"
#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::bnxt_re {
namespace {

using attr::kMandatory;
using attr::kOptional;

#define ID(name) constant::name

constexpr AttrSpec Private(ConstId id, ConstId object, Access access, bool mandatory = true) {
  return {.id = id,
          .kind = AttrKind::kIdr,
          .mandatory = mandatory,
          .object = ObjectType::kPrivate,
          .private_type = static_cast<uint16_t>(object),
          .access = access};
}

// ib_uverbs_get_ucontext
int NeedContext(IoctlCall& call) {
  return call.file.context() == nullptr ? call.Refuse(rule::no_context) : 0;
}

// bnxt_re_pacing_alert does nothing where the card does not pace.
int NotifyDriver(IoctlCall& call) { return NeedContext(call); }

// The card has neither doorbell push nor pacing (state.h).
int AllocPage(IoctlCall& call) {
  if (const int error = NeedContext(call)) return error;
  uint64_t type = 0;
  if (const int error = call.GetConst(ID(BNXT_RE_ALLOC_PAGE_TYPE), &type)) return error;
  const auto is = [&](ConstId id) { return type == static_cast<uint64_t>(call.world.Flag(id)); };
  if (is(ID(BNXT_RE_ALLOC_WC_PAGE))) return call.Refuse(rule::page_push);
  if (is(ID(BNXT_RE_ALLOC_DBR_BAR_PAGE)) || is(ID(BNXT_RE_ALLOC_DBR_PAGE))) {
    if (call.world.Knob(knob::pacing_asked) == 0)
      return call.Unmodelled("bnxt_re: a page of pacing, which the card has not got");
    return call.Refuse(rule::page_pacing);
  }
  return call.Refuse(rule::page_type);
}

// No queue has a page of toggle bits.
int GetToggleMemory(IoctlCall& call) {
  if (const int error = NeedContext(call)) return error;
  if (call.Has(ID(BNXT_RE_TOGGLE_MEM_CQ_HANDLE)) || call.Has(ID(BNXT_RE_TOGGLE_MEM_SRQ_HANDLE)))
    return call.Refuse(rule::toggle_none);
  uint64_t type = 0;
  if (!call.Has(ID(BNXT_RE_TOGGLE_MEM_TYPE)) || !call.Has(ID(BNXT_RE_TOGGLE_MEM_RES_ID)))
    return call.Refuse(rule::toggle_missing);
  if (const int error = call.GetConst(ID(BNXT_RE_TOGGLE_MEM_TYPE), &type)) return error;
  const auto is = [&](ConstId id) { return type == static_cast<uint64_t>(call.world.Flag(id)); };
  if (is(ID(BNXT_RE_CQ_TOGGLE_MEM)) || is(ID(BNXT_RE_SRQ_TOGGLE_MEM)))
    return call.Refuse(rule::toggle_none);
  return call.Refuse(rule::toggle_type);
}

// What is special goes through Driver::DestroyPrivate.
int Destroyed(IoctlCall&) { return 0; }

int TellRegion(IoctlCall& call, ConstId attribute, uint32_t dpi) {
  OwnedBody<32> region(call.world, structure::bnxt_re_db_region);
  region.Set(VABI_PF(bnxt_re_db_region, dpi), dpi);
  return call.CopyOutOrZero(attribute, region.base(), region.length());
}

int AllocRegion(IoctlCall& call) {
  if (const int error = NeedContext(call)) return error;
  ContextState& context = StateOf(*call.file.context());
  auto state = std::make_unique<RegionState>();
  state->context = call.file.context();
  state->entry = context.entries.Insert({.length = kPage, .kind = "DOORBELL"});
  const uint64_t offset = state->entry;
  // One is the context's own.
  const uint32_t dpi = kDpi + 1 + call.file.device().NextNumber();
  auto object = std::make_unique<Object>(ObjectType::kPrivate);
  object->private_type = static_cast<uint16_t>(ID(BNXT_RE_OBJECT_DBR));
  object->driver = std::move(state);
  call.Created(ID(BNXT_RE_ALLOC_DBR_HANDLE), std::move(object));
  if (const int error = TellRegion(call, ID(BNXT_RE_ALLOC_DBR_ATTR), dpi)) return error;
  return call.CopyOut(ID(BNXT_RE_ALLOC_DBR_OFFSET), &offset, sizeof(offset));
}

// The context has one with its first protection domain.
int GetDefaultRegion(IoctlCall& call) {
  if (const int error = NeedContext(call)) return error;
  const bool has = StateOf(*call.file.context()).has_doorbell;
  return TellRegion(call, ID(BNXT_RE_DEFAULT_DBR_ATTR), has ? kDpi : 0);
}

constexpr AttrSpec kAllocPage[] = {
    Private(ID(BNXT_RE_ALLOC_PAGE_HANDLE), ID(BNXT_RE_OBJECT_ALLOC_PAGE), Access::kNew),
    attr::Const(ID(BNXT_RE_ALLOC_PAGE_TYPE), kMandatory),
    attr::Out(ID(BNXT_RE_ALLOC_PAGE_MMAP_OFFSET), 8, kMandatory),
    attr::Out(ID(BNXT_RE_ALLOC_PAGE_MMAP_LENGTH), 4, kMandatory),
    attr::Out(ID(BNXT_RE_ALLOC_PAGE_DPI), 4, kMandatory),
};
constexpr AttrSpec kDestroyPage[] = {
    Private(ID(BNXT_RE_DESTROY_PAGE_HANDLE), ID(BNXT_RE_OBJECT_ALLOC_PAGE), Access::kDestroy),
};
// The queues' handles came with 7.3, which made the others optional.
constexpr AttrSpec kGetToggle[] = {
    Private(ID(BNXT_RE_TOGGLE_MEM_HANDLE), ID(BNXT_RE_OBJECT_GET_TOGGLE_MEM), Access::kNew),
    attr::Const(ID(BNXT_RE_TOGGLE_MEM_TYPE), kOptional),
    attr::In(ID(BNXT_RE_TOGGLE_MEM_RES_ID), 4, kOptional),
    attr::Out(ID(BNXT_RE_TOGGLE_MEM_MMAP_PAGE), 8, kMandatory),
    attr::Out(ID(BNXT_RE_TOGGLE_MEM_MMAP_OFFSET), 4, kMandatory),
    attr::Out(ID(BNXT_RE_TOGGLE_MEM_MMAP_LENGTH), 4, kMandatory),
    attr::Idr(ID(BNXT_RE_TOGGLE_MEM_CQ_HANDLE), ObjectType::kCq, Access::kRead, kOptional),
    attr::Idr(ID(BNXT_RE_TOGGLE_MEM_SRQ_HANDLE), ObjectType::kSrq, Access::kRead, kOptional),
};
constexpr AttrSpec kReleaseToggle[] = {
    Private(ID(BNXT_RE_RELEASE_TOGGLE_MEM_HANDLE), ID(BNXT_RE_OBJECT_GET_TOGGLE_MEM),
            Access::kDestroy),
};
constexpr AttrSpec kAllocRegion[] = {
    Private(ID(BNXT_RE_ALLOC_DBR_HANDLE), ID(BNXT_RE_OBJECT_DBR), Access::kNew),
    attr::OutStruct(ID(BNXT_RE_ALLOC_DBR_ATTR), structure::bnxt_re_db_region,
                    VABI_PF(bnxt_re_db_region, reserved2), kMandatory),
    attr::Out(ID(BNXT_RE_ALLOC_DBR_OFFSET), 8, kMandatory),
};
constexpr AttrSpec kFreeRegion[] = {
    Private(ID(BNXT_RE_FREE_DBR_HANDLE), ID(BNXT_RE_OBJECT_DBR), Access::kDestroy),
};
constexpr AttrSpec kDefaultRegion[] = {
    attr::OutStruct(ID(BNXT_RE_DEFAULT_DBR_ATTR), structure::bnxt_re_db_region,
                    VABI_PF(bnxt_re_db_region, reserved2), kMandatory),
};
constexpr AttrSpec kCreateQp[] = {
    Private(ID(BNXT_RE_CREATE_QP_ATTR_DBR_HANDLE), ID(BNXT_RE_OBJECT_DBR), Access::kRead,
            kOptional),
};

const MethodSpec kMethods[] = {
    {.id = method::BNXT_NOTIFY_DRV__NOTIFY_DRV,
     .needs = Op::always,
     .attributes = {},
     .handler = NotifyDriver},
    {.id = method::BNXT_PAGE__ALLOC,
     .needs = Op::always,
     .attributes = kAllocPage,
     .handler = AllocPage},
    {.id = method::BNXT_PAGE__DESTROY,
     .needs = Op::always,
     .attributes = kDestroyPage,
     .handler = Destroyed},
    {.id = method::BNXT_TOGGLE_MEM__GET,
     .needs = Op::always,
     .attributes = kGetToggle,
     .handler = GetToggleMemory},
    {.id = method::BNXT_TOGGLE_MEM__RELEASE,
     .needs = Op::always,
     .attributes = kReleaseToggle,
     .handler = Destroyed},
    {.id = method::BNXT_DBR__ALLOC,
     .needs = Op::always,
     .attributes = kAllocRegion,
     .handler = AllocRegion},
    {.id = method::BNXT_DBR__FREE,
     .needs = Op::always,
     .attributes = kFreeRegion,
     .handler = Destroyed},
    {.id = method::BNXT_DEFAULT_DBR__GET,
     .needs = Op::always,
     .attributes = kDefaultRegion,
     .handler = GetDefaultRegion},
    {.id = MethodId::QP__CREATE, .needs = Op::always, .attributes = kCreateQp, .handler = nullptr},
};

}  // namespace

std::span<const MethodSpec> BnxtReDriver::PrivateMethods() const { return kMethods; }

// bnxt_re_dbr_cleanup
int BnxtReDriver::DestroyPrivate(Call& call, Object& object) {
  if (object.private_type != static_cast<uint16_t>(ID(BNXT_RE_OBJECT_DBR))) return 0;
  if (call.Violates(rule::region_busy, object.users > 0)) return call.Refuse(rule::region_busy);
  const auto* state = static_cast<RegionState*>(object.driver.get());
  if (state->context->driver != nullptr) StateOf(*state->context).entries.Remove(state->entry);
  return 0;
}

Object* RegionOf(Call& call) {
  const IoctlCall* ioctl = AsIoctl(call);
  return ioctl == nullptr ? nullptr : ioctl->GetObject(ID(BNXT_RE_CREATE_QP_ATTR_DBR_HANDLE));
}

}  // namespace vabi::bnxt_re
