// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_BNXT_RE_TEST_BNXT_RE_H_
#define VABI_SHIMS_PROVIDERS_BNXT_RE_TEST_BNXT_RE_H_

#include "shims/providers/bnxt_re/ids.h"
#include "shims/providers/common/test_hca.h"

// A bnxt_re device with an open context and a PD, and the private requests that its library sends.

namespace vabi::bnxt_re {

inline Bytes CqBytes(TestHca& hca) {
  Bytes request = hca.Zero(structure::bnxt_re_cq_req);
  hca.In(request).Set(VABI_PF(bnxt_re_cq_req, cq_va), hca.Buffer());
  return request;
}
inline Bytes ResizeBytes(TestHca& hca) {
  Bytes request = hca.Zero(structure::bnxt_re_resize_cq_req);
  hca.In(request).Set(VABI_PF(bnxt_re_resize_cq_req, cq_va), hca.Buffer());
  return request;
}
inline Bytes SrqBytes(TestHca& hca) {
  Bytes request = hca.Zero(structure::bnxt_re_srq_req);
  hca.In(request).Set(VABI_PF(bnxt_re_srq_req, srqva), hca.Buffer());
  return request;
}
inline Bytes QpBytes(TestHca& hca) {
  Bytes request = hca.Zero(structure::bnxt_re_qp_req);
  hca.In(request).Set(VABI_PF(bnxt_re_qp_req, qpsva), hca.Buffer());
  hca.In(request).Set(VABI_PF(bnxt_re_qp_req, qprva), hca.Buffer());
  return request;
}

class TestBnxtRe : public TestHca {
 public:
  static constexpr size_t kContextRoom = 48, kRoom = 32;  // more than any reply

  explicit TestBnxtRe(const char* kernel) : TestHca(kernel, "bnxt_re") {}

  // `asks`: bits of bnxt_re_uctx_req.comp_mask
  void Start(uint8_t asks = 0) {
    Bytes request(8);
    request[0] = asks;
    ASSERT_GT(Open(request, kContextRoom), 0) << LastRule();
    ASSERT_GT(AllocPd(&pd, {}, 16), 0) << LastRule();
  }
  Bytes Cq() { return CqBytes(*this); }
  Bytes Resize() { return ResizeBytes(*this); }
  Bytes Srq() { return SrqBytes(*this); }
  Bytes Qp() { return QpBytes(*this); }
  CqMade MakeCq(uint32_t cqe = 15) {
    CqMade made;
    EXPECT_GT(CreateCq(cqe, &made, Cq(), kRoom), 0) << LastRule();
    return made;
  }
  QpWish Wish(uint8_t type = kRc) {
    QpWish wish;
    wish.pd = pd;
    wish.send_cq = wish.recv_cq = MakeCq().handle;
    wish.type = type;
    return wish;
  }
  QpMade MakeQp(uint8_t type = kRc) {
    QpMade made;
    EXPECT_GT(CreateQp(Wish(type), &made, Qp(), kRoom), 0) << LastRule();
    return made;
  }
  SrqMade MakeSrq(uint32_t max_wr = 20) {
    SrqMade made;
    EXPECT_GT(CreateSrq(pd, max_wr, 2, 0, &made, Srq(), kRoom), 0) << LastRule();
    return made;
  }

  uint32_t pd = 0;
};

}  // namespace vabi::bnxt_re

#endif  // VABI_SHIMS_PROVIDERS_BNXT_RE_TEST_BNXT_RE_H_
