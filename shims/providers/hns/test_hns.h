// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_HNS_TEST_HNS_H_
#define VABI_SHIMS_PROVIDERS_HNS_TEST_HNS_H_

#include "shims/providers/common/test_hca.h"
#include "shims/providers/hns/ids.h"

namespace vabi::hns {

// Valid requests by this kernel's layout; queues and records lie in TestHca's buffer.
inline Bytes CqInput(TestHca& hca) {
  Bytes request(hca.world().Size(structure::hns_roce_ib_create_cq));
  const Body body = hca.In(request);
  body.Set(VABI_PF(hns_roce_ib_create_cq, buf_addr), hca.Buffer());
  body.Set(VABI_PF(hns_roce_ib_create_cq, db_addr), hca.Buffer());
  body.Set(VABI_PF(hns_roce_ib_create_cq, cqe_size), 32);
  return request;
}
inline Bytes QpInput(TestHca& hca) {
  Bytes request(hca.world().Size(structure::hns_roce_ib_create_qp));
  const Body body = hca.In(request);
  body.Set(VABI_PF(hns_roce_ib_create_qp, buf_addr), hca.Buffer());
  body.Set(VABI_PF(hns_roce_ib_create_qp, db_addr), hca.Buffer());
  body.Set(VABI_PF(hns_roce_ib_create_qp, log_sq_bb_count), 6);
  body.Set(VABI_PF(hns_roce_ib_create_qp, log_sq_stride), 6);
  body.Set(VABI_PF(hns_roce_ib_create_qp, sdb_addr), hca.Buffer());
  return request;
}
inline Bytes SrqInput(TestHca& hca) {
  Bytes request(hca.world().Size(structure::hns_roce_ib_create_srq));
  const Body body = hca.In(request);
  body.Set(VABI_PF(hns_roce_ib_create_srq, buf_addr), hca.Buffer());
  body.Set(VABI_PF(hns_roce_ib_create_srq, que_addr), hca.Buffer());
  return request;
}

// An hns device whose context is open, with a PD.
class TestHns : public TestHca {
 public:
  static constexpr size_t kContextRequest = 8, kRoom = 64;  // more than any reply

  explicit TestHns(const std::string& kernel = "debian-7.3.4") : TestHca(kernel, "hns") { Begin(); }
  void Begin() {
    EXPECT_GT(Open(Bytes(kContextRequest), kRoom), 0) << LastRule();
    EXPECT_GT(AllocPd(&pd, {}, 8), 0) << LastRule();
  }
  uint32_t Cq() {
    if (cq_.cqe == 0) {
      EXPECT_GT(CreateCq(16, &cq_, CqInput(*this), 16), 0) << LastRule();
    }
    return cq_.handle;
  }
  QpWish Wish() {
    const uint32_t cq = Cq();
    return {.pd = pd, .send_cq = cq, .recv_cq = cq};
  }
  uint32_t Qp(size_t room = 16) {
    QpMade qp;
    EXPECT_GT(CreateQp(Wish(), &qp, QpInput(*this), room), 0) << LastRule();
    return qp.handle;
  }
  uint32_t Srq() {
    SrqMade srq;
    EXPECT_GT(CreateSrq(pd, 16, 1, 0, &srq, SrqInput(*this), 8), 0) << LastRule();
    return srq.handle;
  }

  uint32_t pd = 0;

 private:
  CqMade cq_;
};

}  // namespace vabi::hns

#endif  // VABI_SHIMS_PROVIDERS_HNS_TEST_HNS_H_
