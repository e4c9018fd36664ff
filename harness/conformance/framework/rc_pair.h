// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CONFORMANCE_FRAMEWORK_RC_PAIR_H_
#define VABI_HARNESS_CONFORMANCE_FRAMEWORK_RC_PAIR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "harness/conformance/framework/verbs.h"

// Two connected RC queue pairs of one device, each with its completion queue and its memory.

namespace vabi::conformance {

// The byte at `offset` of message `seed`: moved to another place, or by a byte, none looks right.
constexpr uint8_t PatternAt(uint32_t seed, uint32_t offset) {
  return static_cast<uint8_t>((seed * 167 + offset * 13 + (offset >> 8) * 59) ^ (offset >> 4));
}

struct PairOptions {
  uint32_t depth = 16;  // of each queue
  uint32_t sges = 2;
  uint32_t inline_data = 64;
  bool signal_all = false;
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
               IBV_ACCESS_REMOTE_ATOMIC;  // of the regions and of the queue pairs (these have no
                                          // local access)
  uint8_t rnr_retry = 7;                  // 7: for ever
  uint8_t retry = 3;  // of what nobody answers: this often, 4.096 us << timeout apart
  uint8_t timeout = 10;
  bool with_channel = false;
  bool with_srq = false;  // the right side receives from a shared queue
};

class RcPair {
 public:
  static constexpr uint32_t kBytes = 16384;  // of each side's region

  struct Side {
    std::unique_ptr<uint8_t[], void (*)(void*)> bytes{nullptr, nullptr};
    MemoryRegion mr;
    CompletionChannel channel;
    CompletionQueue cq;
    SharedReceiveQueue srq;
    QueuePair qp;
    ibv_qp_cap cap = {};

    uint32_t number() const { return qp->qp_num; }
    ibv_sge At(uint32_t offset, uint32_t length) const;
    uint64_t Address(uint32_t offset) const {
      return reinterpret_cast<uintptr_t>(bytes.get()) + offset;
    }
    void Fill(uint32_t offset, uint32_t length, uint32_t seed);
    // The offset within the message of the first byte that is not the pattern's; nothing when all
    // are.
    std::optional<uint32_t> FirstWrong(uint32_t offset, uint32_t length, uint32_t seed) const;
    void Clear();
    // No byte outside of [offset, offset + length) was written since Clear().
    bool OnlyTouched(uint32_t offset, uint32_t length) const;

    Error PostReceive(uint64_t wr_id, std::vector<ibv_sge> sges);
    // `send` as it is, with these sges.
    Error PostSend(ibv_send_wr send, std::vector<ibv_sge> sges);
    // Waits for so many completions, at most two seconds of the process's time; fewer when no more
    // came.
    std::vector<ibv_wc> Poll(size_t count);
    // What is there right now.
    std::vector<ibv_wc> Drain();
    ibv_qp_state State() const;
  };

  explicit RcPair(const PairOptions& options = {});

  const Context& context() const { return context_; }
  const ProtectionDomain& pd() const { return pd_; }
  const ibv_port_attr& port() const { return port_; }

 private:
  void MakeSide(Side* side, bool srq);
  void ToInit(Side* side);
  void Connect(Side* side, const Side& peer);

  PairOptions options_;
  Context context_;
  ProtectionDomain pd_;
  ibv_port_attr port_ = {};
  ibv_gid gid_ = {};
  int gid_index_ = 0;

 public:
  // Behind what they stand on, so that they go first.
  Side left, right;  // left sends
};

// A work request with its usual fields.
ibv_send_wr Work(ibv_wr_opcode opcode, uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED);
ibv_send_wr WorkAt(ibv_wr_opcode opcode, uint64_t wr_id, uint64_t remote, uint32_t rkey,
                   unsigned flags = IBV_SEND_SIGNALED);

}  // namespace vabi::conformance

// So that failed expectations show a completion by its fields.
std::ostream& operator<<(std::ostream& out, const ibv_wc& completion);

#endif  // VABI_HARNESS_CONFORMANCE_FRAMEWORK_RC_PAIR_H_
