// SPDX-License-Identifier: BSD-2-Clause
#include "shims/netlink/resources.h"

#include <algorithm>

#include "shims/uverbs/device.h"

namespace vabi::netlink {
namespace {

constexpr ResourceKind kKinds[] = {
    {ConstId::RDMA_NLDEV_CMD_RES_QP_GET, TrackType::kQp, ConstId::RDMA_NLDEV_ATTR_RES_QP,
     ConstId::RDMA_NLDEV_ATTR_RES_QP_ENTRY, ConstId::RDMA_NLDEV_ATTR_RES_LQPN, false, 1},
    {ConstId::RDMA_NLDEV_CMD_RES_CM_ID_GET, TrackType::kCmId, ConstId::RDMA_NLDEV_ATTR_RES_CM_ID,
     ConstId::RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY, ConstId::RDMA_NLDEV_ATTR_RES_CM_IDN, false, 2},
    {ConstId::RDMA_NLDEV_CMD_RES_CQ_GET, TrackType::kCq, ConstId::RDMA_NLDEV_ATTR_RES_CQ,
     ConstId::RDMA_NLDEV_ATTR_RES_CQ_ENTRY, ConstId::RDMA_NLDEV_ATTR_RES_CQN, true, 2},
    {ConstId::RDMA_NLDEV_CMD_RES_MR_GET, TrackType::kMr, ConstId::RDMA_NLDEV_ATTR_RES_MR,
     ConstId::RDMA_NLDEV_ATTR_RES_MR_ENTRY, ConstId::RDMA_NLDEV_ATTR_RES_MRN, true, 2},
    {ConstId::RDMA_NLDEV_CMD_RES_PD_GET, TrackType::kPd, ConstId::RDMA_NLDEV_ATTR_RES_PD,
     ConstId::RDMA_NLDEV_ATTR_RES_PD_ENTRY, ConstId::RDMA_NLDEV_ATTR_RES_PDN, true, 2},
    {ConstId::RDMA_NLDEV_CMD_RES_CTX_GET, TrackType::kCtx, ConstId::RDMA_NLDEV_ATTR_RES_CTX,
     ConstId::RDMA_NLDEV_ATTR_RES_CTX_ENTRY, ConstId::RDMA_NLDEV_ATTR_RES_CTXN, true, 7},
    {ConstId::RDMA_NLDEV_CMD_RES_SRQ_GET, TrackType::kSrq, ConstId::RDMA_NLDEV_ATTR_RES_SRQ,
     ConstId::RDMA_NLDEV_ATTR_RES_SRQ_ENTRY, ConstId::RDMA_NLDEV_ATTR_RES_SRQN, true, 7},
};

// netlink.res_entries
constexpr int64_t kIova = 2, kIds = 4, kDim = 5;

// enum ib_qp_type
bool HasMigration(uint8_t type) { return type == 2 || type == 3 || type == 9 || type == 10; }

class Filler {
 public:
  Filler(const World& world, Message* message)
      : world_(world), level_(world.Knob(KnobId::netlink_res_entries)), message_(*message) {}
  bool From(int64_t level) const { return level_ >= level; }
  bool Exactly(int64_t level) const { return level_ == level; }
  void U8(ConstId attribute, uint8_t value) { message_.PutU8(world_, attribute, value); }
  void U32(ConstId attribute, uint32_t value) { message_.PutU32(world_, attribute, value); }
  void U64(ConstId attribute, uint64_t value) { message_.PutU64(world_, attribute, value); }
  void Text(ConstId attribute, const char* text) { message_.PutString(world_, attribute, text); }
  void Address(ConstId attribute, const uint8_t (&address)[128]) {
    if (address[0] != 0 || address[1] != 0) message_.PutBytes(world_, attribute, address, 128);
  }

 private:
  const World& world_;
  int64_t level_;
  Message& message_;
};

// rdma_is_kernel_res
bool IsKernels(const Tracked& object) { return object.pid == 0; }

// fill_res_name_pid
void Owner(const Tracked& object, Filler* fill) {
  if (IsKernels(object)) {
    fill->Text(VABI_C(RDMA_NLDEV_ATTR_RES_KERN_NAME), "ib_core");
  } else {
    fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_PID), object.pid);
  }
}

