// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_ERDMA_TEST_ERDMA_H_
#define VABI_SHIMS_PROVIDERS_ERDMA_TEST_ERDMA_H_

#include "shims/providers/common/test_hca.h"
#include "shims/providers/erdma/ids.h"

namespace vabi::erdma {

// An erdma device whose context is open, with a PD. Sizes: erdma-abi.h.
class TestErdma : public TestHca {
 public:
  static constexpr size_t kContextReply = 40, kRequest = 24, kCqReply = 8, kQpReply = 16;

  explicit TestErdma(const std::string& kernel = "debian-7.3.4") : TestHca(kernel, "erdma") {
    Begin();
  }
  void Begin() {
    EXPECT_GT(Open({}, kContextReply), 0) << LastRule();
    EXPECT_GT(AllocPd(&pd), 0) << LastRule();
  }
  // struct erdma_ureq_create_cq and _qp: the same fields. The record lies in the first page, the
  // queue at the second.
  Bytes QueueRequest(uint32_t length) {
    Bytes request(world().Size(structure::erdma_ureq_create_qp));
    const Body body = In(request);
    body.Set(VABI_PF(erdma_ureq_create_qp, db_record_va), Buffer() + 64);
    body.Set(VABI_PF(erdma_ureq_create_qp, qbuf_va), Buffer());
    body.Set(VABI_PF(erdma_ureq_create_qp, qbuf_len), length);
    return request;
  }
  uint32_t Cq() {
    if (cq_.cqe == 0) {
      EXPECT_GT(CreateCq(16, &cq_, QueueRequest(4096), kCqReply), 0) << LastRule();
    }
    return cq_.handle;
  }
  QpWish Wish() {
    const uint32_t cq = Cq();
    return {.pd = pd, .send_cq = cq, .recv_cq = cq};
  }
  // 16 send requests are 64 blocks of 32 bytes, half a page, and 16 receives 512 bytes.
  static constexpr uint32_t kLeast = 4096 + 512;
  long NewQp(const QpWish& wish, QpMade* qp = nullptr, uint32_t length = kBuffer) {
    return CreateQp(wish, qp, QueueRequest(length), kQpReply);
  }
  uint32_t Qp() {
    QpMade qp;
    EXPECT_GT(NewQp(Wish(), &qp), 0) << LastRule();
    return qp.handle;
  }

  uint32_t pd = 0;

 private:
  CqMade cq_;
};

}  // namespace vabi::erdma

#endif  // VABI_SHIMS_PROVIDERS_ERDMA_TEST_ERDMA_H_
