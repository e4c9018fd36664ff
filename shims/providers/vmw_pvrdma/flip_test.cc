// SPDX-License-Identifier: BSD-2-Clause
// What vmw_pvrdma makes of each byte of each private request (hw/vmw_pvrdma of the kernels named).
#include "shims/providers/common/test_flip.h"
#include "shims/providers/vmw_pvrdma/test_vmw_pvrdma.h"

namespace vabi::vmw_pvrdma {
namespace {

const std::vector<const char*> kOld = {"linux-4.16", "debian-5.10.223", "debian-6.12.117"};
const std::vector<const char*> kNew = {"debian-7.2.13", "debian-7.3.4"};

FlipRange Taken(FieldId field, const char* why) { return {.field = field, .why = why}; }

// Where a ring is, and how long it is.
std::vector<FlipRange> Ring(FieldId address, FieldId size) {
  static constexpr char kPins[] = "core/umem.c:ib_umem_get: any range where memory is";
  std::vector<FlipRange> ranges = FlipAddress(address, "vmw_pvrdma.memory.fault", kPins);
  const auto length = FlipAddress(size, "vmw_pvrdma.memory.fault", kPins);
  ranges.insert(ranges.end(), length.begin(), length.end());
  return ranges;
}

// The request on kernels that take what is behind it, and on those that look at it.
void Flip(const FlipRequest& request) {
  FlipWithTail(request,
               {kOld, "ib_copy_from_udata of its size: what is behind is not read", kNew,
                "vmw_pvrdma.request.tail", "core/ib_core_uverbs.c:_ib_copy_validate_udata_in"},
               "vmw_pvrdma");
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
  request.Add(Ring(VABI_PF(pvrdma_create_cq, buf_addr), VABI_PF(pvrdma_create_cq, buf_size)));
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
  request.Add(Ring(VABI_PF(pvrdma_create_srq, buf_addr), VABI_PF(pvrdma_create_srq, buf_size)));
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
  request.Add(Ring(VABI_PF(pvrdma_create_qp, rbuf_addr), VABI_PF(pvrdma_create_qp, rbuf_size)));
  request.Add(Ring(VABI_PF(pvrdma_create_qp, sbuf_addr), VABI_PF(pvrdma_create_qp, sbuf_size)));
  request.ranges.push_back(
      Taken(VABI_PF(pvrdma_create_qp, qp_addr), "pvrdma_qp.c:pvrdma_create_qp never looks at it"));
  Flip(request);
}

}  // namespace
}  // namespace vabi::vmw_pvrdma
