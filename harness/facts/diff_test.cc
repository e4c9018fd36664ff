// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/facts/cursor.h"
#include "harness/facts/json.h"

namespace vabi::facts {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Snapshot Of(const std::string& decls) {
  auto header =
      ParseHeader(R"({"format":1,"header":"rdma/x.h","includes":[],"decls":[)" + decls + "]}", "x");
  if (!header) ADD_FAILURE() << header.error();
  auto snapshot = Snapshot::FromHeaders("x", {{"kind", "folder"}}, {*header});
  if (!snapshot) ADD_FAILURE() << snapshot.error();
  return *snapshot;
}

// "class subject", with '!' before what is dangerous.
std::vector<std::string> Told(const Snapshot& a, const Snapshot& b) {
  std::vector<std::string> told;
  for (const Change& change : Diff(a, b)) {
    std::string line(change.dangerous ? "!" : "");
    line.append(ClassName(change.change_class)).append(" ").append(change.subject);
    if (change.archs.size() == 1) line.append(" ").append(ArchName(change.archs[0]));
    told.push_back(line);
  }
  return told;
}

std::string Struct(const std::string& name, int size, const std::string& fields,
                   const std::string& more = "") {
  return R"({"struct":")" + name + R"(","size":)" + std::to_string(size) + R"(,"align":4)" + more +
         R"(,"fields":[)" + fields + "]}";
}
constexpr char kA[] = R"({"n":"a","t":"__u32","o":0,"s":4})";
constexpr char kB[] = R"({"n":"b","t":"__u32","o":4,"s":4})";
std::string AB() { return std::string(kA) + "," + kB; }

TEST(Diff, OfEqualSnapshotsIsEmpty) {
  Snapshot same = Of(Struct("s", 8, AB()) +
                     R"(,{"enum":"e","values":[["E",1]]},{"macro":"M","body":"1","value":1})");
  EXPECT_THAT(Told(same, same), IsEmpty());
}

TEST(Diff, TellsMembersAfterTheEndOfARequestFromThoseOfAReply) {
  EXPECT_THAT(Told(Of(Struct("s_req", 4, kA)), Of(Struct("s_req", 8, AB()))),
              ElementsAre("zero_filled struct s_req"));
  EXPECT_THAT(Told(Of(Struct("s_resp", 4, kA)), Of(Struct("s_resp", 8, AB()))),
              ElementsAre("appended struct s_resp"));
}

TEST(Diff, TellsWhatAMemberWasCarvedFrom) {
  std::string reserved = std::string(kA) + R"(,{"n":"reserved","t":"__u8","o":4,"s":4,"d":[4]})";
  EXPECT_THAT(Told(Of(Struct("s", 8, reserved)), Of(Struct("s", 8, AB()))),
              ElementsAre("carved_reserved s.b"));
  EXPECT_THAT(Told(Of(Struct("s", 8, kA)), Of(Struct("s", 8, AB()))),
              ElementsAre("!carved_padding s.b"));
  EXPECT_THAT(Told(Of(Struct("s_resp", 8, kA)), Of(Struct("s_resp", 8, AB()))),
              ElementsAre("carved_padding s_resp.b"));
}

TEST(Diff, ReservedMembersThatShrinkOrMoveAreNoNews) {
  std::string before = std::string(kA) + R"(,{"n":"rsvd","t":"__u32","o":4,"s":4})";
  std::string after =
      std::string(kA) +
      R"(,{"n":"rsvd1","t":"__u16","o":4,"s":2},{"n":"rsvd2","t":"__u16","o":6,"s":2})";
  EXPECT_THAT(Told(Of(Struct("s", 8, before)), Of(Struct("s", 8, after))), IsEmpty());
}

TEST(Diff, TellsMovedResizedRetypedAndRemoved) {
  std::string swapped = R"({"n":"b","t":"__u32","o":0,"s":4},{"n":"a","t":"__u32","o":4,"s":4})";
  EXPECT_THAT(Told(Of(Struct("s", 8, AB())), Of(Struct("s", 8, swapped))),
              ElementsAre("!moved s.b", "!moved s.a"));
  std::string narrow = std::string(kA) + R"(,{"n":"b","t":"__u16","o":4,"s":2})";
  EXPECT_THAT(Told(Of(Struct("s", 8, AB())), Of(Struct("s", 8, narrow))),
              ElementsAre("!resized s.b"));
  std::string big_endian = std::string(kA) + R"(,{"n":"b","t":"__be32","o":4,"s":4})";
  EXPECT_THAT(Told(Of(Struct("s", 8, AB())), Of(Struct("s", 8, big_endian))),
              ElementsAre("!retyped s.b"));
  EXPECT_THAT(Told(Of(Struct("s", 8, AB())), Of(Struct("s", 4, kA))),
              ElementsAre("!removed s.b", "!resized struct s"));
  EXPECT_THAT(Told(Of(Struct("s", 8, AB())), Of(R"({"macro":"M"})")),
              ElementsAre("!removed struct s"));
}

TEST(Diff, AlignedSpellingOfATypeIsNoNews) {
  std::string plain = R"({"n":"a","t":"__u64","o":0,"s":8})",
              aligned = R"({"n":"a","t":"__aligned_u64","o":0,"s":8})";
  EXPECT_THAT(Told(Of(Struct("s", 8, plain)), Of(Struct("s", 8, aligned))), IsEmpty());
}

// L1-05, L1-06.
TEST(Diff, TellsARenamedMemberFromAnotherMeaning) {
  auto with = [](const char* name) {
    return std::string(kA) + R"(,{"n":")" + name + R"(","t":"__u32","o":4,"s":4})";
  };
  EXPECT_THAT(Told(Of(Struct("s", 8, with("npsn"))), Of(Struct("s", 8, with("sq_npsn")))),
              ElementsAre("renamed s.sq_npsn"));
  EXPECT_THAT(Told(Of(Struct("s", 8, with("flags"))), Of(Struct("s", 8, with("comp_mask")))),
              ElementsAre("!other_meaning s.comp_mask"));
  EXPECT_THAT(Told(Of(Struct("s", 8, with("flags"))), Of(Struct("s", 8, with("reserved")))),
              ElementsAre("!retired s.flags"));
}

TEST(Diff, ArmsOfAUnionComeAndGoAsAWhole) {
  auto with = [](const std::string& arms) {
    return Struct("s", 8, R"({"n":"u","t":"union","o":0,"s":8,"f":[)" + arms + "]}");
  };
  auto arm = [](const std::string& name) {
    return R"({"n":")" + name +
           R"(","t":"struct","o":0,"s":8,"f":[{"n":"x","t":"__u32","o":0,"s":4},{"n":"y","t":"__u32","o":4,"s":4}]})";
  };
  EXPECT_THAT(Told(Of(with(arm("one"))), Of(with(arm("one") + "," + arm("two")))),
              ElementsAre("added s.u.two"));
  EXPECT_THAT(Told(Of(with(arm("one") + "," + arm("two"))), Of(with(arm("one")))),
              ElementsAre("!removed s.u.two"));
}

