// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_RDMA_CM_IDENTIFIER_H_
#define VABI_SHIMS_RDMA_CM_IDENTIFIER_H_

#include <cstdint>
#include <memory>

#include "shims/rdma_cm/addresses.h"

namespace vabi::rdma_cm {

class CmFile;

// enum rdma_cm_state, by its numbers
enum class IdState : uint8_t {
  kIdle,
  kAddressQuery,
  kAddressResolved,
  kRouteQuery,
  kRouteResolved,
  kConnect,
  kDisconnect,
  kAddressBound,
  kListen,
};
// enum ib_cm_state, without the states that only a lost or slow message makes. kNone: there is no
// struct ib_cm_id.
enum class CmState : uint8_t {
  kNone,
  kRequestSent,
  kRequestReceived,
  kReplySent,
  kReplyReceived,
  kEstablished,
  kDisconnectSent,
  kDisconnectReceived,
  kTimewait,
  kIdle,
  kSidrRequestSent,
  kSidrRequestReceived,
};

// enum rdma_ucm_port_space
enum PortSpace : uint16_t { kIpoib = 0x0002, kIb = 0x013f, kTcp = 0x0106, kUdp = 0x0111 };
// enum ib_qp_type
enum QpType : uint8_t { kRc = 2, kUc = 3, kUd = 4, kXrcInitiator = 9, kXrcTarget = 10 };

// enum rdma_cm_event_type
enum class CmEvent : uint32_t {
  kAddressResolved = 0,
  kAddressError = 1,
  kRouteResolved = 2,
  kRouteError = 3,
  kConnectRequest = 4,
  kConnectResponse = 5,
  kConnectError = 6,
  kUnreachable = 7,
  kRejected = 8,
  kEstablished = 9,
  kDisconnected = 10,
  kDeviceRemoval = 11,
  kMulticastJoin = 12,
  kMulticastError = 13,
  kAddressChange = 14,
  kTimewaitExit = 15,
};

// What a connection goes by: struct sa_path_rec. Its selectors are all IB_SA_EQ.
struct Path {
  bool known = false;
  uint8_t target[16] = {}, source[16] = {};  // GIDs
  uint16_t target_lid = 0, source_lid = 0;
  uint16_t pkey = 0xffff;
  uint32_t flow = 0;     // as on the wire
  uint64_t service = 0;  // of the passive side
  uint8_t hop_limit = 0, traffic_class = 0, service_level = 0;
  uint8_t mtu = 0;   // enum ib_mtu
  uint8_t rate = 0;  // enum ib_rate
  uint8_t life = 0;  // IBTA's code
};

struct Ece {
  uint32_t vendor_id = 0, attr_mod = 0;
};

// struct rdma_conn_param, as one side gives it and as the other gets it.
struct ConnectionParameters {
  uint32_t qpn = 0, qkey = 0;
  uint8_t private_data[256] = {};
  uint8_t private_length = 0;
  uint8_t srq = 0, responder_resources = 0, initiator_depth = 0, flow_control = 0;
  uint8_t retry_count = 0, rnr_retry_count = 0;
};

// A program's rdma_cm_id: ucma_context, rdma_id_private and ib_cm_id in one.
struct Identifier {
  uint32_t number = 0;  // what the program calls it by
  uint32_t key = 0;     // what peers call it by: never used again
  CmFile* file = nullptr;
  uint64_t uid = 0;  // 0: the program does not know it yet, and gets no events
  uint16_t port_space = 0;
  uint8_t qp_type = 0;
  IdState state = IdState::kIdle;
  CmState cm = CmState::kNone;
  uint32_t events_reported = 0;
  uint32_t backlog = 0;

  Address source, target;
  Place place;                                       // device < 0: not bound to one
  uint8_t source_gid[16] = {}, target_gid[16] = {};  // struct rdma_dev_addr
  uint16_t pkey = 0;  // of the interface's broadcast address: 0 on Ethernet (ib_addr_get_pkey)
  bool has_broadcast = false;  // that address is an IPoIB interface's
  bool loopback = false;
  bool removed = false;     // its device is gone
  uint16_t bound_port = 0;  // of the port space; 0: none
  uint16_t bound_space = 0;
  bool reuse = false, family_only = false, family_only_set = false;
  uint8_t service_type = 0;
  bool ack_timeout_set = false;
  uint8_t ack_timeout = 0;

  // The connection.
  int peer_process = 0;
  uint32_t peer = 0;  // the identifier's number there
  uint32_t qpn = 0, qkey = 0, peer_qpn = 0;
  uint32_t psn = 0, peer_psn = 0;  // starting numbers
  uint8_t responder_resources = 0, initiator_depth = 0, retry_count = 0, rnr_retry_count = 0;
  uint8_t timeout = 0;  // of the queue pair, IBTA's code
  Path path;
  Ece ece;

  uint32_t track = 0;  // where restrack has it

  bool HasDevice() const { return place.device >= 0; }
};

}  // namespace vabi::rdma_cm

#endif  // VABI_SHIMS_RDMA_CM_IDENTIFIER_H_
