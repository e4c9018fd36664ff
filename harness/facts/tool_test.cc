// SPDX-License-Identifier: BSD-2-Clause
//
// The vabi-facts program as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/facts/history.h"
#include "harness/facts/show.h"
#include "harness/facts/subprocess.h"

namespace vabi::facts {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
namespace fs = std::filesystem;

class Tool : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "vabi-tool-XXXXXX").string();
    ASSERT_TRUE(mkdtemp(name.data()));
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }

  ProcessResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), VABI_FACTS_TOOL);
    auto result = RunProcess(arguments);
    if (!result) ADD_FAILURE() << result.error();
    return *result;
  }
  // A copy of the headers of a stored snapshot.
  fs::path Headers(const std::string& snapshot) {
    fs::path headers = dir_ / "copy";
    EXPECT_EQ(Run({"headers", snapshot, headers.string()}).status, 0);
    return headers;
  }
  static std::string Read(const fs::path& file) {
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  fs::path dir_;
};

TEST_F(Tool, FindsNoDifferenceBetweenASnapshotAndItsOwnHeaders) {
  ProcessResult result = Run({"diff", "debian-6.12.117", Headers("debian-6.12.117").string()});
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("no difference"));
}

TEST_F(Tool, ReportsAFieldThatSomeoneMovedInACopiedHeader) {
  fs::path headers = Headers("debian-6.1.192");
  std::string text = Read(headers / "rdma/mlx5-abi.h");
  // The two counters of the reply change places.
  std::string before = "\t__u32 qp_tab_size;\n\t__u32 bf_reg_size;\n",
              after = "\t__u32 bf_reg_size;\n\t__u32 qp_tab_size;\n";
  ASSERT_NE(text.find(before), std::string::npos);
  text.replace(text.find(before), before.size(), after);
  std::ofstream(headers / "rdma/mlx5-abi.h") << text;
  ProcessResult result = Run({"diff", "debian-6.1.192", headers.string()});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, AllOf(HasSubstr("2 changes, 2 dangerous"),
                                   HasSubstr("moved  mlx5_ib_alloc_ucontext_resp.bf_reg_size")));
}

TEST_F(Tool, KeepsTheOtherHeadersWhenOneDoesNotParse) {
  fs::path headers = Headers("debian-6.1.192");
  std::ofstream(headers / "rdma/siw-abi.h") << "struct broken {\n";
  ProcessResult result =
      Run({"extract", headers.string(), "--name", "mine", "-o", (dir_ / "out").string()});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, HasSubstr("rdma/siw-abi.h:1: "));
  EXPECT_THAT(Read(dir_ / "out/mine.json"), HasSubstr("\"broken\":\"rdma/siw-abi.h\""));
  result =
      Run({"--reference", (dir_ / "out").string(), "show", "mine", "IB_USER_VERBS_ABI_VERSION"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output,
            "IB_USER_VERBS_ABI_VERSION = 6 (0x6)  macro 6  <rdma/ib_user_verbs.h>\n");
}

TEST_F(Tool, ShowsStructsMembersAndConstants) {
  ProcessResult result =
      Run({"show", "debian-6.1.192", "ib_uverbs_cmd_hdr", "ib_uverbs_send_wr.wr.rdma.rkey"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output,
            "struct ib_uverbs_cmd_hdr  8 bytes, alignment 4  <rdma/ib_user_verbs.h>  x86_64\n"
            "      0     4  __u32 command\n"
            "      4     2  __u16 in_words\n"
            "      6     2  __u16 out_words\n"
            "ib_uverbs_send_wr.wr.rdma.rkey: 4 bytes at 32, __u32 rkey  x86_64\n");
  EXPECT_THAT(Run({"show", "rdma-core-v17", "rxe_av.grh", "--i386"}).output,
              HasSubstr("24 bytes at 4"));
}

TEST_F(Tool, NamesWhatIsWrongAndExitsWithTwo) {
  struct Case {
    std::vector<std::string> arguments;
    const char* message;
  };
  const Case cases[] = {
      {{}, "usage: vabi-facts"},
      {{"dif"}, "unknown command 'dif'; nearest: diff"},
      {{"diff", "debian-6.1.19", "debian-7.3.4"},
       "'debian-6.1.19' is no snapshot in reference-headers and no file or folder; nearest: "
       "debian-6.1.192"},
      {{"diff", "debian-7.3.4"}, "diff: expected two snapshots"},
      {{"diff", "--json", "--markdown", "a", "b"},
       "expected one of --json and --markdown, not both"},
      {{"diff", "--colour"}, "unknown option '--colour'"},
      {{"show", "debian-7.3.4", "ib_uverbs_cmd_hd"},
       "debian-7.3.4 has no 'ib_uverbs_cmd_hd'; nearest: ib_uverbs_cmd_hdr"},
      {{"extract", "/etc/passwd"},
       "/etc/passwd: expected a folder, a .deb, a .rpm or git:PATH@REVISION"},
      {{"extract", "/etc"}, "/etc: has no RDMA kernel headers"},
      {{"extract", "-o"}, "-o: expected a value after it"},
      {{"--reference", "/nowhere", "list"}, "/nowhere: has no snapshot"},
  };
  for (const Case& c : cases) {
    ProcessResult result = Run(c.arguments);
    EXPECT_EQ(result.status, 2) << c.message;
    EXPECT_THAT(result.output, HasSubstr(c.message));
  }
}

TEST_F(Tool, WritesTheHistoryWithEachSilentChangeAtItsRelease) {
  ProcessResult result = Run({"history"});
  EXPECT_EQ(result.status, 0);
  size_t v36 = result.output.find("## rdma-core-v36\n"),
         v37 = result.output.find("## rdma-core-v37\n");
  ASSERT_NE(v36, std::string::npos);
  std::string section = result.output.substr(v36, v37 - v36);
  EXPECT_THAT(section, HasSubstr("kernel 2833c977c304"));
  EXPECT_THAT(section, HasSubstr("- **renumbered** `RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK`: 86 → 93\n"));
}

TEST(InVersionOrder, CountsNumbersAsNumbers) {
  EXPECT_THAT(InVersionOrder({"rdma-core-v18", "rdma-core-v9", "debian-6.12.1", "debian-6.1.9"}),
              ElementsAre("debian-6.1.9", "debian-6.12.1", "rdma-core-v9", "rdma-core-v18"));
}

TEST(NearestNames, PrefersBeginningsAndLeavesOutTheUnlike) {
  EXPECT_THAT(NearestNames("debian-6", {"debian-7", "debian-6.1.192"}),
              ElementsAre("debian-6.1.192", "debian-7"));
  EXPECT_THAT(NearestNames("debian-6", {"rdma-core-v17"}), IsEmpty());
}

}  // namespace
}  // namespace vabi::facts