// L1-03.
TEST(Diff, WhatShowsOnlyIn32BitSaysSo) {
  std::string before =
      R"({"n":"a","t":"__u64","o":0,"s":8},{"n":"b","t":"void *","o":8,"s":8,"i386":[8,4]})";
  std::string after =
      R"({"n":"a","t":"__u64","o":0,"s":8},{"n":"b","t":"void *","o":8,"s":8,"i386":[12,4]})";
  EXPECT_THAT(Told(Of(Struct("s", 16, before)), Of(Struct("s", 16, after))),
              ElementsAre("!moved s.b i386"));
}

TEST(Diff, TellsWhatBecameOfConstants) {
  auto with = [](const std::string& values) {
    return Of(R"({"enum":"e","values":[)" + values + "]}");
  };
  Snapshot before = with(R"(["E_A",0],["E_B",1],["E_MAX",2])");
  EXPECT_THAT(Told(before, with(R"(["E_A",0],["E_B",1],["E_C",2],["E_MAX",3])")),
              ElementsAre("sentinel E_MAX", "enum_appended E_C"));
  EXPECT_THAT(Told(before, with(R"(["E_A",0],["E_B",5],["E_MAX",6])")),
              ElementsAre("!renumbered E_B", "sentinel E_MAX"));
  EXPECT_THAT(Told(before, with(R"(["E_A",0],["E_MAX",2])")), ElementsAre("!removed E_B"));
  EXPECT_THAT(
      Told(with(R"(["E_OLD_TX_BATCH",1],["E_Z",2])"), with(R"(["E_NEW_TX_BATCH",1],["E_Z",2])")),
      ElementsAre("renamed E_OLD_TX_BATCH"));
  EXPECT_THAT(Told(with(R"(["E_HW_RETX",1],["E_Z",2])"), with(R"(["E_MSN_TABLE",1],["E_Z",2])")),
              ElementsAre("!other_meaning E_HW_RETX"));
  EXPECT_THAT(Told(with(R"(["E_RESERVED",1],["E_Z",2])"), with(R"(["E_USED",1],["E_Z",2])")),
              ElementsAre("carved_reserved E_RESERVED"));
}

