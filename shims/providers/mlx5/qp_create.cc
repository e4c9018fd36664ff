// SPDX-License-Identifier: BSD-2-Clause
// qp.c:mlx5_ib_create_qp and what it calls
#include <algorithm>
#include <mutex>

#include "shims/fabric/nic.h"
#include "shims/fabric/remote.h"
#include "shims/providers/mlx5/bfregs.h"
#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/doorbell.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/qp_state.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

#define REQ(field) VABI_F(mlx5_ib_create_qp, field)
#define RESP(field) VABI_F(mlx5_ib_create_qp_resp, field)

constexpr uint64_t kQuantum = 64;
// enum ib_qp_create_flags
constexpr uint32_t kBlockMulticastLoopback = 1 << 1, kCrossChannel = 1 << 2, kManagedSend = 1 << 3,
                   kManagedReceive = 1 << 4, kSourceQpn = 1 << 10, kEndPadding = 1 << 11;
constexpr uint32_t kMaxReceiveWr = 1u << kCaps.log_max_qp_sz;

struct Request {
  uint64_t buffer, doorbell, send_buffer;
  uint64_t access_key;
  uint64_t streams, errored_streams;  // logarithms
  uint32_t sq_blocks, rq_count, rq_shift, flags, user_index, bfreg_index;
  bool covers_index;
};

bool IsPowerOfTwo(uint32_t value) { return (value & (value - 1)) == 0; }

class Creator {
 public:
  Creator(Call& call, Qp& qp)
      : call_(call),
        world_(call.world),
        qp_(qp),
        context_(ContextOf(call.file)),
        state_(new QueuePairState()) {}

  int Run() {
    if (const int error = CheckType()) return error;
    if (qp_.qp_type == kQptXrcTgt) return CreateXrcTarget();
    if (const int error = CheckFlow()) return error;
    if (qp_.ind_table != nullptr) return CreateRss(call_, qp_);
    if (const int error = ReadRequest()) return error;
    if (IsRaw() && qp_.device->image().link == LinkLayer::kInfiniband) {
      return call_.Unmodelled("mlx5: raw packet queue pairs on InfiniBand");
    }
    if (const int error = CheckVendorFlags()) return error;
    if (const int error = CheckUserIndex()) return error;
    if (const int error = CheckCreateFlags()) return error;
    if (const int error = CheckDynamicAttributes()) return error;
    if (state_->dynamic == Dynamic::kTarget) return CreateTarget();
    if (const int error = CheckSizes()) return error;
    // Raw packet queue pairs get here later, with the same answer.
    if (call_.Violates(RuleId::mlx5_real_time, LacksTime(qp_.send_cq) || LacksTime(qp_.recv_cq))) {
      return call_.Refuse(RuleId::mlx5_real_time);
    }
    if (const int error = FindRegister()) return error;
    const int error = CreateUser();
    if (error != 0 && state_->bfreg != kInvalidBfreg) FreeBfreg(context_, state_->bfreg);
    return error;
  }

 private:
  bool IsRaw() const { return qp_.qp_type == kQptRawPacket; }
  bool Flag(ConstId bit) const {
    return (request_.flags & static_cast<uint32_t>(world_.Flag(bit))) != 0;
  }

  // check_qp_type
  int CheckType() {
    bool known = false;
    switch (qp_.qp_type) {
      case kQptRc:
      case kQptUc:
      case kQptUd:
      case kQptRawPacket:
        known = true;
        break;
      case kQptXrcIni:
      case kQptXrcTgt:
        known = kCaps.xrc;
        break;
      case kQptDriver:
        if (world_.Knob(KnobId::mlx5_dc) == 0) break;
        if (world_.Knob(KnobId::mlx5_create_qp_reads_dc) != 0) return CheckDynamicType();
        known = kCaps.dct;
        break;
      default:
        break;
    }
    return known ? 0 : call_.Refuse(RuleId::mlx5_create_qp_type);
  }

