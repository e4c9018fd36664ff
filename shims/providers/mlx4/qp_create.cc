// SPDX-License-Identifier: BSD-2-Clause
// qp.c: _mlx4_ib_create_qp, create_qp_common, set_rq_size, set_user_sq_size
#include <algorithm>
#include <bit>

#include "shims/providers/mlx4/capabilities.h"
#include "shims/providers/mlx4/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/qp_state.h"

namespace vabi::mlx4 {
namespace {

#define REQ(field) VABI_PF(mlx4_ib_create_qp, field)

constexpr uint32_t kBlockMulticastLoopback = 1 << 1;  // IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK
constexpr uint32_t kMaxSges = std::min(kCaps.max_sq_sg, kCaps.max_rq_sg);
constexpr uint32_t kMaxInlineReceive = kCaps.max_rq_sg * kSegment;

class Creator {
 public:
  Creator(Call& call, Qp& qp)
      : call_(call),
        qp_(qp),
        state_(new QpState()),
        request_(call.world, structure::mlx4_ib_create_qp) {}

  int Run() {
    if (qp_.ind_table != nullptr) return call_.Unmodelled("mlx4: RSS queue pairs");
    if (qp_.qp_type == kQptXrcTgt) return Finish();  // the kernel's own: no private request
    if (call_.Violates(rule::qp_flags, (qp_.create_flags & ~kBlockMulticastLoopback) != 0))
      return call_.Refuse(rule::qp_flags);
    if (qp_.qp_type == kQptDriver) return call_.Refuse(rule::qp_type);
    const bool receives_first = call_.world.Knob(knob::receives_first) != 0;
    if (receives_first) {
      if (const int error = SetReceiveSize(0)) return error;
    }
    if (const int error = ReadRequest(call_, request_)) return error;
    if (!receives_first) {
      if (const int error = SetReceiveSize(request_.U32(REQ(inl_recv_sz)))) return error;
    }
    if (const int error = SetSendSize()) return error;
    if (const int error = Pin(call_, request_.Get(REQ(buf_addr)), bytes_, 0)) return error;
    if (HasReceives()) {
      if (const int error = PinDoorbell(call_, request_.Get(REQ(db_addr)))) return error;
    }
    return Finish();
  }

 private:
  bool HasReceives() const { return qp_.qp_type != kQptXrcIni && qp_.srq == nullptr; }

  int SetReceiveSize(uint32_t inline_size) {
    QpCapabilities& cap = qp_.cap;
    if (call_.Violates(rule::qp_recv_size, cap.max_recv_wr > kCaps.max_wqes - kSpareWqes ||
                                               cap.max_recv_sge > kMaxSges))
      return call_.Refuse(rule::qp_recv_size);
    if (!HasReceives()) {
      if (call_.Violates(rule::qp_recv_unwanted, cap.max_recv_wr != 0 || inline_size != 0))
        return call_.Refuse(rule::qp_recv_unwanted);
    } else {
      if (call_.Violates(rule::qp_recv_none, cap.max_recv_wr == 0 || cap.max_recv_sge == 0))
        return call_.Refuse(rule::qp_recv_none);
      if (call_.Violates(rule::qp_recv_inline, inline_size > kMaxInlineReceive))
        return call_.Refuse(rule::qp_recv_inline);
      state_->rq_count = RoundUpPowerOfTwo(cap.max_recv_wr);
      state_->rq_sges = RoundUpPowerOfTwo(cap.max_recv_sge);
      const uint32_t element = std::max(state_->rq_sges * kSegment, inline_size);
      bytes_ += uint64_t{state_->rq_count} << (std::bit_width(element) - 1);  // ilog2
    }
    cap.max_recv_wr = state_->rq_count;
    cap.max_recv_sge = state_->rq_sges;
    return 0;
  }

  int SetSendSize() {
    const auto log_count = static_cast<uint32_t>(request_.Get(REQ(log_sq_bb_count)));
    const auto stride = static_cast<uint32_t>(request_.Get(REQ(log_sq_stride)));
    constexpr uint32_t kLastShift = 31;
    if (log_count > kLastShift && call_.world.Knob(knob::shift_checked) == 0)
      return call_.Unmodelled("mlx4: log_sq_bb_count beyond the width of what is shifted");
    if (log_count == kLastShift && call_.world.Knob(knob::shift_checked) == 0)
      return call_.Unmodelled("mlx4: log_sq_bb_count that shifts into the sign");
    if (log_count > kLastShift || (1u << log_count) > kCaps.max_wqes)
      return call_.Refuse(rule::qp_send_count);
    const auto largest =
        static_cast<uint32_t>(std::bit_width(std::bit_ceil(kCaps.max_sq_desc_sz)) - 1);
    if (stride > largest || stride < kLeastStride) return call_.Refuse(rule::qp_send_stride);
    bytes_ += uint64_t{1} << (log_count + stride);
    return 0;
  }

  int Finish() {
    qp_.qp_num = qp_.device->NextQpn();
    qp_.driver = std::move(state_);
    return 0;
  }

  Call& call_;
  Qp& qp_;
  std::unique_ptr<QpState> state_;
  OwnedBody<64> request_;
  uint64_t bytes_ = 0;
};

}  // namespace

int Mlx4Driver::CreateQp(Call& call, Qp& qp) { return Creator(call, qp).Run(); }

int Mlx4Driver::DestroyQp(Call&, Qp&) { return 0; }

}  // namespace vabi::mlx4
