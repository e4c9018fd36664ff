// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_FABRIC_H_
#define VABI_SHIMS_FABRIC_FABRIC_H_

#include <cstddef>
#include <cstdint>

// The wire. What a SEND, an RDMA WRITE or a READ does stands here once; drivers turn their own work queue
// formats into SendRequest and RecvRequest, and Completions into their own CQE formats. All calls are made
// with the fabric's lock held (see nic.h), so nothing here is called twice at once.

namespace vabi::fabric {

struct Sge {
  uint64_t address;
  uint32_t length;
  uint32_t lkey;
};

// Who is addressed: struct ib_global_route and rdma_ah_attr in one.
struct AddressVector {
  uint8_t dgid[16] = {};
  uint8_t dmac[6] = {};
  uint32_t flow_label = 0;
  uint16_t dlid = 0;
  uint8_t sgid_index = 0, hop_limit = 0, traffic_class = 0;
  uint8_t sl = 0, src_path_bits = 0, static_rate = 0, is_global = 0, port_num = 0;
};

// Work request opcodes, IBTA's names (enum ib_wr_opcode's meaning, not its numbers).
enum class Opcode : uint8_t {
  kSend, kSendImm, kSendInvalidate, kWrite, kWriteImm, kRead, kCompareSwap, kFetchAdd,
  kMaskedCompareSwap, kMaskedFetchAdd, kLocalInvalidate, kBindMw, kRegister, kNop,
};

// enum ib_wc_status by name and value.
enum class Status : uint8_t {
  kSuccess = 0, kLocalLength = 1, kLocalQpOperation = 2, kLocalEec = 3, kLocalProtection = 4,
  kFlushed = 5, kMwBind = 6, kBadResponse = 7, kLocalAccess = 8, kRemoteInvalidRequest = 9,
  kRemoteAccess = 10, kRemoteOperation = 11, kRetryExceeded = 12, kRnrRetryExceeded = 13,
  kFatal = 18, kGeneral = 21,
};

inline constexpr int kMaxSge = 64;

struct SendRequest {
  Opcode opcode = Opcode::kSend;
  bool signaled = false, solicited = false, fence = false;
  uint64_t wr_id = 0;           // for drivers that keep it in the queue (rxe)
  uint32_t sge_count = 0;
  Sge sges[kMaxSge];
  const uint8_t* inline_data = nullptr;  // instead of sges; already gathered
  uint32_t inline_length = 0;
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  uint32_t immediate = 0;       // as it stands in the work request (big-endian bytes)
  uint32_t invalidate_rkey = 0;
  uint64_t compare_add = 0, swap = 0, compare_mask = ~0ULL, swap_mask = ~0ULL;
  // Datagrams
  AddressVector address;
  uint32_t remote_qpn = 0, remote_qkey = 0;
  uint16_t index = 0;           // the driver's: WQE index, returned in the completion
};

struct RecvRequest {
  uint64_t wr_id = 0;
  uint32_t sge_count = 0;
  Sge sges[kMaxSge];
  uint16_t index = 0;           // the driver's: WQE index
};

struct Completion {
  Status status = Status::kSuccess;
  Opcode opcode = Opcode::kSend;  // of the request that caused it
  bool is_receive = false;
  bool solicited = false;
  bool has_immediate = false, has_invalidate = false, has_grh = false;
  uint32_t byte_length = 0;
  uint32_t immediate = 0;          // or the invalidated rkey
  uint32_t source_qpn = 0;
  uint16_t source_lid = 0;
  uint8_t sl = 0, dlid_path_bits = 0;
  uint16_t pkey_index = 0;
};

// A memory region or window as the NIC sees it.
struct MemoryKey {
  uint64_t base;     // bytes in this process
  uint64_t iova;
  uint64_t length;
  uint32_t access;   // IB_ACCESS_* bits
  uint32_t pd;       // protection domain's number; windows of type 2: the QP's
  bool invalidated;
};

enum class EndpointState : uint8_t { kReset, kInit, kRtr, kRts, kSqd, kSqe, kErr };
enum class Service : uint8_t { kRc, kUc, kUd, kRaw, kXrcInitiator, kXrcTarget };

// The NIC's side of one queue pair. A driver derives from it; the fabric moves the data.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  // The next posted receive (of the queue pair or its SRQ), taken from the queue. False: none, RNR.
  virtual bool PopReceive(RecvRequest* out) = 0;
  // A receive that ended. `request` is what PopReceive gave.
  virtual void CompleteReceive(const RecvRequest& request, const Completion& completion) = 0;
  // The transport put the queue pair into the error state: the driver flushes its queues.
  virtual void EnterError() = 0;

  // Kept by modify_qp.
  EndpointState state = EndpointState::kReset;
  Service service = Service::kRc;
  uint32_t qpn = 0, dest_qpn = 0, qkey = 0;
  uint32_t pd = 0;               // number of the protection domain
  uint32_t access = 0;           // IB_ACCESS_* of the queue pair
  uint32_t mtu = 4096;           // bytes
  uint8_t rnr_retry = 7, retry_count = 7, max_dest_rd_atomic = 16, max_rd_atomic = 16;
  uint8_t port = 1;
  uint16_t lid = 0;
  uint8_t gid[16] = {};          // source GID of this endpoint's port and sgid_index
  AddressVector address;         // connected services: the peer
  uint32_t device = 0;           // index of its device in the world
};

enum class Outcome : uint8_t {
  kDone,    // *completion tells; a failed one has put the endpoint into error
  kRetry,   // RNR or no answer yet: keep the request and call again; nothing was changed
};

// Memory keys of a device (lkey and rkey spaces are one).
void AddKey(uint32_t device, uint32_t key, const MemoryKey& memory);
void RemoveKey(uint32_t device, uint32_t key);
MemoryKey* FindKey(uint32_t device, uint32_t key);

void AddEndpoint(Endpoint* endpoint);
void RemoveEndpoint(Endpoint* endpoint);
Endpoint* FindEndpoint(uint32_t device, uint32_t qpn);

// Carries out one request of a requester in RTS. `attempt` counts the calls for this same request, from 0,
// so that retry counters run out.
Outcome Execute(Endpoint& requester, const SendRequest& request, uint32_t attempt, Completion* completion);

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_FABRIC_H_
