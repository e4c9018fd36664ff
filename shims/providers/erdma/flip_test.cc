// SPDX-License-Identifier: BSD-2-Clause
// erdma's private requests (erdma-abi.h), byte by byte: erdma_verbs.c:erdma_create_cq,
// erdma_create_qp.
#include "shims/providers/common/test_flip.h"
#include "shims/providers/erdma/test_erdma.h"

namespace vabi::erdma {
namespace {

void Prepare(TestHca& hca, uint32_t* pd) {
  EXPECT_GT(hca.Open({}, TestErdma::kContextReply), 0);
  EXPECT_GT(hca.AllocPd(pd), 0);
}

Bytes Valid(TestHca& hca, uint32_t length) {
  Bytes request(hca.world().Size(structure::erdma_ureq_create_qp));
  const Body body = hca.In(request);
  body.Set(VABI_PF(erdma_ureq_create_qp, db_record_va), hca.Buffer());
  body.Set(VABI_PF(erdma_ureq_create_qp, qbuf_va), hca.Buffer());
  body.Set(VABI_PF(erdma_ureq_create_qp, qbuf_len), length);
  return request;
}

// The request's tail in kernels before 7.2, and since.
void FlipBoth(const FlipRequest& request, const char* tail) {
  FlipWithTail(request,
               {{"debian-6.1.192", "linux-6.6", "debian-6.12.117"},
                "erdma_verbs.c (up to 6.18): a longer request is cut",
                {"debian-7.2.13", "debian-7.3.4"},
                tail,
                "ib_copy_validate_udata_in (7.2)"},
               "erdma");
}

TEST(ErdmaFlip, CreateCq) {
  FlipRequest request = {
      .name = "erdma_ureq_create_cq",
      .kernels = {},
      .structure = structure::erdma_ureq_create_cq,
      .build = [](TestHca& hca) { return Valid(hca, 4096); },
      .send =
          [](TestHca& hca, const Bytes& bytes) {
            uint32_t pd;
            Prepare(hca, &pd);
            return hca.CreateCq(16, nullptr, bytes, TestErdma::kCqReply);
          },
      .ranges =
          {
              {.field = VABI_PF(erdma_ureq_create_cq, qbuf_len),
               .first = 0,
               .count = 2,
               .why =
                   "erdma_verbs.c:erdma_create_cq: what is pinned, never compared with the depth"},
              {.field = VABI_PF(erdma_ureq_create_cq, qbuf_len),
               .first = 2,
               .count = 2,
               .rule = "erdma.pin.fault",
               .error = EFAULT,
               .change = 0xff,
               .why = "core/umem.c:ib_umem_get: longer than what is mapped"},
              {.field = VABI_PF(erdma_ureq_create_cq, qbuf_len),
               .first = 2,
               .count = 1,
               .change = 1,
               .why = "68 KiB are mapped"},
              {.field = VABI_PF(erdma_ureq_create_cq, qbuf_len),
               .first = 3,
               .count = 1,
               .rule = "erdma.pin.fault",
               .error = EFAULT,
               .change = 1,
               .why = "core/umem.c:ib_umem_get: longer than what is mapped"},
              {.field = VABI_PF(erdma_ureq_create_cq, rsvd0),
               .why = "erdma_verbs.c:erdma_create_cq: not looked at"},
          }};
  request.Add(FlipAddress(VABI_PF(erdma_ureq_create_cq, qbuf_va), "erdma.pin.fault",
                          "core/umem.c:ib_umem_get: any place that is mapped"));
  request.Add(FlipAddress(VABI_PF(erdma_ureq_create_cq, db_record_va), "erdma.pin.fault",
                          "core/umem.c:ib_umem_get: any place that is mapped"));
  FlipBoth(request, "erdma.create_cq.input.tail");
}

TEST(ErdmaFlip, CreateQp) {
  FlipRequest request = {
      .name = "erdma_ureq_create_qp",
      .kernels = {},
      .structure = structure::erdma_ureq_create_qp,
      .build = [](TestHca& hca) { return Valid(hca, TestErdma::kLeast + 0xff); },
      .send =
          [](TestHca& hca, const Bytes& bytes) {
            uint32_t pd;
            Prepare(hca, &pd);
            TestHca::CqMade cq;
            EXPECT_GT(hca.CreateCq(16, &cq, Valid(hca, 4096), TestErdma::kCqReply), 0);
            return hca.CreateQp({.pd = pd, .send_cq = cq.handle, .recv_cq = cq.handle}, nullptr,
                                bytes, TestErdma::kQpReply);
          },
      .ranges =
          {
              // 0x12ff: the second byte flipped whole is 0xed, its lowest bit 0x13; the others
              // grow.
              {.field = VABI_PF(erdma_ureq_create_qp, qbuf_len),
               .why = "erdma_verbs.c:init_user_qp: as long as the queues need, or longer"},
              {.field = VABI_PF(erdma_ureq_create_qp, rsvd0),
               .why = "erdma_verbs.c:erdma_create_qp: not looked at"},
          }};
  request.Add(FlipAddress(VABI_PF(erdma_ureq_create_qp, qbuf_va), "erdma.pin.fault",
                          "core/umem.c:ib_umem_get: any place that is mapped"));
  request.Add(FlipAddress(VABI_PF(erdma_ureq_create_qp, db_record_va), "erdma.pin.fault",
                          "core/umem.c:ib_umem_get: any place that is mapped"));
  FlipBoth(request, "erdma.create_qp.input.tail");
}

}  // namespace
}  // namespace vabi::erdma
