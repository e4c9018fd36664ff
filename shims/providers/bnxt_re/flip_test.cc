// SPDX-License-Identifier: BSD-2-Clause
// What bnxt_re makes of each byte of each private request of queues (hw/bnxt_re of the kernels
// named). That of the context stands in context_test.cc.
#include "shims/providers/bnxt_re/test_bnxt_re.h"
#include "shims/providers/common/test_flip.h"

namespace vabi::bnxt_re {
namespace {

using Kernels = std::vector<const char*>;
const Kernels kOld = {"linux-4.16", "linux-5.3",      "debian-5.10.223",
                      "linux-5.14", "debian-6.1.192", "linux-6.6"};
const Kernels kNew = {"debian-7.2.13", "debian-7.3.4"};

constexpr char kPins[] = "core/umem.c:ib_umem_get: any range where memory is";
constexpr char kTaken[] = "ib_copy_from_udata of its size: what is behind is not read";
constexpr char kHandle[] = "ib_verbs.c, qplib_fp.c: the handle goes to the card as it is";
constexpr char kValid[] = "core/ib_core_uverbs.c:_ib_copy_validate_udata_in";

FlipRange Taken(FieldId field, const char* why) { return {.field = field, .why = why}; }

// Where a ring is: any place, or the beginning of a page.
std::vector<FlipRange> Ring(FieldId field, bool pages) {
  std::vector<FlipRange> ranges = FlipAddress(field, "bnxt_re.queue.fault", kPins);
  if (pages) {
    ranges[0].rule = "bnxt_re.queue.alignment";
    ranges[0].error = EINVAL;
    ranges[0].why = "ib_verbs.c:bnxt_re_setup_sginfo: blocks of 4 KiB";
  }
  return ranges;
}
// Bits of comp_mask: the first, the others of its byte, the other bytes.
std::vector<FlipRange> Mask(const FlipRange& first) {
  const FieldId field = first.field;
  const FlipRange refused = {.field = field,
                             .first = 1,
                             .rule = "bnxt_re.request.comp_mask",
                             .error = EOPNOTSUPP,
                             .why = "ib_copy_validate_udata_in_cm: bits above the first"};
  FlipRange low = refused;
  low.first = 0;
  low.count = 1;
  low.change = 0xff;
  FlipRange one = first;
  one.count = 1;
  one.change = 1;
  return {one, low, refused};
}
FlipRange Behind(bool refused) {
  if (!refused) return {.field = FlipRange::kBehind, .why = kTaken};
  return {.field = FlipRange::kBehind,
          .rule = "bnxt_re.request.tail",
          .error = EOPNOTSUPP,
          .why = kValid};
}

uint32_t Prepare(TestHca& hca) {
  uint32_t pd = 0;
  EXPECT_GT(hca.Open(Bytes(8), TestBnxtRe::kContextRoom), 0);
  EXPECT_GT(hca.AllocPd(&pd, {}, 16), 0);
  return pd;
}
FlipRequest Cq() {
  return {.name = "bnxt_re_cq_req",
          .kernels = {},
          .structure = structure::bnxt_re_cq_req,
          .build = [](TestHca& hca) { return CqBytes(hca); },
          .send =
              [](TestHca& hca, const Bytes& bytes) {
                Prepare(hca);
                return hca.CreateCq(15, nullptr, bytes, TestBnxtRe::kRoom);
              },
          .ranges = {Taken(VABI_PF(bnxt_re_cq_req, cq_handle), kHandle)}};
}
FlipRequest Qp() {
  return {.name = "bnxt_re_qp_req",
          .kernels = {},
          .structure = structure::bnxt_re_qp_req,
          .build = [](TestHca& hca) { return QpBytes(hca); },
          .send =
              [](TestHca& hca, const Bytes& bytes) {
                TestHca::QpWish wish;
                wish.pd = Prepare(hca);
                TestHca::CqMade cq;
                EXPECT_GT(hca.CreateCq(15, &cq, CqBytes(hca), TestBnxtRe::kRoom), 0)
                    << hca.LastRule();
                wish.send_cq = wish.recv_cq = cq.handle;
                return hca.CreateQp(wish, nullptr, bytes, TestBnxtRe::kRoom);
              },
          .ranges = {Taken(VABI_PF(bnxt_re_qp_req, qp_handle), kHandle)}};
}
void AddRings(FlipRequest* request, bool pages) {
  request->Add(Ring(VABI_PF(bnxt_re_qp_req, qpsva), pages))
      .Add(Ring(VABI_PF(bnxt_re_qp_req, qprva), pages));
}

TEST(BnxtReFlip, CreateCq) {
  FlipRequest request = Cq();
  request.kernels = kOld;
  request.kernels.insert(request.kernels.end(), {"debian-6.12.117", "linux-6.16"});
  request.Add(Ring(VABI_PF(bnxt_re_cq_req, cq_va), false)).ranges.push_back(Behind(false));
  FlipEachByte(request, "bnxt_re");
}

TEST(BnxtReFlip, CreateCqSince72) {
  FlipRequest request = Cq();
  request.kernels = kNew;
  request.Add(Ring(VABI_PF(bnxt_re_cq_req, cq_va), true))
      .Add(Mask({.field = VABI_PF(bnxt_re_cq_req, comp_mask),
                 .why = "ib_verbs.c:bnxt_re_create_user_cq: FIXED_NUM_CQE_ENABLE"}))
      .ranges.push_back(Behind(true));
  FlipEachByte(request, "bnxt_re");
}

TEST(BnxtReFlip, ResizeCq) {
  FlipRequest request = {
      .name = "bnxt_re_resize_cq_req",
      .kernels = {},
      .structure = structure::bnxt_re_resize_cq_req,
      .build = [](TestHca& hca) { return ResizeBytes(hca); },
      .send =
          [](TestHca& hca, const Bytes& bytes) {
            Prepare(hca);
            TestHca::CqMade cq;
            EXPECT_GT(hca.CreateCq(15, &cq, CqBytes(hca), TestBnxtRe::kRoom), 0) << hca.LastRule();
            return hca.ResizeCq(cq.handle, 31, bytes);
          },
      .ranges = Ring(VABI_PF(bnxt_re_resize_cq_req, cq_va), false),
  };
  FlipWithTail(request,
               {{"linux-6.6", "debian-6.12.117", "linux-6.16"},
                kTaken,
                kNew,
                "bnxt_re.request.tail",
                kValid},
               "bnxt_re");
}

TEST(BnxtReFlip, CreateSrq) {
  FlipRequest request = {
      .name = "bnxt_re_srq_req",
      .kernels = {},
      .structure = structure::bnxt_re_srq_req,
      .build = [](TestHca& hca) { return SrqBytes(hca); },
      .send =
          [](TestHca& hca, const Bytes& bytes) {
            return hca.CreateSrq(Prepare(hca), 15, 1, 0, nullptr, bytes, TestBnxtRe::kRoom);
          },
      .ranges = {Taken(VABI_PF(bnxt_re_srq_req, srq_handle), kHandle)},
  };
  request.Add(Ring(VABI_PF(bnxt_re_srq_req, srqva), false));
  Kernels old = kOld;
  old.insert(old.end(), {"debian-6.12.117", "linux-6.16"});
  FlipWithTail(request, {old, kTaken, kNew, "bnxt_re.request.tail", kValid}, "bnxt_re");
}

TEST(BnxtReFlip, CreateQp) {
  FlipRequest request = Qp();
  request.kernels = kOld;
  AddRings(&request, false);
  request.ranges.push_back(Behind(false));
  FlipEachByte(request, "bnxt_re");
  // comp_mask and sq_slots, which a card of entries of one size leaves alone, and four bytes behind
  constexpr char kStatic[] = "ib_verbs.c:bnxt_re_init_qp_attr: where entries vary in size (6.12)";
  request.kernels = {"debian-6.12.117", "linux-6.16"};
  request.ranges.push_back(Taken(VABI_PF(bnxt_re_qp_req, comp_mask),
                                 "ib_verbs.c:bnxt_re_create_qp looks at no bit of it (6.12)"));
  request.ranges.push_back(
      {.field = VABI_PF(bnxt_re_qp_req, sq_slots), .count = 8, .why = kStatic});
  FlipEachByte(request, "bnxt_re");
}

TEST(BnxtReFlip, CreateQpSince72) {
  constexpr char kStatic[] = "ib_verbs.c:bnxt_re_init_qp_attr: where entries vary in size";
  FlipRequest request = Qp();
  request.kernels = kNew;
  AddRings(&request, true);
  request
      .Add(Mask({.field = VABI_PF(bnxt_re_qp_req, comp_mask),
                 .rule = "bnxt_re.create_qp.fixed",
                 .error = EOPNOTSUPP,
                 .why = "ib_verbs.c:bnxt_re_init_qp_attr: entries of one size"}))
      .ranges.push_back(Behind(true));
  request.ranges.push_back(Taken(VABI_PF(bnxt_re_qp_req, sq_slots), kStatic));
  request.ranges.push_back(Taken(VABI_PF(bnxt_re_qp_req, sq_npsn), kStatic));
  FlipEachByte(request, "bnxt_re");
}

}  // namespace
}  // namespace vabi::bnxt_re
