// SPDX-License-Identifier: BSD-2-Clause
//
// The stored facts against what gcc says of the kernel headers that are installed here.
#include "harness/facts/assertions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "harness/facts/gcc_check.h"
#include "harness/facts/generate.h"
#include "harness/facts/snapshot.h"
#include "harness/facts/temporary.h"

namespace vabi::facts {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kSnapshot[] = "debian-6.1.192";

Header OneStruct(uint32_t offset, uint32_t size) {
  Struct record{.name = "ib_uverbs_alloc_pd_resp", .size = size, .align = 4};
  record.fields.push_back({.name = "pd_handle", .type = "__u32", .offset = offset, .size = 4});
  record.fields.push_back(
      {.name = "driver_data", .type = "__u32", .offset = 4, .dims = {0}, .flexible = true});
  return {.path = "rdma/ib_user_verbs.h", .decls = {record}};
}

TEST(Assertions, GccAgreesWithTrueFacts) {
  EXPECT_THAT(GccErrors(WriteAssertions(OneStruct(0, 4), Arch::kX86_64), Arch::kX86_64, ""),
              IsEmpty());
}

TEST(Assertions, GccNamesTheWrongOffsetAndTheWrongSize) {
  auto errors = GccErrors(WriteAssertions(OneStruct(1, 4), Arch::kX86_64), Arch::kX86_64, "");
  EXPECT_THAT(errors, Contains(HasSubstr("offsetof(struct ib_uverbs_alloc_pd_resp, pd_handle)")));
  errors = GccErrors(WriteAssertions(OneStruct(0, 5), Arch::kX86_64), Arch::kX86_64, "");
  EXPECT_THAT(errors, Contains(HasSubstr("sizeof(struct ib_uverbs_alloc_pd_resp)")));
}

TEST(Assertions, GccNamesTheWrongConstant) {
  Header header{.path = "rdma/mlx5-abi.h",
                .decls = {Macro{.name = "MLX5_IB_UVERBS_ABI_VERSION", .value = 2}}};
  EXPECT_THAT(GccErrors(WriteAssertions(header, Arch::kX86_64), Arch::kX86_64, ""),
              Contains(HasSubstr("MLX5_IB_UVERBS_ABI_VERSION")));
}

class InstalledHeaders : public ::testing::TestWithParam<Arch> {};

TEST_P(InstalledHeaders, HaveTheLayoutThatTheSnapshotSays) {
  std::string version = PackageVersion("linux-libc-dev");
  // 6.1.187 lacks three names that 6.1.192 took over from newer kernels, and is equal to it
  // otherwise.
  const std::vector<std::string> newer_names = {
      "RDMA_NLDEV_SYS_ATTR_PRIVILEGED_QKEY_MODE", "RDMA_NLDEV_ATTR_DRIVER_DETAILS",
      "RDMA_NLDEV_ATTR_RES_SUBTYPE", "RDMA_NLDEV_ATTR_MAX"};
  if (version != "6.1.192" && version != "6.1.187") {
    GTEST_SKIP() << "linux-libc-dev here is '" << version << "', the facts are of 6.1.192";
  }
  auto snapshot = Snapshot::Load("reference-headers", kSnapshot);
  ASSERT_TRUE(snapshot) << snapshot.error();
  size_t headers = 0;
  for (const Header& header : snapshot->headers()) {
    ++headers;
    for (const std::string& error :
         GccErrors(WriteAssertions(header, GetParam()), GetParam(), "")) {
      // What gcc adds to an undeclared name.
      bool explained = error == "expression in static assertion is not an integer";
      for (const std::string& name : newer_names) {
        explained |= version == "6.1.187" && error.find(name) != std::string::npos;
      }
      EXPECT_TRUE(explained) << header.path << ": " << error;
    }
  }
  EXPECT_EQ(headers, 28u);
}

INSTANTIATE_TEST_SUITE_P(Abis, InstalledHeaders, ::testing::Values(Arch::kX86_64, Arch::kI386),
                         [](const auto& info) { return std::string(ArchName(info.param)); });

// Another compiler than the one that made the facts, given the declarations of a snapshot, must
// come to the same layout and the same numbers. Each header's content is judged once.
class AllSnapshots : public ::testing::TestWithParam<Arch> {};

TEST_P(AllSnapshots, AreAsGccLaysThemOut) {
  std::set<std::pair<std::string, std::string>> judged;
  for (const std::string& name : ListSnapshots("reference-headers")) {
    auto snapshot = Snapshot::Load("reference-headers", name);
    ASSERT_TRUE(snapshot) << snapshot.error();
    TemporaryFolder folder;
    ASSERT_TRUE(GenerateHeaders(*snapshot, folder.path.string()));
    std::string text;
    for (const Header& header : snapshot->headers()) {
      if (judged.insert({header.path, header.digest}).second)
        text += WriteAssertions(header, GetParam());
    }
    EXPECT_THAT(GccErrors(text, GetParam(), folder.path.string()), IsEmpty()) << name;
  }
  EXPECT_GT(judged.size(), 250u);
}

INSTANTIATE_TEST_SUITE_P(Abis, AllSnapshots, ::testing::Values(Arch::kX86_64, Arch::kI386),
                         [](const auto& info) { return std::string(ArchName(info.param)); });

}  // namespace
}  // namespace vabi::facts
