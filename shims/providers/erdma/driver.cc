// SPDX-License-Identifier: BSD-2-Clause
// erdma_main.c, erdma_verbs.c, erdma_qp.c
#include "shims/providers/erdma/driver.h"

#include <bit>

#include "shims/uverbs/qp_state.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {

std::unique_ptr<Driver> MakeErdmaDriver() {
  return std::make_unique<provider::Limited<erdma::ErdmaDriver>>();
}

namespace erdma {
namespace {

constexpr uint64_t kPage = 4096;
// erdma_hw.h, erdma_verbs.h
constexpr uint32_t kSqeBlock = 32, kRqe = 32, kBlocksPerSqe = 4, kStagKeyBits = 8;
constexpr uint32_t kMaxSendWr = 8192, kMaxReads = 128, kMaxSendSge = 6, kMaxRecvSge = 1;
constexpr uint32_t kMaxInline = 16 * kMaxSendSge;  // struct erdma_sge
// What this card says of itself (erdma_dev_attrs_init).
constexpr uint32_t kMaxQp = 131072, kMaxRecvWr = 32768, kMaxCqe = 1048576, kMaxMw = 1;
constexpr uint64_t kMaxMrSize = uint64_t{1} << 46;
constexpr provider::PinRules kPin = {rule::pin_range, rule::pin_nothing, rule::pin_fault};

struct ContextState final : DriverState {
  provider::MapEntries entries;
};

struct QueuePairState final : DriverState {
  uint32_t send = 0, receive = 0;  // elements
};

provider::How Clipped(const World& world) {
  return world.Knob(knob::respond_zeroes) != 0 ? provider::How::kZeroes : provider::How::kClip;
}
provider::How Whole(const World& world) {
  return world.Knob(knob::respond_zeroes) != 0 ? provider::How::kZeroes : provider::How::kWhole;
}

int ReadRequest(Call& call, const Body& body, RuleId too_short, RuleId tail, RuleId fault) {
  const bool whole = call.world.Knob(knob::request_whole) != 0;
  if (!whole && call.in.length() < body.length())
    return call.Unmodelled("erdma: a request that is shorter than what the kernel reads");
  return provider::CopyRequest(call, body.base(), body.length(),
                               {body.length(), too_short, tail, fault});
}

// erdma_map_user_dbrecords
int PinDoorbellRecord(Call& call, uint64_t address) {
  return provider::PinRecordPage(call, address, kPin);
}

}  // namespace

// erdma_device_ops and erdma_device_ops_iwarp. What it serves of posting and polling is for the
// kernel alone (uverbs_cmd_mask).
bool ErdmaDriver::Offers(Op op) const {
  switch (op) {
    case Op::alloc_ucontext:
    case Op::dealloc_ucontext:
    case Op::disassociate_ucontext:
    case Op::mmap:
    case Op::alloc_pd:
    case Op::dealloc_pd:
    case Op::reg_user_mr:
    case Op::dereg_mr:
    case Op::create_cq:
    case Op::destroy_cq:
    case Op::create_qp:
    case Op::query_qp:
    case Op::modify_qp:
    case Op::destroy_qp:
    case Op::query_device:
    case Op::query_port:
    case Op::query_gid:
    case Op::query_device_ex:
    case Op::create_cq_ex:
    case Op::create_qp_ex:
    case Op::modify_qp_ex:
      return true;
    default:
      return false;
  }
}

void ErdmaDriver::Describe(const Device&, DeviceAttributes* out) const {
  constexpr uint64_t kMemMgtExtensions = 1 << 21;
  out->max_mr_size = kMaxMrSize;
  out->page_size_cap = 0x7ffff000;
  out->vendor_id = 0x1ded;
  out->vendor_part_id = 0x107f;
  out->max_qp = kMaxQp - 1;
  out->max_qp_wr = std::min(kMaxSendWr, kMaxRecvWr);
  out->max_qp_rd_atom = out->max_qp_init_rd_atom = kMaxReads;
  out->max_res_rd_atom = kMaxQp * kMaxReads;
  out->device_cap_flags = kMemMgtExtensions;
  out->max_send_sge = kMaxSendSge;
  out->max_recv_sge = kMaxRecvSge;
  out->max_sge_rd = 1;
  out->max_cq = 2 * kMaxQp - 1;
  out->max_cqe = kMaxCqe;
  out->max_mr = 2 * kMaxQp;
  out->max_pd = 128 * 1024;
  out->max_mw = kMaxMw;
}

int ErdmaDriver::QueryDevice(Call& call, Device&) {
  if (call.world.Knob(knob::query_device_checked) == 0) return 0;
  return provider::NoUdataIo(call, rule::query_device_input, rule::query_device_fault);
}

int ErdmaDriver::AllocContext(Call& call, Context& context) {
  const World& world = call.world;
  OwnedBody<64> reply(world, structure::erdma_uresp_alloc_ctx);
  if (call.out.length() < reply.length()) return call.Refuse(rule::context_reply_short);
  auto state = std::make_unique<ContextState>();
  const auto doorbell = [&](const char* kind) {
    return state->entries.Insert({.length = kPage, .kind = kind});
  };
  reply.Set(VABI_PF(erdma_uresp_alloc_ctx, sdb), doorbell("SQ doorbell"));
  reply.Set(VABI_PF(erdma_uresp_alloc_ctx, rdb), doorbell("RQ doorbell"));
  reply.Set(VABI_PF(erdma_uresp_alloc_ctx, cdb), doorbell("CQ doorbell"));
  reply.Set(VABI_PF(erdma_uresp_alloc_ctx, dev_id), 0x107f);
  // sdb_type and sdb_offset: a doorbell page of the context's own, which is all that 6.6 and later
  // know.
  if (const int error =
          provider::Respond(call, reply.base(), reply.length(), Whole(world), rule::reply_fault)) {
    return error;
  }
  context.driver = std::move(state);
  return 0;
}

int ErdmaDriver::Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) {
  if (const int error = request.CheckShared(call)) return error;
  const provider::MapEntry* entry = static_cast<ContextState*>(context.driver.get())
                                        ->entries.FindExact(request.offset, request.length);
  if (entry == nullptr) return call.Refuse(rule::map_entry);
  reply->kind = entry->kind;
  reply->anonymous = true;
  return 0;
}

