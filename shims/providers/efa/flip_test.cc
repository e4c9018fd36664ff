// SPDX-License-Identifier: BSD-2-Clause
// efa's private requests (efa-abi.h), byte by byte: efa_verbs.c.
#include "shims/providers/common/test_flip.h"
#include "shims/providers/efa/test_efa.h"

namespace vabi::efa {
namespace {

struct Era {
  std::vector<const char*> kernels;
  int error;  // of comp_mask and of what is behind the request
};
const Era kUpTo618 = {{"linux-5.3", "debian-5.10.223", "linux-5.14", "debian-6.1.192", "linux-6.6",
                       "debian-6.12.117", "linux-6.16"},
                      EINVAL};
const Era kSince72 = {{"debian-7.2.13", "debian-7.3.4"}, EOPNOTSUPP};

uint32_t Prepare(TestHca& hca) {
  uint32_t pd = 0;
  EXPECT_GT(hca.Open(Handshake(), TestEfa::kRoom), 0);
  EXPECT_GT(hca.AllocPd(&pd), 0);
  return pd;
}

TEST(EfaFlip, AllocContext) {
  FlipRequest request = {
      .name = "efa_ibv_alloc_ucontext_cmd",
      .kernels = {"linux-5.9", "debian-5.10.223", "debian-6.12.117"},
      .structure = structure::efa_ibv_alloc_ucontext_cmd,
      .build = [](TestHca&) { return Handshake(); },
      .send = [](TestHca& hca, const Bytes& bytes) { return hca.Open(bytes, TestEfa::kRoom); },
      .ranges =
          {
              {.field = VABI_PF(efa_ibv_alloc_ucontext_cmd, comp_mask),
               .first = 0,
               .count = 1,
               .rule = "efa.ucontext.handshake",
               .error = EOPNOTSUPP,
               .why = "efa_verbs.c:efa_user_comp_handshake: a bit that the card needs"},
              {.field = VABI_PF(efa_ibv_alloc_ucontext_cmd, comp_mask),
               .first = 1,
               .why =
                   "efa_verbs.c:efa_alloc_ucontext: bits that the driver does not know are fine"},
              {.field = VABI_PF(efa_ibv_alloc_ucontext_cmd, reserved_20),
               .why = "efa_verbs.c:efa_alloc_ucontext: not looked at"},
              {.field = FlipRange::kBehind,
               .why = "efa_verbs.c:efa_alloc_ucontext: a longer request is fine"},
          }};
  FlipEachByte(request, "efa");
  request.kernels = kSince72.kernels;
  for (FlipRange& range : request.ranges) {
    if (range.field == VABI_PF(efa_ibv_alloc_ucontext_cmd, comp_mask))
      range.field = VABI_PF(efa_ibv_alloc_ucontext_cmd, supported_caps);
  }
  FlipEachByte(request, "efa");
}

FlipRequest CreateCq(const Era& era) {
  return {.name = "efa_ibv_create_cq",
          .kernels = era.kernels,
          .structure = structure::efa_ibv_create_cq,
          .build = [](TestHca& hca) { return CqInput(hca); },
          .send =
              [](TestHca& hca, const Bytes& bytes) {
                Prepare(hca);
                return hca.CreateCq(16, nullptr, bytes, TestEfa::kRoom);
              },
          .ranges =
              {
                  {.field = VABI_PF(efa_ibv_create_cq, comp_mask),
                   .rule = "efa.create_cq.comp_mask",
                   .error = era.error,
                   .why = "efa_verbs.c:efa_create_cq"},
                  {.field = VABI_PF(efa_ibv_create_cq, num_sub_cqs),
                   .rule = "efa.create_cq.sub_cqs",
                   .error = EINVAL,
                   .why = "efa_verbs.c:efa_create_cq"},
                  {.field = VABI_PF(efa_ibv_create_cq, reserved_50),
                   .rule = "efa.create_cq.reserved",
                   .error = EINVAL,
                   .why = "efa_verbs.c:efa_create_cq (up to 5.14)"},
                  {.field = VABI_PF(efa_ibv_create_cq, reserved_58),
                   .rule = "efa.create_cq.reserved",
                   .error = EINVAL,
                   .why = "efa_verbs.c:efa_create_cq"},
                  {.field = FlipRange::kBehind,
                   .rule = "efa.create_cq.input.tail",
                   .error = era.error,
                   .why = "efa_verbs.c:efa_create_cq"},
              }};
}

TEST(EfaFlip, CreateCqBefore517) {
  FlipRequest request = CreateCq(kUpTo618);
  request.kernels = {"linux-5.3", "debian-5.10.223", "linux-5.14"};
  request.Add({{.field = VABI_PF(efa_ibv_create_cq, cq_entry_size),
                .rule = "",
                .error = EOPNOTSUPP,
                .why = "efa_verbs.c:efa_create_cq: anything but 0; what the card says of it is not "
                       "modelled"}});
  FlipEachByte(request, "efa");
}

TEST(EfaFlip, CreateCqSince61) {
  for (const Era& era :
       {Era{{"debian-6.1.192", "linux-6.6", "debian-6.12.117", "linux-6.16"}, EINVAL}, kSince72}) {
    FlipRequest request = CreateCq(era);
    request.Add({{.field = VABI_PF(efa_ibv_create_cq, cq_entry_size),
                  .rule = "efa.create_cq.entry_size",
                  .error = EINVAL,
                  .why = "efa_verbs.c:efa_create_cq: 16 or 32"},
                 {.field = VABI_PF(efa_ibv_create_cq, flags),
                  .change = 1,
                  .why = "efa_verbs.c:efa_create_cq: WITH_COMPLETION_CHANNEL"},
                 {.field = VABI_PF(efa_ibv_create_cq, flags),
                  .rule = "efa.create_cq.entry_size",
                  .error = EINVAL,
                  .change = 0xff,
                  .why = "efa_verbs.c:efa_create_cq: WITH_SGID needs the long entries; other bits "
                         "may be anything"}});
    FlipEachByte(request, "efa");
  }
}

FlipRequest CreateQp(const Era& era) {
  FlipRequest request = {
      .name = "efa_ibv_create_qp",
      .kernels = era.kernels,
      .structure = structure::efa_ibv_create_qp,
      .build = [](TestHca& hca) { return QpInput(hca); },
      .send =
          [](TestHca& hca, const Bytes& bytes) {
            const uint32_t pd = Prepare(hca);
            TestHca::CqMade cq;
            EXPECT_GT(hca.CreateCq(16, &cq, CqInput(hca), TestEfa::kRoom), 0);
            return hca.CreateQp(
                {.pd = pd, .send_cq = cq.handle, .recv_cq = cq.handle, .type = TestHca::kDriver},
                nullptr, bytes, TestEfa::kRoom);
          },
      .ranges =
          {
              {.field = VABI_PF(efa_ibv_create_qp, comp_mask),
               .rule = "efa.create_qp.comp_mask",
               .error = era.error,
               .why = "efa_verbs.c:efa_create_qp"},
              {.field = VABI_PF(efa_ibv_create_qp, rq_ring_size),
               .first = 0,
               .count = 2,
               .why = "efa_verbs.c:efa_create_qp: any length, never compared with max_recv_wr"},
              {.field = VABI_PF(efa_ibv_create_qp, rq_ring_size),
               .first = 2,
               .count = 1,
               .change = 1,
               .why = "efa_verbs.c:efa_create_qp: any length"},
              {.field = VABI_PF(efa_ibv_create_qp, rq_ring_size),
               .first = 2,
               .count = 2,
               .rule = "efa.queue.memory",
               .error = ENOMEM,
               .change = 0xff,
               .why = "efa_verbs.c:efa_zalloc_mapped: above 4 MiB"},
              {.field = VABI_PF(efa_ibv_create_qp, rq_ring_size),
               .first = 3,
               .count = 1,
               .rule = "efa.queue.memory",
               .error = ENOMEM,
               .change = 1,
               .why = "efa_verbs.c:efa_zalloc_mapped: above 4 MiB"},
              {.field = VABI_PF(efa_ibv_create_qp, sq_ring_size),
               .first = 0,
               .count = 2,
               .why = "efa_verbs.c:efa_create_qp: any length up to the card's"},
              {.field = VABI_PF(efa_ibv_create_qp, sq_ring_size),
               .first = 2,
               .count = 1,
               .change = 1,
               .why = "efa_verbs.c:efa_create_qp: any length up to the card's"},
              {.field = VABI_PF(efa_ibv_create_qp, driver_qp_type),
               .rule = "efa.create_qp.driver_type",
               .error = EOPNOTSUPP,
               .why = "efa_verbs.c:efa_create_qp"},
              {.field = VABI_PF(efa_ibv_create_qp, flags),
               .first = 0,
               .count = 1,
               .change = 1,
               .why = "efa_verbs.c:efa_create_qp: WITH_UNSOLICITED_WRITE_RECV"},
              {.field = VABI_PF(efa_ibv_create_qp, flags),
               .first = 0,
               .count = 1,
               .rule = "efa.create_qp.flags",
               .error = EOPNOTSUPP,
               .change = 0xff,
               .why = "efa_verbs.c:efa_create_qp"},
              {.field = VABI_PF(efa_ibv_create_qp, flags),
               .first = 1,
               .count = 1,
               .rule = "efa.create_qp.flags",
               .error = EOPNOTSUPP,
               .why = "efa_verbs.c:efa_create_qp"},
              {.field = VABI_PF(efa_ibv_create_qp, sl),
               .why = "efa_verbs.c:efa_create_qp: goes to the card as it is"},
              {.field = VABI_PF(efa_ibv_create_qp, reserved_90),
               .rule = "efa.create_qp.reserved",
               .error = EINVAL,
               .why = "efa_verbs.c:efa_create_qp (6.12)"},
              {.field = VABI_PF(efa_ibv_create_qp, reserved_98),
               .rule = "efa.create_qp.reserved",
               .error = EINVAL,
               .why = "efa_verbs.c:efa_create_qp"},
              {.field = FlipRange::kBehind,
               .rule = "efa.create_qp.input.tail",
               .error = era.error,
               .why = "efa_verbs.c:efa_create_qp"},
          }};
  return request;
}

TEST(EfaFlip, CreateQp) {
  // The bytes of sq_ring_size that lead beyond the card's queue.
  const auto beyond = [](const char* rule, int error, const char* why) {
    return std::vector<FlipRange>{{.field = VABI_PF(efa_ibv_create_qp, sq_ring_size),
                                   .first = 2,
                                   .count = 2,
                                   .rule = rule,
                                   .error = error,
                                   .change = 0xff,
                                   .why = why},
                                  {.field = VABI_PF(efa_ibv_create_qp, sq_ring_size),
                                   .first = 3,
                                   .count = 1,
                                   .rule = rule,
                                   .error = error,
                                   .change = 1,
                                   .why = why}};
  };
  FlipRequest request = CreateQp(kUpTo618);
  request.Add(beyond("", EOPNOTSUPP,
                     "efa_verbs.c:efa_create_qp (up to 6.18): what the card says is not modelled"));
  FlipEachByte(request, "efa");
  request = CreateQp(kSince72);
  request.Add(beyond("efa.create_qp.send_ring", EINVAL, "efa_verbs.c:efa_qp_validate_cap (7.2)"));
  FlipEachByte(request, "efa");
}

// Commands without a request: a private input must be zero.
TEST(EfaFlip, WhatHasNoRequest) {
  for (const Era& era : {kUpTo618, kSince72}) {
    FlipRequest request = {.name = "",
                           .kernels = era.kernels,
                           .structure = StructId::kCount,
                           .build = [](TestHca&) { return Bytes(8); },
                           .send = nullptr,
                           .ranges = {{.field = FlipRange::kWhole,
                                       .error = era.error,
                                       .why = "ib_is_udata_cleared, ib_is_udata_in_empty (7.2)"}},
                           .size = 8};
    const auto flip = [&](const char* name, const char* rule,
                          std::function<long(TestHca&, uint32_t, const Bytes&)> send) {
      request.name = name;
      request.ranges[0].rule = rule;
      request.send = [send](TestHca& hca, const Bytes& bytes) {
        return send(hca, Prepare(hca), bytes);
      };
      FlipEachByte(request, "efa");
    };
    flip("QUERY_DEVICE", "efa.query_device.input",
         [](TestHca& hca, uint32_t, const Bytes& bytes) { return hca.QueryDevice(bytes); });
    flip("ALLOC_PD", "efa.alloc_pd.input", [](TestHca& hca, uint32_t, const Bytes& bytes) {
      uint32_t pd;
      return hca.AllocPd(&pd, bytes);
    });
    flip("REG_MR", "efa.reg_mr.input", [](TestHca& hca, uint32_t pd, const Bytes& bytes) {
      return hca.RegMr(pd, {}, nullptr, bytes);
    });
    flip("CREATE_AH", "efa.create_ah.input", [](TestHca& hca, uint32_t pd, const Bytes& bytes) {
      uint32_t ah;
      return hca.CreateAh(pd, &ah, bytes);
    });
  }
}

}  // namespace
}  // namespace vabi::efa