  // set_mlx_qp_type (up to 5.7)
  int CheckDynamicType() {
    OwnedBody<128> body(world_, VABI_S(mlx5_ib_create_qp));
    if (call_.in.length() < body.length()) return call_.Refuse(RuleId::mlx5_create_qp_dc_type);
    if (call_.in.Copy(body.base(), body.length()) != 0)
      return call_.Refuse(RuleId::mlx5_request_fault);
    const auto dci = static_cast<uint32_t>(world_.Flag(VABI_C(MLX5_QP_FLAG_TYPE_DCI)));
    const auto dct = static_cast<uint32_t>(world_.Flag(VABI_C(MLX5_QP_FLAG_TYPE_DCT)));
    const uint32_t asked = body.U32(REQ(flags)) & (dci | dct);
    if (asked != dci && asked != dct) return call_.Refuse(RuleId::mlx5_create_qp_dc_type);
    if (!kCaps.dct) return call_.Refuse(RuleId::mlx5_create_qp_dc);
    state_->dynamic = asked == dci ? Dynamic::kInitiator : Dynamic::kTarget;
    return CheckDynamicAttributes();
  }

  // check_qp_attr (up to 5.7 in front of all that follows the type)
  int CheckDynamicAttributes() {
    if (call_.Violates(RuleId::mlx5_create_qp_dci_receives,
                       state_->dynamic == Dynamic::kInitiator &&
                           (qp_.cap.max_recv_wr != 0 || qp_.cap.max_recv_sge != 0))) {
      return call_.Refuse(RuleId::mlx5_create_qp_dci_receives);
    }
    if (state_->dynamic == Dynamic::kTarget && (qp_.srq == nullptr || qp_.recv_cq == nullptr)) {
      return call_.Refuse(RuleId::mlx5_create_qp_dct_queues);
    }
    return 0;
  }

  // check_valid_flow
  int CheckFlow() {
    if (call_.Violates(RuleId::mlx5_create_qp_raw_index,
                       qp_.qp_type == kQptRawPacket && context_.cqe_version == 0)) {
      return call_.Refuse(RuleId::mlx5_create_qp_raw_index);
    }
    if (call_.Violates(RuleId::mlx5_create_qp_ind_table,
                       qp_.qp_type != kQptRawPacket && qp_.ind_table != nullptr)) {
      return call_.Refuse(RuleId::mlx5_create_qp_ind_table);
    }
    return 0;
  }

  // process_udata_size, check_ucmd_data
  int ReadRequest() {
    OwnedBody<128> body(world_, VABI_S(mlx5_ib_create_qp));
    const FieldLoc ece = world_.At(REQ(ece_options)), reserved = world_.At(REQ(reserved));
    const size_t least = ece.offset < 0 ? body.length() : static_cast<size_t>(ece.offset);
    const size_t length = call_.in.length();
    if (world_.Knob(KnobId::mlx5_create_qp_sized) == 0) {
      // The kernel read its whole structure, whatever was sent.
      if (length < body.length())
        return call_.Unmodelled("mlx5: a CREATE_QP request shorter than the kernel reads");
    } else if (call_.Violates(RuleId::mlx5_create_qp_length, length < least)) {
      return call_.Refuse(RuleId::mlx5_create_qp_length);
    }
    const size_t last = reserved.offset < 0 ? body.length() : static_cast<size_t>(reserved.offset);
    if (length > last && call_.On(RuleId::mlx5_create_qp_tail) && call_.in.TailIsZero(last) != 1) {
      return call_.Refuse(RuleId::mlx5_create_qp_tail);
    }
    if (call_.in.Copy(body.base(), body.length()) != 0)
      return call_.Refuse(RuleId::mlx5_request_fault);
    request_.buffer = body.Get(REQ(buf_addr));
    request_.doorbell = body.Get(REQ(db_addr));
    request_.sq_blocks = body.U32(REQ(sq_wqe_count));
    request_.rq_count = body.U32(REQ(rq_wqe_count));
    request_.rq_shift = body.U32(REQ(rq_wqe_shift));
    request_.flags = body.U32(REQ(flags));
    request_.user_index = body.U32(REQ(uidx));
    request_.bfreg_index = body.U32(REQ(bfreg_index));
    request_.send_buffer = body.Get(REQ(sq_buf_addr));
    request_.access_key = body.Get(REQ(access_key));
    const Body streams = body.Sub(REQ(dci_streams));
    request_.streams = streams.Get(VABI_F(mlx5_ib_create_qp_dci_streams, log_num_concurent));
    request_.errored_streams = streams.Get(VABI_F(mlx5_ib_create_qp_dci_streams, log_num_errored));
    request_.covers_index =
        world_.Has(REQ(uidx)) &&
        (world_.Knob(KnobId::mlx5_create_qp_sized) != 0 || world_.End(REQ(uidx)) <= length);
    return 0;
  }

