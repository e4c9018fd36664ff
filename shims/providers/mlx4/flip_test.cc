// SPDX-License-Identifier: BSD-2-Clause
// What mlx4 makes of each byte of each private request (hw/mlx4 of the kernels named).
#include "shims/providers/common/test_flip.h"
#include "shims/providers/mlx4/test_mlx4.h"

namespace vabi::mlx4 {
namespace {

const std::vector<const char*> kOld = {"linux-4.4", "linux-4.16", "debian-5.10.223",
                                       "debian-6.12.117"};
const std::vector<const char*> kNew = {"debian-7.2.13", "debian-7.3.4"};

// An address that the kernel pins from: what lies within is taken, aligned or not.
std::vector<FlipRange> Address(FieldId field, const char* why) {
  return FlipAddress(field, "mlx4.memory.fault", why);
}

constexpr char kBuffer[] = "core/umem.c:ib_umem_get: any address where memory is";
constexpr char kDoorbell[] = "doorbell.c:mlx4_ib_db_map_user: the page is pinned, anything inside";

// The request on kernels that take what is behind it, and on those that look at it.
void Flip(const FlipRequest& request, const std::vector<const char*>& old_kernels = kOld) {
  FlipWithTail(request,
               {old_kernels, "ib_copy_from_udata of its size: what is behind is not read", kNew,
                "mlx4.request.tail", "core/ib_core_uverbs.c:_ib_copy_validate_udata_in"},
               "mlx4");
}

uint32_t Prepare(TestHca& hca) {
  uint32_t pd = 0;
  EXPECT_GT(hca.Open({}, 16), 0);
  EXPECT_GT(hca.AllocPd(&pd, {}, 8), 0);
  return pd;
}

TEST(Mlx4Flip, CreateCq) {
  FlipRequest request = {
      .name = "mlx4_ib_create_cq",
      .kernels = {},
      .structure = structure::mlx4_ib_create_cq,
      .build = [](TestHca& hca) { return CqBytes(hca); },
      .send =
          [](TestHca& hca, const Bytes& bytes) {
            Prepare(hca);
            return hca.CreateCq(15, nullptr, bytes, 8);
          },
      .ranges = {},
  };
  request.Add(Address(VABI_PF(mlx4_ib_create_cq, buf_addr), kBuffer));
  request.Add(Address(VABI_PF(mlx4_ib_create_cq, db_addr), kDoorbell));
  Flip(request);
}

TEST(Mlx4Flip, ResizeCq) {
  FlipRequest request = {
      .name = "mlx4_ib_resize_cq",
      .kernels = {},
      .structure = structure::mlx4_ib_resize_cq,
      .build = [](TestHca& hca) { return ResizeBytes(hca); },
      .send =
          [](TestHca& hca, const Bytes& bytes) {
            Prepare(hca);
            TestHca::CqMade cq;
            EXPECT_GT(hca.CreateCq(15, &cq, CqBytes(hca), 8), 0) << hca.LastRule();
            return hca.ResizeCq(cq.handle, 100, bytes);
          },
      .ranges = {},
  };
  request.Add(Address(VABI_PF(mlx4_ib_resize_cq, buf_addr), kBuffer));
  Flip(request);
}

TEST(Mlx4Flip, CreateSrq) {
  FlipRequest request = {
      .name = "mlx4_ib_create_srq",
      .kernels = {},
      .structure = structure::mlx4_ib_create_srq,
      .build = [](TestHca& hca) { return SrqBytes(hca); },
      .send =
          [](TestHca& hca, const Bytes& bytes) {
            return hca.CreateSrq(Prepare(hca), 15, 1, 0, nullptr, bytes, 8);
          },
      .ranges = {},
  };
  request.Add(Address(VABI_PF(mlx4_ib_create_srq, buf_addr), kBuffer));
  request.Add(Address(VABI_PF(mlx4_ib_create_srq, db_addr), kDoorbell));
  Flip(request);
}

TEST(Mlx4Flip, CreateQp) {
  FlipRequest request = {
      .name = "mlx4_ib_create_qp",
      .kernels = {},
      .structure = structure::mlx4_ib_create_qp,
      .build = [](TestHca& hca) { return QpBytes(hca, {}); },
      .send =
          [](TestHca& hca, const Bytes& bytes) {
            TestHca::QpWish wish;
            wish.pd = Prepare(hca);
            TestHca::CqMade cq;
            EXPECT_GT(hca.CreateCq(15, &cq, CqBytes(hca), 8), 0) << hca.LastRule();
            wish.send_cq = wish.recv_cq = cq.handle;
            return hca.CreateQp(wish, nullptr, bytes);
          },
      .ranges = {},
  };
  request.Add(Address(VABI_PF(mlx4_ib_create_qp, buf_addr), kBuffer));
  request.Add(Address(VABI_PF(mlx4_ib_create_qp, db_addr), kDoorbell));
  // 6 ^ 0xff = 249, 6 ^ 1 = 7
  request.ranges.push_back({.field = VABI_PF(mlx4_ib_create_qp, log_sq_bb_count),
                            .change = 1,
                            .why = "qp.c:set_user_sq_size: up to max_wqes"});
  request.ranges.push_back({.field = VABI_PF(mlx4_ib_create_qp, log_sq_stride),
                            .change = 1,
                            .why = "qp.c:set_user_sq_size: 6 to 10"});
  request.ranges.push_back({.field = VABI_PF(mlx4_ib_create_qp, log_sq_stride),
                            .rule = "mlx4.create_qp.send_stride",
                            .error = EINVAL,
                            .change = 0xff,
                            .why = "qp.c:set_user_sq_size: 6 to 10"});
  request.ranges.push_back({.field = VABI_PF(mlx4_ib_create_qp, sq_no_prefetch),
                            .why = "qp.c:create_qp_common: !!sq_no_prefetch"});
  // Before 4.14 all five bytes behind were reserved.
  request.ranges.push_back({.field = VABI_PF(mlx4_ib_create_qp, reserved),
                            .why = "qp.c:create_qp_common looks at no reserved byte"});
  const FieldId inl = VABI_PF(mlx4_ib_create_qp, inl_recv_sz);
  request.ranges.push_back(
      {.field = inl, .first = 0, .count = 1, .why = "qp.c:set_rq_size: up to 512"});
  request.ranges.push_back(
      {.field = inl, .first = 1, .count = 1, .change = 1, .why = "qp.c:set_rq_size: up to 512"});
  const FlipRange refused = {.field = inl,
                             .first = 2,
                             .rule = "mlx4.create_qp.recv_inline",
                             .error = EINVAL,
                             .why = "qp.c:set_rq_size: above 512"};
  request.ranges.push_back(refused);
  FlipRange high = refused;
  high.first = 1;
  high.count = 1;
  high.change = 0xff;
  request.ranges.push_back(high);
  // log_sq_bb_count turned around: a shift that is checked, or is not defined.
  const FlipRange count = {.field = VABI_PF(mlx4_ib_create_qp, log_sq_bb_count),
                           .rule = "mlx4.create_qp.send_count",
                           .error = EINVAL,
                           .change = 0xff,
                           .why = "qp.c:set_user_sq_size: check_shl_overflow"};
  request.ranges.push_back(count);
  Flip(request, {"debian-5.10.223", "debian-6.1.192", "debian-6.12.117"});
  request.ranges.back() = {.field = VABI_PF(mlx4_ib_create_qp, log_sq_bb_count),
                           .rule = "",
                           .error = EOPNOTSUPP,
                           .change = 0xff,
                           .why = "qp.c:set_user_sq_size: 1 << 249 is not defined, not modelled"};
  for (const char* kernel : {"linux-4.4", "linux-4.10", "linux-4.16", "linux-5.14"}) {
    request.kernels = {kernel};
    FlipEachByte(request, "mlx4");
  }
}

}  // namespace
}  // namespace vabi::mlx4