// fill_res_qp_entry: since 5.9 whose it is comes before what the device is asked for.
void QueuePair(const Tracked& object, Filler* fill) {
  constexpr int64_t kAskedLast = 6;
  const auto owner = [&] {
    if (fill->From(kIds) && !IsKernels(object))
      fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_PDN), object.pd);
    Owner(object, fill);
  };
  if (object.port != 0) fill->U32(VABI_C(RDMA_NLDEV_ATTR_PORT_INDEX), object.port);
  fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_LQPN), object.id & 0xffffff);
  if (fill->From(kAskedLast)) owner();
  if (object.connected != 0) {
    fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_RQPN), object.remote_qpn);
    fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_RQ_PSN), object.rq_psn);
  }
  fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_SQ_PSN), object.sq_psn);
  if (HasMigration(object.kind))
    fill->U8(VABI_C(RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE), object.migration);
  fill->U8(VABI_C(RDMA_NLDEV_ATTR_RES_TYPE), object.kind);
  fill->U8(VABI_C(RDMA_NLDEV_ATTR_RES_STATE), object.state);
  if (!fill->From(kAskedLast)) owner();
}

// fill_res_cm_id_entry
void CmId(const Tracked& object, Filler* fill) {
  if (object.port != 0) fill->U32(VABI_C(RDMA_NLDEV_ATTR_PORT_INDEX), object.port);
  if (object.qpn != 0) {
    fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_LQPN), object.qpn);
    fill->U8(VABI_C(RDMA_NLDEV_ATTR_RES_TYPE), object.kind);
  }
  fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_PS), object.port_space);
  fill->U8(VABI_C(RDMA_NLDEV_ATTR_RES_STATE), object.state);
  fill->Address(VABI_C(RDMA_NLDEV_ATTR_RES_SRC_ADDR), object.source);
  fill->Address(VABI_C(RDMA_NLDEV_ATTR_RES_DST_ADDR), object.target);
  if (fill->From(kIds)) fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_CM_IDN), object.id);
  Owner(object, fill);
}

// fill_res_cq_entry
void CompletionQueue(const Tracked& object, Filler* fill) {
  fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_CQE), object.cqe);
  fill->U64(VABI_C(RDMA_NLDEV_ATTR_RES_USECNT), object.users);
  if (IsKernels(object)) fill->U8(VABI_C(RDMA_NLDEV_ATTR_RES_POLL_CTX), object.kind);
  if (fill->From(kDim)) fill->U8(VABI_C(RDMA_NLDEV_ATTR_DEV_DIM), 0);
  if (fill->From(kIds)) {
    fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_CQN), object.id);
    if (!IsKernels(object)) fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_CTXN), object.context);
  }
  Owner(object, fill);
}

// fill_res_mr_entry
void MemoryRegion(const Tracked& object, bool privileged, Filler* fill) {
  if (privileged) {
    fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_RKEY), object.rkey);
    fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_LKEY), object.lkey);
    if (fill->Exactly(kIova)) fill->U64(VABI_C(RDMA_NLDEV_ATTR_RES_IOVA), object.iova);
  }
  fill->U64(VABI_C(RDMA_NLDEV_ATTR_RES_MRLEN), object.length);
  if (fill->From(kIds)) {
    fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_MRN), object.id);
    fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_PDN), object.pd);
  }
  Owner(object, fill);
}

// fill_res_pd_entry: a program's PD has no DMA key.
void ProtectionDomain(const Tracked& object, bool privileged, Filler* fill) {
  if (privileged) fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_LOCAL_DMA_LKEY), object.lkey);
  fill->U64(VABI_C(RDMA_NLDEV_ATTR_RES_USECNT), object.users);
  if (fill->From(kIds)) {
    fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_PDN), object.id);
    if (!IsKernels(object)) fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_CTXN), object.context);
  }
  Owner(object, fill);
}

