// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_IRDMA_TEST_IRDMA_H_
#define VABI_SHIMS_PROVIDERS_IRDMA_TEST_IRDMA_H_

#include "shims/providers/common/test_hca.h"
#include "shims/providers/irdma/ids.h"

// An E810 with an open context, and the private requests that its library sends.

namespace vabi::irdma {

inline constexpr size_t kRoom = 80;  // for the reply of GET_CONTEXT

inline Bytes ContextBytes(TestHca& hca, uint64_t comp_mask = 0, uint8_t version = 5) {
  Bytes request = hca.Zero(structure::irdma_alloc_ucontext_req);
  hca.In(request).Set(VABI_PF(irdma_alloc_ucontext_req, userspace_ver), version);
  hca.In(request).Set(VABI_PF(irdma_alloc_ucontext_req, comp_mask), comp_mask);
  return request;
}
struct Pages {
  uint16_t type = 0, cq = 0, rq = 0, sq = 0;
};
inline Bytes MrBytes(TestHca& hca, Pages pages = {}) {
  Bytes request = hca.Zero(structure::irdma_mem_reg_req);
  const Body body = hca.In(request);
  body.Set(VABI_PF(irdma_mem_reg_req, reg_type), pages.type);
  body.Set(VABI_PF(irdma_mem_reg_req, cq_pages), pages.cq);
  body.Set(VABI_PF(irdma_mem_reg_req, rq_pages), pages.rq);
  body.Set(VABI_PF(irdma_mem_reg_req, sq_pages), pages.sq);
  return request;
}

// The buffer: a CQ's elements, its shadow area, then a queue pair's memory.
inline uint64_t CqAt(TestHca& hca) { return hca.Buffer(); }
inline uint64_t ShadowAt(TestHca& hca) { return hca.Buffer() + 4096; }
inline uint64_t QpAt(TestHca& hca) { return hca.Buffer() + 8192; }

inline Bytes CqBytes(TestHca& hca) {
  Bytes request = hca.Zero(structure::irdma_create_cq_req);
  hca.In(request).Set(VABI_PF(irdma_create_cq_req, user_cq_buf), CqAt(hca));
  hca.In(request).Set(VABI_PF(irdma_create_cq_req, user_shadow_area), ShadowAt(hca));
  return request;
}
inline Bytes QpBytes(TestHca& hca) {
  Bytes request = hca.Zero(structure::irdma_create_qp_req);
  hca.In(request).Set(VABI_PF(irdma_create_qp_req, user_wqe_bufs), QpAt(hca));
  hca.In(request).Set(VABI_PF(irdma_create_qp_req, user_compl_ctx), 0x1234);
  return request;
}

class TestIrdma : public TestHca {
 public:
  explicit TestIrdma(const char* kernel) : TestHca(kernel, "irdma") {}

  void Start(uint64_t comp_mask = 0) {
    ASSERT_GT(Open(ContextBytes(*this, comp_mask), kRoom), 0) << LastRule();
    ASSERT_GT(AllocPd(&pd, {}, 8), 0) << LastRule();
  }
  long Register(uint64_t at, uint64_t length, Pages pages, MrMade* mr = nullptr) {
    return RegMr(pd, {.start = at, .length = length}, mr, MrBytes(*this, pages));
  }
  void RegisterCq(MrMade* mr = nullptr) {
    ASSERT_GT(Register(CqAt(*this), 4096, {.type = 2, .cq = 1}, mr), 0) << LastRule();
    ASSERT_GT(Register(ShadowAt(*this), 4096, {.type = 2, .cq = 1}), 0) << LastRule();
  }
  void RegisterQp(MrMade* mr = nullptr) {
    ASSERT_GT(Register(QpAt(*this), 3 * 4096, {.type = 1, .rq = 1, .sq = 1}, mr), 0) << LastRule();
  }
  uint32_t MakeCq() {
    RegisterCq();
    CqMade made;
    EXPECT_GT(CreateCq(15, &made, CqBytes(*this), 8), 0) << LastRule();
    return made.handle;
  }
  QpWish Wish(uint8_t type = kRc) {
    QpWish wish;
    wish.pd = pd;
    wish.send_cq = wish.recv_cq = MakeCq();
    wish.type = type;
    return wish;
  }
  uint32_t MakeQp(QpMade* made = nullptr, uint8_t type = kRc) {
    QpMade mine;
    if (made == nullptr) made = &mine;
    const QpWish wish = Wish(type);
    RegisterQp();
    EXPECT_GT(CreateQp(wish, made, QpBytes(*this), 24), 0) << LastRule();
    return made->handle;
  }

  uint32_t pd = 0;
};

}  // namespace vabi::irdma

#endif  // VABI_SHIMS_PROVIDERS_IRDMA_TEST_IRDMA_H_
