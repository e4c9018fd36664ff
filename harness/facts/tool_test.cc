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
      {{"layout", "/usr/bin/true", "--against", "debian-6.1.192"},
       "true: has no debug information; build it with -g"},
      {{"--reference", "/nowhere", "list"}, "/nowhere: has no snapshot"},
  };
  for (const Case& c : cases) {
    ProcessResult result = Run(c.arguments);
    EXPECT_EQ(result.status, 2) << c.message;
    EXPECT_THAT(result.output, HasSubstr(c.message));
  }
}

// The nine groups of silent changes that the history of the headers holds, each with the release
// and the kernel where it came, as read in the headers themselves.
TEST_F(Tool, WritesTheHistoryWithEachSilentChangeAtItsKernel) {
  struct Group {
    int number;
    const char *release, *line;
  };
  const Group groups[] = {
      {1, "rdma-core-v36, kernel 5.14",
       "- **renumbered** `RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK`: 86 → 93"},
      {2, "rdma-core-v33, kernel 5.11",
       "- **resized** `struct mlx5_ib_match_params`: 512 bytes → 576 bytes"},
      {2, "rdma-core-v42, kernel 6.0",
       "- **resized** `struct mlx5_ib_match_params`: 576 bytes → 640 bytes"},
      {3, "rdma-core-v48, kernel 6.6",
       "- appended `struct irdma_alloc_ucontext_resp`: 64 bytes → 80 bytes"},
      {3, "rdma-core-v62, kernel 7.0",
       "- **resized** `struct irdma_alloc_ucontext_resp`: 80 bytes → 88 bytes"},
      {3, "rdma-core-v63, kernel 7.1",
       "- **resized** `struct irdma_alloc_ucontext_resp`: 88 bytes → 80 bytes"},
      {3, "debian-6.12.117", "- appended `struct irdma_alloc_ucontext_resp`: 72 bytes → 80 bytes"},
      {4, "rdma-core-v26, kernel 5.4",
       "- **other_meaning** `siw_cq_ctrl.flags`: __aligned_u64 notify @0 → __u32 flags @0"},
      {5, "rdma-core-v38, kernel 5.16",
       "- zero_filled `struct rxe_send_wr`: 56 bytes → 144 bytes: struct rxe_av wr.ud.av @56"},
      {5, "rdma-core-v36, kernel 5.14", "- **removed** `rxe_send_wr.wr.reg`"},
      {5, "rdma-core-v43, kernel 6.1",
       "- **retired** `rxe_send_wr.num_sge`: __u32 num_sge @8 → __u32 reserved @8"},
      {6, "rdma-core-v18, kernel 4.17",
       "- **moved** `ib_uverbs_ioctl_hdr.attrs`: struct ib_uverbs_attr[] attrs @16 → struct "
       "ib_uverbs_attr[] attrs @24"},
      {6, "rdma-core-v18, kernel 4.17",
       "- **renumbered** `RDMA_VERBS_IOCTL`: 3222280961 → 3222805249"},
      {7, "rdma-core-v18, kernel 4.17",
       "- **renumbered** `IB_USER_VERBS_CMD_FLAG_EXTENDED`: 128 → 2147483648"},
      {8, "rdma-core-v18, kernel 4.17",
       "- realigned `struct bnxt_re_pd_resp`: alignment 8 → alignment 4, x86_64 only"},
      {8, "rdma-core-v18, kernel 4.17",
       "- realigned `struct ocrdma_alloc_pd_ureq`: alignment 8 → alignment 4, x86_64 only"},
      {8, "rdma-core-v18, kernel 4.17",
       "- realigned `struct ocrdma_alloc_pd_uresp`: alignment 8 → alignment 4, x86_64 only"},
      {9, "rdma-core-v64, kernel 7.2",
       "- **carved_padding** `bnxt_re_qp_req.sq_npsn`: padding → __u32 sq_npsn @36"},
      {9, "rdma-core-v63, kernel 7.1",
       "- **other_meaning** `efa_ibv_alloc_ucontext_cmd.supported_caps`: __u32 comp_mask @0"},
      {9, "rdma-core-v65, kernel 7.3",
       "- **other_meaning** `mana_ib_create_cq.comp_mask`: __u16 flags @8"},
      {9, "rdma-core-v23, kernel 5.1",
       "- carved_reserved `rxe_av.dmac`: __u16 reserved1 @2, __u32 reserved2 @4 → __u8[6] dmac @2"},
      {9, "rdma-core-v28, kernel 5.6",
       "- **other_meaning** `qedr_alloc_ucontext_resp.dpm_flags`: __u8 dpm_enabled @40"},
  };
  ProcessResult result = Run({"history"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.output, HasSubstr("No ABI version changed"));
  for (const Group& group : groups) {
    std::string heading = "## " + std::string(group.release) + "\n";
    size_t start = result.output.find(heading);
    ASSERT_NE(start, std::string::npos) << heading;
    std::string section = result.output.substr(start, result.output.find("\n## ", start) - start);
    EXPECT_THAT(section, HasSubstr(group.line)) << "group " << group.number;
  }
}

// linux-5.14 stands between the releases that were taken from 5.14 and 5.15: before them it would
// show what came since as removed.
TEST_F(Tool, WritesTheHistoryInTheOrderOfKernels) {
  std::string page = Run({"history"}).output;
  size_t last = 0;
  for (const char* name :
       {"linux-4.10", "rdma-core-v17, kernel 4.16", "rdma-core-v36, kernel 5.14", "linux-5.14",
        "rdma-core-v37, kernel 5.15", "rdma-core-v65, kernel 7.3"}) {
    size_t at = page.find("\n## " + std::string(name) + "\n");
    ASSERT_NE(at, std::string::npos) << name;
    EXPECT_GT(at, last) << name;
    last = at;
  }
}

TEST_F(Tool, NamesASnapshotOfAFolderByTheFolderItself) {
  fs::path headers = Headers("debian-6.1.192");
  ProcessResult result = Run({"extract", (headers / ".").string(), "-o", (dir_ / "out").string()});
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(result.output, (dir_ / "out/copy.json").string() + "\n");
}

TEST_F(Tool, WritesNoSnapshotOutsideTheFolder) {
  fs::path headers = Headers("debian-6.1.192");
  for (const char* name : {"../mine", "a/b", ".hidden", "two words"}) {
    ProcessResult result =
        Run({"extract", headers.string(), "--name", name, "-o", (dir_ / "out").string()});
    EXPECT_EQ(result.status, 2) << name;
    EXPECT_THAT(result.output, HasSubstr("expected letters, digits and any of .-_+~"));
    EXPECT_FALSE(fs::exists(dir_ / "mine.json"));
    EXPECT_FALSE(fs::exists(dir_ / "out"));
  }
}

TEST_F(Tool, ExtractsBesideAnEmptyHeaderAndALinkToItself) {
  fs::path headers = Headers("debian-6.1.192");
  fs::create_symlink("loop.h", headers / "rdma/loop.h");
  std::ofstream(headers / "rdma/empty.h").flush();
  ProcessResult result = Run({"extract", headers.string()});
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("rdma/empty.h"));
}

TEST_F(Tool, SaysThatAHeadersNameIsNoText) {
  fs::path headers = Headers("debian-6.1.192");
  fs::copy_file(headers / "rdma/siw-abi.h", headers / "rdma/\xff.h");
  fs::remove(headers / "rdma/siw-abi.h");
  ProcessResult result = Run({"extract", headers.string()});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output, HasSubstr("invalid UTF-8"));
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
