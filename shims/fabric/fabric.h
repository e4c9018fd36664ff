// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_FABRIC_H_
#define VABI_SHIMS_FABRIC_FABRIC_H_

#include <cstddef>
#include <cstdint>
#include <vector>

// The wire. What a SEND, an RDMA WRITE or a READ does stands here once; drivers turn their own work
// queue formats into SendRequest and RecvRequest, and Completions into their own CQE formats. All
// calls are made with the fabric's lock held (see nic.h), so nothing here is called twice at once.

namespace vabi::fabric {

struct Sge {
  uint64_t address;
  uint32_t length;  // bytes; an element of 0 bytes is skipped, its key is not looked at
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
  kSend,
  kSendImm,
  kSendInvalidate,
  kWrite,
  kWriteImm,
  kRead,
  kCompareSwap,
  kFetchAdd,
  kMaskedCompareSwap,
  kMaskedFetchAdd,
  kLocalInvalidate,
  kBindMw,
  kRegister,  // never on the wire: see window.h; Execute answers kLocalQpOperation
  kNop,
  kAtomicWrite,  // eight bytes, all at once (IBTA annex A19)
  kFlush,        // the same annex: writes before it are visible, or persistent
};

// enum ib_wc_status by name and value.
enum class Status : uint8_t {
  kSuccess = 0,
  kLocalLength = 1,
  kLocalQpOperation = 2,
  kLocalEec = 3,
  kLocalProtection = 4,
  kFlushed = 5,
  kMwBind = 6,
  kBadResponse = 7,
  kLocalAccess = 8,
  kRemoteInvalidRequest = 9,
  kRemoteAccess = 10,
  kRemoteOperation = 11,
  kRetryExceeded = 12,
  kRnrRetryExceeded = 13,
  kFatal = 18,
  kGeneral = 21,
};

// enum ib_access_flags
inline constexpr uint32_t kAccessLocalWrite = 1, kAccessRemoteWrite = 2, kAccessRemoteRead = 4,
                          kAccessRemoteAtomic = 8, kAccessMwBind = 16, kAccessZeroBased = 32,
                          kAccessOnDemand = 64, kAccessFlushGlobal = 256,
                          kAccessFlushPersistent = 512;

inline constexpr int kMaxSge = 64;
inline constexpr uint32_t kGrhBytes = 40;  // in front of every received datagram

struct SendRequest {
  Opcode opcode = Opcode::kSend;
  bool signaled = false, solicited = false, fence = false;
  uint64_t wr_id = 0;  // for drivers that keep it in the queue (rxe)
  uint32_t sge_count = 0;
  Sge sges[kMaxSge];
  // Bytes of the request itself, in front of what the sges point to; null: none.
  const uint8_t* inline_data = nullptr;
  uint32_t inline_length = 0;
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  uint32_t immediate = 0;  // as it stands in the work request (big-endian bytes)
  uint32_t invalidate_rkey = 0;
  uint64_t compare_add = 0, swap = 0, compare_mask = ~0ULL, swap_mask = ~0ULL;  // host order
  // kFlush: what is asked for, IB_ACCESS_FLUSH_* bits; of the whole region, or of `flush_length`
  // bytes
  uint32_t flush_access = 0, flush_length = 0;
  bool flush_region = false;
  uint32_t xrc_srq = 0;  // kXrcInitiator: number of the shared queue that is meant
  uint64_t dc_key = 0;   // kDcInitiator: the target's access key
  // Datagrams; kDcInitiator: the target's address and number
  AddressVector address;
  uint32_t remote_qpn = 0, remote_qkey = 0;
  uint16_t index = 0;  // the driver's: WQE index, returned in the completion
};

struct RecvRequest {
  uint64_t wr_id = 0;
  uint32_t sge_count = 0;
  Sge sges[kMaxSge];
  uint16_t index = 0;  // the driver's: WQE index
};

// What the 40 bytes in front of a datagram are (enum rdma_network_type): a GRH (InfiniBand, RoCE
// v1), or the IP header of RoCE v2.
enum class NetworkHeader : uint8_t { kGrh, kIpv6, kIpv4 };

struct Completion {
  Status status = Status::kSuccess;
  Opcode opcode = Opcode::kSend;  // of the request that caused it
  bool is_receive = false;
  bool solicited = false;
  bool has_immediate = false, has_invalidate = false, has_grh = false;
  uint32_t byte_length = 0;  // requester: of the request; datagrams received: with the GRH
  uint32_t immediate = 0;    // or the invalidated rkey
  uint32_t source_qpn = 0;   // datagrams
  uint16_t source_lid = 0;
  uint8_t sl = 0, dlid_path_bits = 0;
  uint16_t pkey_index = 0;
  NetworkHeader network_header = NetworkHeader::kGrh;  // datagrams, where has_grh
};

// A piece of what an indirect key stands for: bytes of another region.
struct KeyPart {
  uint64_t address;  // as that region's key addresses it
  uint64_t length;   // bytes
  uint64_t stride;   // each repetition lies so many bytes behind the one before
  uint32_t lkey;
};

// A memory region or window as the NIC sees it.
struct MemoryKey {
  uint64_t base;  // bytes in this process
  uint64_t iova;
  uint64_t length;
  uint32_t access;   // IB_ACCESS_* bits
  uint32_t pd;       // protection domain's number
  bool invalidated;  // a window that is not bound: every use is refused
  // Windows.
  enum class Kind : uint8_t { kRegion, kWindow1, kWindow2, kIndirect } kind = Kind::kRegion;
  uint32_t qpn = 0;      // kWindow2: the only queue pair that may be addressed with it
  uint32_t region = 0;   // windows: lkey of the region that they are bound to
  uint32_t windows = 0;  // regions: windows bound to it
  // kIndirect: `repeat` times all parts, one behind the other; `base` means nothing.
  std::vector<KeyPart> parts;
  uint32_t repeat = 1;
  bool remote_invalidate = false;  // kIndirect: a SEND with invalidate may name it
};

enum class EndpointState : uint8_t { kReset, kInit, kRtr, kRts, kSqd, kSqe, kErr };
enum class Service : uint8_t {
  kRc,
  kUc,
  kUd,
  kRaw,
  kXrcInitiator,
  kXrcTarget,
  // Dynamically connected (ConnectX' own): reliable, and each request names its target. A target
  // serves all who know its access key, and stays what it is whatever one of them does.
  kDcInitiator,
  kDcTarget
};

// Asynchronous events that the transport causes (names of enum ib_event_type).
enum class Event : uint8_t {
  kAccessError,
  kRequestError,
  kCommunicationEstablished,
  kDcKeyViolation  // to a kDcTarget with another key than its own
};

// How a NIC words what went wrong: IBTA leaves room, and rxe does not follow it everywhere. The
// defaults are what ConnectX does. One constant table a driver (or, where kernels differ, a
// device).
struct Wording {
  // Requester.
  Status local_key = Status::kLocalProtection;    // an lkey that is absent, or of another PD
  Status local_range = Status::kLocalProtection;  // bytes outside of the region
  // Where a READ or atomic answer should go; kSuccess: the error state, but the completion says
  // success.
  Status local_target = Status::kLocalProtection;
  Status datagram_length =
      Status::kLocalLength;  // longer than the port's MTU; kSuccess: silently not sent
  Status no_read_depth = Status::kLocalQpOperation;  // max_rd_atomic == 0; kSuccess: waits for ever
  bool unreliable_local_error_is_sqe = true;         // UC, UD: leads to SQE, not ERR
  // Responder: its own completion, and what the requester is told.
  Status receive_length = Status::kLocalLength;  // the message is longer than the receive
  Status length_nak = Status::kRemoteInvalidRequest;
  Status receive_packet =
      Status::kLocalLength;  // packet sizes do not agree (requester: remote invalid request)
  Status receive_memory = Status::kLocalProtection;  // the receive's own keys or range
  Status receive_access = Status::kRemoteAccess;  // WRITE_IMM with a bad rkey, if it took a receive
  Status receive_invalidate =
      Status::kRemoteInvalidRequest;  // SEND_INV of what cannot be invalidated
  bool access_takes_receive =
      false;  // WRITE_IMM in one packet takes its receive before the rkey is looked at
  bool windows_bound_range = true;  // false: only the region behind a window bounds an access (rxe)
  bool nak_without_receive =
      true;  // false: a request that fails and took no receive gets no answer
  // Requests that invalidate regions, too. kLocal: those of their own side, whatever the key's
  // lowest byte, while SEND_INV invalidates nothing (rxe up to 5.12). kBoth: both, by rkey (rxe
  // of 5.14).
  enum class Regions : uint8_t { kNone, kLocal, kBoth } regions_invalidate = Regions::kNone;
  bool windows_check_pd = true;  // false: in a bind only windows of type 2 are held against the PD
  // UC, UD: a message longer than its receive. kFails: completes with receive_length and goes to
  // error. kDropped: the receive stays, or, taken from an SRQ, completes with `dropped` and no
  // error state.
  enum class Short : uint8_t { kFails, kDropped } uc_short = Short::kFails, ud_short = Short::kFails,
                                                  unreliable_packet = Short::kFails;
  Status dropped = Status::kRemoteInvalidRequest;
};

struct Flow;
struct Message;

// The NIC's side of one queue pair. A driver derives from it; the fabric moves the data.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  // The next posted receive (of the queue pair or its SRQ), taken from the queue. False: none, RNR.
  // For a receive that the driver finds malformed: true, and sge_count = kMalformed; it stays in
  // the queue.
  static constexpr uint32_t kMalformed = ~0u;
  virtual bool PopReceive(RecvRequest* out) = 0;
  // Of a SEND: true when its own first bytes say which receive it is for (tag matching). `*skip` of
  // them are not delivered.
  virtual bool Match(const Message&, RecvRequest* /*out*/, uint32_t* /*skip*/) { return false; }
  // Puts the receive that was popped last back as the first one: only if wording asks for it, and
  // has_srq is false.
  virtual void ReturnReceive(const RecvRequest&) {}
  // A receive that ended. `request` is what PopReceive gave. May put the endpoint into error (CQ
  // overrun); the requester then gets no answer.
  virtual void CompleteReceive(const RecvRequest& request, const Completion& completion) = 0;
  // The transport put this *responder* into the error state (`state` is set): the driver flushes
  // its queues. For the requester whose Execute failed it is not called: its completion must come
  // first, so the driver looks at `state` after it has written it.
  virtual void EnterError() = 0;
  virtual void Report(Event) {}
  // An XRC target: the message that comes next means this shared queue.
  virtual void Aim(uint32_t /*xrc_srq*/) {}
  // Of the requests for which Execute answered kSent, the oldest one is over. A failed one has set
  // `state`.
  virtual void Answered(const Completion&) {}
  // Execute may have something else to say than kRetry now, though it named no time.
  virtual void Resume() {}

