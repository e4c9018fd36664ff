// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "harness/facts/json.h"

namespace vabi::facts {
namespace {

using ::testing::ElementsAre;

const Snapshot& Stored(const std::string& name) {
  static std::map<std::string, Result<Snapshot>> cache;
  auto [it, added] = cache.try_emplace(name, Error{"not loaded"});
  if (added) it->second = Snapshot::Load("reference-headers", name);
  if (!it->second) ADD_FAILURE() << it->second.error();
  return *it->second;
}

// sizeof, or 0 when the snapshot has no such struct.
uint32_t SizeOf(const std::string& snapshot, const char* name, Arch arch = Arch::kX86_64) {
  const Struct* record = Stored(snapshot).FindStruct(name, arch);
  return record ? record->size : 0;
}

// Offset from the start, or -1 when there is no such member.
int64_t OffsetOf(const Snapshot& snapshot, const char* name, const char* path,
                 Arch arch = Arch::kX86_64) {
  auto field = snapshot.FindField(name, path, arch);
  return field ? int64_t{field->offset} : -1;
}

TEST(Snapshot, EveryStoredOneLoads) {
  std::vector<std::string> names = ListSnapshots("reference-headers");
  EXPECT_GE(names.size(), 55u);  // and whatever was added since
  for (const std::string& name : names) {
    auto snapshot = Snapshot::Load("reference-headers", name);
    EXPECT_TRUE(snapshot) << snapshot.error();
  }
}

TEST(Snapshot, SaysWhereItComesFrom) {
  const Snapshot& release = Stored("rdma-core-v44");
  EXPECT_EQ(release.stack(), "rdma-core");
  EXPECT_EQ(release.page_size(), 4096u);
  EXPECT_THAT(release.archs(), ElementsAre(Arch::kX86_64, Arch::kI386));
  EXPECT_EQ(release.SourceOf("tag"), "v44.0");
  EXPECT_EQ(release.SourceOf("kernel_commit"), "c2d939002934");
  EXPECT_EQ(Stored("debian-6.1.192").SourceOf("version").substr(0, 7), "6.1.192");
  EXPECT_EQ(release.SourceOf("weather"), "");
}

TEST(Snapshot, FindsStructsByName) {
  const Snapshot& snapshot = Stored("debian-6.1.192");
  const Struct* record = snapshot.FindStruct("ib_uverbs_cmd_hdr");
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->size, 8u);
  EXPECT_EQ(record->align, 4u);
  EXPECT_EQ(record->fields.size(), 3u);
  EXPECT_EQ(snapshot.FindStruct("ib_uverbs_cmd"), nullptr);
  EXPECT_TRUE(snapshot.FindStruct("rxe_gid")->is_union);
}

// Offsets as gcc's offsetof has them; assertions_test.cc asks it for all.
TEST(Snapshot, FollowsPathsThroughNamedUnionsAndStructs) {
  const Snapshot& snapshot = Stored("debian-6.1.192");
  EXPECT_EQ(OffsetOf(snapshot, "ib_uverbs_send_wr", "wr.rdma.remote_addr"), 24);
  EXPECT_EQ(OffsetOf(snapshot, "ib_uverbs_send_wr", "wr.rdma.rkey"), 32);
  EXPECT_EQ(OffsetOf(snapshot, "ib_uverbs_send_wr", "wr.ud.remote_qkey"), 32);
  EXPECT_EQ(
      OffsetOf(snapshot, "rxe_send_wqe", "wr.wr.ud.av.dgid_addr._sockaddr_in6"),
      OffsetOf(snapshot, "rxe_send_wr", "wr.ud.av") + OffsetOf(snapshot, "rxe_av", "dgid_addr"));
}

TEST(Snapshot, MembersOfAnonymousUnionsAreMembersOfTheStructAround) {
  const Snapshot& snapshot = Stored("debian-6.1.192");
  EXPECT_EQ(OffsetOf(snapshot, "ib_uverbs_attr", "data"), 8);
  EXPECT_EQ(OffsetOf(snapshot, "ib_uverbs_attr", "data_s64"), 8);
  EXPECT_EQ(OffsetOf(snapshot, "ib_uverbs_attr", "attr_data.enum_data.elem_id"), 6);
  EXPECT_EQ(OffsetOf(snapshot, "ib_uverbs_flow_spec_eth", "type"), 0);
  EXPECT_EQ(OffsetOf(snapshot, "ib_uverbs_flow_spec_eth", "hdr.size"), 4);
}

TEST(Snapshot, UnknownAndMalformedPathsFindNothing) {
  const Snapshot& snapshot = Stored("debian-6.1.192");
  for (const char* path : {"", ".", "wr.", ".wr", "wr.rdma.nothing", "wr.rdma.rkey.deeper",
                           "wr..rdma", "wr_id[0]", "wr[", "wr]", "wr[x]", "wr[0", "wr[-1]"}) {
    EXPECT_EQ(OffsetOf(snapshot, "ib_uverbs_send_wr", path), -1) << path;
  }
  EXPECT_EQ(OffsetOf(snapshot, "no_such_struct", "a"), -1);
}

TEST(Snapshot, IndexesPickArrayElements) {
  const Snapshot& snapshot = Stored("debian-6.1.192");
  auto reserved = snapshot.FindField("ib_user_service_rec", "gid");
  EXPECT_FALSE(reserved);  // appears later; must not be made up here

  auto raw = snapshot.FindField("rxe_gid", "raw[3]");
  ASSERT_TRUE(raw);
  EXPECT_EQ(raw->offset, 3u);
  EXPECT_EQ(raw->size, 1u);
  EXPECT_THAT(raw->dims, ElementsAre());
  EXPECT_FALSE(snapshot.FindField("rxe_gid", "raw[16]"));
  // Flexible: the element's size comes from its type.
  auto sge = snapshot.FindField("rxe_dma_info", "sge[2].lkey");
  ASSERT_TRUE(sge);
  EXPECT_EQ(sge->offset, 24u + 2 * 16 + 12);
  EXPECT_TRUE(snapshot.FindField("rxe_dma_info", "sge")->flexible);
}

TEST(Snapshot, PointsAtTheRecordBehindAField) {
  const Snapshot& snapshot = Stored("debian-6.1.192");
  EXPECT_EQ(snapshot.FindField("rxe_send_wqe", "wr")->record, snapshot.FindStruct("rxe_send_wr"));
  EXPECT_EQ(snapshot.FindField("rxe_send_wqe", "status")->record, nullptr);
  // A pointer to a struct is no struct.
  EXPECT_EQ(snapshot.FindField("siw_cqe", "base_qp")->record, nullptr);
}

TEST(Snapshot, RdmaUapiPtrKeepsTheTypeItWasGiven) {
  auto field = Stored("debian-6.1.192").FindField("ib_uverbs_flow_action_esp_encap", "val_ptr");
  ASSERT_TRUE(field);
  EXPECT_EQ(field->type, "__aligned_u64");
  EXPECT_EQ(field->field->via, "RDMA_UAPI_PTR");
  EXPECT_EQ(field->field->via_arg, "void *");
}

TEST(Snapshot, ConstantsComeFromEnumsAndMacros) {
  const Snapshot& snapshot = Stored("debian-6.1.192");
  EXPECT_EQ(snapshot.Constant("UVERBS_METHOD_QP_CREATE"), 0);
  EXPECT_EQ(snapshot.Constant("UVERBS_OBJECT_QP"), 4);
  EXPECT_EQ(snapshot.Constant("MLX5_IB_OBJECT_DEVX"), 0x1000);
  EXPECT_EQ(snapshot.Constant("IB_USER_VERBS_ABI_VERSION"), 6);
  EXPECT_EQ(snapshot.Constant("RDMA_IOCTL_MAGIC"), 0x1b);
  EXPECT_EQ(snapshot.Constant("SIW_NODE_DESC_COMMON"), std::nullopt);  // a string
  EXPECT_EQ(snapshot.Constant("NO_SUCH_NAME"), std::nullopt);
}

TEST(Snapshot, KeepsThe32BitLayoutApart) {
  const Snapshot& v17 = Stored("rdma-core-v17");
  EXPECT_EQ(OffsetOf(v17, "rxe_av", "grh"), 8);
  EXPECT_EQ(OffsetOf(v17, "rxe_av", "grh", Arch::kI386), 4);
  EXPECT_EQ(SizeOf("rdma-core-v17", "rxe_send_wqe", Arch::kI386), 196u);
  // base_qp is a pointer in an anonymous union.
  EXPECT_EQ(v17.FindStruct("siw_cqe"), nullptr);
  EXPECT_EQ(Stored("debian-6.1.192").FindField("siw_cqe", "base_qp", Arch::kI386)->size, 4u);
  EXPECT_EQ(Stored("debian-6.1.192").FindField("siw_cqe", "base_qp")->size, 8u);
  // Equal on both: one layout serves.
  EXPECT_EQ(v17.FindStruct("ib_uverbs_cmd_hdr", Arch::kI386), v17.FindStruct("ib_uverbs_cmd_hdr"));
}

// Changes between releases for which no ABI version was raised. Sizes as in the kernel's history.
TEST(SilentChanges, IoctlHeaderGrewFrom16To24) {
  EXPECT_EQ(SizeOf("rdma-core-v17", "ib_uverbs_ioctl_hdr"), 16u);
  EXPECT_EQ(SizeOf("rdma-core-v18", "ib_uverbs_ioctl_hdr"), 24u);
}

TEST(SilentChanges, Mlx5MatchParamsGrewTwice) {
  EXPECT_EQ(SizeOf("rdma-core-v19", "mlx5_ib_match_params"), 0u);  // DEVX flow rules are younger
  EXPECT_EQ(SizeOf("rdma-core-v32", "mlx5_ib_match_params"), 512u);
  EXPECT_EQ(SizeOf("rdma-core-v33", "mlx5_ib_match_params"), 576u);
  EXPECT_EQ(SizeOf("rdma-core-v41", "mlx5_ib_match_params"), 576u);
  EXPECT_EQ(SizeOf("rdma-core-v42", "mlx5_ib_match_params"), 640u);
}

TEST(SilentChanges, IrdmaUcontextReplyHadASizeOnlyInADistribution) {
  EXPECT_EQ(SizeOf("rdma-core-v44", "irdma_alloc_ucontext_resp"), 64u);
  EXPECT_EQ(SizeOf("debian-6.1.192", "irdma_alloc_ucontext_resp"), 72u);
  EXPECT_EQ(SizeOf("debian-6.12.117", "irdma_alloc_ucontext_resp"), 80u);
  EXPECT_EQ(SizeOf("rdma-core-v62", "irdma_alloc_ucontext_resp"), 88u);
  EXPECT_EQ(SizeOf("rdma-core-v63", "irdma_alloc_ucontext_resp"), 80u);
}

TEST(SilentChanges, RxeSendWrTookTheAddressVectorIn) {
  EXPECT_EQ(SizeOf("debian-5.10.223", "rxe_send_wr"), 56u);
  EXPECT_EQ(SizeOf("debian-6.1.192", "rxe_send_wr"), 144u);
  EXPECT_EQ(OffsetOf(Stored("debian-5.10.223"), "rxe_send_wr", "wr.reg.key"), 32);
  EXPECT_EQ(OffsetOf(Stored("debian-6.1.192"), "rxe_send_wr", "wr.reg.key"), -1);
  EXPECT_NE(OffsetOf(Stored("debian-6.1.192"), "rxe_send_wr", "wr.mw.addr"), -1);
}

TEST(SilentChanges, CopyOnForkWasRenumbered) {
  EXPECT_EQ(Stored("rdma-core-v35").Constant("RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK"), 86);
  EXPECT_EQ(Stored("rdma-core-v36").Constant("RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK"), 93);
  EXPECT_EQ(Stored("debian-5.10.223").Constant("RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK"), std::nullopt);
  EXPECT_EQ(Stored("debian-6.1.192").Constant("RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK"), 93);
}

TEST(SilentChanges, NoAbiVersionConstantEverChanged) {
  std::map<std::string, int64_t> first;
  for (const std::string& name : ListSnapshots("reference-headers")) {
    Stored(name).ForEachMacro([&](const Header&, const Macro& macro) {
      if (!macro.value || !macro.name.ends_with("ABI_VERSION")) return;
      auto [it, added] = first.emplace(macro.name, *macro.value);
      EXPECT_EQ(it->second, *macro.value) << macro.name << " in " << name;
    });
  }
  EXPECT_GT(first.size(), 15u);
}

TEST(Snapshot, FromHeadersRefusesTwoStructsOfOneName) {
  Header a{.path = "rdma/a.h", .decls = {Struct{.name = "same", .size = 4, .align = 4}}};
  Header b{.path = "rdma/b.h", .decls = {Struct{.name = "same", .size = 8, .align = 4}}};
  auto snapshot = Snapshot::FromHeaders("x", {{"kind", "folder"}}, {a, b});
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(
      snapshot.error(),
      "x: rdma/b.h defines 'same' a second time: a struct must be defined once in a snapshot");
}

TEST(Snapshot, FindsTypesDefinedInsideOthersByTheirOwnName) {
  auto inner = std::make_shared<Struct>(Struct{.name = "inner", .size = 4, .align = 4});
  inner->fields.push_back(
      {.name = "low", .type = "__u32", .size = 4, .bit_offset = 3, .bit_width = 5});
  Struct outer{.name = "outer", .size = 8, .align = 4};
  outer.fields.push_back(
      {.name = "in", .type = "struct inner", .offset = 4, .size = 4, .record = inner});
  auto snapshot = Snapshot::FromHeaders("x", {{"kind", "folder"}},
                                        {Header{.path = "rdma/a.h", .decls = {outer}}});
  ASSERT_TRUE(snapshot) << snapshot.error();
  EXPECT_EQ(snapshot->FindStruct("inner"), inner.get());
  auto field = snapshot->FindField("outer", "in.low");
  ASSERT_TRUE(field);
  EXPECT_EQ(field->bit_offset, 4u * 8 + 3);
  EXPECT_EQ(field->bit_width, 5u);
}

}  // namespace
}  // namespace vabi::facts
