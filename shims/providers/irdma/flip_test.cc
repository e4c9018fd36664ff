// SPDX-License-Identifier: BSD-2-Clause
// What irdma makes of each byte of each private request (hw/irdma/verbs.c of the kernels named).
#include "shims/providers/common/test_flip.h"
#include "shims/providers/irdma/test_irdma.h"

namespace vabi::irdma {
namespace {

uint32_t Prepare(TestHca& hca) {
  uint32_t pd = 0;
  EXPECT_GT(hca.Open(ContextBytes(hca), kRoom), 0) << hca.LastRule();
  EXPECT_GT(hca.AllocPd(&pd, {}, 8), 0) << hca.LastRule();
  return pd;
}
void Register(TestHca& hca, uint32_t pd, uint64_t at, uint64_t length, Pages pages) {
  EXPECT_GT(hca.RegMr(pd, {.start = at, .length = length}, nullptr, MrBytes(hca, pages)), 0)
      << hca.LastRule();
}
uint32_t MakeCq(TestHca& hca, uint32_t pd) {
  Register(hca, pd, CqAt(hca), 4096, {.type = 2, .cq = 1});
  Register(hca, pd, ShadowAt(hca), 4096, {.type = 2, .cq = 1});
  TestHca::CqMade cq;
  EXPECT_GT(hca.CreateCq(15, &cq, CqBytes(hca), 8), 0) << hca.LastRule();
  return cq.handle;
}

#define REQ(field) VABI_PF(irdma_alloc_ucontext_req, field)

TEST(IrdmaFlip, AllocContext) {
  FlipRequest request = {
      .name = "irdma_alloc_ucontext_req",
      .kernels = {"linux-5.14"},
      .structure = structure::irdma_alloc_ucontext_req,
      .build = [](TestHca& hca) { return ContextBytes(hca); },
      .send = [](TestHca& hca, const Bytes& bytes) { return hca.Open(bytes, kRoom); },
      .ranges =
          {
              {.field = REQ(rsvd32), .why = "irdma_alloc_ucontext: not looked at"},
              // 5 ^ 1 = 4, which is taken, too
              {.field = REQ(userspace_ver), .change = 1, .why = "irdma_alloc_ucontext: 4 or 5"},
              {.field = REQ(userspace_ver),
               .rule = "irdma.ucontext.version",
               .error = EINVAL,
               .change = 0xff,
               .why = "irdma_alloc_ucontext: 4 or 5"},
              {.field = REQ(rsvd8), .why = "irdma_alloc_ucontext: not looked at"},
              {.field = FlipRange::kBehind, .why = "ib_copy_from_udata of min(sizeof, inlen)"},
          }};
  FlipEachByte(request, "irdma");
  request.kernels = {"debian-6.1.192", "linux-6.6", "debian-6.12.117"};
  request.ranges.push_back(
      {.field = REQ(comp_mask), .why = "irdma_alloc_ucontext: only USE_RAW_ATTR is looked for"});
  FlipEachByte(request, "irdma");
  request.kernels = {"debian-7.2.13", "debian-7.3.4"};
  request.ranges.pop_back();
  request.ranges.back() = {.field = FlipRange::kBehind,
                           .rule = "irdma.ucontext.tail",
                           .error = EOPNOTSUPP,
                           .why = "ib_copy_validate_udata_in_cm"};
  // USE_RAW_ATTR is bit 0.
  request.ranges.push_back({.field = REQ(comp_mask),
                            .count = 1,
                            .change = 1,
                            .why = "ib_copy_validate_udata_in_cm: USE_RAW_ATTR"});
  const FlipRange unknown = {.field = REQ(comp_mask),
                             .first = 1,
                             .rule = "irdma.ucontext.comp_mask",
                             .error = EOPNOTSUPP,
                             .why = "ib_copy_validate_udata_in_cm: unknown bits"};
  request.ranges.push_back(unknown);
  FlipRange lowest = unknown;
  lowest.first = 0;
  lowest.count = 1;
  lowest.change = 0xff;
  request.ranges.push_back(lowest);
  FlipEachByte(request, "irdma");
}
#undef REQ

#define REQ(field) VABI_PF(irdma_mem_reg_req, field)
TEST(IrdmaFlip, RegisterMemory) {
  // Memory of a CQ, one page of two.
  FlipRequest request = {
      .name = "irdma_mem_reg_req",
      .kernels = {"linux-5.14", "debian-6.1.192", "linux-6.6", "debian-6.12.117", "debian-7.2.13"},
      .structure = structure::irdma_mem_reg_req,
      .build = [](TestHca& hca) { return MrBytes(hca, {.type = 2, .cq = 1}); },
      .send =
          [](TestHca& hca, const Bytes& bytes) {
            return hca.RegMr(Prepare(hca), {.length = 8192}, nullptr, bytes);
          },
      .ranges =
          {
              {.field = REQ(reg_type),
               .first = 1,
               .rule = "irdma.reg_mr.type",
               .error = EINVAL,
               .why = "irdma_reg_user_mr: unknown types"},
              {.field = REQ(reg_type),
               .count = 1,
               .rule = "irdma.reg_mr.type",
               .error = EINVAL,
               .change = 0xff,
               .why = "irdma_reg_user_mr: unknown types"},
              {.field = REQ(cq_pages), .count = 1, .change = 1, .why = "no page is fewer than two"},
              {.field = REQ(cq_pages),
               .count = 1,
               .rule = "irdma.reg_mr.cq_pages",
               .error = EINVAL,
               .change = 0xff,
               .why = "irdma_reg_user_mr_type_cq: more pages than there are"},
              {.field = REQ(cq_pages),
               .first = 1,
               .rule = "irdma.reg_mr.cq_pages",
               .error = EINVAL,
               .why = "irdma_reg_user_mr_type_cq: more pages than there are"},
              {.field = REQ(rq_pages), .why = "irdma_reg_user_mr_type_cq does not look at them"},
              {.field = REQ(sq_pages), .why = "irdma_reg_user_mr_type_cq does not look at them"},
              // 2 ^ 1 = 3
              {.field = REQ(reg_type),
               .count = 1,
               .rule = "irdma.reg_mr.type",
               .error = EINVAL,
               .change = 1,
               .why = "irdma_reg_user_mr: SRQs, before 6.18"},
              {.field = FlipRange::kBehind, .why = "ib_copy_from_udata of min(sizeof, inlen)"},
          }};
  FlipEachByte(
      [&] {
        FlipRequest old = request;
        old.kernels.pop_back();
        return old;
      }(),
      "irdma");
  request.ranges[request.ranges.size() - 2] = {.field = REQ(reg_type),
                                               .count = 1,
                                               .change = 1,
                                               .why = "irdma_reg_user_mr: SRQs, two pages do"};
  request.kernels = {"debian-7.2.13"};
  FlipEachByte(request, "irdma");
  request.kernels = {"debian-7.3.4"};
  request.ranges.back() = {.field = FlipRange::kBehind,
                           .rule = "irdma.reg_mr.tail",
                           .error = EOPNOTSUPP,
                           .why = "ib_copy_validate_udata_in"};
  FlipEachByte(request, "irdma");
}
#undef REQ

// Requests that name registered memory: any other address finds none.
void FlipOn(const FlipRequest& request, const char* tail) {
  FlipWithTail(request,
               {{"linux-5.14", "debian-6.1.192", "linux-6.6", "debian-6.12.117", "debian-7.2.13"},
                "ib_copy_from_udata of min(sizeof, inlen)",
                {"debian-7.3.4"},
                tail,
                "ib_copy_validate_udata_in"},
               "irdma");
}

TEST(IrdmaFlip, CreateCq) {
  FlipOn({
             .name = "irdma_create_cq_req",
             .kernels = {},
             .structure = structure::irdma_create_cq_req,
             .build = [](TestHca& hca) { return CqBytes(hca); },
             .send =
                 [](TestHca& hca, const Bytes& bytes) {
                   const uint32_t pd = Prepare(hca);
                   Register(hca, pd, CqAt(hca), 4096, {.type = 2, .cq = 1});
                   Register(hca, pd, ShadowAt(hca), 4096, {.type = 2, .cq = 1});
                   return hca.CreateCq(15, nullptr, bytes, 8);
                 },
             .ranges = {{.field = VABI_PF(irdma_create_cq_req, user_cq_buf),
                         .rule = "irdma.create_cq.buffer",
                         .error = EPROTO,
                         .why = "irdma_create_cq: irdma_get_pbl"},
                        {.field = VABI_PF(irdma_create_cq_req, user_shadow_area),
                         .rule = "irdma.create_cq.shadow",
                         .error = EPROTO,
                         .why = "irdma_create_cq: irdma_get_pbl"}},
         },
         "irdma.create_cq.tail");
}

TEST(IrdmaFlip, ResizeCq) {
  FlipOn({
             .name = "irdma_resize_cq_req",
             .kernels = {},
             .structure = structure::irdma_resize_cq_req,
             .build =
                 [](TestHca& hca) {
                   Bytes request = hca.Zero(structure::irdma_resize_cq_req);
                   hca.In(request).Set(VABI_PF(irdma_resize_cq_req, user_cq_buffer), QpAt(hca));
                   return request;
                 },
             .send =
                 [](TestHca& hca, const Bytes& bytes) {
                   const uint32_t pd = Prepare(hca);
                   const uint32_t cq = MakeCq(hca, pd);
                   Register(hca, pd, QpAt(hca), 4096, {.type = 2, .cq = 1});
                   return hca.ResizeCq(cq, 64, bytes);
                 },
             .ranges = {{.field = VABI_PF(irdma_resize_cq_req, user_cq_buffer),
                         .rule = "irdma.resize_cq.buffer",
                         .error = ENOMEM,
                         .why = "irdma_resize_cq: irdma_get_pbl"}},
         },
         "irdma.resize_cq.tail");
}

TEST(IrdmaFlip, CreateQp) {
  FlipOn({
             .name = "irdma_create_qp_req",
             .kernels = {},
             .structure = structure::irdma_create_qp_req,
             .build = [](TestHca& hca) { return QpBytes(hca); },
             .send =
                 [](TestHca& hca, const Bytes& bytes) {
                   TestHca::QpWish wish;
                   wish.pd = Prepare(hca);
                   wish.send_cq = wish.recv_cq = MakeCq(hca, wish.pd);
                   Register(hca, wish.pd, QpAt(hca), 3 * 4096, {.type = 1, .rq = 1, .sq = 1});
                   return hca.CreateQp(wish, nullptr, bytes, 24);
                 },
             .ranges = {{.field = VABI_PF(irdma_create_qp_req, user_wqe_bufs),
                         .rule = "irdma.create_qp.buffer",
                         .error = ENODATA,
                         .why = "irdma_setup_umode_qp: irdma_get_pbl"},
                        {.field = VABI_PF(irdma_create_qp_req, user_compl_ctx),
                         .why = "irdma_setup_umode_qp: the program's own"},
                        {.field = VABI_PF(irdma_create_qp_req, legacy_dontuse),
                         .why = "irdma_create_qp (7.3): not looked at"}},
         },
         "irdma.create_qp.tail");
}

TEST(IrdmaFlip, ModifyQp) {
  FlipOn({
             .name = "irdma_modify_qp_req",
             .kernels = {},
             .structure = structure::irdma_modify_qp_req,
             .build = [](TestHca& hca) { return hca.Zero(structure::irdma_modify_qp_req); },
             .send =
                 [](TestHca& hca, const Bytes& bytes) {
                   TestHca::QpWish wish;
                   wish.pd = Prepare(hca);
                   wish.send_cq = wish.recv_cq = MakeCq(hca, wish.pd);
                   Register(hca, wish.pd, QpAt(hca), 3 * 4096, {.type = 1, .rq = 1, .sq = 1});
                   TestHca::QpMade qp;
                   EXPECT_GT(hca.CreateQp(wish, &qp, QpBytes(hca), 24), 0) << hca.LastRule();
                   EXPECT_GT(hca.ToInit(qp.handle), 0) << hca.LastRule();
                   Bytes request = hca.Zero(VABI_S(ib_uverbs_ex_modify_qp));
                   const Body base = hca.In(request).Sub(VABI_F(ib_uverbs_ex_modify_qp, base));
                   base.Set(VABI_F(ib_uverbs_modify_qp, qp_handle), qp.handle);
                   base.Set(VABI_F(ib_uverbs_modify_qp, attr_mask), 1);
                   base.Set(VABI_F(ib_uverbs_modify_qp, qp_state), 6);
                   return hca.CommandEx(26, request, VABI_S(ib_uverbs_ex_modify_qp_resp), bytes);
                 },
             .ranges = {{.field = VABI_PF(irdma_modify_qp_req, sq_flush),
                         .why = "irdma_modify_qp_roce: any; read when in error already"},
                        {.field = VABI_PF(irdma_modify_qp_req, rq_flush),
                         .why = "irdma_modify_qp_roce: any; read when in error already"},
                        {.field = VABI_PF(irdma_modify_qp_req, rsvd),
                         .why = "irdma_modify_qp_roce: not looked at"}},
         },
         "irdma.modify_qp.tail");
}

}  // namespace
}  // namespace vabi::irdma