  // process_vendor_flags (5.8), check_flags_mask (4.20)
  int CheckVendorFlags() {
    const bool early = world_.Knob(KnobId::mlx5_create_qp_reads_dc) != 0;
    if (early && state_->dynamic == Dynamic::kTarget) return 0;
    const bool dci = Flag(VABI_C(MLX5_QP_FLAG_TYPE_DCI)), dct = Flag(VABI_C(MLX5_QP_FLAG_TYPE_DCT));
    if (!early && dci != dct) {
      // Whatever the type was.
      state_->dynamic = dci ? Dynamic::kInitiator : Dynamic::kTarget;
    } else if (!early && qp_.qp_type == kQptDriver) {
      return call_.Refuse(RuleId::mlx5_create_qp_dc_type);
    }
    const bool rc = qp_.qp_type == kQptRc && state_->dynamic == Dynamic::kNone;
    struct Row {
      ConstId bit;
      bool accepted;
    };
    // A NIC that does not scatter to completions has the two flags ignored.
    const Row rows[] = {
        {VABI_C(MLX5_QP_FLAG_TYPE_DCI), true},
        {VABI_C(MLX5_QP_FLAG_TYPE_DCT), true},
        {VABI_C(MLX5_QP_FLAG_SIGNATURE), true},
        {VABI_C(MLX5_QP_FLAG_SCATTER_CQE), true},
        {VABI_C(MLX5_QP_FLAG_ALLOW_SCATTER_CQE), true},
        {VABI_C(MLX5_QP_FLAG_BFREG_INDEX), true},
        {VABI_C(MLX5_QP_FLAG_UAR_PAGE_INDEX), true},
        {VABI_C(MLX5_QP_FLAG_PACKET_BASED_CREDIT_MODE), rc && kCaps.qp_packet_based},
        {VABI_C(MLX5_QP_FLAG_DCI_STREAM), kCaps.log_max_dci_stream_channels != 0},
        {VABI_C(MLX5_QP_FLAG_TUNNEL_OFFLOADS), IsRaw() && kCaps.tunnel_offloads},
        {VABI_C(MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC), IsRaw()},
        {VABI_C(MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC), IsRaw()},
    };
    uint32_t accepted = 0, known = 0;
    for (const Row& row : rows) {
      const auto bit = static_cast<uint32_t>(world_.Flag(row.bit));
      known |= bit;
      if (row.accepted) accepted |= bit;
    }
    // Up to 5.7 a flag that does not fit was another error than one that is unknown.
    if (call_.Violates(RuleId::mlx5_create_qp_vendor_flag_support,
                       (request_.flags & known & ~accepted) != 0)) {
      return call_.Refuse(RuleId::mlx5_create_qp_vendor_flag_support);
    }
    if (call_.Violates(RuleId::mlx5_create_qp_vendor_flags, (request_.flags & ~accepted) != 0)) {
      return call_.Refuse(RuleId::mlx5_create_qp_vendor_flags);
    }
    return 0;
  }

  // get_qp_user_index
  int CheckUserIndex() {
    const bool version1 = context_.cqe_version != 0;
    if (!world_.Has(REQ(uidx))) return 0;
    if (request_.covers_index && !version1 && request_.user_index == kDefaultUserIndex) return 0;
    const bool wrong = request_.covers_index != version1 ||
                       (version1 && (request_.user_index == kDefaultUserIndex ||
                                     (request_.user_index & ~kUserIndexMask) != 0));
    if (call_.Violates(RuleId::mlx5_create_qp_index, wrong))
      return call_.Refuse(RuleId::mlx5_create_qp_index);
    return 0;
  }

  // process_create_flags
  int CheckCreateFlags() {
    uint32_t rest = qp_.create_flags;
    if (state_->dynamic == Dynamic::kTarget) {
      if (call_.Violates(RuleId::mlx5_create_qp_dct_flags, rest != 0))
        return call_.Refuse(RuleId::mlx5_create_qp_dct_flags);
      return 0;
    }
    if (kCaps.block_lb_mc) rest &= ~kBlockMulticastLoopback;
    if (kCaps.cd) rest &= ~(kCrossChannel | kManagedSend | kManagedReceive);
    if (kCaps.end_pad) rest &= ~kEndPadding;
    const bool underlay =
        qp_.qp_type == kQptUd && qp_.device->image().link == LinkLayer::kInfiniband;
    if (underlay && (rest & kSourceQpn) != 0)
      return call_.Unmodelled("mlx5: underlay queue pairs (SOURCE_QPN)");
    if (call_.Violates(RuleId::mlx5_create_qp_flags, rest != 0))
      return call_.Refuse(RuleId::mlx5_create_qp_flags);
    return 0;
  }

