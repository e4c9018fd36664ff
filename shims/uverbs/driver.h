// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_DRIVER_H_
#define VABI_SHIMS_UVERBS_DRIVER_H_

#include <cstdint>
#include <span>

#include "shims/file.h"
#include "shims/uverbs/call.h"
#include "shims/uverbs/ioctl_spec.h"
#include "shims/uverbs/objects.h"
#include "shims/vma.h"

// What a kernel driver adds to the generic uverbs core (struct ib_device_ops). One folder under
// shims/providers/ for each. The core has checked the generic part of a command before it calls
// here, and has made the object; `call.in` and `call.out` are the private request and reply, of
// which the core has checked nothing. Every function returns 0 or -errno. The core undoes what it
// did when one fails.

namespace vabi {

// struct ib_device_attr, as far as user space sees it. Filled by the driver; a kernel that has no
// field for a value does not answer it.
struct DeviceAttributes {
  uint64_t fw_ver = 0, max_mr_size = 0, page_size_cap = 0, device_cap_flags = 0;
  uint32_t vendor_id = 0, vendor_part_id = 0, hw_ver = 0;
  uint32_t max_qp = 0, max_qp_wr = 0, max_send_sge = 0, max_recv_sge = 0, max_sge_rd = 0;
  uint32_t max_cq = 0, max_cqe = 0, max_mr = 0, max_pd = 0;
  uint32_t max_qp_rd_atom = 0, max_ee_rd_atom = 0, max_res_rd_atom = 0, max_qp_init_rd_atom = 0;
  uint32_t max_ee_init_rd_atom = 0, atomic_cap = 0, masked_atomic_cap = 0;
  uint32_t max_ee = 0, max_rdd = 0, max_mw = 0, max_raw_ipv6_qp = 0, max_raw_ethy_qp = 0;
  uint32_t max_mcast_grp = 0, max_mcast_qp_attach = 0, max_total_mcast_qp_attach = 0;
  uint32_t max_ah = 0, max_srq = 0, max_srq_wr = 0, max_srq_sge = 0;
  uint16_t max_pkeys = 0;
  uint8_t local_ca_ack_delay = 0;
  // extended query
  uint64_t odp_general_caps = 0;
  uint32_t odp_rc = 0, odp_uc = 0, odp_ud = 0, odp_xrc = 0;
  uint64_t timestamp_mask = 0, hca_core_clock = 0;  // kHz
  uint64_t kernel_cap_flags_ex = 0;                 // device_cap_flags_ex
  uint32_t rss_supported_qpts = 0, rss_max_rwq_indirection_tables = 0;
  uint32_t rss_max_rwq_indirection_table_size = 0, max_wq_type_rq = 0, raw_packet_caps = 0;
  uint32_t tm_max_rndv_hdr_size = 0, tm_max_num_tags = 0, tm_flags = 0, tm_max_ops = 0,
           tm_max_sge = 0;
  uint16_t cq_max_moderation_count = 0, cq_max_moderation_period = 0;
  uint64_t max_dm_size = 0;
  uint32_t xrc_odp_caps = 0;
};

// struct ib_port_attr beyond what the world says of a port (PortImage).
struct PortAttributes {
  uint32_t bad_pkey_cntr = 0, qkey_viol_cntr = 0;
  uint8_t max_vl_num = 0, subnet_timeout = 0, init_type_reply = 0;
  bool grh_required = false;  // RDMA_CORE_CAP_IB_GRH_REQUIRED
};

// An mmap of the device node, as the driver's mmap operation sees it.
struct MapRequest {
  uint64_t offset = 0;  // in bytes as given to mmap
  uint64_t length = 0;
  int protection = 0;   // PROT_…
  bool shared = false;  // VM_SHARED: not MAP_PRIVATE, and the node is open for writing
  // What core/ib_core_uverbs.c:rdma_user_mmap_io and rdma_user_mmap_entry_get ask of it first: 0,
  // or -errno. Drivers that map by other means do not ask.
  int CheckShared(Call& call) const;
};

// Answer to an mmap of the device node.
struct MapReply {
  // One of: memory of the driver that the NIC also sees (shims/sys/shared_memory.h), or anonymous
  // pages.
  void* memory = nullptr;
  bool anonymous = false;
  const char* kind = "";  // for the trace: "UAR", "CQ"; static storage
  DeviceVma::Pages pages = DeviceVma::Pages::kIo;
  bool may_write = true;   // false: the driver takes VM_MAYWRITE away
  bool dont_copy = false;  // VM_DONTCOPY: children do not have it
};

// struct ib_comp_cntr_caps.
struct CompletionCounters {
  uint64_t max_value = 0;
  uint32_t max_counters = 0, attach_ops = 0;
};

class Driver {
 public:
  virtual ~Driver() = default;

