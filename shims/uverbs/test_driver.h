// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_TEST_DRIVER_H_
#define VABI_SHIMS_UVERBS_TEST_DRIVER_H_

#include <set>
#include <string>
#include <vector>

#include "shims/uverbs/device.h"
#include "shims/uverbs/driver.h"

// A driver for unit tests of the core: has every operation, grants what is asked for, and keeps a
// log.

namespace vabi {

class TestDriver : public DriverBase {
 public:
  // What tests may change; one for all drivers of the process.
  struct Script {
    std::set<Op> lacks;  // operations that it does not have
    int fail_with = 0;   // errno (negative) of the next create operation
    uint32_t comp_vectors = 2;
    uint8_t max_vl_num = 1;
    std::vector<fabric::RecvRequest> receives;  // that came by post_recv and post_srq_recv
    size_t room_for_receives = 100;             // more: ENOMEM
    bool grh_required = false;
    std::vector<std::string> log;   // "alloc_pd", "destroy_cq" …
    std::vector<uint8_t> udata_in;  // what the last driver call found
    size_t udata_out = 0;
  };
  static Script& script() {
    static Script instance;
    return instance;
  }
  static std::unique_ptr<Driver> Make() { return std::make_unique<TestDriver>(); }

  DriverId id() const override { return DriverId::rxe; }
  bool Offers(Op op) const override { return script().lacks.count(op) == 0; }
  void Describe(const Device&, DeviceAttributes* out) const override {
    out->max_qp = 1000;
    out->max_cqe = 4096;
    out->max_send_sge = 32;
    out->max_recv_sge = 30;
    out->fw_ver = 0x0123456789abcdef;
    out->vendor_part_id = 0x1017;
    out->device_cap_flags = 0x1122331155667788;
    out->max_dm_size = 1 << 20;
  }
  void DescribePort(const Device&, uint32_t, PortAttributes* out) const override {
    out->max_vl_num = script().max_vl_num;
    out->grh_required = script().grh_required;
  }
  uint32_t CompVectors(const Device&) const override { return script().comp_vectors; }

