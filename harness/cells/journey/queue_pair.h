// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CELLS_JOURNEY_QUEUE_PAIR_H_
#define VABI_HARNESS_CELLS_JOURNEY_QUEUE_PAIR_H_

#include <infiniband/verbs.h>

#include <cstdint>

// Two RC queue pairs of one device that talk to each other, with the memory and the completion
// queue they use, and moves between them whose every byte is checked.

namespace journey {

inline constexpr uint32_t kDepth = 16;  // of each queue, so that a few dozen messages wrap it
inline constexpr uint32_t kRegion = 64 * 1024;  // bytes on each side

struct Side {
  ibv_qp* qp = nullptr;
  ibv_mr* mr = nullptr;
  uint8_t* bytes = nullptr;
};

struct Pair {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_port_attr port = {};
  ibv_gid gid = {};
  int gid_index = 0;
  Side left, right;
  uint32_t inline_size = 0;
  bool has_ah = false;  // an address handle of this port can be had
};

// Asks one side to INIT (RC and XRC), RTR and RTS towards a peer of the same port; each move is a
// step.
bool Connect(Pair* pair, ibv_qp* qp, uint32_t peer);

// Creates everything and brings both sides to RTS; every verb is a step. False when one that is
// needed failed: what there is must still be destroyed.
bool SetUp(ibv_context* context, Pair* pair);
// The pair of a fresh connection on the same memory, for what puts queue pairs into error.
bool Reconnect(Pair* pair);
void TearDown(Pair* pair);

// The byte that belongs at `offset` of message `seed`: a move to the wrong place never looks right.
inline uint8_t Pattern(uint32_t seed, uint32_t offset) {
  return static_cast<uint8_t>((seed * 131 + offset * 7 + (offset >> 8) * 29) ^ (offset >> 3));
}
// What the port's address is, as an address handle or a path wants it.
void FillAddress(const Pair& pair, ibv_ah_attr* address);
void Fill(uint8_t* bytes, uint32_t length, uint32_t seed);
// Index of the first wrong byte, or -1.
int64_t FirstWrong(const uint8_t* bytes, uint32_t length, uint32_t seed);

// Waits for `count` completions, a few seconds at most. Returns how many came.
int Collect(ibv_cq* cq, int count, ibv_wc* completions);

}  // namespace journey

#endif  // VABI_HARNESS_CELLS_JOURNEY_QUEUE_PAIR_H_