  virtual DriverId id() const = 0;
  // The operations that the newest modelled kernel's driver has; older kernels lack some, by data.
  // An operation that is not offered makes its commands "not served", with the kernel's errno for
  // that. poll_cq, peek_cq, req_notify_cq, post_send, post_recv and post_srq_recv are offered only
  // where the driver serves them to write() (ib_device.uverbs_cmd_mask); all other commands are in
  // the mask of every driver that has the operation.
  virtual bool Offers(Op op) const = 0;
  // Private ioctl methods and objects (mlx5: DEVX, UAR …) and additions to generic methods.
  virtual std::span<const MethodSpec> PrivateMethods() const { return {}; }

  virtual void Describe(const Device& device, DeviceAttributes* out) const = 0;
  virtual void DescribePort(const Device&, uint32_t /*port*/, PortAttributes*) const {}
  // num_comp_vectors of the device.
  virtual uint32_t CompVectors(const Device&) const { return 1; }
  // The private parts of QUERY_DEVICE (extended); -1 < length of call.in decides as in the kernel's
  // driver.
  virtual int QueryDevice(Call& call, Device& device) = 0;

  virtual int AllocContext(Call& call, Context& context) = 0;
  virtual void DeallocContext(Context&) {}
  virtual int Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) = 0;

  virtual int AllocPd(Call& call, Pd& pd) = 0;
  virtual void DeallocPd(Pd&) {}
  // start, length, iova, access and pd are set; the driver sets lkey and rkey and adds the keys.
  virtual int RegMr(Call& call, Mr& mr) = 0;
  virtual int ReregMr(Call& call, Mr& mr, uint32_t flags, uint64_t start, uint64_t length,
                      uint64_t iova, uint32_t access, Pd* pd) = 0;
  virtual int DeregMr(Call& call, Mr& mr) = 0;
  virtual int RegDmMr(Call& call,
                      Mr& mr) = 0;  // dm, length, access set; start is the offset inside
  virtual int AllocMw(Call& call, Mw& mw) = 0;
  virtual void DeallocMw(Mw&) {}
  virtual int AllocDm(Call& call, Dm& dm, uint32_t log_alignment) = 0;
  virtual void FreeDm(Dm&) {}

  // Whether it looks at a buffer that the caller gives with CQ_CREATE (create_user_cq).
  virtual bool ReadsCqBuffer(const Device&) const { return true; }
  virtual int CreateCq(Call& call, Cq& cq) = 0;  // cqe: asked for; the driver sets what it grants
  virtual int ResizeCq(Call& call, Cq& cq, uint32_t cqe) = 0;
  virtual int ModifyCq(Call& call, Cq& cq, uint16_t count, uint16_t period) = 0;
  virtual void DestroyCq(Cq&) {}
  // Commands of drivers whose queues are the kernel's (rxe): POLL_CQ, REQ_NOTIFY_CQ.
  virtual int ReqNotifyCq(Call& call, Cq& cq, bool solicited_only) = 0;

