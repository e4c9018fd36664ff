// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX4_TEST_MLX4_H_
#define VABI_SHIMS_PROVIDERS_MLX4_TEST_MLX4_H_

#include "shims/providers/common/test_hca.h"
#include "shims/providers/mlx4/ids.h"

// A ConnectX-3 with an open context, and the private requests that its library sends.

namespace vabi::mlx4 {

inline uint64_t DoorbellPage(TestHca& hca) { return hca.Buffer() + TestHca::kBuffer; }

inline Bytes CqBytes(TestHca& hca) {
  Bytes request = hca.Zero(structure::mlx4_ib_create_cq);
  hca.In(request).Set(VABI_PF(mlx4_ib_create_cq, buf_addr), hca.Buffer());
  hca.In(request).Set(VABI_PF(mlx4_ib_create_cq, db_addr), DoorbellPage(hca));
  return request;
}
inline Bytes ResizeBytes(TestHca& hca) {
  Bytes request = hca.Zero(structure::mlx4_ib_resize_cq);
  hca.In(request).Set(VABI_PF(mlx4_ib_resize_cq, buf_addr), hca.Buffer());
  return request;
}
inline Bytes SrqBytes(TestHca& hca) {
  Bytes request = hca.Zero(structure::mlx4_ib_create_srq);
  hca.In(request).Set(VABI_PF(mlx4_ib_create_srq, buf_addr), hca.Buffer());
  hca.In(request).Set(VABI_PF(mlx4_ib_create_srq, db_addr), DoorbellPage(hca));
  return request;
}
// By default 64 blocks of 64 bytes to send.
struct QpSizes {
  uint8_t log_count = 6, log_stride = 6;
  uint32_t inline_receive = 0;
};
inline Bytes QpBytes(TestHca& hca, QpSizes sizes) {
  Bytes request = hca.Zero(structure::mlx4_ib_create_qp);
  const Body body = hca.In(request);
  body.Set(VABI_PF(mlx4_ib_create_qp, buf_addr), hca.Buffer());
  body.Set(VABI_PF(mlx4_ib_create_qp, db_addr), DoorbellPage(hca));
  body.Set(VABI_PF(mlx4_ib_create_qp, log_sq_bb_count), sizes.log_count);
  body.Set(VABI_PF(mlx4_ib_create_qp, log_sq_stride), sizes.log_stride);
  body.Set(VABI_PF(mlx4_ib_create_qp, sq_no_prefetch), 1);
  body.Set(VABI_PF(mlx4_ib_create_qp, inl_recv_sz), sizes.inline_receive);
  return request;
}

class TestMlx4 : public TestHca {
 public:
  explicit TestMlx4(const char* kernel) : TestHca(kernel, "mlx4") {}

  void Start() {
    ASSERT_GT(Open({}, 16), 0) << LastRule();
    ASSERT_GT(AllocPd(&pd, {}, 8), 0) << LastRule();
  }
  // A change of the link before anything is open.
  void Ethernet() {
    image().device[0].link = LinkLayer::kEthernet;
    Reinstall();
  }
  Bytes Cq() { return CqBytes(*this); }
  Bytes Resize() { return ResizeBytes(*this); }
  Bytes Srq() { return SrqBytes(*this); }
  Bytes Qp(uint8_t log_count = 6, uint8_t log_stride = 6, uint32_t inline_receive = 0) {
    return QpBytes(*this, {log_count, log_stride, inline_receive});
  }
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
  uint32_t MakeQp(uint8_t type = kRc) {
    QpMade made;
    EXPECT_GT(CreateQp(Wish(type), &made, Qp()), 0) << LastRule();
    return made.handle;
  }
  uint32_t MakeSrq() {
    SrqMade made;
    EXPECT_GT(CreateSrq(pd, 15, 1, 0, &made, Srq(), 8), 0) << LastRule();
    return made.handle;
  }
  long ReregMr(const MrMade& mr, uint32_t flags, uint64_t start, uint64_t length, uint32_t access) {
    Bytes request = Zero(VABI_S(ib_uverbs_rereg_mr));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_rereg_mr, mr_handle), mr.handle);
    body.Set(VABI_F(ib_uverbs_rereg_mr, flags), flags);
    body.Set(VABI_F(ib_uverbs_rereg_mr, start), start);
    body.Set(VABI_F(ib_uverbs_rereg_mr, hca_va), start);
    body.Set(VABI_F(ib_uverbs_rereg_mr, length), length);
    body.Set(VABI_F(ib_uverbs_rereg_mr, pd_handle), pd);
    body.Set(VABI_F(ib_uverbs_rereg_mr, access_flags), access);
    return Command(kReregMr, request, VABI_S(ib_uverbs_rereg_mr_resp));
  }

  uint32_t pd = 0;
};

}  // namespace vabi::mlx4

#endif  // VABI_SHIMS_PROVIDERS_MLX4_TEST_MLX4_H_
