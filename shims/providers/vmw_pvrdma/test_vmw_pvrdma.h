// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_VMW_PVRDMA_TEST_VMW_PVRDMA_H_
#define VABI_SHIMS_PROVIDERS_VMW_PVRDMA_TEST_VMW_PVRDMA_H_

#include "shims/providers/common/test_hca.h"
#include "shims/providers/vmw_pvrdma/ids.h"

// A paravirtual device with an open context, and the private requests that its library sends.

namespace vabi::vmw_pvrdma {

inline constexpr uint32_t kRing = 0x2000;

inline Bytes CqBytes(TestHca& hca) {
  Bytes request = hca.Zero(structure::pvrdma_create_cq);
  hca.In(request).Set(VABI_PF(pvrdma_create_cq, buf_addr), hca.Buffer());
  hca.In(request).Set(VABI_PF(pvrdma_create_cq, buf_size), kRing);
  return request;
}
inline Bytes SrqBytes(TestHca& hca) {
  Bytes request = hca.Zero(structure::pvrdma_create_srq);
  hca.In(request).Set(VABI_PF(pvrdma_create_srq, buf_addr), hca.Buffer());
  hca.In(request).Set(VABI_PF(pvrdma_create_srq, buf_size), kRing);
  return request;
}
inline Bytes QpBytes(TestHca& hca) {
  Bytes request = hca.Zero(structure::pvrdma_create_qp);
  const Body body = hca.In(request);
  body.Set(VABI_PF(pvrdma_create_qp, rbuf_addr), hca.Buffer());
  body.Set(VABI_PF(pvrdma_create_qp, rbuf_size), kRing);
  body.Set(VABI_PF(pvrdma_create_qp, sbuf_addr), hca.Buffer());
  body.Set(VABI_PF(pvrdma_create_qp, sbuf_size), kRing);
  body.Set(VABI_PF(pvrdma_create_qp, qp_addr), hca.Buffer());
  return request;
}

class TestVmwPvrdma : public TestHca {
 public:
  explicit TestVmwPvrdma(const char* kernel) : TestHca(kernel, "vmw_pvrdma") {}

  void Start() {
    ASSERT_GT(Open({}, 8), 0) << LastRule();
    ASSERT_GT(AllocPd(&pd, {}, 8), 0) << LastRule();
  }
  Bytes Cq() { return CqBytes(*this); }
  Bytes Srq() { return SrqBytes(*this); }
  Bytes Qp() { return QpBytes(*this); }
  uint32_t MakeCq() {
    CqMade made;
    EXPECT_GT(CreateCq(15, &made, Cq(), 8), 0) << LastRule();
    return made.handle;
  }
  QpWish Wish(uint8_t type = kRc) {
    QpWish wish;
    wish.pd = pd;
    wish.send_cq = wish.recv_cq = MakeCq();
    wish.type = type;
    return wish;
  }
  QpMade MakeQp(uint8_t type = kRc) {
    QpMade made;
    EXPECT_GT(CreateQp(Wish(type), &made, Qp(), 8), 0) << LastRule();
    return made;
  }

  uint32_t pd = 0;
};

}  // namespace vabi::vmw_pvrdma

#endif  // VABI_SHIMS_PROVIDERS_VMW_PVRDMA_TEST_VMW_PVRDMA_H_
