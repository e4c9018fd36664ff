// SPDX-License-Identifier: BSD-2-Clause
// UVERBS_OBJECT_MR (uverbs_std_types_mr.c).
#include <cerrno>

#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/command.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/method_table.h"
#include "shims/uverbs/mr_access.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace {

using attr::kMandatory;
using attr::kOptional;

constexpr uint64_t kPageOffset = 4095;
// What a DMA buffer may be registered for.
constexpr uint64_t kDmabufAccess =
    kLocalWrite | kRemoteRead | kRemoteWrite | kRemoteAtomic | kRelaxedOrdering;

template <typename T>
T Take(IoctlCall& call, ConstId attribute) {
  T value = {};
  call.CopyIn(attribute, &value, sizeof(value));
  return value;
}

// The region is made: it counts as a user, and the keys are the answer.
int Finish(IoctlCall& call, ConstId handle, std::unique_ptr<Mr> mr, ConstId lkey, ConstId rkey) {
  ++mr->pd->users;
  if (mr->dm != nullptr) ++mr->dm->users;
  const uint32_t keys[2] = {mr->lkey, mr->rkey};
  call.Created(handle, std::move(mr));
  if (const int error = call.CopyOut(lkey, &keys[0], sizeof(keys[0]))) return error;
  return call.CopyOut(rkey, &keys[1], sizeof(keys[1]));
}

int AdviseMr(IoctlCall& call) {
  Device& device = call.file.device();
  if (!device.Offers(Op::advise_mr)) return call.Refuse(RuleId::method_no_operation);
  uint64_t advice = 0, flags;
  call.GetConst(VABI_C(UVERBS_ATTR_ADVISE_MR_ADVICE), &advice);
  if (call.Violates(RuleId::ioctl_const_range, advice > UINT32_MAX)) {
    return call.Refuse(RuleId::ioctl_const_range);
  }
  if (const int error = call.GetFlags(
          VABI_C(UVERBS_ATTR_ADVISE_MR_FLAGS),
          static_cast<uint64_t>(call.world.Flag(VABI_C(IB_UVERBS_ADVISE_MR_FLAG_FLUSH))), &flags)) {
    return error;
  }
  const std::span<const uint8_t> bytes = call.Bytes(VABI_C(UVERBS_ATTR_ADVISE_MR_SGE_LIST));
  const size_t size = call.world.Size(VABI_S(ib_uverbs_sge));
  if (bytes.size() % size != 0) return call.Refuse(RuleId::mr_advise_list);
  std::vector<fabric::Sge> list;
  for (size_t at = 0; at < bytes.size(); at += size) {
    const Body sge(call.world, const_cast<uint8_t*>(bytes.data() + at), size);
    list.push_back({sge.Get(VABI_F(ib_uverbs_sge, addr)), sge.U32(VABI_F(ib_uverbs_sge, length)),
                    sge.U32(VABI_F(ib_uverbs_sge, lkey))});
  }
  return device.driver().AdviseMr(call, *call.Get<Pd>(VABI_C(UVERBS_ATTR_ADVISE_MR_PD_HANDLE)),
                                  static_cast<uint32_t>(advice), static_cast<uint32_t>(flags),
                                  list);
}

int RegDmMr(IoctlCall& call) {
  Device& device = call.file.device();
  if (!device.Offers(Op::reg_dm_mr)) return call.Refuse(RuleId::method_no_operation);
  auto mr = std::make_unique<Mr>();
  Introduce(*mr, call.file);
  mr->dm = call.Get<Dm>(VABI_C(UVERBS_ATTR_REG_DM_MR_DM_HANDLE));
  mr->pd = call.Get<Pd>(VABI_C(UVERBS_ATTR_REG_DM_MR_PD_HANDLE));
  mr->start = Take<uint64_t>(call, VABI_C(UVERBS_ATTR_REG_DM_MR_OFFSET));
  mr->length = Take<uint64_t>(call, VABI_C(UVERBS_ATTR_REG_DM_MR_LENGTH));
  uint64_t access;
  if (const int error = call.GetFlags(VABI_C(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS),
                                      SupportedAccess(call.world), &access)) {
    return error;
  }
  if (call.Violates(RuleId::mr_dm_zero_based, (access & kZeroBased) == 0)) {
    return call.Refuse(RuleId::mr_dm_zero_based);
  }
  mr->access = static_cast<uint32_t>(access);
  if (const int error = CheckMrAccess(call, mr->access)) return error;
  if (mr->start > mr->dm->length || mr->length > mr->dm->length - mr->start) {
    return call.Refuse(RuleId::mr_dm_range);
  }
  if (const int error = device.driver().RegDmMr(call, *mr)) return error;
  return Finish(call, VABI_C(UVERBS_ATTR_REG_DM_MR_HANDLE), std::move(mr),
                VABI_C(UVERBS_ATTR_REG_DM_MR_RESP_LKEY), VABI_C(UVERBS_ATTR_REG_DM_MR_RESP_RKEY));
}