int ErdmaDriver::RegMr(Call& call, Mr& mr) {
  if (call.Violates(rule::mr_size, mr.length == 0 || mr.length > kMaxMrSize))
    return call.Refuse(rule::mr_size);
  if (const int error =
          provider::PinMemory(call, mr.start, mr.length, provider::AccessWrites(mr.access), kPin)) {
    return error;
  }
  mr.lkey = mr.rkey = mr.device->NextNumber() << kStagKeyBits;
  return 0;
}

int ErdmaDriver::CreateCq(Call& call, Cq& cq) {
  const World& world = call.world;
  if (call.Violates(rule::cq_cqe, cq.cqe > cq.device->attributes().max_cqe))
    return call.Refuse(rule::cq_cqe);
  const uint32_t depth = std::bit_ceil(cq.cqe);
  OwnedBody<32> request(world, structure::erdma_ureq_create_cq);
  if (const int error = ReadRequest(call, request, rule::cq_input_short, rule::cq_input_tail,
                                    rule::cq_input_fault)) {
    return error;
  }
  if (const int error =
          provider::PinMemory(call, request.Get(VABI_PF(erdma_ureq_create_cq, qbuf_va)),
                              request.U32(VABI_PF(erdma_ureq_create_cq, qbuf_len)), false, kPin)) {
    return error;
  }
  if (const int error =
          PinDoorbellRecord(call, request.Get(VABI_PF(erdma_ureq_create_cq, db_record_va)))) {
    return error;
  }
  OwnedBody<32> reply(world, structure::erdma_uresp_create_cq);
  reply.Set(VABI_PF(erdma_uresp_create_cq, cq_id), cq.device->NextNumber());
  reply.Set(VABI_PF(erdma_uresp_create_cq, num_cqe), depth);
  if (const int error = provider::Respond(call, reply.base(), reply.length(), Clipped(world),
                                          rule::reply_fault)) {
    return error;
  }
  cq.cqe = depth;
  return 0;
}

