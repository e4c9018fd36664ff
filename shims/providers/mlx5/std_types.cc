// SPDX-License-Identifier: BSD-2-Clause
// std_types.c, and main.c:mlx5_ib_query_ucontext
#include "shims/providers/mlx5/context_reply.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

using attr::kMandatory;
using attr::kOptional;

int QueryPd(IoctlCall& call) {
  auto* pd = call.Get<Pd>(VABI_C(MLX5_IB_ATTR_QUERY_PD_HANDLE));
  const uint32_t pdn = StateOf(*pd).pdn;
  return call.CopyOut(VABI_C(MLX5_IB_ATTR_QUERY_PD_RESP_PDN), &pdn, sizeof(pdn));
}

// No switch mode, no ports of other functions: nothing to tell (flags 0).
int QueryPort(IoctlCall& call) {
  uint32_t port = 0;
  if (call.CopyIn(VABI_C(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM), &port, sizeof(port)) != 0) {
    return call.Refuse(RuleId::mlx5_request_fault);
  }
  if (call.file.context() == nullptr) return call.Refuse(RuleId::mlx5_no_context);
  if (call.Violates(RuleId::mlx5_query_port_number, !call.file.device().ValidPort(port))) {
    return call.Refuse(RuleId::mlx5_query_port_number);
  }
  const uint8_t nothing[256] = {};
  const size_t size = call.world.Size(VABI_S(mlx5_ib_uapi_query_port));
  return call.CopyOutOrZero(VABI_C(MLX5_IB_ATTR_QUERY_PORT), nothing,
                            size < sizeof(nothing) ? size : 0);
}

int DataDirectPath(IoctlCall& call) {
  if (call.file.context() == nullptr) return call.Refuse(RuleId::mlx5_no_context);
  return call.Refuse(RuleId::mlx5_data_direct_none);
}

constexpr AttrSpec kQueryPd[] = {
    attr::Idr(VABI_C(MLX5_IB_ATTR_QUERY_PD_HANDLE), ObjectType::kPd, Access::kRead, kMandatory),
    attr::Out(VABI_C(MLX5_IB_ATTR_QUERY_PD_RESP_PDN), 4, kMandatory),
};
constexpr AttrSpec kQueryPort[] = {
    attr::In(VABI_C(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM), 4, kMandatory),
    attr::OutStruct(VABI_C(MLX5_IB_ATTR_QUERY_PORT), VABI_S(mlx5_ib_uapi_query_port),
                    VABI_F(mlx5_ib_uapi_query_port, reg_c0), kMandatory),
};
constexpr AttrSpec kDataDirectPath[] = {
    attr::OutMin(VABI_C(MLX5_IB_ATTR_GET_DATA_DIRECT_SYSFS_PATH), 0, kMandatory),
};
constexpr AttrSpec kQueryContext[] = {
    attr::OutStruct(VABI_C(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX),
                    VABI_S(mlx5_ib_alloc_ucontext_resp),
                    VABI_F(mlx5_ib_alloc_ucontext_resp, dump_fill_mkey), kMandatory),
};
constexpr AttrSpec kCreateCq[] = {
    attr::In(VABI_C(MLX5_IB_ATTR_CREATE_CQ_UAR_INDEX), 4, kOptional),
    attr::InType(VABI_C(MLX5_IB_ATTR_CREATE_CQ_DBR_BUF_UMEM), VABI_S(ib_uverbs_buffer_desc),
                 kOptional),
};
constexpr AttrSpec kCreateQp[] = {
    attr::InType(VABI_C(MLX5_IB_ATTR_CREATE_QP_DBR_BUF_UMEM), VABI_S(ib_uverbs_buffer_desc),
                 kOptional),
};
constexpr AttrSpec kCreateSrq[] = {
    attr::InType(VABI_C(MLX5_IB_ATTR_CREATE_SRQ_DBR_BUF_UMEM), VABI_S(ib_uverbs_buffer_desc),
                 kOptional),
};
constexpr AttrSpec kRegDmabuf[] = {
    attr::Flags(VABI_C(MLX5_IB_ATTR_REG_DMABUF_MR_ACCESS_FLAGS), kOptional),
};
const MethodSpec kMethods[] = {
    {.id = MethodId::PD__QUERY, .needs = Op::always, .attributes = kQueryPd, .handler = QueryPd},
    {.id = MethodId::DEVICE__MLX5_QUERY_PORT,
     .needs = Op::always,
     .attributes = kQueryPort,
     .handler = QueryPort},
    {.id = MethodId::DEVICE__GET_DATA_DIRECT_SYSFS_PATH,
     .needs = Op::always,
     .attributes = kDataDirectPath,
     .handler = DataDirectPath},
    {.id = MethodId::DEVICE__QUERY_CONTEXT,
     .needs = Op::always,
     .attributes = kQueryContext,
     .handler = nullptr},
    {.id = MethodId::CQ__CREATE, .needs = Op::always, .attributes = kCreateCq, .handler = nullptr},
    {.id = MethodId::QP__CREATE, .needs = Op::always, .attributes = kCreateQp, .handler = nullptr},
    {.id = MethodId::SRQ__CREATE,
     .needs = Op::always,
     .attributes = kCreateSrq,
     .handler = nullptr},
    {.id = MethodId::MR__REG_DMABUF_MR,
     .needs = Op::always,
     .attributes = kRegDmabuf,
     .handler = nullptr},
};

}  // namespace

std::span<const MethodSpec> StdMethods() { return kMethods; }

int Mlx5Driver::QueryContext(IoctlCall& call) {
  const Device& device = call.file.device();
  OwnedBody<128> reply(call.world, VABI_S(mlx5_ib_alloc_ucontext_resp));
  FillContextReply(device, ContextOf(call.file), reply);
  const size_t length =
      std::min(call.Length(VABI_C(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX)), reply.length());
  reply.Set(VABI_F(mlx5_ib_alloc_ucontext_resp, response_length), length);
  return call.CopyOutOrZero(VABI_C(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX), reply.base(),
                            reply.length());
}

}  // namespace vabi::mlx5