  // set_rq_size, and create_user_qp's comparison with it
  int CheckSizes() {
    if (call_.Violates(RuleId::mlx5_create_qp_recv_wr, qp_.cap.max_recv_wr > kMaxReceiveWr)) {
      return call_.Refuse(RuleId::mlx5_create_qp_recv_wr);
    }
    const bool has_receives =
        qp_.qp_type != kQptXrcIni && qp_.srq == nullptr && qp_.cap.max_recv_wr != 0;
    const bool signature = Flag(VABI_C(MLX5_QP_FLAG_SIGNATURE));
    if (!has_receives) {
      qp_.cap.max_recv_wr = qp_.cap.max_recv_sge = 0;
      if (call_.Violates(RuleId::mlx5_create_qp_rq_size,
                         request_.rq_count != 0 || request_.rq_shift != 0)) {
        return call_.Refuse(RuleId::mlx5_create_qp_rq_size);
      }
      request_.rq_count = request_.rq_shift = 0;
    } else {
      if (request_.rq_shift >= 31) return call_.Refuse(RuleId::mlx5_create_qp_rq_shift);
      if (call_.Violates(RuleId::mlx5_create_qp_rq_signature,
                         (1u << request_.rq_shift) / kSegment < (signature ? 1u : 0u))) {
        return call_.Refuse(RuleId::mlx5_create_qp_rq_signature);
      }
    }
    if (request_.sq_blocks > 1u << kCaps.log_max_qp_sz)
      return call_.Refuse(RuleId::mlx5_create_qp_sq_size);
    return 0;
  }

  // _create_user_qp, the doorbell register
  int FindRegister() {
    const bool page = Flag(VABI_C(MLX5_QP_FLAG_UAR_PAGE_INDEX)),
               bfreg = Flag(VABI_C(MLX5_QP_FLAG_BFREG_INDEX));
    state_->bfreg = kInvalidBfreg;
    if (call_.Violates(RuleId::mlx5_create_qp_two_registers, page && bfreg)) {
      return call_.Refuse(RuleId::mlx5_create_qp_two_registers);
    }
    if (page) return 0;
    if (bfreg) {
      if (!ValidDynamicBfreg(context_, request_.bfreg_index))
        return call_.Refuse(RuleId::mlx5_create_qp_bfreg);
      return 0;
    }
    if (call_.Violates(RuleId::mlx5_create_qp_no_register, context_.dyn_uar)) {
      return call_.Refuse(RuleId::mlx5_create_qp_no_register);
    }
    if (context_.dyn_uar) return call_.Unmodelled("mlx5: a register of a context that has none");
    state_->bfreg = AllocBfreg(context_);
    return 0;
  }

  // set_user_buf_size and the memory
  int PinBuffers() {
    if (!IsPowerOfTwo(request_.sq_blocks)) return call_.Refuse(RuleId::mlx5_create_qp_sq_power);
    const uint64_t rq_bytes = uint64_t{request_.rq_count} << request_.rq_shift;
    const uint64_t sq_bytes = uint64_t{request_.sq_blocks} * kBlock;
    // Raw packet queue pairs have two buffers.
    const uint64_t bytes = rq_bytes + (IsRaw() ? 0 : sq_bytes);
    // The sum is an int of the kernel's.
    if (call_.Violates(RuleId::mlx5_create_qp_overflow, bytes > INT32_MAX)) {
      return call_.Refuse(RuleId::mlx5_create_qp_overflow);
    }
    const bool none_is_fine = world_.Knob(KnobId::mlx5_create_qp_null_buffer) != 0;
    if (bytes != 0 && (request_.buffer != 0 || !none_is_fine)) {
      if (const int error = PinMemory(call_, request_.buffer, bytes, false)) return error;
      if (call_.Violates(RuleId::mlx5_create_qp_buffer_offset, request_.buffer % kQuantum != 0)) {
        return call_.Refuse(RuleId::mlx5_create_qp_buffer_offset);
      }
    }
    if (const int error = PinDoorbell(call_, request_.doorbell)) return error;
    return IsRaw() ? CheckRaw(rq_bytes, sq_bytes) : 0;
  }

