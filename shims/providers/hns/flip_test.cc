// SPDX-License-Identifier: BSD-2-Clause
// hns' private requests (hns-abi.h), byte by byte: hns_roce_main.c, hns_roce_cq.c, hns_roce_qp.c,
// hns_roce_srq.c.
#include "shims/providers/common/test_flip.h"
#include "shims/providers/hns/test_hns.h"

namespace vabi::hns {
namespace {

// Buffers: whatever is wrong with them is ENOMEM; records: EFAULT.
std::vector<FlipRange> Buffer(FieldId field) {
  std::vector<FlipRange> ranges =
      FlipAddress(field, "hns.buffer", "hns_roce_mr.c:mtr_alloc_bufs: any place that is mapped");
  for (FlipRange& range : ranges) {
    if (range.rule != nullptr) range.error = ENOMEM;
  }
  return ranges;
}
std::vector<FlipRange> Record(FieldId field) {
  return FlipAddress(field, "hns.doorbell_record.fault",
                     "hns_roce_db.c:hns_roce_db_map_user: any place that is mapped");
}

// Up to 5.7 ib_umem_get's own answer.
std::vector<FlipRange> OldBuffer(FieldId field) {
  return FlipAddress(field, "hns.buffer.fault",
                     "core/umem.c:ib_umem_get: any place that is mapped");
}

const std::vector<const char*> kUpTo618 = {"debian-5.10.223", "linux-5.14",      "debian-6.1.192",
                                           "linux-6.6",       "debian-6.12.117", "linux-6.16"};
const std::vector<const char*> kSince72 = {"debian-7.2.13", "debian-7.3.4"};

void FlipBoth(const FlipRequest& request, const std::vector<const char*>& before,
              const char* tail) {
  FlipWithTail(request,
               {before, "ib_copy_from_udata of what is known (up to 6.18)", kSince72, tail,
                "ib_copy_validate_udata_in (7.2)"},
               "hns");
}

uint32_t Prepare(TestHca& hca) {
  uint32_t pd = 0;
  EXPECT_GT(hca.Open(Bytes(8), TestHns::kRoom), 0);
  EXPECT_GT(hca.AllocPd(&pd, {}, 8), 0);
  return pd;
}

TEST(HnsFlip, AllocContext) {
  FlipRequest request = {
      .name = "hns_roce_ib_alloc_ucontext",
      .kernels = {},
      .structure = structure::hns_roce_ib_alloc_ucontext,
      .build = [](TestHca&) { return Bytes(8); },
      .send = [](TestHca& hca, const Bytes& bytes) { return hca.Open(bytes, TestHns::kRoom); },
      .ranges =
          {
              {.field = VABI_PF(hns_roce_ib_alloc_ucontext, config),
               .why = "hns_roce_main.c:hns_roce_alloc_ucontext: what is not known is not granted"},
              {.field = VABI_PF(hns_roce_ib_alloc_ucontext, reserved),
               .why = "hns_roce_main.c:hns_roce_alloc_ucontext: not looked at"},
          }};
  FlipBoth(request, {"debian-6.1.192", "linux-6.6", "debian-6.12.117", "linux-6.16"},
           "hns.ucontext.input.tail");
}

TEST(HnsFlip, CreateCq) {
  const auto make = [] {
    FlipRequest request = {.name = "hns_roce_ib_create_cq",
                           .kernels = {},
                           .structure = structure::hns_roce_ib_create_cq,
                           .build = [](TestHca& hca) { return CqInput(hca); },
                           .send =
                               [](TestHca& hca, const Bytes& bytes) {
                                 Prepare(hca);
                                 return hca.CreateCq(64, nullptr, bytes, 16);
                               },
                           .ranges =
                               {
                                   {.field = VABI_PF(hns_roce_ib_create_cq, reserved),
                                    .why = "hns_roce_cq.c:hns_roce_create_cq: not looked at"},
                               }};
    request.Add(Buffer(VABI_PF(hns_roce_ib_create_cq, buf_addr)))
        .Add(Record(VABI_PF(hns_roce_ib_create_cq, db_addr)));
    return request;
  };
  FlipRequest request = make();
  request.Add({{.field = VABI_PF(hns_roce_ib_create_cq, cqe_size),
                .rule = "hns.create_cq.cqe_size",
                .error = EINVAL,
                .why = "hns_roce_cq.c:set_cqe_size: 32 or 64"}});
  FlipBoth(request, {"debian-6.1.192", "linux-6.6", "debian-6.12.117", "linux-6.16"},
           "hns.create_cq.input.tail");
  // Without cqe_size; 4.16 has no record either.
  request = make();
  request.kernels = {"linux-5.8", "linux-5.9"};
  request.Add({{.field = FlipRange::kBehind, .why = "ib_copy_from_udata of what is known"}});
  FlipEachByte(request, "hns");
  request.kernels = {"linux-4.16", "linux-4.17", "linux-4.20", "linux-5.3", "linux-5.7"};
  request.ranges = OldBuffer(VABI_PF(hns_roce_ib_create_cq, buf_addr));
  request.Add(Record(VABI_PF(hns_roce_ib_create_cq, db_addr)))
      .Add({{.field = FlipRange::kBehind, .why = "ib_copy_from_udata of what is known"}});
  FlipEachByte(request, "hns");
  // Any size of entries, as long as 64 of them are mapped; their product with it has 32 bits.
  request = make();
  request.kernels = {"debian-5.10.223", "linux-5.14"};
  request.Add({{.field = VABI_PF(hns_roce_ib_create_cq, cqe_size),
                .first = 0,
                .count = 1,
                .why = "hns_roce_cq.c:set_cqe_size (up to 5.14): any"},
               {.field = VABI_PF(hns_roce_ib_create_cq, cqe_size),
                .first = 1,
                .count = 1,
                .change = 1,
                .why = "hns_roce_cq.c:set_cqe_size (up to 5.14): any"},
               {.field = VABI_PF(hns_roce_ib_create_cq, cqe_size),
                .first = 1,
                .count = 1,
                .rule = "hns.buffer",
                .error = ENOMEM,
                .change = 0xff,
                .why = "hns_roce_mr.c:mtr_alloc_bufs: more than is mapped"},
               {.field = VABI_PF(hns_roce_ib_create_cq, cqe_size),
                .first = 2,
                .count = 1,
                .rule = "hns.buffer",
                .error = ENOMEM,
                .why = "hns_roce_mr.c:mtr_alloc_bufs: more than is mapped"},
               {.field = VABI_PF(hns_roce_ib_create_cq, cqe_size),
                .first = 3,
                .count = 1,
                .rule = "hns.buffer",
                .error = ENOMEM,
                .change = 0xff,
                .why = "hns_roce_mr.c:mtr_alloc_bufs: more than is mapped"},
               {.field = VABI_PF(hns_roce_ib_create_cq, cqe_size),
                .first = 3,
                .count = 1,
                .rule = "hns.buffer",
                .error = ENOMEM,
                .change = 1,
                .why = "hns_roce_mr.c:mtr_alloc_bufs: more than is mapped"}});
  FlipEachByte(request, "hns");
}

TEST(HnsFlip, CreateQp) {
  FlipRequest request = {
      .name = "hns_roce_ib_create_qp",
      .kernels = {},
      .structure = structure::hns_roce_ib_create_qp,
      .build = [](TestHca& hca) { return QpInput(hca); },
      .send =
          [](TestHca& hca, const Bytes& bytes) {
            const uint32_t pd = Prepare(hca);
            TestHca::CqMade cq;
            EXPECT_GT(hca.CreateCq(16, &cq, CqInput(hca), 16), 0);
            return hca.CreateQp({.pd = pd, .send_cq = cq.handle, .recv_cq = cq.handle}, nullptr,
                                bytes, 16);
          },
      .ranges =
          {
              {.field = VABI_PF(hns_roce_ib_create_qp, log_sq_bb_count),
               .change = 1,
               .why = "hns_roce_qp.c:set_user_sq_size: 128 sends"},
              {.field = VABI_PF(hns_roce_ib_create_qp, log_sq_bb_count),
               .rule = "hns.create_qp.sends",
               .error = EINVAL,
               .change = 0xff,
               .why = "hns_roce_qp.c:set_user_sq_size"},
              {.field = VABI_PF(hns_roce_ib_create_qp, log_sq_stride),
               .rule = "hns.create_qp.stride",
               .error = EINVAL,
               .why = "hns_roce_qp.c:check_sq_size_with_integrity: this card's one stride"},
              {.field = VABI_PF(hns_roce_ib_create_qp, sq_no_prefetch),
               .why = "hns_roce_qp.c:hns_roce_create_qp_common: not looked at"},
              {.field = VABI_PF(hns_roce_ib_create_qp, reserved),
               .why = "hns_roce_qp.c:hns_roce_create_qp_common: not looked at"},
              {.field = VABI_PF(hns_roce_ib_create_qp, create_flags),
               .why = "hns_roce_qp.c:hns_roce_create_qp_common: not looked at"},
              {.field = VABI_PF(hns_roce_ib_create_qp, cong_type_flags),
               .why =
                   "hns_roce_qp.c:set_congest_param: not looked at without its bit in comp_mask"},
          }};
  const FlipRange behind = {.field = FlipRange::kBehind,
                            .why = "ib_copy_from_udata of what is known (up to 6.18)"};
  FlipRequest old = request;
  old.kernels = {"linux-4.17", "linux-4.18", "linux-4.20", "linux-5.3", "linux-5.7"};
  old.Add(OldBuffer(VABI_PF(hns_roce_ib_create_qp, buf_addr)))
      .Add(Record(VABI_PF(hns_roce_ib_create_qp, db_addr)))
      .Add(Record(VABI_PF(hns_roce_ib_create_qp, sdb_addr)))
      .Add({behind});
  FlipEachByte(old, "hns");
  old = request;
  old.kernels = {"linux-4.16"};
  old.Add(OldBuffer(VABI_PF(hns_roce_ib_create_qp, buf_addr)))
      .Add({{.field = VABI_PF(hns_roce_ib_create_qp, db_addr),
             .why = "hns_roce_qp.c:hns_roce_create_qp_common (4.16): not looked at"},
            behind});
  FlipEachByte(old, "hns");
  request.Add(Buffer(VABI_PF(hns_roce_ib_create_qp, buf_addr)))
      .Add(Record(VABI_PF(hns_roce_ib_create_qp, db_addr)))
      .Add(Record(VABI_PF(hns_roce_ib_create_qp, sdb_addr)));
  FlipRequest before = request;
  before.kernels = kUpTo618;
  before.kernels.insert(before.kernels.begin(), {"linux-5.8", "linux-5.9"});
  before.Add({{.field = VABI_PF(hns_roce_ib_create_qp, comp_mask),
               .why = "hns_roce_qp.c:set_congest_param (up to 6.18): other bits are not looked at, "
                      "and CONGEST_TYPE finds the card's own kind"},
              behind});
  FlipEachByte(before, "hns");
  request.kernels = kSince72;
  request.Add({{.field = VABI_PF(hns_roce_ib_create_qp, comp_mask),
                .first = 0,
                .count = 1,
                .change = 1,
                .why = "hns_roce_qp.c:set_congest_type: DCQCN, which the card has"},
               {.field = VABI_PF(hns_roce_ib_create_qp, comp_mask),
                .first = 0,
                .count = 1,
                .rule = "hns.create_qp.comp_mask",
                .error = EOPNOTSUPP,
                .change = 0xff,
                .why = "ib_copy_validate_udata_in_cm (7.2)"},
               {.field = VABI_PF(hns_roce_ib_create_qp, comp_mask),
                .first = 1,
                .rule = "hns.create_qp.comp_mask",
                .error = EOPNOTSUPP,
                .why = "ib_copy_validate_udata_in_cm (7.2)"},
               {.field = FlipRange::kBehind,
                .rule = "hns.create_qp.input.tail",
                .error = EOPNOTSUPP,
                .why = "ib_copy_validate_udata_in_cm (7.2)"}});
  FlipEachByte(request, "hns");
}

TEST(HnsFlip, CreateSrq) {
  FlipRequest request = {
      .name = "hns_roce_ib_create_srq",
      .kernels = {},
      .structure = structure::hns_roce_ib_create_srq,
      .build = [](TestHca& hca) { return SrqInput(hca); },
      .send =
          [](TestHca& hca, const Bytes& bytes) {
            return hca.CreateSrq(Prepare(hca), 16, 1, 0, nullptr, bytes, 8);
          },
      .ranges =
          {
              {.field = VABI_PF(hns_roce_ib_create_srq, db_addr),
               .why = "hns_roce_srq.c:alloc_srq_db: this card has no records of SRQs"},
              {.field = VABI_PF(hns_roce_ib_create_srq, req_cap_flags),
               .why = "hns_roce_srq.c:alloc_srq_db: this card has no records of SRQs"},
              {.field = VABI_PF(hns_roce_ib_create_srq, reserved),
               .why = "hns_roce_srq.c:hns_roce_create_srq: not looked at"},
          }};
  FlipRequest old = request;
  old.kernels = {"linux-5.0", "linux-5.3", "linux-5.7"};
  old.Add(OldBuffer(VABI_PF(hns_roce_ib_create_srq, buf_addr)))
      .Add(OldBuffer(VABI_PF(hns_roce_ib_create_srq, que_addr)))
      .Add({{.field = FlipRange::kBehind, .why = "ib_copy_from_udata of what is known"}});
  FlipEachByte(old, "hns");
  request.Add(Buffer(VABI_PF(hns_roce_ib_create_srq, buf_addr)))
      .Add(Buffer(VABI_PF(hns_roce_ib_create_srq, que_addr)));
  std::vector<const char*> before = kUpTo618;
  before.insert(before.begin(), {"linux-5.8", "linux-5.9"});
  FlipBoth(request, before, "hns.create_srq.input.tail");
}

}  // namespace
}  // namespace vabi::hns
