// SPDX-License-Identifier: BSD-2-Clause
// Raw packet queue pairs: frames that leave the port, and frames that flow rules bring.
#include <cstring>
#include <vector>

#include "shims/fabric/memory.h"
#include "shims/fabric/spans.h"
#include "shims/providers/mlx5/queue_pair.h"
#include "shims/providers/mlx5/steering.h"
#include "shims/trace/trace.h"
#include "shims/uverbs/device.h"

namespace vabi::mlx5 {
namespace {

using fabric::Completion;
using fabric::EndpointState;
using fabric::Status;

constexpr uint64_t kMaxFrame = 64 * 1024;
constexpr size_t kMac = 6;

// The port's address: the one that its link-local GID was made from (addr.c: rdma_get_ll_mac).
bool IsAddressOf(const DeviceImage& device, const uint8_t* mac) {
  for (uint32_t p = 0; p < device.port_count; ++p) {
    const PortImage& port = device.ports[p];
    for (uint32_t i = 0; i < port.gid_count; ++i) {
      const uint8_t* gid = port.gids[i].raw;
      if (gid[0] != 0xfe || gid[1] != 0x80) continue;
      const uint8_t own[kMac] = {
          static_cast<uint8_t>(gid[8] ^ 2), gid[9], gid[10], gid[13], gid[14], gid[15]};
      if (std::memcmp(mac, own, kMac) == 0) return true;
    }
  }
  return false;
}

// To every port of the world that listens to the frame's destination; the sender's own is one of
// them, since its driver turns loopback on with the first raw packet queue pair (main.c:
// mlx5_ib_enable_lb).
void Carry(uint32_t sender, const Frame& frame) {
  if (frame.length < kMac) return;
  const bool multicast = (frame.bytes[0] & 1) != 0;
  bool known = false;
  for (uint32_t i = 0; i < DeviceCount(); ++i) {
    const DeviceImage& image = FindDevice(i)->image();
    if (image.link != LinkLayer::kEthernet || image.driver != DriverId::mlx5) continue;
    known = true;
    if (multicast || IsAddressOf(image, frame.bytes)) Steer(i, frame);
  }
  if (!known) Steer(sender, frame);  // unit tests have no world
}

}  // namespace

void QueuePair::Transmit(const Wqe& wqe, const fabric::SendRequest& request,
                         Completion* completion) {
  *completion = Completion();
  static auto* const bytes = new std::vector<uint8_t>();  // guarded by the fabric's lock
  const uint64_t carried = request.inline_data != nullptr ? request.inline_length : 0;
  uint64_t length = carried;
  for (uint32_t i = 0; i < request.sge_count; ++i) length += request.sges[i].length;
  if (length > kMaxFrame) {
    trace::Event("unmodelled", "mlx5: a frame of more than 64 KiB");
    return FailSend(Status::kLocalLength, completion);
  }
  // The Ethernet segment behind the control segment: the first bytes of the frame.
  const uint8_t* ethernet = wqe.bytes + kSegment;
  const uint32_t headers = Load16(ethernet + kEthHeaderSize);
  bytes->assign(ethernet + kEthHeaders, ethernet + kEthHeaders + headers);
  bytes->resize(headers + length);
  uint8_t* at = bytes->data() + headers;
  if (carried != 0) std::memcpy(at, request.inline_data, carried);
  at += carried;
  fabric::Spans spans;
  if (fabric::MapSges(*this, request.sges, request.sge_count, 0, length - carried, 0, &spans) !=
      fabric::SgeFault::kNone) {
    return FailSend(Status::kLocalProtection, completion);
  }
  for (uint32_t i = 0; i < spans.count; ++i) {
    fabric::ReadMemory(at, spans.at[i].address, spans.at[i].length);
    at += spans.at[i].length;
  }
  completion->byte_length = static_cast<uint32_t>(bytes->size());
  const Frame frame = {bytes->data(), static_cast<uint32_t>(bytes->size())};
  if (Leaves(device, frame)) Carry(device, frame);
}

void QueuePair::Receive(const Frame& frame) {
  // The receive queue is ready from INIT on (qp.c: modify_raw_packet_qp).
  if (state == EndpointState::kReset || state == EndpointState::kErr) return;
  static fabric::RecvRequest request;  // guarded by the fabric's lock
  if (!PopReceive(&request)) return;   // nowhere to put it: the NIC drops it
  Completion completion;
  completion.is_receive = true;
  completion.byte_length = frame.length;
  completion.source_qpn = frame.flow_tag;
  fabric::Spans spans;
  const bool malformed = request.sge_count == fabric::Endpoint::kMalformed;
  const auto fault = malformed
                         ? fabric::SgeFault::kKey
                         : fabric::MapSges(*this, request.sges, request.sge_count,
                                           fabric::kAccessLocalWrite, frame.length, 0, &spans);
  if (fault == fabric::SgeFault::kNone) {
    fabric::FillSpans(spans, frame.bytes, frame.length);
  } else {
    completion.status =
        fault == fabric::SgeFault::kTooShort ? Status::kLocalLength : Status::kLocalProtection;
  }
  CompleteReceive(request, completion);
  if (completion.status != Status::kSuccess) ToError();
}

}  // namespace vabi::mlx5
