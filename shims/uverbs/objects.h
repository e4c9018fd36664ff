// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_OBJECTS_H_
#define VABI_SHIMS_UVERBS_OBJECTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "shims/fabric/fabric.h"
#include "shims/uverbs/pinned_memory.h"

// What the kernel keeps for a process: one struct per uverbs object, with the attributes that
// queries give back. A driver hangs its own state on `driver`.

namespace vabi {

class UverbsFile;
class Device;
class CompletionChannel;
class AsyncEventFile;

enum class ObjectType : uint8_t {
  kPd,
  kMr,
  kMw,
  kCq,
  kQp,
  kSrq,
  kAh,
  kXrcd,
  kWq,
  kRwqIndTable,
  kFlow,
  kFlowAction,
  kCounters,
  kDm,
  kCompChannel,
  kAsyncEvent,
  kPrivate,  // a driver's own object type (UAR, DEVX object …): told apart by Object::private_type
  kAny,      // attributes only: an object of whatever type (UVERBS_IDR_ANY_OBJECT)
  kCount
};

// Base of a driver's state for one object.
struct DriverState {
  virtual ~DriverState() = default;
};

struct Object {
  explicit Object(ObjectType type) : type(type) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  ObjectType type;
  uint16_t private_type = 0;  // kPrivate: ConstId of the driver's object (MLX5_IB_OBJECT_UAR)
  uint32_t handle = 0;
  uint64_t user_handle = 0;
  Device* device = nullptr;
  UverbsFile* file = nullptr;
  int users = 0;            // the kernel's usecnt: destroy answers EBUSY while > 0
  bool gone = false;        // went with its device; only the handle is left, for DESTROY
  uint32_t track = 0;       // where restrack has it (restrack.h)
  Object* newer = nullptr;  // all objects of the file in the order of their creation; UverbsFile's
  Object* older = nullptr;
  std::unique_ptr<DriverState> driver;
  Pins pins;
};

// struct ib_ucontext: at most one per open file.
struct Context {
  UverbsFile* file = nullptr;
  Device* device = nullptr;
  uint32_t track = 0;  // as Object's
  std::unique_ptr<DriverState> driver;
};

struct Pd : Object {
  static constexpr ObjectType kType = ObjectType::kPd;
  Pd() : Object(kType) {}
};

struct Dm : Object {
  static constexpr ObjectType kType = ObjectType::kDm;
  Dm() : Object(kType) {}
  uint64_t length = 0;
  std::vector<uint8_t> bytes;
};

struct Mr : Object {
  static constexpr ObjectType kType = ObjectType::kMr;
  Mr() : Object(kType) {}
  Pd* pd = nullptr;
  Dm* dm = nullptr;
  uint64_t start = 0;  // where the bytes are in this process
  uint64_t length = 0;
  uint64_t iova = 0;    // how work requests address them
  uint32_t access = 0;  // IB_ACCESS_*
  uint32_t lkey = 0, rkey = 0;
};

struct Mw : Object {
  static constexpr ObjectType kType = ObjectType::kMw;
  Mw() : Object(kType) {}
  Pd* pd = nullptr;
  uint8_t mw_type = 0;
  uint32_t rkey = 0;
};

struct Cq : Object {
  static constexpr ObjectType kType = ObjectType::kCq;
  Cq() : Object(kType) {}
  uint32_t cqe = 0;  // granted
  uint32_t comp_vector = 0;
  uint32_t flags = 0;
  std::shared_ptr<CompletionChannel> channel;
  std::shared_ptr<AsyncEventFile> events;
  uint32_t comp_events_reported = 0;  // read from the channel, as destroy replies count
  uint32_t async_events_reported = 0;
};

// struct ib_xrcd: shared by all handles that name the same inode.
struct XrcDomain {
  Device* device = nullptr;
  uint64_t inode = 0;  // 0: private to its handle
  uint64_t inode_device = 0;
  int handles = 0;  // ib_xrcd.usecnt as far as handles count
  int users = 0;    // ib_xrcd.usecnt: target queue pairs and SRQs
  std::unique_ptr<DriverState> driver;
};

// One handle of a domain. users: QPs and SRQs made through this handle (ib_uxrcd_object.refcnt).
struct Xrcd : Object {
  static constexpr ObjectType kType = ObjectType::kXrcd;
  Xrcd() : Object(kType) {}
  std::shared_ptr<XrcDomain> domain;
};

struct Srq : Object {
  static constexpr ObjectType kType = ObjectType::kSrq;
  Srq() : Object(kType) {}
  Pd* pd = nullptr;
  Xrcd* xrcd = nullptr;  // the handle; the domain is xrcd->domain
  Cq* cq = nullptr;
  uint32_t srq_type = 0;
  uint32_t max_wr = 0, max_sge = 0, srq_limit = 0;
  uint32_t srqn = 0;
  uint32_t max_num_tags = 0;
  std::shared_ptr<AsyncEventFile> events;
  uint32_t events_reported = 0;
};

struct Ah : Object {
  static constexpr ObjectType kType = ObjectType::kAh;
  Ah() : Object(kType) {}
  Pd* pd = nullptr;
  fabric::AddressVector address;
};

struct Wq : Object {
  static constexpr ObjectType kType = ObjectType::kWq;
  Wq() : Object(kType) {}
  Pd* pd = nullptr;
  Cq* cq = nullptr;
  uint32_t wq_type = 0, max_wr = 0, max_sge = 0, wqn = 0;
  uint32_t create_flags = 0;
  uint32_t state = 0;  // enum ib_wq_state: 0 RESET, 1 RDY, 2 ERR
  std::shared_ptr<AsyncEventFile> events;
  uint32_t events_reported = 0;
};

struct RwqIndTable : Object {
  static constexpr ObjectType kType = ObjectType::kRwqIndTable;
  RwqIndTable() : Object(kType) {}
  std::vector<Wq*> wqs;
  uint32_t number = 0;
};

struct Flow : Object {
  static constexpr ObjectType kType = ObjectType::kFlow;
  Flow() : Object(kType) {}
  struct Qp* qp = nullptr;
  std::vector<Object*> resources;  // actions and counters that it uses
  // struct ib_flow_attr and its specs, as the caller sent them (struct ib_uverbs_flow_attr …).
  std::vector<uint8_t> attributes;
};

struct FlowAction : Object {
  static constexpr ObjectType kType = ObjectType::kFlowAction;
  FlowAction() : Object(kType) {}
};

struct Counters : Object {
  static constexpr ObjectType kType = ObjectType::kCounters;
  Counters() : Object(kType) {}
};

// enum ib_qp_state
enum class QpState : uint8_t { kReset, kInit, kRtr, kRts, kSqd, kSqe, kErr };

// What modify_qp sets and query_qp gives back (struct ib_qp_attr).
struct QpAttributes {
  uint8_t path_mtu = 0, path_mig_state = 0;
  uint32_t qkey = 0, rq_psn = 0, sq_psn = 0, dest_qp_num = 0, access_flags = 0;
  fabric::AddressVector address, alternate;
  uint16_t pkey_index = 0, alt_pkey_index = 0;
  uint8_t en_sqd_async_notify = 0, sq_draining = 0, max_rd_atomic = 0, max_dest_rd_atomic = 0;
  uint8_t min_rnr_timer = 0, port_num = 0, timeout = 0, retry_cnt = 0, rnr_retry = 0;
  uint8_t alt_port_num = 0, alt_timeout = 0;
  uint8_t cur_qp_state = 0;  // what the caller of MODIFY_QP believes
  uint32_t rate_limit = 0;
};

struct QpCapabilities {
  uint32_t max_send_wr = 0, max_recv_wr = 0, max_send_sge = 0, max_recv_sge = 0, max_inline = 0;
};

struct Qp : Object {
  static constexpr ObjectType kType = ObjectType::kQp;
  Qp() : Object(kType) {}
  uint8_t qp_type = 0;  // enum ib_qp_type, as uverbs passes it
  // XRC targets: this handle shares the queue pair `real`, which the driver knows; handles have no
  // state.
  std::shared_ptr<Qp> real;
  Qp& Real() { return real ? *real : *this; }
  int open_handles = 0;  // of a real XRC target
  Xrcd* xrcd_handle = nullptr;
  QpState state = QpState::kReset;
  uint8_t port = 0;  // what IB_QP_PORT said last; attr.port_num is what QUERY_QP tells
  uint32_t qp_num = 0;
  Pd* pd = nullptr;
  Cq* send_cq = nullptr;
  Cq* recv_cq = nullptr;
  Srq* srq = nullptr;
  XrcDomain* xrcd = nullptr;
  RwqIndTable* ind_table = nullptr;
  uint32_t create_flags = 0;
  bool signal_all = false;
  QpCapabilities cap;
  QpAttributes attr;
  uint32_t source_qpn = 0;
  std::shared_ptr<AsyncEventFile> events;
  uint32_t events_reported = 0;
  struct McastEntry {
    uint8_t gid[16];
    uint16_t lid;
  };
  std::vector<McastEntry> mcast;  // attached by user space through this handle
  // The NIC's side of the queue pair; made by the driver.
  fabric::Endpoint* endpoint = nullptr;
};

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_OBJECTS_H_