  virtual int CreateQp(Call& call, Qp& qp) = 0;
  // `next` is the state asked for (== qp.state when the mask has none); qp.attr still holds the old
  // values, `attr` the new ones. The core has run ib_modify_qp_is_ok where the kernel's driver does
  // (`next` valid).
  virtual int ModifyQp(Call& call, Qp& qp, QpState next, const QpAttributes& attr,
                       uint32_t mask) = 0;
  // Does the driver ask ib_modify_qp_is_ok about MODIFY_QP with this mask?
  virtual bool ChecksTransition(const World&, const Qp& qp, uint32_t mask) const;
  // The state after a MODIFY_QP that succeeded. Most drivers believe IB_QP_CUR_STATE (`next` then
  // is that).
  virtual QpState StateAfter(const Qp&, QpState next, uint32_t /*mask*/) const { return next; }
  virtual int QueryQp(Call& call, Qp& qp) = 0;  // refreshes qp.state, qp.attr, qp.cap
  // Before it: drivers that tell no more than they know look at the mask of what is asked for.
  virtual int CheckQuery(Call&, const Qp&, uint32_t /*mask*/) { return 0; }
  // cur_qp_state as QUERY_QP tells it.
  virtual QpState CurrentState(const World&, const Qp& qp) const { return qp.state; }
  virtual int DestroyQp(Call& call, Qp& qp) = 0;
  // `count`: work requests, which user space keeps in mapped queues; 0 is a doorbell.
  virtual int PostSend(Call& call, Qp& qp, uint32_t count) = 0;
  virtual int CreateSrq(Call& call, Srq& srq) = 0;
  virtual int ModifySrq(Call& call, Srq& srq, uint32_t max_wr, uint32_t limit, uint32_t mask) = 0;
  virtual void DestroySrq(Srq&) {}
  virtual int CreateAh(Call& call, Ah& ah) = 0;
  virtual void DestroyAh(Ah&) {}
  virtual int CreateWq(Call& call, Wq& wq) = 0;
  virtual int ModifyWq(Call& call, Wq& wq, uint32_t mask, uint32_t state, uint32_t flags) = 0;
  virtual void DestroyWq(Wq&) {}
  virtual int CreateRwqIndTable(Call& call, RwqIndTable& table) = 0;
  virtual void DestroyRwqIndTable(RwqIndTable&) {}
  virtual int CreateFlow(Call& call, Flow& flow) = 0;
  virtual void DestroyFlow(Flow&) {}
  virtual int CreateCounters(Call& call, Counters& counters) = 0;
  virtual int ReadCounters(Call& call, Counters& counters, std::span<uint64_t> values) = 0;
  virtual void DestroyCounters(Counters&) {}
  virtual int AllocXrcd(Call& call, XrcDomain& domain) = 0;
  virtual void DeallocXrcd(XrcDomain&) {}
  virtual int AttachMcast(Call& call, Qp& qp, const uint8_t* gid, uint16_t lid, bool attach) = 0;
  virtual int AdviseMr(Call& call, Pd& pd, uint32_t advice, uint32_t flags,
                       std::span<const fabric::Sge> list) = 0;
  virtual int RegDmabufMr(Call& call, Mr& mr, uint64_t offset, int fd) = 0;
  // Receives that the kernel posts in the program's stead. *posted: how many of them went well. An
  // element count above fabric::kMaxSge stands in sge_count as it came; the elements are then cut.
  virtual int PostRecv(Call& call, Qp& qp, std::span<const fabric::RecvRequest> list,
                       uint32_t* posted) = 0;
  virtual int PostSrqRecv(Call& call, Srq& srq, std::span<const fabric::RecvRequest> list,
                          uint32_t* posted) = 0;
  // POLL_CQ: 0 means that there is none; completions that the kernel would hand out are not
  // modelled.
  virtual int PollCq(Call& call, Cq& cq) = 0;
  virtual int QuerySrq(Call& call, Srq& srq) = 0;  // refreshes max_wr, max_sge, srq_limit
  // Attributes of the driver's own in DEVICE.QUERY_CONTEXT.
  virtual int QueryContext(IoctlCall& call) = 0;
  // In megabits a second, as IB_SPEED counts.
  virtual int QueryPortSpeed(Call& call, uint32_t port, uint64_t* speed) = 0;
  // The limits of completion counters. Those of a card which has none are zero.
  virtual int QueryCompletionCounters(Call& call, CompletionCounters* limits) = 0;
  // A private object (ObjectType::kPrivate) goes: a command or the end of its file.
  virtual int DestroyPrivate(Call&, Object&) { return 0; }
  // Private descriptors (kFd with ObjectType::kPrivate): is this file of that kind?
  virtual bool IsPrivateFile(uint16_t /*private_type*/, const File&) const { return false; }
};

// Every function of Driver answers Unmodelled; drivers derive from this and override what they
// have.
class DriverBase : public Driver {
 public:
  int QueryDevice(Call& call, Device&) override;
  int ReregMr(Call&, Mr&, uint32_t, uint64_t, uint64_t, uint64_t, uint32_t, Pd*) override;
  int RegDmMr(Call&, Mr&) override;
  int AllocMw(Call&, Mw&) override;
  int AllocDm(Call&, Dm&, uint32_t) override;
  int ResizeCq(Call&, Cq&, uint32_t) override;
  int ModifyCq(Call&, Cq&, uint16_t, uint16_t) override;
  int ReqNotifyCq(Call&, Cq&, bool) override;
  int PostSend(Call&, Qp&, uint32_t) override;
  int CreateSrq(Call&, Srq&) override;
  int ModifySrq(Call&, Srq&, uint32_t, uint32_t, uint32_t) override;
  int CreateAh(Call&, Ah&) override;
  int CreateWq(Call&, Wq&) override;
  int ModifyWq(Call&, Wq&, uint32_t, uint32_t, uint32_t) override;
  int CreateRwqIndTable(Call&, RwqIndTable&) override;
  int CreateFlow(Call&, Flow&) override;
  int CreateCounters(Call&, Counters&) override;
  int ReadCounters(Call&, Counters&, std::span<uint64_t>) override;
  int AllocXrcd(Call&, XrcDomain&) override;
  int AttachMcast(Call&, Qp&, const uint8_t*, uint16_t, bool) override;
  int AdviseMr(Call&, Pd&, uint32_t, uint32_t, std::span<const fabric::Sge>) override;
  int RegDmabufMr(Call&, Mr&, uint64_t, int) override;
  int PostRecv(Call&, Qp&, std::span<const fabric::RecvRequest>, uint32_t*) override;
  int PostSrqRecv(Call&, Srq&, std::span<const fabric::RecvRequest>, uint32_t*) override;
  int PollCq(Call&, Cq&) override;
  int QuerySrq(Call&, Srq&) override;
  int QueryContext(IoctlCall&) override;
  int QueryPortSpeed(Call&, uint32_t, uint64_t*) override;
  int QueryCompletionCounters(Call&, CompletionCounters*) override;
};

using DriverFactory = std::unique_ptr<Driver> (*)();

// One row a driver, in shims/uverbs/driver_table.cc: made once per device. Null: not linked in.
std::unique_ptr<Driver> MakeDriver(DriverId id);
// Unit tests put a driver of their own into the table; null: back to the table's.
void SetDriverForTest(DriverId id, DriverFactory factory);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_DRIVER_H_