TEST(Diff, ANumberThatTurnsFromMacroToEnumIsTheSame) {
  EXPECT_THAT(
      Told(Of(R"({"macro":"M","body":"3","value":3})"), Of(R"({"enum":"","values":[["M",3]]})")),
      IsEmpty());
}

TEST(Diff, NamesReservedMembers) {
  for (const char* name : {"reserved", "reserved_20", "reserved1", "rsvd3", "revd3", "pad",
                           "padding", "pad2", "resv", "__reserved"}) {
    EXPECT_TRUE(IsReservedName(name)) << name;
  }
  for (const char* name : {"reserved_rkey", "padding_mode", "mode", "pads_x", "", "r"}) {
    EXPECT_FALSE(IsReservedName(name)) << name;
  }
}

// The nine groups of silent changes that the kernel's history holds, each between the two releases
// where it came.
struct SilentChange {
  const char *from, *to, *told;
};
class SilentChanges : public ::testing::TestWithParam<SilentChange> {};

TEST_P(SilentChanges, IsTold) {
  auto a = Snapshot::Load("reference-headers", GetParam().from);
  auto b = Snapshot::Load("reference-headers", GetParam().to);
  ASSERT_TRUE(a) << a.error();
  ASSERT_TRUE(b) << b.error();
  EXPECT_THAT(Told(*a, *b), Contains(GetParam().told));
}

