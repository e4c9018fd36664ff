// SPDX-License-Identifier: BSD-2-Clause
#include "shims/netlink/resources.h"

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
  void Address(ConstId attribute, const uint8_t (&address)[128]) {
    if (address[0] != 0 || address[1] != 0) message_.PutBytes(world_, attribute, address, 128);
  }

 private:
  const World& world_;
  int64_t level_;
  Message& message_;
};

void Pid(const Tracked& object, Filler* fill) {
  fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_PID), object.pid);  // fill_res_name_pid
}

// fill_res_qp_entry: since 5.9 whose it is comes before what the device is asked for.
void QueuePair(const Tracked& object, Filler* fill) {
  constexpr int64_t kAskedLast = 6;
  const auto owner = [&] {
    if (fill->From(kIds)) fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_PDN), object.pd);
    Pid(object, fill);
  };
  if (object.port != 0) fill->U32(VABI_C(RDMA_NLDEV_ATTR_PORT_INDEX), object.port);
  fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_LQPN), object.id);
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
  Pid(object, fill);
}

// fill_res_cq_entry
void CompletionQueue(const Tracked& object, Filler* fill) {
  fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_CQE), object.cqe);
  fill->U64(VABI_C(RDMA_NLDEV_ATTR_RES_USECNT), object.users);
  if (fill->From(kDim)) fill->U8(VABI_C(RDMA_NLDEV_ATTR_DEV_DIM), 0);
  if (fill->From(kIds)) {
    fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_CQN), object.id);
    fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_CTXN), object.context);
  }
  Pid(object, fill);
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
  Pid(object, fill);
}

// fill_res_pd_entry: a program's PD has no DMA key.
void ProtectionDomain(const Tracked& object, bool privileged, Filler* fill) {
  if (privileged) fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_LOCAL_DMA_LKEY), 0);
  fill->U64(VABI_C(RDMA_NLDEV_ATTR_RES_USECNT), object.users);
  if (fill->From(kIds)) {
    fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_PDN), object.id);
    fill->U32(VABI_C(RDMA_NLDEV_ATTR_RES_CTXN), object.context);
  }
  Pid(object, fill);
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
  Pid(object, fill);
}

// What fill_res_info counts, in the order of enum rdma_restrack_type; from which list of
// netlink.res_summary on; how many the kernel has of its own on a RoCE port: ib_mad_port_open makes
// a PD, a CQ and a queue pair.
struct Counted {
  const char* name;
  TrackType type;  // kCount: no world has any
  int64_t list;
  uint64_t kernels_own;
  uint32_t DeviceAttributes::*limit;  // null: none is told
};
constexpr Counted kCounted[] = {{"pd", TrackType::kPd, 1, 1, &DeviceAttributes::max_pd},
                                {"cq", TrackType::kCq, 1, 1, &DeviceAttributes::max_cq},
                                {"qp", TrackType::kQp, 1, 1, &DeviceAttributes::max_qp},
                                {"cm_id", TrackType::kCmId, 2, 0, nullptr},
                                {"mr", TrackType::kMr, 2, 0, &DeviceAttributes::max_mr},
                                {"ctx", TrackType::kCtx, 3, 0, nullptr},
                                {"srq", TrackType::kSrq, 4, 0, &DeviceAttributes::max_srq},
                                {"comp_cntr", TrackType::kCount, 5, 0, nullptr}};

}  // namespace

const ResourceKind* FindKind(ConstId command) {
  for (const ResourceKind& kind : kKinds) {
    if (kind.command == command) return &kind;
  }
  return nullptr;
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
      Pid(object, &fill);
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
    const uint64_t programs = counted.type == TrackType::kCount
                                  ? 0
                                  : FindTracked(world.image(), number, counted.type).size();
    const size_t entry = message->Begin(world, VABI_C(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY));
    message->PutString(world, VABI_C(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME), counted.name);
    message->PutU64(world, VABI_C(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR),
                    counted.kernels_own + programs);
    if (list >= kWithLimits && counted.limit != nullptr) {
      const uint64_t limit = device->attributes().*counted.limit;
      if (limit != 0) message->PutU64(world, VABI_C(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_MAX), limit);
    }
    message->End(entry);
  }
  message->End(summary);
}

}  // namespace vabi::netlink
