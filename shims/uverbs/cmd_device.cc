// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>

#include "shims/sys/sys.h"
#include "shims/uverbs/command.h"
#include "shims/uverbs/commands.h"
#include "shims/uverbs/context.h"
#include "shims/uverbs/port.h"

namespace vabi {

bool HasCapabilities(const World& world) {
  return world.image().check_permissions == 0 || world.image().uid == 0;
}

int CheckCapabilities(Call& call, std::span<const int32_t> descriptors) {
  // core/ucaps.c:get_devt_from_fd takes only the files of its own devices; this world has none of
  // them.
  return descriptors.empty() ? 0 : call.Refuse(RuleId::context_fd_bad);
}

namespace {

int RefuseSecond(Call& call) {
  return call.file.context() == nullptr ? 0 : call.Refuse(RuleId::context_twice);
}

// Asks the driver.
int MakeContext(Call& call, std::unique_ptr<Context>* made) {
  auto context = std::make_unique<Context>();
  context->file = &call.file;
  context->device = &call.file.device();
  if (const int error = call.file.device().driver().AllocContext(call, *context)) return error;
  *made = std::move(context);
  return 0;
}

// The attribute of INVOKE_WRITE that holds the command (2) has the number that GET_CONTEXT_FD_ARR
// has in another method; ib_init_ucontext takes it for that one, and the command for two
// descriptors.
int CheckMistakenDescriptors(Command& c) {
  if (c.ioctl == nullptr) return 0;
  const auto array = c.world.Constant(VABI_C(UVERBS_ATTR_GET_CONTEXT_FD_ARR));
  const auto command = c.world.Constant(VABI_C(UVERBS_ATTR_WRITE_CMD));
  const int32_t descriptors[2] = {c.call.record.command, 0};
  return array && command && *array == *command ? CheckCapabilities(c.call, descriptors) : 0;
}

// Values of the knob context.order.
enum ContextOrder : uint64_t { kDriverFirst, kReplyFirst, kDriverLast };

int AnswerContext(Command& c, int fd) {
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_get_context_resp));
  reply.Set(VABI_F(ib_uverbs_get_context_resp, async_fd), static_cast<uint64_t>(fd));
  reply.Set(VABI_F(ib_uverbs_get_context_resp, num_comp_vectors), c.device.comp_vectors());
  return c.Respond(reply);
}

}  // namespace

int InitContext(Call& call) {
  std::unique_ptr<Context> context;
  int error = RefuseSecond(call);
  if (error == 0) error = MakeContext(call, &context);
  if (error == 0) call.file.set_context(std::move(context));
  return error;
}

// ib_uverbs_get_context
int GetContext(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_get_context));
  if (const int error = c.Request(request)) return error;
  const uint64_t order = c.world.Knob(KnobId::context_order);
  std::unique_ptr<Context> context;
  int fd = -1;
  int error = order == kDriverLast ? 0 : RefuseSecond(c.call);
  if (error == 0 && order == kDriverFirst) error = MakeContext(c.call, &context);
  if (error == 0) error = std::min(fd = ReserveEventFd(), 0);
  if (error == 0) error = AnswerContext(c, fd);
  if (error == 0 && order == kDriverLast) error = RefuseSecond(c.call);
  if (error == 0) error = CheckMistakenDescriptors(c);
  if (error == 0 && order != kDriverFirst) error = MakeContext(c.call, &context);
  if (error != 0) {
    if (context) c.device.driver().DeallocContext(*context);
    if (fd >= 0) sys::Close(fd);
    return error;
  }
  c.file.set_context(std::move(context));
  auto events = std::make_shared<AsyncEventFile>(&c.file);
  if (!c.file.async_events) c.file.async_events = events;
  c.file.AddEventFile(events);
  InstallEventFile(fd, std::move(events));
  return 0;
}

namespace {

// copy_query_dev_fields
void FillDevice(const Device& device, const Body& to) {
  const DeviceAttributes& from = device.attributes();
#define COPY(field) to.Set(VABI_F(ib_uverbs_query_device_resp, field), from.field)
  COPY(fw_ver);
  // Big-endian on the wire, as struct ib_device keeps it.
  to.Set(VABI_F(ib_uverbs_query_device_resp, node_guid),
         __builtin_bswap64(device.image().node_guid));
  to.Set(VABI_F(ib_uverbs_query_device_resp, sys_image_guid),
         __builtin_bswap64(device.image().sys_image_guid));
  COPY(max_mr_size);
  COPY(page_size_cap);
  COPY(vendor_id);
  COPY(vendor_part_id);
  COPY(hw_ver);
  COPY(max_qp);
  COPY(max_qp_wr);
  COPY(device_cap_flags);  // the low half
  to.Set(VABI_F(ib_uverbs_query_device_resp, max_sge),
         std::min(from.max_send_sge, from.max_recv_sge));
  COPY(max_sge_rd);
  COPY(max_cq);
  COPY(max_cqe);
  COPY(max_mr);
  COPY(max_pd);
  COPY(max_qp_rd_atom);
  COPY(max_ee_rd_atom);
  COPY(max_res_rd_atom);
  COPY(max_qp_init_rd_atom);
  COPY(max_ee_init_rd_atom);
  COPY(atomic_cap);
  COPY(max_ee);
  COPY(max_rdd);
  COPY(max_mw);
  COPY(max_raw_ipv6_qp);
  COPY(max_raw_ethy_qp);
  COPY(max_mcast_grp);
  COPY(max_mcast_qp_attach);
  COPY(max_total_mcast_qp_attach);
  COPY(max_ah);
  COPY(max_srq);
  COPY(max_srq_wr);
  COPY(max_srq_sge);
  COPY(max_pkeys);
  COPY(local_ca_ack_delay);
#undef COPY
  to.Set(VABI_F(ib_uverbs_query_device_resp, phys_port_cnt), device.image().port_count);
}

}  // namespace

