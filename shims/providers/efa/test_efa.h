// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_EFA_TEST_EFA_H_
#define VABI_SHIMS_PROVIDERS_EFA_TEST_EFA_H_

#include "shims/providers/common/test_hca.h"
#include "shims/providers/efa/ids.h"

namespace vabi::efa {

// struct efa_ibv_alloc_ucontext_cmd as a library of 5.9 or later sends it: both bits.
inline Bytes Handshake(uint8_t bits = 3) {
  Bytes request(8);
  request[0] = bits;
  return request;
}
// Valid requests by this kernel's layout.
inline Bytes CqInput(TestHca& hca) {
  Bytes request(hca.world().Size(structure::efa_ibv_create_cq));
  hca.In(request).Set(VABI_PF(efa_ibv_create_cq, cq_entry_size), 16);
  hca.In(request).Set(VABI_PF(efa_ibv_create_cq, num_sub_cqs), 2);
  return request;
}
inline Bytes QpInput(TestHca& hca) {
  Bytes request(hca.world().Size(structure::efa_ibv_create_qp));
  hca.In(request).Set(VABI_PF(efa_ibv_create_qp, rq_ring_size), 16 * 16);
  hca.In(request).Set(VABI_PF(efa_ibv_create_qp, sq_ring_size), 16 * 64);
  return request;
}

// An efa device whose context is open, with a PD.
class TestEfa : public TestHca {
 public:
  static constexpr size_t kRoom = 128;  // more than any reply

  explicit TestEfa(const std::string& kernel = "debian-7.3.4") : TestHca(kernel, "efa") { Begin(); }
  void Begin() {
    EXPECT_GT(Open(Handshake(), kRoom), 0) << LastRule();
    EXPECT_GT(AllocPd(&pd, {}, 8), 0) << LastRule();
  }
  uint32_t Cq() {
    if (cq_.cqe == 0) {
      EXPECT_GT(CreateCq(16, &cq_, CqInput(*this), kRoom), 0) << LastRule();
    }
    return cq_.handle;
  }
  QpWish Wish(uint8_t type = kUd) {
    const uint32_t cq = Cq();
    return {.pd = pd, .send_cq = cq, .recv_cq = cq, .type = type};
  }
  uint32_t Qp(uint8_t type = kUd) {
    QpMade qp;
    EXPECT_GT(CreateQp(Wish(type), &qp, QpInput(*this), kRoom), 0) << LastRule();
    return qp.handle;
  }
  // IB_QP_PKEY_INDEX, IB_QP_PORT, IB_QP_QKEY
  long Init(uint32_t qp, uint32_t mask = 0x1 | 0x10 | 0x20 | 0x40, const Bytes& input = {}) {
    return ModifyQp(qp, mask,
                    {{VABI_F(ib_uverbs_modify_qp, qp_state), 1},
                     {VABI_F(ib_uverbs_modify_qp, port_num), 1},
                     {VABI_F(ib_uverbs_modify_qp, qkey), 0x77}},
                    input);
  }
  // With `more` beside IB_QP_SQ_PSN.
  long Rts(uint32_t qp, uint32_t more = 0) {
    return ModifyQp(qp, 0x1 | 0x10000 | more,
                    {{VABI_F(ib_uverbs_modify_qp, qp_state), 3},
                     {VABI_F(ib_uverbs_modify_qp, sq_psn), 0x1234},
                     {VABI_F(ib_uverbs_modify_qp, rnr_retry), 5}});
  }

  uint32_t pd = 0;

 private:
  CqMade cq_;
};

}  // namespace vabi::efa

#endif  // VABI_SHIMS_PROVIDERS_EFA_TEST_EFA_H_