int QueryMr(IoctlCall& call) {
  const Mr* mr = call.Get<Mr>(VABI_C(UVERBS_ATTR_QUERY_MR_HANDLE));
  int error = call.CopyOut(VABI_C(UVERBS_ATTR_QUERY_MR_RESP_LKEY), &mr->lkey, sizeof(mr->lkey));
  if (error == 0) {
    error = call.CopyOut(VABI_C(UVERBS_ATTR_QUERY_MR_RESP_RKEY), &mr->rkey, sizeof(mr->rkey));
  }
  if (error == 0) {
    error = call.CopyOut(VABI_C(UVERBS_ATTR_QUERY_MR_RESP_LENGTH), &mr->length, sizeof(mr->length));
  }
  if (error != 0) return error;
  error = call.CopyOut(VABI_C(UVERBS_ATTR_QUERY_MR_RESP_IOVA), &mr->iova, sizeof(mr->iova));
  return error == -ENOENT ? 0 : error;
}

int RegDmabufMr(IoctlCall& call) {
  Device& device = call.file.device();
  if (!device.Offers(Op::reg_user_mr_dmabuf)) return call.Refuse(RuleId::method_no_operation);
  auto mr = std::make_unique<Mr>();
  Introduce(*mr, call.file);
  mr->pd = call.Get<Pd>(VABI_C(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE));
  const auto offset = Take<uint64_t>(call, VABI_C(UVERBS_ATTR_REG_DMABUF_MR_OFFSET));
  mr->length = Take<uint64_t>(call, VABI_C(UVERBS_ATTR_REG_DMABUF_MR_LENGTH));
  mr->iova = Take<uint64_t>(call, VABI_C(UVERBS_ATTR_REG_DMABUF_MR_IOVA));
  if (call.Violates(RuleId::mr_page_offset, (offset & kPageOffset) != (mr->iova & kPageOffset))) {
    return call.Refuse(RuleId::mr_page_offset);
  }
  const auto fd = Take<uint32_t>(call, VABI_C(UVERBS_ATTR_REG_DMABUF_MR_FD));
  uint64_t access;
  if (const int error =
          call.GetFlags(VABI_C(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS), kDmabufAccess, &access)) {
    return error;
  }
  mr->access = static_cast<uint32_t>(access);
  if (const int error = CheckMrAccess(call, mr->access)) return error;
  if (const int error = device.driver().RegDmabufMr(call, *mr, offset, static_cast<int>(fd)))
    return error;
  return Finish(call, VABI_C(UVERBS_ATTR_REG_DMABUF_MR_HANDLE), std::move(mr),
                VABI_C(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY),
                VABI_C(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY));
}

// REG_MR: user memory or a DMA buffer (7.x).
int RegMrMethod(IoctlCall& call) {
  Device& device = call.file.device();
  auto mr = std::make_unique<Mr>();
  Introduce(*mr, call.file);
  mr->pd = call.Get<Pd>(VABI_C(UVERBS_ATTR_REG_MR_PD_HANDLE));
  mr->iova = Take<uint64_t>(call, VABI_C(UVERBS_ATTR_REG_MR_IOVA));
  mr->length = Take<uint64_t>(call, VABI_C(UVERBS_ATTR_REG_MR_LENGTH));
  const bool has_address = call.Has(VABI_C(UVERBS_ATTR_REG_MR_ADDR));
  const bool has_offset = call.Has(VABI_C(UVERBS_ATTR_REG_MR_FD_OFFSET));
  const bool has_fd = call.Has(VABI_C(UVERBS_ATTR_REG_MR_FD));
  const auto address = Take<uint64_t>(call, VABI_C(UVERBS_ATTR_REG_MR_ADDR));
  const auto offset = Take<uint64_t>(call, VABI_C(UVERBS_ATTR_REG_MR_FD_OFFSET));
  if (has_fd && !device.Offers(Op::reg_user_mr_dmabuf))
    return call.Refuse(RuleId::method_no_operation);
  if (has_fd ? !has_offset || has_address : !has_address || has_offset) {
    return call.Refuse(RuleId::mr_method_combination);
  }
  const uint64_t place = has_fd ? offset : address;
  if (call.Violates(RuleId::mr_page_offset, (place & kPageOffset) != (mr->iova & kPageOffset))) {
    return call.Refuse(RuleId::mr_page_offset);
  }
  uint64_t access;
  if (const int error =
          call.GetFlags(VABI_C(UVERBS_ATTR_REG_MR_ACCESS_FLAGS),
                        has_fd ? kDmabufAccess : SupportedAccess(call.world), &access)) {
    return error;
  }
  mr->access = static_cast<uint32_t>(access);
  if (const int error = CheckMrAccess(call, mr->access)) return error;
  mr->start = address;
  uint64_t fd = 0;
  call.GetConst(VABI_C(UVERBS_ATTR_REG_MR_FD), &fd);
  if (const int error = has_fd
                            ? device.driver().RegDmabufMr(call, *mr, offset, static_cast<int>(fd))
                            : device.driver().RegMr(call, *mr)) {
    return error;
  }
  return Finish(call, VABI_C(UVERBS_ATTR_REG_MR_HANDLE), std::move(mr),
                VABI_C(UVERBS_ATTR_REG_MR_RESP_LKEY), VABI_C(UVERBS_ATTR_REG_MR_RESP_RKEY));
}

