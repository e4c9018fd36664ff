// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_SIW_TEST_SIW_H_
#define VABI_SHIMS_PROVIDERS_SIW_TEST_SIW_H_

#include "shims/providers/common/test_hca.h"
#include "shims/providers/siw/ids.h"

namespace vabi::siw {

// A siw device whose context is open, with a PD, and a CQ on demand. Reply sizes: siw-abi.h.
class TestSiw : public TestHca {
 public:
  static constexpr size_t kContextReply = 8, kCqReply = 16, kQpReply = 32, kMrReply = 8,
                          kSrqReply = 16;

  explicit TestSiw(const std::string& kernel = "debian-7.3.4") : TestHca(kernel, "siw") { Begin(); }
  // Again, after a change of the world.
  void Begin() {
    EXPECT_GT(Open({}, kContextReply), 0) << LastRule();
    EXPECT_GT(AllocPd(&pd), 0) << LastRule();
  }
  uint32_t Cq() {
    if (cq_.cqe == 0) {
      EXPECT_GT(CreateCq(16, &cq_, {}, kCqReply), 0) << LastRule();
    }
    return cq_.handle;
  }
  QpWish Wish() {
    const uint32_t cq = Cq();
    return {.pd = pd, .send_cq = cq, .recv_cq = cq};
  }
  long NewQp(const QpWish& wish, QpMade* qp = nullptr, size_t room = kQpReply) {
    return CreateQp(wish, qp, {}, room);
  }
  uint32_t Qp() {
    QpMade qp;
    EXPECT_GT(NewQp(Wish(), &qp), 0) << LastRule();
    return qp.handle;
  }
  long NewSrq(uint32_t max_wr, uint32_t max_sge, uint32_t limit = 0, SrqMade* srq = nullptr,
              size_t room = kSrqReply) {
    return CreateSrq(pd, max_wr, max_sge, limit, srq, {}, room);
  }
  uint32_t Srq() {
    SrqMade srq;
    EXPECT_GT(NewSrq(8, 1, 0, &srq), 0) << LastRule();
    return srq.handle;
  }
  long NewMr(const MrWish& wish, size_t in = 8, size_t room = kMrReply, MrMade* mr = nullptr) {
    return RegMr(pd, wish, mr, Bytes(in), room);
  }

  uint32_t pd = 0;

 private:
  CqMade cq_;
};

}  // namespace vabi::siw

#endif  // VABI_SHIMS_PROVIDERS_SIW_TEST_SIW_H_