INSTANTIATE_TEST_SUITE_P(
    History, SilentChanges,
    ::testing::Values(
        SilentChange{"rdma-core-v35", "rdma-core-v36",
                     "!renumbered RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK"},
        SilentChange{"rdma-core-v32", "rdma-core-v33", "!resized struct mlx5_ib_match_params"},
        SilentChange{"rdma-core-v41", "rdma-core-v42", "!resized struct mlx5_ib_match_params"},
        SilentChange{"debian-6.1.192", "debian-6.12.117",
                     "appended struct irdma_alloc_ucontext_resp"},
        SilentChange{"rdma-core-v62", "rdma-core-v63", "!resized struct irdma_alloc_ucontext_resp"},
        SilentChange{"rdma-core-v25", "rdma-core-v26", "!other_meaning siw_cq_ctrl.flags"},
        SilentChange{"rdma-core-v37", "rdma-core-v38", "!resized rxe_send_wqe.wr"},
        SilentChange{"rdma-core-v37", "rdma-core-v38", "zero_filled struct rxe_send_wr"},
        SilentChange{"rdma-core-v35", "rdma-core-v36", "!removed rxe_send_wr.wr.reg"},
        SilentChange{"rdma-core-v42", "rdma-core-v43", "!retired rxe_send_wr.num_sge"},
        SilentChange{"rdma-core-v17", "rdma-core-v18", "!moved ib_uverbs_ioctl_hdr.attrs"},
        SilentChange{"rdma-core-v17", "rdma-core-v18", "!renumbered RDMA_VERBS_IOCTL"},
        SilentChange{"rdma-core-v17", "rdma-core-v18",
                     "!renumbered IB_USER_VERBS_CMD_FLAG_EXTENDED"},
        SilentChange{"rdma-core-v17", "rdma-core-v18", "realigned struct bnxt_re_pd_resp x86_64"},
        SilentChange{"rdma-core-v17", "rdma-core-v18",
                     "realigned struct ocrdma_alloc_pd_ureq x86_64"},
        SilentChange{"rdma-core-v21", "rdma-core-v22", "realigned struct ib_uverbs_create_cq_resp"},
        SilentChange{"rdma-core-v63", "rdma-core-v64", "!carved_padding bnxt_re_qp_req.sq_npsn"},
        SilentChange{"rdma-core-v17", "rdma-core-v23", "!carved_padding rxe_av.dmac x86_64"},
        SilentChange{"rdma-core-v62", "rdma-core-v63",
                     "!other_meaning efa_ibv_alloc_ucontext_cmd.supported_caps"},
        SilentChange{"debian-7.2.13", "debian-7.3.4", "!other_meaning mana_ib_create_cq.comp_mask"},
        SilentChange{"rdma-core-v27", "rdma-core-v28",
                     "!other_meaning qedr_alloc_ucontext_resp.dpm_flags"},
        SilentChange{"debian-7.2.13", "debian-7.3.4", "renamed struct mlx5_ib_clock_info"}),
    [](const auto& info) { return "No" + std::to_string(info.index); });

TEST(Diff, OfDebiansKernelsNamesTheSizes) {
  auto a = Snapshot::Load("reference-headers", "debian-6.1.192");
  auto b = Snapshot::Load("reference-headers", "debian-6.12.117");
  ASSERT_TRUE(a && b);
  auto changes = Diff(*a, *b);
  auto grew = [](const char* subject, const char* before, const char* after) {
    return Contains(AllOf(Field(&Change::subject, subject), Field(&Change::before, before),
                          Field(&Change::after, HasSubstr(after))));
  };
  EXPECT_THAT(changes, grew("struct irdma_alloc_ucontext_resp", "72 bytes", "80 bytes: "));
  EXPECT_THAT(changes, grew("struct mlx5_ib_query_device_resp", "104 bytes", "112 bytes: "));
  // 6.12 turned two macros into enumerators of the same value.
  EXPECT_THAT(Told(*a, *b), Not(Contains("!removed UVERBS_METHOD_QP_CREATE")));
}

TEST(Diff, IsRenderedForPeopleAndPrograms) {
  Snapshot a = Of(Struct("s", 8, AB())), b = Of(Struct("s", 4, kA));
  auto changes = Diff(a, b);
  EXPECT_TRUE(AnyDangerous(changes));
  EXPECT_THAT(RenderText(a, b, changes),
              AllOf(HasSubstr("2 changes, 2 dangerous"), HasSubstr("__u32 b @4 → gone")));
  EXPECT_THAT(RenderMarkdown(a, b, changes),
              HasSubstr("| removed | rdma/x.h | `s.b` | __u32 b @4 |  | an older library"));
  Json json = Json::parse(RenderJson(a, b, changes));
  EXPECT_EQ(json["summary"]["dangerous"], 2);
  EXPECT_EQ(json["summary"]["classes"]["removed"], 1);
  EXPECT_EQ(json["changes"][0]["subject"], "s.b");
  EXPECT_EQ(json["changes"][0]["arch"], Json::array({"x86_64", "i386"}));
  EXPECT_THAT(RenderText(a, a, {}), HasSubstr("no difference"));
}

}  // namespace
}  // namespace vabi::facts