  int QueryDevice(Call& call, Device&) override { return Note(call, "query_device"); }
  int AllocContext(Call& call, Context&) override { return Note(call, "alloc_ucontext"); }
  void DeallocContext(Context&) override { script().log.push_back("dealloc_ucontext"); }
  int Map(Call& call, Context&, const MapRequest& request, MapReply* reply) override {
    if (request.offset != 0) return -EINVAL;
    if (const int error = request.CheckShared(call)) return error;
    reply->anonymous = true;
    reply->kind = "PAGE";
    return 0;
  }
  int AllocPd(Call& call, Pd&) override { return Note(call, "alloc_pd"); }
  void DeallocPd(Pd&) override { script().log.push_back("dealloc_pd"); }
  int RegMr(Call& call, Mr& mr) override {
    mr.lkey = 0x100;
    mr.rkey = 0x200;
    return Note(call, "reg_mr");
  }
  int ReregMr(Call& call, Mr& mr, uint32_t flags, uint64_t, uint64_t, uint64_t, uint32_t,
              Pd*) override {
    last_rereg_flags = flags;
    mr.rkey = 0x201;
    return Note(call, "rereg_mr");
  }
  int DeregMr(Call&, Mr&) override { return Gone("dereg_mr"); }
  int RegDmMr(Call& call, Mr& mr) override {
    mr.lkey = mr.rkey = 0x300;
    return Note(call, "reg_dm_mr");
  }
  int AllocMw(Call& call, Mw& mw) override {
    mw.rkey = 0x400;
    return Note(call, "alloc_mw");
  }
  void DeallocMw(Mw&) override { Gone("dealloc_mw"); }
  int AllocDm(Call& call, Dm&, uint32_t) override { return Note(call, "alloc_dm"); }
  void FreeDm(Dm&) override { Gone("free_dm"); }
  int CreateCq(Call& call, Cq& cq) override {
    cq.cqe = cq.cqe * 2 - 1;  // drivers round up
    return Note(call, "create_cq");
  }
  int ResizeCq(Call& call, Cq& cq, uint32_t cqe) override {
    cq.cqe = cqe;
    return Note(call, "resize_cq");
  }
  int ModifyCq(Call& call, Cq&, uint16_t, uint16_t) override { return Note(call, "modify_cq"); }
  void DestroyCq(Cq&) override { Gone("destroy_cq"); }
  int ReqNotifyCq(Call& call, Cq&, bool) override { return Note(call, "req_notify_cq"); }
  int CreateQp(Call& call, Qp& qp) override {
    qp.qp_num = qp.device->NextQpn();
    return Note(call, "create_qp");
  }
  int ModifyQp(Call& call, Qp&, QpState, const QpAttributes&, uint32_t mask) override {
    last_modify_mask = mask;
    return Note(call, "modify_qp");
  }
  int QueryQp(Call& call, Qp&) override { return Note(call, "query_qp"); }
  int DestroyQp(Call&, Qp&) override { return Gone("destroy_qp"); }
  int PostSend(Call& call, Qp&, uint32_t) override { return Note(call, "post_send"); }
  int PostRecv(Call& call, Qp&, std::span<const fabric::RecvRequest> list,
               uint32_t* posted) override {
    return Take(call, "post_recv", list, posted);
  }
  int PostSrqRecv(Call& call, Srq&, std::span<const fabric::RecvRequest> list,
                  uint32_t* posted) override {
    return Take(call, "post_srq_recv", list, posted);
  }
  int PollCq(Call& call, Cq&) override { return Note(call, "poll_cq"); }
  int CreateSrq(Call& call, Srq& srq) override {
    srq.srqn = 77;
    return Note(call, "create_srq");
  }
  int ModifySrq(Call& call, Srq& srq, uint32_t, uint32_t limit, uint32_t) override {
    srq.srq_limit = limit;
    return Note(call, "modify_srq");
  }
  void DestroySrq(Srq&) override { Gone("destroy_srq"); }
  int CreateAh(Call& call, Ah&) override { return Note(call, "create_ah"); }
  void DestroyAh(Ah&) override { Gone("destroy_ah"); }
  int CreateWq(Call& call, Wq& wq) override {
    wq.wqn = 5;
    return Note(call, "create_wq");
  }
  int ModifyWq(Call& call, Wq&, uint32_t, uint32_t, uint32_t) override {
    return Note(call, "modify_wq");
  }
  void DestroyWq(Wq&) override { Gone("destroy_wq"); }
  int CreateRwqIndTable(Call& call, RwqIndTable& table) override {
    table.number = 9;
    return Note(call, "create_rwq_ind_table");
  }
  void DestroyRwqIndTable(RwqIndTable&) override { Gone("destroy_rwq_ind_table"); }
  int CreateFlow(Call& call, Flow&) override { return Note(call, "create_flow"); }
  void DestroyFlow(Flow&) override { Gone("destroy_flow"); }
  int CreateCounters(Call& call, Counters&) override { return Note(call, "create_counters"); }
  int ReadCounters(Call& call, Counters&, std::span<uint64_t> values) override {
    for (uint64_t& value : values) value = 11;
    return Note(call, "read_counters");
  }
  void DestroyCounters(Counters&) override { Gone("destroy_counters"); }
  int AllocXrcd(Call& call, XrcDomain&) override { return Note(call, "alloc_xrcd"); }
  void DeallocXrcd(XrcDomain&) override { Gone("dealloc_xrcd"); }
  int AttachMcast(Call& call, Qp&, const uint8_t*, uint16_t, bool attach) override {
    return Note(call, attach ? "attach_mcast" : "detach_mcast");
  }
  int AdviseMr(Call& call, Pd&, uint32_t, uint32_t, std::span<const fabric::Sge>) override {
    return Note(call, "advise_mr");
  }
  int QueryPortSpeed(Call& call, uint32_t, uint64_t* speed) override {
    *speed = 4000;
    return Note(call, "query_port_speed");
  }

  static inline uint32_t last_modify_mask = 0, last_rereg_flags = 0;

 private:
  static int Note(Call& call, const char* what) {
    script().udata_in.resize(call.in.length());
    call.in.Copy(script().udata_in.data(), script().udata_in.size());
    script().udata_out = call.out.length();
    if (script().fail_with != 0) return std::exchange(script().fail_with, 0);
    script().log.push_back(what);
    return 0;
  }
  static int Take(Call& call, const char* what, std::span<const fabric::RecvRequest> list,
                  uint32_t* posted) {
    for (const fabric::RecvRequest& request : list) {
      if (script().receives.size() == script().room_for_receives) return -ENOMEM;
      script().receives.push_back(request);
      ++*posted;
    }
    return Note(call, what);
  }
  static int Gone(const char* what) {
    script().log.push_back(what);
    return 0;
  }
};

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_TEST_DRIVER_H_