  // Kept by modify_qp.
  EndpointState state = EndpointState::kReset;
  Service service = Service::kRc;
  uint32_t qpn = 0, dest_qpn = 0, qkey = 0;
  uint32_t pd = 0;      // number of the protection domain
  uint32_t access = 0;  // IB_ACCESS_* of the queue pair
  uint64_t dc_key = 0;  // kDcTarget: who does not send this one is not heard
  uint32_t mtu = 4096;  // bytes; datagrams: of the port
  // rnr_retry: 7 = for ever. retry_count: kForever = for ever (rxe takes 7 so).
  static constexpr uint8_t kForever = 0xff;
  uint8_t rnr_retry = 7, retry_count = 7, max_dest_rd_atomic = 16, max_rd_atomic = 16;
  uint8_t timeout = 14;  // 4.096 us << timeout for each try without an answer; 0: waits for ever
  uint8_t min_rnr_timer =
      12;  // responder's, IBTA's code: how long a requester waits after an RNR NAK
  uint8_t port = 1;
  uint16_t lid = 0;
  uint8_t gid[16] = {};   // source GID of this endpoint's port and sgid_index
  AddressVector address;  // connected services: the peer; kDcInitiator: of the last request
  uint32_t device = 0;    // index of its device in the world
  bool has_srq = false;
  // Packet sequence numbers: next to send, next expected. Compared only where both sides keep them
  // (`checks_psn`): set them at RTR and RTS, the fabric moves them on.
  bool checks_psn = false;
  uint32_t sq_psn = 0, rq_psn = 0;
  // Behind what was sent last: sq_psn, but for a request that waits for its answer.
  uint32_t sent_psn = 0;
  const Wording* wording = &kConnectX;
  static const Wording kConnectX;