  // create_raw_packet_qp
  int CheckRaw(uint64_t rq_bytes, uint64_t sq_bytes) {
    if (call_.Violates(RuleId::mlx5_create_qp_raw_nothing, rq_bytes == 0 && sq_bytes == 0)) {
      return call_.Refuse(RuleId::mlx5_create_qp_raw_nothing);
    }
    if (sq_bytes == 0) return 0;
    if (const int error = PinMemory(call_, request_.send_buffer, sq_bytes, false)) return error;
    if (call_.Violates(RuleId::mlx5_create_qp_buffer_offset,
                       request_.send_buffer % kQuantum != 0)) {
      return call_.Refuse(RuleId::mlx5_create_qp_buffer_offset);
    }
    return 0;
  }

  // What a DEVX context may know: the numbers of what a raw packet queue pair is made of.
  void TellParts(const Body& reply) {
    if (!IsRaw() || !context_.devx) return;
    uint64_t mask = 0;
    const auto tell = [&](FieldId field, ConstId bit) {
      reply.Set(field, qp_.device->NextNumber());
      mask |= static_cast<uint64_t>(world_.Flag(bit));
    };
    if (request_.sq_blocks != 0) {
      tell(RESP(tisn), VABI_C(MLX5_IB_CREATE_QP_RESP_MASK_TISN));
      tell(RESP(sqn), VABI_C(MLX5_IB_CREATE_QP_RESP_MASK_SQN));
    }
    if (request_.rq_count != 0) {
      tell(RESP(rqn), VABI_C(MLX5_IB_CREATE_QP_RESP_MASK_RQN));
      tell(RESP(tirn), VABI_C(MLX5_IB_CREATE_QP_RESP_MASK_TIRN));
    }
    reply.Set(RESP(comp_mask), mask);
  }

  int CreateUser() {
    if (const IoctlCall* ioctl = AsIoctl(call_);
        ioctl != nullptr && ioctl->Has(VABI_C(MLX5_IB_ATTR_CREATE_QP_DBR_BUF_UMEM))) {
      return call_.Unmodelled("mlx5: a doorbell record in a buffer object");
    }
    if (const int error = PinBuffers()) return error;
    // What the firmware would say to these, nobody has told.
    if (!IsPowerOfTwo(request_.rq_count) ||
        (request_.rq_count != 0 &&
         (request_.rq_shift < 4 || (1 << request_.rq_shift) > kCaps.max_wqe_sz_rq))) {
      return call_.Unmodelled("mlx5: receive queue sizes that the firmware refuses");
    }
    if (Flag(VABI_C(MLX5_QP_FLAG_DCI_STREAM)) &&
        (request_.streams > static_cast<uint64_t>(kCaps.log_max_dci_stream_channels) ||
         request_.errored_streams > static_cast<uint64_t>(kCaps.log_max_dci_errored_streams))) {
      return call_.Unmodelled("mlx5: more DCI streams than the firmware takes");
    }
    OwnedBody<128> reply(world_, VABI_S(mlx5_ib_create_qp_resp));
    const uint32_t bfreg =
        state_->bfreg == kInvalidBfreg ? kInvalidBfreg : GrossBfreg(state_->bfreg);
    reply.Set(RESP(bfreg_index), bfreg);
    reply.Set(RESP(uuar_index), bfreg);
    TellParts(reply);
    const OldRespond how = world_.Knob(KnobId::mlx5_create_qp_reply_clipped) != 0
                               ? OldRespond::kClip
                               : OldRespond::kWhole;
    if (const int error = Respond(call_, reply.base(), reply.length(), how)) return error;

    QueuePair::Parts parts;
    if (state_->dynamic == Dynamic::kInitiator && Flag(VABI_C(MLX5_QP_FLAG_DCI_STREAM)))
      parts.errored_streams = 1u << request_.errored_streams;
    const uint64_t rq_bytes = uint64_t{request_.rq_count} << request_.rq_shift;
    parts.send = {IsRaw() ? request_.send_buffer : request_.buffer + rq_bytes, request_.sq_blocks,
                  request_.doorbell};
    parts.receive = {request_.buffer, request_.rq_count, request_.rq_shift,
                     Flag(VABI_C(MLX5_QP_FLAG_SIGNATURE)), request_.doorbell + kReceiveRecord};
    if (qp_.send_cq != nullptr) parts.send_cq = StateOf(*qp_.send_cq).queue.get();
    if (qp_.recv_cq != nullptr) parts.recv_cq = StateOf(*qp_.recv_cq).queue.get();
    // An initiator receives nothing, whatever SRQ is given to it.
    if (qp_.srq != nullptr && state_->dynamic == Dynamic::kNone)
      parts.srq = StateOf(*qp_.srq).queue.get();
    parts.user_indices = context_.cqe_version != 0;
    parts.user_index = request_.user_index;
    state_->rq_count = request_.rq_count;
    state_->rq_shift = request_.rq_shift;
    if (request_.rq_count != 0) {
      state_->rq_sges =
          (1u << request_.rq_shift) / kSegment - (Flag(VABI_C(MLX5_QP_FLAG_SIGNATURE)) ? 1 : 0);
    }
    Finish(parts, StateOf(*qp_.pd).pdn);
    return 0;
  }

