// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_FRAME_H_
#define VABI_SHIMS_FABRIC_FRAME_H_

#include <cstdint>

#include "shims/fabric/fabric.h"
#include "shims/fabric/message.h"
#include "shims/fabric/ring.h"

// How a Message and a Reply stand in a ring (ring.h). Both sides are of one build: plain
// structures.

namespace vabi::fabric {

// Payload that travels in the frame itself; more is read where it stands, or comes before in parts.
inline constexpr uint32_t kInlinePayload = 2048;
// A datagram's payload always travels in the frame: nobody answers it.
inline constexpr uint32_t kLargestDatagram = 4096;
inline constexpr uint32_t kPartBytes = 8192;

enum class FrameKind : uint8_t { kRequest = 1, kReply = 2, kPart = 3 };

enum class Payload : uint8_t {
  kInline,    // behind the frame's structure
  kSpans,     // a list of Span behind it: in the writer's memory
  kAssembled  // what kPart frames have brought since the last frame of another kind
};

struct PartFrame {
  FrameHead head;
  FrameKind kind;
  uint8_t reserved[3];
  uint32_t length;  // bytes behind it
};

struct RequestFrame {
  FrameHead head;
  FrameKind kind;
  Payload payload;
  Opcode opcode;
  Service service;
  bool solicited, has_grh, on_demand;
  bool any_psn;    // the requester keeps no numbers
  bool first;      // nothing that was sent before it waits for its answer
  bool answered;   // the requester waits for a reply
  bool multicast;  // to the members of a group (RequestMore)
  bool may_read;   // the requester can read the responder's memory
  bool has_more;
  uint8_t sl, path_bits, port;
  uint32_t tag;          // comes back in the reply
  uint32_t device, qpn;  // whom it is for
  uint32_t source_device, source_qpn;
  uint32_t spans;  // kSpans
  uint64_t length, remote_address;
  uint32_t rkey, immediate, psn, packets, mtu, qkey;
  uint16_t source_lid;
  uint8_t reserved[6];
  // Behind it: a RequestMore if has_more, 40 bytes of GRH if has_grh, then the payload.
};

// What most requests do not have.
struct RequestMore {
  uint64_t compare_add, swap, compare_mask, swap_mask;
  uint64_t dc_key;
  uint32_t flush_access, xrc_srq;
  uint8_t group[16];
  bool flush_region;
  uint8_t reserved[7];
};

struct ReplyFrame {
  FrameHead head;
  FrameKind kind;
  Payload payload;
  Reply::Kind answer;
  Status nak;
  uint8_t rnr_timer;
  bool on_demand;
  bool unreached;  // READ: not all bytes could be read, and the region is paged on demand
  uint8_t reserved;
  uint32_t tag;
  uint32_t device, qpn;  // the requester
  uint32_t spans;
  uint64_t original, length;
};

static_assert(sizeof(RequestFrame) % 8 == 0 && sizeof(RequestMore) % 8 == 0 &&
              sizeof(ReplyFrame) % 8 == 0 && sizeof(PartFrame) % 8 == 0);

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_FRAME_H_