int ErdmaDriver::CreateQp(Call& call, Qp& qp) {
  const World& world = call.world;
  const QpCapabilities& cap = qp.cap;
  if (call.Violates(rule::qp_size, cap.max_send_wr > kMaxSendWr || cap.max_recv_wr > kMaxRecvWr ||
                                       cap.max_send_sge > kMaxSendSge ||
                                       cap.max_recv_sge > kMaxRecvSge ||
                                       cap.max_inline > kMaxInline || cap.max_send_wr == 0 ||
                                       cap.max_recv_wr == 0)) {
    return call.Refuse(rule::qp_size);
  }
  if (call.Violates(rule::qp_type, qp.qp_type != kQptRc)) return call.Refuse(rule::qp_type);
  const uint32_t send = std::bit_ceil(cap.max_send_wr * kBlocksPerSqe),
                 receive = std::bit_ceil(cap.max_recv_wr);
  OwnedBody<32> request(world, structure::erdma_ureq_create_qp);
  if (const int error = ReadRequest(call, request, rule::qp_input_short, rule::qp_input_tail,
                                    rule::qp_input_fault)) {
    return error;
  }
  const uint64_t buffer = request.Get(VABI_PF(erdma_ureq_create_qp, qbuf_va));
  const uint32_t send_bytes = send * kSqeBlock, receive_bytes = receive * kRqe;
  const auto receives_at = static_cast<uint32_t>((send_bytes + kPage - 1) & ~(kPage - 1));
  if (call.Violates(rule::qp_buffer, request.U32(VABI_PF(erdma_ureq_create_qp, qbuf_len)) <
                                         receives_at + receive_bytes)) {
    return call.Refuse(rule::qp_buffer);
  }
  if (const int error = provider::PinMemory(call, buffer, send_bytes, false, kPin)) return error;
  if (const int error =
          provider::PinMemory(call, buffer + receives_at, receive_bytes, false, kPin)) {
    return error;
  }
  if (const int error =
          PinDoorbellRecord(call, request.Get(VABI_PF(erdma_ureq_create_qp, db_record_va)))) {
    return error;
  }
  const uint32_t number = qp.device->NextQpn();
  OwnedBody<32> reply(world, structure::erdma_uresp_create_qp);
  reply.Set(VABI_PF(erdma_uresp_create_qp, qp_id), number);
  reply.Set(VABI_PF(erdma_uresp_create_qp, num_sqe), send);
  reply.Set(VABI_PF(erdma_uresp_create_qp, num_rqe), receive);
  reply.Set(VABI_PF(erdma_uresp_create_qp, rq_offset), receives_at);
  if (const int error =
          provider::Respond(call, reply.base(), reply.length(), Whole(world), rule::reply_fault)) {
    return error;
  }
  auto state = std::make_unique<QueuePairState>();
  state->send = send;
  state->receive = receive;
  qp.qp_num = number;
  // ERDMA_QPS_IWARP_IDLE is told as INIT; where nothing is told, what stands in the kernel's memory
  // reads as zero here.
  qp.state = world.Knob(knob::query_state) != 0 ? QpState::kInit : QpState::kReset;
  qp.driver = std::move(state);
  return 0;
}

// erdma_modify_qp, erdma_modify_qp_state_iwarp (erdma_modify_qp_internal before): as siw, only the
// error state is entered.
int ErdmaDriver::ModifyQp(Call& call, Qp& qp, QpState next, const QpAttributes&, uint32_t mask) {
  if (call.Violates(rule::modify_mask, (mask & ~kQpStandardBits) != 0))
    return call.Refuse(rule::modify_mask);
  if ((mask & kQpState) == 0 || qp.state == QpState::kErr) return 0;
  if (call.Violates(rule::modify_no_socket, next == QpState::kRts))
    return call.Refuse(rule::modify_no_socket);
  return 0;
}

QpState ErdmaDriver::StateAfter(const Qp& qp, QpState next, uint32_t mask) const {
  return (mask & kQpState) != 0 && next == QpState::kErr ? QpState::kErr : qp.state;
}

int ErdmaDriver::QueryQp(Call&, Qp& qp) {
  constexpr uint32_t kLocalWrite = 1, kRemoteWrite = 2, kRemoteRead = 4;
  const auto& state = *static_cast<QueuePairState*>(qp.driver.get());
  qp.cap.max_inline = kMaxInline;
  qp.cap.max_send_wr = state.send;
  qp.cap.max_recv_wr = state.receive;
  qp.attr = {};
  qp.attr.path_mtu = qp.device->image().ports[0].active_mtu;
  qp.attr.access_flags = kLocalWrite | kRemoteWrite | kRemoteRead;
  return 0;
}

}  // namespace erdma
}  // namespace vabi