constexpr AttrSpec kAdvise[] = {
    attr::Idr(VABI_C(UVERBS_ATTR_ADVISE_MR_PD_HANDLE), ObjectType::kPd, Access::kRead, kMandatory),
    attr::Const(VABI_C(UVERBS_ATTR_ADVISE_MR_ADVICE), kMandatory),
    attr::Flags(VABI_C(UVERBS_ATTR_ADVISE_MR_FLAGS), kMandatory),
    {.id = VABI_C(UVERBS_ATTR_ADVISE_MR_SGE_LIST),
     .kind = AttrKind::kPtrIn,
     .mandatory = true,
     .alloc_and_copy = true,
     .min = AttrSize::Struct(VABI_S(ib_uverbs_sge)),
     .max = AttrSize::Bytes(0xffff)},
};
constexpr AttrSpec kQuery[] = {
    attr::Idr(VABI_C(UVERBS_ATTR_QUERY_MR_HANDLE), ObjectType::kMr, Access::kRead, kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_QUERY_MR_RESP_RKEY), 4, kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_QUERY_MR_RESP_LKEY), 4, kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_QUERY_MR_RESP_LENGTH), 8, kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_QUERY_MR_RESP_IOVA), 8, kOptional),
};
constexpr AttrSpec kRegDm[] = {
    attr::Idr(VABI_C(UVERBS_ATTR_REG_DM_MR_HANDLE), ObjectType::kMr, Access::kNew, kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_REG_DM_MR_OFFSET), 8, kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_REG_DM_MR_LENGTH), 8, kMandatory),
    attr::Idr(VABI_C(UVERBS_ATTR_REG_DM_MR_PD_HANDLE), ObjectType::kPd, Access::kRead, kMandatory),
    attr::Flags(VABI_C(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS), kOptional),
    attr::Idr(VABI_C(UVERBS_ATTR_REG_DM_MR_DM_HANDLE), ObjectType::kDm, Access::kRead, kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_REG_DM_MR_RESP_LKEY), 4, kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_REG_DM_MR_RESP_RKEY), 4, kMandatory),
};
constexpr AttrSpec kRegDmabuf[] = {
    attr::Idr(VABI_C(UVERBS_ATTR_REG_DMABUF_MR_HANDLE), ObjectType::kMr, Access::kNew, kMandatory),
    attr::Idr(VABI_C(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE), ObjectType::kPd, Access::kRead,
              kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_REG_DMABUF_MR_OFFSET), 8, kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_REG_DMABUF_MR_LENGTH), 8, kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_REG_DMABUF_MR_IOVA), 8, kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_REG_DMABUF_MR_FD), 4, kMandatory),
    attr::Flags(VABI_C(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS), kOptional),
    attr::Out(VABI_C(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY), 4, kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY), 4, kMandatory),
};
// No DMAH object is modelled, so none can be named.
constexpr AttrSpec kDmaHandle = {.id = VABI_C(UVERBS_ATTR_REG_MR_DMA_HANDLE),
                                 .kind = AttrKind::kIdr,
                                 .object = ObjectType::kPrivate,
                                 .private_type = static_cast<uint16_t>(VABI_C(UVERBS_OBJECT_DMAH)),
                                 .access = Access::kRead};
constexpr AttrSpec kRegMr[] = {
    attr::Idr(VABI_C(UVERBS_ATTR_REG_MR_HANDLE), ObjectType::kMr, Access::kNew, kMandatory),
    attr::Idr(VABI_C(UVERBS_ATTR_REG_MR_PD_HANDLE), ObjectType::kPd, Access::kRead, kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_REG_MR_IOVA), 8, kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_REG_MR_LENGTH), 8, kMandatory),
    kDmaHandle,
    attr::Flags(VABI_C(UVERBS_ATTR_REG_MR_ACCESS_FLAGS), kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_REG_MR_ADDR), 8, kOptional),
    attr::In(VABI_C(UVERBS_ATTR_REG_MR_FD_OFFSET), 8, kOptional),
    attr::RawFd(VABI_C(UVERBS_ATTR_REG_MR_FD), kOptional),
    attr::Out(VABI_C(UVERBS_ATTR_REG_MR_RESP_LKEY), 4, kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_REG_MR_RESP_RKEY), 4, kMandatory),
};
constexpr MethodSpec kMethods[] = {
    {MethodId::MR__ADVISE_MR, Op::dereg_mr, kAdvise, AdviseMr},
    {MethodId::MR__QUERY_MR, Op::dereg_mr, kQuery, QueryMr},
    {MethodId::MR__DM_MR_REG, Op::dereg_mr, kRegDm, RegDmMr},
    {MethodId::MR__REG_DMABUF_MR, Op::dereg_mr, kRegDmabuf, RegDmabufMr},
    {MethodId::MR__REG_MR, Op::dereg_mr, kRegMr, RegMrMethod, true},
};

}  // namespace

std::span<const MethodSpec> MrMethods() { return kMethods; }

}  // namespace vabi
