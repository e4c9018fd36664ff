// SPDX-License-Identifier: BSD-2-Clause
// What bnxt_re tells and refuses where contexts and protection domains are made: hw/bnxt_re of the
// kernels named. One offence for each rule, each byte of the private request.
#include <tuple>

#include "shims/providers/bnxt_re/ids.h"
#include "shims/providers/common/test_flip.h"
#include "shims/providers/common/test_hca.h"
#include "shims/providers/test_offence.h"

namespace vabi::bnxt_re {
namespace {

constexpr char kNewest[] = "debian-7.3.4";
constexpr size_t kRoom = 48;

#define TOLD(field) hca.Told(VABI_PF(bnxt_re_uctx_resp, field))

class T : public TestHca {
 public:
  explicit T(const char* kernel) : TestHca(kernel, "bnxt_re") {}
  void Start() { ASSERT_GT(Open({}, kRoom), 0) << LastRule(); }
  uint32_t pd = 0;
};

Bytes Asks(uint8_t low, size_t length = 8) {
  Bytes bytes(length);
  bytes[0] = low;
  return bytes;
}
Bytes Longer() {
  Bytes bytes = Asks(3, 16);
  bytes.back() = 1;
  return bytes;
}

class Eras : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(BnxtRe, Eras,
                         testing::Values("linux-4.16", "linux-5.3", "debian-5.10.223",
                                         "debian-6.1.192", "linux-6.6", "debian-6.12.117",
                                         "debian-7.2.13", "debian-7.3.4"),
                         [](const auto& info) { return CaseName(std::string(info.param)); });

// ib_verbs.c:bnxt_re_alloc_ucontext, bnxt_re_alloc_pd, bnxt_re_mmap: the shared page and the
// doorbell page of a protection domain.
TEST_P(Eras, MapWhatTheyTell) {
  T hca(GetParam());
  hca.Start();
  EXPECT_EQ(4096u, TOLD(pg_size));
  EXPECT_EQ(32u, TOLD(cqe_sz));
  EXPECT_EQ(1, hca.Map(0, 4096)) << hca.LastRule();
  // Entries (6.6) want a shared mapping.
  const bool entries = std::string_view(GetParam()) == "linux-6.6" ||
                       std::string_view(GetParam()) == "debian-6.12.117" ||
                       std::string_view(GetParam()).starts_with("debian-7");
  EXPECT_EQ(entries ? -EINVAL : 1, hca.Map(0, 4096, PROT_READ, MAP_PRIVATE));
  if (entries) {
    EXPECT_EQ("mmap.private", hca.LastRule());
  }
  ASSERT_GT(hca.AllocPd(&hca.pd, {}, 16), 0) << hca.LastRule();
  const uint64_t dbr = hca.Told(VABI_PF(bnxt_re_pd_resp, dbr));
  EXPECT_NE(0u, dbr);
  EXPECT_EQ(1, hca.Map(dbr, 4096)) << hca.LastRule();
  EXPECT_GT(hca.DeallocPd(hca.pd), 0);
}

// ib_copy_to_udata of all of the reply, or of as much as there is room for; ib_respond_udata, which
// makes the rest of the room zero. bnxt_re_pd_resp has 16 bytes.
TEST(BnxtReReplies, OfAProtectionDomain) {
  for (const auto& [kernel, in_8, in_32] : {std::tuple{"debian-6.1.192", 16u, 16u},
                                            {"linux-6.6", 8u, 16u},
                                            {"linux-6.16", 8u, 16u},
                                            {"debian-7.2.13", 8u, 32u}}) {
    T hca(kernel);
    hca.Start();
    const auto written = [&hca](size_t room) {
      return hca.Written(TestHca::kAllocPd, hca.Zero(VABI_S(ib_uverbs_alloc_pd)),
                         VABI_S(ib_uverbs_alloc_pd_resp), room);
    };
    EXPECT_EQ(in_8, written(8)) << kernel;
    EXPECT_EQ(in_32, written(32)) << kernel;
  }
}

TEST(BnxtReReplies, OfAContext) {
  constexpr size_t kBefore53 = 24;  // struct bnxt_re_uctx_resp, without comp_mask
  for (const auto& [kernel, in_8, clears] : {std::tuple{"linux-5.0", kBefore53, false},
                                             {"linux-5.3", size_t{8}, false},
                                             {"linux-6.16", size_t{8}, false},
                                             {"debian-7.2.13", size_t{8}, true}}) {
    const auto written = [kernel = kernel](size_t room) {
      T hca(kernel);
      return hca.Written(TestHca::kGetContext, hca.Zero(VABI_S(ib_uverbs_get_context)),
                         VABI_S(ib_uverbs_get_context_resp), room);
    };
    EXPECT_EQ(in_8, written(8)) << kernel;
    EXPECT_EQ(clears, written(64) == 64) << kernel;
  }
}

// The chip since 5.3, its mode unasked from 5.14 to 6.6.
struct MaskCase {
  const char* kernel;
  uint8_t asked;
  uint64_t told;
};
class Masks : public testing::TestWithParam<MaskCase> {};
INSTANTIATE_TEST_SUITE_P(
    BnxtRe, Masks,
    testing::Values(MaskCase{"linux-5.0", 3, 0}, MaskCase{"linux-5.3", 3, 1},
                    MaskCase{"debian-6.1.192", 0, 3}, MaskCase{"linux-6.6", 3, 3},
                    MaskCase{"debian-6.12.117", 0, 1}, MaskCase{"debian-6.12.117", 3, 0x13},
                    MaskCase{"debian-6.12.117", 0x83, 0x13}, MaskCase{"debian-7.2.13", 2, 3},
                    MaskCase{"debian-7.3.4", 1, 0x400011}),
    [](const auto& info) {
      return CaseName(std::string(info.param.kernel) + "_" + std::to_string(info.index));
    });
TEST_P(Masks, AreOfTheKernel) {
  T hca(GetParam().kernel);
  ASSERT_GT(hca.Open(Asks(GetParam().asked), kRoom), 0) << hca.LastRule();
  EXPECT_EQ(GetParam().told, TOLD(comp_mask));
  EXPECT_EQ(GetParam().told != 0 ? 0x16d7u : 0u, TOLD(chip_id0));
}

// A doorbell page goes with its protection domain (6.6: rdma_user_mmap_entry_remove).
TEST(BnxtReMap, DoorbellGoesWithItsDomain) {
  T hca(kNewest);
  hca.Start();
  ASSERT_GT(hca.AllocPd(&hca.pd, {}, 16), 0);
  const uint64_t dbr = hca.Told(VABI_PF(bnxt_re_pd_resp, dbr));
  EXPECT_GT(hca.DeallocPd(hca.pd), 0);
  EXPECT_EQ(-EINVAL, hca.Map(dbr, 4096));
}

// Up to 6.1 vm_pgoff was a page frame, whatever it was.
TEST(BnxtReMap, AnyFrameOfOldKernelsIsNotModelled) {
  T hca("debian-6.1.192");
  hca.Start();
  EXPECT_LT(hca.Map(0x7000, 4096), 0);
  EXPECT_NE("", hca.LastUnmodelled());
}

const Offence<T> kOffences[] = {
    {kNewest, "bnxt_re.ucontext.short", EINVAL, [](T& t) { return t.Open(Asks(3, 4), kRoom); }},
    {kNewest, "bnxt_re.ucontext.tail", EOPNOTSUPP, [](T& t) { return t.Open(Longer(), kRoom); }},
    {kNewest, "bnxt_re.ucontext.comp_mask", EOPNOTSUPP,
     [](T& t) { return t.Open(Asks(4), kRoom); }},
    {kNewest, "bnxt_re.ucontext.fault", EFAULT,
     [](T& t) { return t.OpenWithLostRequest(16, kRoom); }},
    {"debian-6.12.117", "bnxt_re.ucontext.fault", EFAULT,
     [](T& t) { return t.OpenWithLostRequest(16, kRoom); }},
    {"debian-7.2.13", "bnxt_re.alloc_pd.input", EOPNOTSUPP,
     [](T& t) {
       t.Start();
       return t.AllocPd(&t.pd, Asks(1), 16);
     }},
    {kNewest, "bnxt_re.alloc_pd.fault", EFAULT,
     [](T& t) {
       t.Start();
       return t.Nowhere(T::Lost::kOutput, T::kAllocPd, t.Zero(VABI_S(ib_uverbs_alloc_pd)),
                        VABI_S(ib_uverbs_alloc_pd_resp));
     }},
    {kNewest, "bnxt_re.query_device.input", EOPNOTSUPP,
     [](T& t) {
       t.Start();
       return t.QueryDevice(Asks(1), 16);
     }},
    {kNewest, "bnxt_re.query_device.fault", EFAULT,
     [](T& t) {
       t.Start();
       return t.Nowhere(T::Lost::kOutput, 0x80000001, t.Zero(VABI_S(ib_uverbs_ex_query_device)),
                        VABI_S(ib_uverbs_ex_query_device_resp));
     }},
    {"debian-6.1.192", "bnxt_re.mmap.length", EINVAL,
     [](T& t) {
       t.Start();
       return t.Map(0, 8192);
     }},
    {kNewest, "bnxt_re.mmap.offset", EINVAL,
     [](T& t) {
       t.Start();
       return t.Map(0x7000, 4096);
     }},
};
class Rule : public testing::TestWithParam<Offence<T>> {};
INSTANTIATE_TEST_SUITE_P(BnxtRe, Rule, testing::ValuesIn(kOffences), [](const auto& info) {
  return CaseName(info.param) + "_" + std::to_string(info.index);
});
TEST_P(Rule, Answers) {
  T hca(GetParam().kernel);
  EXPECT_EQ(-GetParam().error, GetParam().commit(hca));
  EXPECT_EQ(GetParam().rule, hca.LastRule());
}

TEST(BnxtReFlip, GetContext) {
  const FieldId mask = VABI_PF(bnxt_re_uctx_req, comp_mask);
  FlipRequest request = {
      .name = "bnxt_re_uctx_req",
      .kernels = {"debian-6.12.117"},
      .structure = structure::bnxt_re_uctx_req,
      .build = [](TestHca&) { return Asks(3); },
      .send = [](TestHca& hca, const Bytes& bytes) { return hca.Open(bytes, kRoom); },
      .ranges = {{.field = mask, .why = "ib_verbs.c:bnxt_re_alloc_ucontext looks at two bits"},
                 {.field = FlipRange::kBehind,
                  .why = "ib_copy_from_udata of its size: what is behind is not read"}},
  };
  FlipEachByte(request, "bnxt_re");
  constexpr char kValid[] = "ib_verbs.c:bnxt_re_alloc_ucontext, ib_copy_validate_udata_in_cm";
  const FlipRange refused = {.field = mask,
                             .first = 1,
                             .rule = "bnxt_re.ucontext.comp_mask",
                             .error = EOPNOTSUPP,
                             .why = kValid};
  FlipRange high = refused;
  high.first = 0;
  high.count = 1;
  high.change = 0xff;
  request.kernels = {"debian-7.2.13", "debian-7.3.4"};
  request.ranges = {{.field = mask, .first = 0, .count = 1, .change = 1, .why = kValid},
                    high,
                    refused,
                    {.field = FlipRange::kBehind,
                     .rule = "bnxt_re.ucontext.tail",
                     .error = EOPNOTSUPP,
                     .why = kValid}};
  FlipEachByte(request, "bnxt_re");
}

}  // namespace
}  // namespace vabi::bnxt_re
