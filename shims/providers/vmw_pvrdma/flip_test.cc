// SPDX-License-Identifier: BSD-2-Clause
// What vmw_pvrdma makes of each byte of each private request (hw/vmw_pvrdma of the kernels named).
#include "shims/providers/common/test_flip.h"
#include "shims/providers/vmw_pvrdma/test_vmw_pvrdma.h"

namespace vabi::vmw_pvrdma {
namespace {

const std::vector<const char*> kOld = {"linux-4.16", "debian-5.10.223", "debian-6.12.117"};
const std::vector<const char*> kNew = {"debian-7.2.13", "debian-7.3.4"};

FlipRange Taken(FieldId field, const char* why) { return {.field = field, .why = why}; }

// TestHca's memory: 128 KiB from an address whose lowest three bytes are zero.
void AddAddressOrSize(FieldId field, std::vector<FlipRange>* ranges) {
  constexpr char kInside[] = "core/umem.c:ib_umem_get: any range where memory is";
  const FlipRange outside = {.field = field,
                             .first = 3,
                             .rule = "vmw_pvrdma.memory.fault",
                             .error = EFAULT,
                             .why = "core/umem.c:ib_umem_get: ends where no memory is"};
  ranges->push_back({.field = field, .first = 0, .count = 2, .why = kInside});
  ranges->push_back({.field = field, .first = 2, .count = 1, .change = 1, .why = kInside});
  FlipRange high = outside;
  high.first = 2;
  high.count = 1;
  high.change = 0xff;
  ranges->push_back(high);
  ranges->push_back(outside);
}
void AddRing(FieldId address, FieldId size, std::vector<FlipRange>* ranges) {
  AddAddressOrSize(address, ranges);
  AddAddressOrSize(size, ranges);
}

// The request on kernels that take what is behind it, and on those that look at it.
void Flip(FlipRequest request) {
  request.kernels = kOld;
  request.ranges.push_back({.field = FlipRange::kBehind,
                            .why = "ib_copy_from_udata of its size: what is behind is not read"});
  FlipEachByte(request, "vmw_pvrdma");
  request.kernels = kNew;
  request.ranges.back() = {.field = FlipRange::kBehind,
                           .rule = "vmw_pvrdma.request.tail",
                           .error = EOPNOTSUPP,
                           .why = "core/ib_core_uverbs.c:_ib_copy_validate_udata_in"};
  FlipEachByte(request, "vmw_pvrdma");
}

uint32_t Prepare(TestHca& hca) {
  uint32_t pd = 0;
  EXPECT_GT(hca.Open({}, 8), 0);
  EXPECT_GT(hca.AllocPd(&pd, {}, 8), 0);
  return pd;
}

TEST(VmwPvrdmaFlip, CreateCq) {
  FlipRequest request = {
      .name = "pvrdma_create_cq",
      .kernels = {},
      .structure = structure::pvrdma_create_cq,
      .build = [](TestHca& hca) { return CqBytes(hca); },
      .send =
          [](TestHca& hca, const Bytes& bytes) {
            Prepare(hca);
            return hca.CreateCq(15, nullptr, bytes, 8);
          },
      .ranges = {},
  };
  AddRing(VABI_PF(pvrdma_create_cq, buf_addr), VABI_PF(pvrdma_create_cq, buf_size),
          &request.ranges);
  request.ranges.push_back(Taken(VABI_PF(pvrdma_create_cq, reserved),
                                 "pvrdma_cq.c:pvrdma_create_cq looks at no reserved byte"));
  Flip(request);
}

TEST(VmwPvrdmaFlip, CreateSrq) {
  FlipRequest request = {
      .name = "pvrdma_create_srq",
      .kernels = {},
      .structure = structure::pvrdma_create_srq,
      .build = [](TestHca& hca) { return SrqBytes(hca); },
      .send =
          [](TestHca& hca, const Bytes& bytes) {
            return hca.CreateSrq(Prepare(hca), 15, 1, 0, nullptr, bytes, 8);
          },
      .ranges = {},
  };
  AddRing(VABI_PF(pvrdma_create_srq, buf_addr), VABI_PF(pvrdma_create_srq, buf_size),
          &request.ranges);
  request.ranges.push_back(Taken(VABI_PF(pvrdma_create_srq, reserved),
                                 "pvrdma_srq.c:pvrdma_create_srq looks at no reserved byte"));
  Flip(request);
}

TEST(VmwPvrdmaFlip, CreateQp) {
  FlipRequest request = {
      .name = "pvrdma_create_qp",
      .kernels = {},
      .structure = structure::pvrdma_create_qp,
      .build = [](TestHca& hca) { return QpBytes(hca); },
      .send =
          [](TestHca& hca, const Bytes& bytes) {
            TestHca::QpWish wish;
            wish.pd = Prepare(hca);
            TestHca::CqMade cq;
            EXPECT_GT(hca.CreateCq(15, &cq, CqBytes(hca), 8), 0) << hca.LastRule();
            wish.send_cq = wish.recv_cq = cq.handle;
            return hca.CreateQp(wish, nullptr, bytes, 8);
          },
      .ranges = {},
  };
  AddRing(VABI_PF(pvrdma_create_qp, rbuf_addr), VABI_PF(pvrdma_create_qp, rbuf_size),
          &request.ranges);
  AddRing(VABI_PF(pvrdma_create_qp, sbuf_addr), VABI_PF(pvrdma_create_qp, sbuf_size),
          &request.ranges);
  request.ranges.push_back(
      Taken(VABI_PF(pvrdma_create_qp, qp_addr), "pvrdma_qp.c:pvrdma_create_qp never looks at it"));
  Flip(request);
}

}  // namespace
}  // namespace vabi::vmw_pvrdma
