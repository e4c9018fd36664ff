// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_MESSAGE_H_
#define VABI_SHIMS_FABRIC_MESSAGE_H_

#include <cstdint>

#include "shims/fabric/fabric.h"
#include "shims/fabric/spans.h"

// What goes over the wire between requester and responder, whole messages instead of packets.
// Everything that the responder may know of the requester is here: between processes, these two are
// what is carried (frame.h).

namespace vabi::fabric {

struct Message {
  Opcode opcode;
  Service service;
  bool solicited;
  uint64_t length;       // bytes of payload, or to be read
  const Spans* payload;  // sends and writes
  uint64_t remote_address;
  uint32_t rkey;
  uint32_t immediate;  // or the rkey to invalidate
  uint64_t compare_add, swap, compare_mask, swap_mask;
  uint32_t flush_access;
  bool flush_region;
  uint32_t xrc_srq;  // kXrcInitiator: the shared queue that is meant
  uint64_t dc_key;   // kDcInitiator
  uint32_t psn;
  uint32_t packets;
  uint32_t mtu;  // requester's
  // Only to be compared: a queue pair may be connected to itself. Null: another process'.
  const Endpoint* sender;
  // The sender, as datagrams tell it.
  uint32_t source_qpn, qkey;
  uint16_t source_lid;
  uint8_t sl, path_bits;
  bool has_grh;
  uint8_t grh[kGrhBytes];
};

struct Reply {
  enum class Kind : uint8_t { kSilence, kAck, kRnr, kNak } kind = Kind::kSilence;
  Status nak = Status::kSuccess;  // what the requester's completion says
  uint8_t rnr_timer = 0;
  uint64_t original = 0;  // atomics: what was there before
  Spans data;             // READ: where the bytes are
};

// The responder's side: everything it does, with its own completion. `reply` comes default-made.
void Deliver(Endpoint& responder, const Message& message, Reply* reply);

// The 40 bytes in front of a datagram: a GRH; or what RoCE v2 leaves of an IPv6 or IPv4 header
// there.
void MakeGrh(const Endpoint& sender, const AddressVector& address, uint64_t length,
             uint8_t out[kGrhBytes]);
// Which of these it is.
NetworkHeader NetworkHeaderOf(const uint8_t header[kGrhBytes]);

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_MESSAGE_H_