// fill_res_srq_qps: the numbers of its queue pairs, in ranges.
void QueuePairsOf(const World& world, const Tracked& srq, Message* message) {
  const size_t table = message->Begin(world, VABI_C(RDMA_NLDEV_ATTR_RES_QP), true);
  uint32_t first = 0, last = 0;
  const auto put = [&] {
    if (first == 0) return;
    const size_t entry = message->Begin(world, VABI_C(RDMA_NLDEV_ATTR_RES_QP_ENTRY), true);
    if (first == last) {
      message->PutU32(world, VABI_C(RDMA_NLDEV_ATTR_RES_LQPN), first);
    } else {
      message->PutU32(world, VABI_C(RDMA_NLDEV_ATTR_MIN_RANGE), first);
      message->PutU32(world, VABI_C(RDMA_NLDEV_ATTR_MAX_RANGE), last);
    }
    message->End(entry);
  };
  for (const Tracked& qp : FindTracked(world.image(), srq.device, TrackType::kQp)) {
    if (qp.has_srq == 0 || qp.srq != srq.id) continue;
    if (first != 0 && qp.id == last + 1) {
      last = qp.id;
      continue;
    }
    put();
    first = last = qp.id;
  }
  put();
  message->End(table);
}

// fill_res_srq_entry
void SharedReceiveQueue(const World& world, const Tracked& object, Filler* fill, Message* message) {
  constexpr uint8_t kBasic = 0;  // IB_SRQT_BASIC, the only one without a CQ
  fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_SRQN), object.id);
  fill->U8(VABI_C(RDMA_NLDEV_ATTR_RES_TYPE), object.kind);
  fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_PDN), object.pd);
  if (object.kind != kBasic) fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_CQN), object.cq);
  QueuePairsOf(world, object, message);
  Owner(object, fill);
}

// What fill_res_info counts, in the order of enum rdma_restrack_type; from which list of
// netlink.res_summary on.
struct Counted {
  const char* name;
  TrackType type;  // kCount: no world has any
  int64_t list;
  uint32_t DeviceAttributes::*limit;  // null: none is told
};
constexpr Counted kCounted[] = {{"pd", TrackType::kPd, 1, &DeviceAttributes::max_pd},
                                {"cq", TrackType::kCq, 1, &DeviceAttributes::max_cq},
                                {"qp", TrackType::kQp, 1, &DeviceAttributes::max_qp},
                                {"cm_id", TrackType::kCmId, 2, nullptr},
                                {"mr", TrackType::kMr, 2, &DeviceAttributes::max_mr},
                                {"ctx", TrackType::kCtx, 3, nullptr},
                                {"srq", TrackType::kSrq, 4, &DeviceAttributes::max_srq},
                                {"comp_cntr", TrackType::kCount, 5, nullptr}};

// How ib_mad's CQ is polled: IB_POLL_WORKQUEUE up to 4.19, IB_POLL_UNBOUND_WORKQUEUE, as which it
// had another number from 4.20 to 5.7. Between the two no knob tells them apart.
constexpr uint8_t kPollContext = 2;
bool KnowsPollContext(const World& world) {
  constexpr int64_t kLastBefore = 2, kFirstBehind = 6;  // netlink.res_entries: 4.17, 5.9
  const int64_t level = world.Knob(KnobId::netlink_res_entries);
  return level <= kLastBefore || level >= kFirstBehind;
}

// mad.c:ib_mad_port_open on a RoCE port: a PD, a CQ and the GSI's queue pair, the first that there
// are. Of rxe's: its GSI is number 1 and its queues have a power of two of places, less one.
// False: of that type it makes none.
bool OfMad(const World& world, TrackType type, Tracked* object) {
  constexpr uint8_t kGsi = 1, kRts = 3;  // IB_QPT_GSI, IB_QPS_RTS
  constexpr uint32_t kPlaces = 1023;     // IB_MAD_QP_SEND_SIZE + IB_MAD_QP_RECV_SIZE
  constexpr uint32_t kDmaKey = 1 << 8;   // rxe_get_dma_mr: of the first region
  // netlink.res_entries; 8: core/verbs.c:create_qp sets the port of every queue pair (in 5.17, not
  // in 5.14).
  constexpr int64_t kQueriedLast = 5, kNamed = 8;
  const int64_t level = world.Knob(KnobId::netlink_res_entries);
  *object = {};
  object->type = type;
  switch (type) {
    case TrackType::kPd:
      object->users = 1;
      object->lkey = kDmaKey;
      return true;
    case TrackType::kCq:
      object->users = 2;
      object->cqe = kPlaces;
      object->kind = kPollContext;
      return true;
    case TrackType::kQp:
      // The device knows its port, ib_core only since it keeps it from the beginning.
      object->port = level <= kQueriedLast || level >= kNamed;
      object->id = 1 | (level >= kNamed ? uint32_t{object->port} << 24 : 0);  // restrack.c
      object->kind = kGsi;
      object->state = kRts;
      return true;
    default:
      return false;
  }
}

}  // namespace