  // The fabric's: retries of the request at the head of the send queue. A driver that waits may
  // sleep until `retry_at_ns` (sys::MonotonicNs; 0: nothing but an outside event helps); an earlier
  // Execute is harmless.
  uint64_t retry_at_ns = 0;
  uint32_t rnr_tries = 0, silent_tries = 0;
  // And of what went to other processes (remote.h); null: nothing ever did.
  Flow* flow = nullptr;
  // A responder that did not take a request takes none of those sent behind it, until that one
  // comes again.
  bool skips = false;
};

enum class Outcome : uint8_t {
  kDone,   // *completion tells; a failed one has set requester.state (kErr, or kSqe)
  kRetry,  // RNR or no answer yet: keep the request and call again; nothing was changed
  kSent,   // on its way to another process: the fabric has what it needs of the request, keeps
          // trying, and calls Endpoint::Answered, in the order of sending. The next may be executed
};

// Memory keys of a device (lkey and rkey spaces are one). Pointers stay valid until the key is
// removed.
MemoryKey* AddKey(uint32_t device, uint32_t key, const MemoryKey& memory);
void RemoveKey(uint32_t device, uint32_t key);
MemoryKey* FindKey(uint32_t device, uint32_t key);

void AddEndpoint(Endpoint* endpoint);
void RemoveEndpoint(Endpoint* endpoint);  // also from its multicast groups
Endpoint* FindEndpoint(uint32_t device, uint32_t qpn);

// Carries out one request of a requester in RTS (or SQD, draining). `attempt` counts the calls for
// this same request, from 0: 0 starts its retry counters anew. Retries are paced by the clock, as a
// NIC's timers would (Endpoint::timeout and min_rnr_timer): calls before retry_at_ns answer kRetry
// and count for nothing.
Outcome Execute(Endpoint& requester, const SendRequest& request, uint32_t attempt,
                Completion* completion);

// Nobody waits any more for what Execute has sent and nobody answered: the queue pair is reset, or
// its requests are flushed. What was sent may arrive all the same, but nothing is read from this
// process for it.
void DropSent(Endpoint& requester);

// The clock that paces retries; null: sys::MonotonicNs. For tests.
void SetClock(uint64_t (*now_ns)());
uint64_t Now();

// Drops everything that is registered: for tests.
void ForgetAll();

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_FABRIC_H_