  // create_dct: the NIC hears of it with INIT2RTR, and gives it its number then.
  int CreateTarget() {
    state_->bfreg = kInvalidBfreg;
    if (world_.Knob(KnobId::mlx5_create_qp_reads_dc) == 0) {
      OwnedBody<128> reply(world_, VABI_S(mlx5_ib_create_qp_resp));
      if (const int error = Respond(call_, reply.base(), reply.length(), OldRespond::kClip))
        return error;
    }
    QueuePair::Parts parts;
    parts.recv_cq = StateOf(*qp_.recv_cq).queue.get();
    parts.srq = StateOf(*qp_.srq).queue.get();
    parts.user_indices = context_.cqe_version != 0;
    parts.user_index = request_.user_index;
    Finish(parts, StateOf(*qp_.pd).pdn);
    return 0;
  }

  int CreateXrcTarget() {
    state_->bfreg = kInvalidBfreg;
    Finish({}, 0);
    return 0;
  }

  void Finish(QueuePair::Parts parts, uint32_t pdn) {
    parts.qp = &qp_;
    const bool target = state_->dynamic == Dynamic::kTarget;
    qp_.qp_num = target ? 0 : qp_.device->NextQpn();
    // XRC targets outlive the file that made them.
    if (qp_.qp_type != kQptXrcTgt) state_->context = &context_;
    state_->pair = std::make_unique<QueuePair>(parts);
    QueuePair& pair = *state_->pair;
    pair.device = qp_.device->number();
    pair.qpn = qp_.qp_num;
    pair.pd = pdn;
    pair.has_srq = parts.srq != nullptr;
    pair.dc_key = request_.access_key;
    pair.service = ServiceOf(qp_.qp_type, state_->dynamic);
    qp_.endpoint = &pair;
    qp_.driver = std::move(state_);
    if (target) return;
    {
      std::lock_guard lock(fabric::Lock());
      fabric::AddEndpoint(&pair);
    }
    Watch(&pair);
  }

  static fabric::Service ServiceOf(uint8_t type, Dynamic dynamic) {
    if (dynamic == Dynamic::kInitiator) return fabric::Service::kDcInitiator;
    if (dynamic == Dynamic::kTarget) return fabric::Service::kDcTarget;
    switch (type) {
      case kQptUc:
        return fabric::Service::kUc;
      case kQptUd:
        return fabric::Service::kUd;
      case kQptRawPacket:
        return fabric::Service::kRaw;
      case kQptXrcIni:
        return fabric::Service::kXrcInitiator;
      case kQptXrcTgt:
        return fabric::Service::kXrcTarget;
      default:
        return fabric::Service::kRc;
    }
  }

  Call& call_;
  const World& world_;
  Qp& qp_;
  ContextState& context_;
  std::unique_ptr<QueuePairState> state_;
  Request request_ = {};
};

}  // namespace

int Mlx5Driver::CreateQp(Call& call, Qp& qp) { return Creator(call, qp).Run(); }

int Mlx5Driver::DestroyQp(Call&, Qp& qp) {
  QueuePairState& state = StateOf(qp);
  if (state.pair != nullptr) {
    Settle();
    if (state.dynamic != Dynamic::kTarget) Unwatch(state.pair.get());
  }
  {
    std::lock_guard lock(fabric::Lock());
    if (state.pair != nullptr) {  // not RSS
      if (state.pair->qpn != 0) fabric::RemoveEndpoint(state.pair.get());
      if (state.bfreg != kInvalidBfreg && state.context != nullptr)
        FreeBfreg(*state.context, state.bfreg);
      qp.endpoint = nullptr;
    }
    qp.driver.reset();
  }
  fabric::Unattend();
  return 0;
}

}  // namespace vabi::mlx5