const ResourceKind* FindKind(ConstId command) {
  for (const ResourceKind& kind : kKinds) {
    if (kind.command == command) return &kind;
  }
  return nullptr;
}

bool KnowsKernels(const World& world, const DeviceImage& device, TrackType type) {
  // Connection identifiers and contexts are programs' alone. siw is iWARP and efa none of the kinds
  // that have MADs (rdma_cap_ib_mad), and no driver of these three makes objects for itself.
  if (type == TrackType::kCmId || type == TrackType::kCtx) return true;
  if (device.driver == DriverId::rxe) return type != TrackType::kCq || KnowsPollContext(world);
  return device.driver == DriverId::siw || device.driver == DriverId::efa;
}

std::vector<Tracked> FindObjects(const World& world, const DeviceImage& device, uint32_t number,
                                 TrackType type) {
  std::vector<Tracked> found = FindTracked(world.image(), number, type);
  Tracked own;
  if (device.driver == DriverId::rxe && KnowsKernels(world, device, type) &&
      OfMad(world, type, &own)) {
    found.push_back(own);
    std::sort(found.begin(), found.end(),
              [](const Tracked& a, const Tracked& b) { return a.id < b.id; });
  }
  return found;
}

bool PutObject(const World& world, const ResourceKind& kind, const Tracked& object, bool privileged,
               uint32_t port, Message* message) {
  if (port != 0 && !kind.per_device && object.port != port) return false;
  Filler fill(world, message);
  switch (kind.type) {
    case TrackType::kQp:
      QueuePair(object, &fill);
      break;
    case TrackType::kCmId:
      CmId(object, &fill);
      break;
    case TrackType::kCq:
      CompletionQueue(object, &fill);
      break;
    case TrackType::kMr:
      MemoryRegion(object, privileged, &fill);
      break;
    case TrackType::kPd:
      ProtectionDomain(object, privileged, &fill);
      break;
    case TrackType::kCtx:  // fill_res_ctx_entry
      fill.U32(VABI_C(RDMA_NLDEV_ATTR_RES_CTXN), object.id);
      Owner(object, &fill);
      break;
    case TrackType::kSrq:
      SharedReceiveQueue(world, object, &fill, message);
      break;
    case TrackType::kCount:
      break;
  }
  return true;
}

void PutSummary(const World& world, uint32_t number, Message* message) {
  constexpr int64_t kWithLimits = 5;
  const Device* device = FindDevice(number);
  const int64_t list = world.Knob(KnobId::netlink_res_summary);
  const size_t summary = message->Begin(world, VABI_C(RDMA_NLDEV_ATTR_RES_SUMMARY));
  for (const Counted& counted : kCounted) {
    if (counted.list > list) continue;
    uint64_t count = 0;
    Tracked own;
    if (counted.type != TrackType::kCount)
      count = FindTracked(world.image(), number, counted.type).size();
    if (device->image().driver == DriverId::rxe && OfMad(world, counted.type, &own)) ++count;
    const size_t entry = message->Begin(world, VABI_C(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY));
    message->PutString(world, VABI_C(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME), counted.name);
    message->PutU64(world, VABI_C(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR), count);
    if (list >= kWithLimits && counted.limit != nullptr) {
      const uint64_t limit = device->attributes().*counted.limit;
      if (limit != 0) message->PutU64(world, VABI_C(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_MAX), limit);
    }
    message->End(entry);
  }
  message->End(summary);
}

}  // namespace vabi::netlink