int QueryDevice(Command& c) {
  Context* context;
  if (const int error = c.Context(&context)) return error;
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_query_device));
  if (const int error = c.Request(request)) return error;
  OwnedBody<512> reply(c.world, VABI_S(ib_uverbs_query_device_resp));
  FillDevice(c.device, reply);
  return c.Respond(reply);
}

// ib_uverbs_ex_query_device
int QueryDeviceEx(Command& c) {
  Context* context;
  if (const int error = c.Context(&context)) return error;
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_ex_query_device));
  if (const int error = c.Request(request)) return error;
  if (c.Violates(RuleId::query_device_comp_mask,
                 request.Get(VABI_F(ib_uverbs_ex_query_device, comp_mask)) != 0)) {
    return c.Refuse(RuleId::query_device_comp_mask);
  }
  if (c.Violates(RuleId::query_device_reserved,
                 request.Get(VABI_F(ib_uverbs_ex_query_device, reserved)) != 0)) {
    return c.Refuse(RuleId::query_device_reserved);
  }
  if (const int error = c.driver().QueryDevice(c.call, c.device)) return error;

  const DeviceAttributes& from = c.device.attributes();
  OwnedBody<512> reply(c.world, VABI_S(ib_uverbs_ex_query_device_resp));
  FillDevice(c.device, reply.Sub(VABI_F(ib_uverbs_ex_query_device_resp, base)));
  const Body odp = reply.Sub(VABI_F(ib_uverbs_ex_query_device_resp, odp_caps));
  odp.Set(VABI_F(ib_uverbs_odp_caps, general_caps), from.odp_general_caps);
  odp.Set(VABI_F(ib_uverbs_odp_caps, per_transport_caps_rc_odp_caps), from.odp_rc);
  odp.Set(VABI_F(ib_uverbs_odp_caps, per_transport_caps_uc_odp_caps), from.odp_uc);
  odp.Set(VABI_F(ib_uverbs_odp_caps, per_transport_caps_ud_odp_caps), from.odp_ud);
  reply.Set(VABI_F(ib_uverbs_ex_query_device_resp, xrc_odp_caps), from.xrc_odp_caps);
  reply.Set(VABI_F(ib_uverbs_ex_query_device_resp, timestamp_mask), from.timestamp_mask);
  reply.Set(VABI_F(ib_uverbs_ex_query_device_resp, hca_core_clock), from.hca_core_clock);
  reply.Set(VABI_F(ib_uverbs_ex_query_device_resp, device_cap_flags_ex),
            from.kernel_cap_flags_ex != 0 ? from.kernel_cap_flags_ex : from.device_cap_flags);
  const Body rss = reply.Sub(VABI_F(ib_uverbs_ex_query_device_resp, rss_caps));
  rss.Set(VABI_F(ib_uverbs_rss_caps, supported_qpts), from.rss_supported_qpts);
  rss.Set(VABI_F(ib_uverbs_rss_caps, max_rwq_indirection_tables),
          from.rss_max_rwq_indirection_tables);
  rss.Set(VABI_F(ib_uverbs_rss_caps, max_rwq_indirection_table_size),
          from.rss_max_rwq_indirection_table_size);
  reply.Set(VABI_F(ib_uverbs_ex_query_device_resp, max_wq_type_rq), from.max_wq_type_rq);
  reply.Set(VABI_F(ib_uverbs_ex_query_device_resp, raw_packet_caps), from.raw_packet_caps);
  const Body tm = reply.Sub(VABI_F(ib_uverbs_ex_query_device_resp, tm_caps));
  tm.Set(VABI_F(ib_uverbs_tm_caps, max_rndv_hdr_size), from.tm_max_rndv_hdr_size);
  tm.Set(VABI_F(ib_uverbs_tm_caps, max_num_tags), from.tm_max_num_tags);
  tm.Set(VABI_F(ib_uverbs_tm_caps, flags), from.tm_flags);
  tm.Set(VABI_F(ib_uverbs_tm_caps, max_ops), from.tm_max_ops);
  tm.Set(VABI_F(ib_uverbs_tm_caps, max_sge), from.tm_max_sge);
  const Body moderation = reply.Sub(VABI_F(ib_uverbs_ex_query_device_resp, cq_moderation_caps));
  moderation.Set(VABI_F(ib_uverbs_cq_moderation_caps, max_cq_moderation_count),
                 from.cq_max_moderation_count);
  moderation.Set(VABI_F(ib_uverbs_cq_moderation_caps, max_cq_moderation_period),
                 from.cq_max_moderation_period);
  reply.Set(VABI_F(ib_uverbs_ex_query_device_resp, max_dm_size), from.max_dm_size);
  reply.Set(VABI_F(ib_uverbs_ex_query_device_resp, response_length),
            c.ResponseLength(reply.length()));
  return c.Respond(reply);
}

int QueryPort(Command& c) {
  Context* context;
  if (const int error = c.Context(&context)) return error;
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_query_port));
  if (const int error = c.Request(request)) return error;
  const uint32_t port = request.U32(VABI_F(ib_uverbs_query_port, port_num));
  if (!c.device.ValidPort(port)) return c.Refuse(RuleId::port_invalid);
  OwnedBody<128> reply(c.world, VABI_S(ib_uverbs_query_port_resp));
  FillPort(c.device, port, reply);
  return c.Respond(reply);
}

}  // namespace vabi
