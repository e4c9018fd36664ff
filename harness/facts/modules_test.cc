// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/modules.h"

#include <bpf/btf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "harness/facts/btf_types.h"
#include "harness/facts/elf_section.h"
#include "harness/facts/subprocess.h"
#include "harness/facts/temporary.h"

namespace vabi::facts {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
namespace fs = std::filesystem;

std::string Bytes(const Btf& btf) {
  __u32 size = 0;
  const void* data = btf__raw_data(btf.get(), &size);
  return {static_cast<const char*>(data), size};
}

// A kernel of two types, and a module split from it.
class Modules : public ::testing::Test {
 protected:
  void SetUp() override {
    base_ = Btf(btf__new_empty(), btf__free);
    u32_ = btf__add_int(base_.get(), "unsigned int", 4, 0);
    typedef_ = btf__add_typedef(base_.get(), "__u32", u32_);
    module_ = Btf(btf__new_empty_split(base_.get()), btf__free);
    btf__add_struct(module_.get(), "own_req", 8);
    btf__add_field(module_.get(), "first", typedef_, 0, 0);
    btf__add_field(module_.get(), "second", typedef_, 32, 0);
    btf__add_struct(module_.get(), "private_thing", 4);
    btf__add_field(module_.get(), "x", u32_, 0, 0);
    btf__add_enum(module_.get(), "own_flags", 4);
    btf__add_enum_value(module_.get(), "OWN_FLAG", 0x80000000);
  }
  void Write(const std::string& name, const std::string& bytes) {
    fs::path path = folder_.path / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  // An ELF file with these sections.
  void WriteModule(const std::string& name,
                   const std::vector<std::pair<std::string, std::string>>& sections) {
    Write("empty.c", "");
    fs::path path = folder_.path / name;
    fs::create_directories(path.parent_path());
    ASSERT_EQ(
        RunProcess({"gcc", "-c", (folder_.path / "empty.c").string(), "-o", path.string()})->status,
        0);
    for (const auto& [section, bytes] : sections) {
      Write("section", bytes);
      auto ran = RunProcess({"objcopy", "--add-section",
                             section + "=" + (folder_.path / "section").string(), path.string()});
      ASSERT_EQ(ran->status, 0) << ran->output;
    }
  }
  Result<ModuleTypes> Read(const std::string& base = "") {
    return ReadModules(folder_.path / "k", base, {"own_req", "other"});
  }
  static Snapshot Facts(uint32_t second) {
    Struct record{.name = "own_req", .size = 8, .align = 4, .fields = {}};
    record.fields.push_back({.name = "first", .type = "__u32", .offset = 0, .size = 4});
    record.fields.push_back({.name = "second", .type = "__u32", .offset = second, .size = 4});
    Struct other{.name = "other", .size = 4, .align = 4, .fields = {}};
    Enum flags{.name = "own_flags", .values = {{"OWN_FLAG", 0x80000000}}};
    Header header{.path = "rdma/own.h", .digest = "0", .decls = {record, other, flags}};
    auto snapshot = Snapshot::FromHeaders("own", {}, {header});
    EXPECT_TRUE(snapshot) << snapshot.error();
    return std::move(*snapshot);
  }

  TemporaryFolder folder_;
  Btf base_, module_;
  int u32_ = 0, typedef_ = 0;
};

TEST_F(Modules, AreReadAgainstTheKernelThatTheyWereSplitFrom) {
  WriteModule("k/lib/modules/6.1.0-9/kernel/drivers/infiniband/core/own.ko",
              {{".BTF", Bytes(module_)}});
  WriteModule("k/boot/vmlinux-6.1.0-9", {{".BTF", Bytes(base_)}});
  auto found = Read();
  ASSERT_TRUE(found) << found.error();
  EXPECT_EQ(found->release, "6.1.0-9");
  EXPECT_THAT(found->types.files, ElementsAre("own"));
  LayoutReport report = CompareLayouts(Facts(4), found->types);
  EXPECT_THAT(report.differences, IsEmpty());
  EXPECT_THAT(report.equal, ElementsAre("own_req"));
  EXPECT_THAT(report.absent, ElementsAre("other"));
  // A kernel that was compiled with something else than its headers.
  report = CompareLayouts(Facts(0), found->types);
  ASSERT_EQ(report.differences.size(), 1u);
  EXPECT_TRUE(report.dangerous());
  EXPECT_EQ(report.differences[0].change.subject, "own_req.second");
  EXPECT_EQ(report.differences[0].file, "own");
}

TEST_F(Modules, GiveASnapshotOfTheirOwn) {
  Write("k/vmlinux", Bytes(base_));
  Write("k/own", Bytes(module_));
  auto found = Read();
  ASSERT_TRUE(found) << found.error();
  // Headers that say otherwise: the kernel's own word counts, and what it does not hold stays.
  auto taken = TakeLayouts(Facts(0), found->types, "mine", {{"kind", "btf"}});
  ASSERT_TRUE(taken) << taken.error();
  EXPECT_EQ(taken->FindField("own_req", "second")->offset, 4u);
  EXPECT_EQ(taken->FindStruct("other")->size, 4u);
  EXPECT_EQ(taken->SourceOf("base"), "own");
  EXPECT_EQ(taken->SourceOf("replaced"), "own_req");
  EXPECT_THAT(taken->archs(), ElementsAre(Arch::kX86_64));
  EXPECT_THAT(CompareLayouts(*taken, found->types).differences, IsEmpty());
  // Headers that agree stay whole.
  taken = TakeLayouts(Facts(4), found->types, "mine", {{"kind", "btf"}});
  EXPECT_EQ(taken->SourceOf("replaced"), "");
  EXPECT_THAT(taken->archs(), ElementsAre(Arch::kX86_64, Arch::kI386));
}

TEST_F(Modules, AreReadCompressedAndWithTheirDistilledBase) {
  std::string path = "k/lib/modules/7.3/kernel/drivers/infiniband/core/own.ko";
  WriteModule(path, {{".BTF", Bytes(module_)}, {".BTF.base", Bytes(base_)}});
  ASSERT_EQ(RunProcess({"xz", (folder_.path / path).string()})->status, 0);
  auto found = Read();
  ASSERT_TRUE(found) << found.error();
  EXPECT_THAT(found->types.structs, ::testing::SizeIs(1));
}

TEST_F(Modules, AreReadFromARunningMachine) {
  Write("k/vmlinux", Bytes(base_));
  Write("k/own", Bytes(module_));
  auto found = Read();
  ASSERT_TRUE(found) << found.error();
  EXPECT_THAT(found->types.files, UnorderedElementsAre("own", "vmlinux"));
  EXPECT_EQ(found->types.structs.count("own_req"), 1u);
  EXPECT_EQ(found->types.structs.count("private_thing"), 0u);
}

TEST_F(Modules, OfACompressedKernelImageFindItsBtf) {
  WriteModule("vmlinux", {{".BTF", Bytes(base_)}});
  ASSERT_EQ(RunProcess({"xz", (folder_.path / "vmlinux").string()})->status, 0);
  std::ifstream in(folder_.path / "vmlinux.xz", std::ios::binary);
  std::string payload{std::istreambuf_iterator<char>(in), {}};
  // The fields of a bzImage that the kernel's boot protocol documents.
  std::string image(1024 + 0x100, '\0');
  image[0x1f1] = 1;  // one setup sector beside the boot sector
  image.replace(0x202, 4, "HdrS");
  uint32_t offset = 0x100, length = static_cast<uint32_t>(payload.size());
  std::memcpy(image.data() + 0x248, &offset, 4);
  std::memcpy(image.data() + 0x24c, &length, 4);
  Write("vmlinuz", image + payload + "trailer");
  auto bytes = KernelBtf(folder_.path / "vmlinuz");
  ASSERT_TRUE(bytes) << bytes.error();
  EXPECT_EQ(*bytes, Bytes(base_));
}

TEST_F(Modules, ThatCannotBeUsedAreNamed) {
  EXPECT_THAT(ReadModules("/no/such", "", {}).error(), HasSubstr("no such file or folder"));
  fs::create_directories(folder_.path / "k");
  EXPECT_THAT(Read().error(), HasSubstr("has no kernel modules; expected lib/modules/RELEASE"));
  std::string path = "k/lib/modules/5.10/kernel/drivers/infiniband/core/own.ko";
  WriteModule(path, {});
  EXPECT_THAT(Read().error(), HasSubstr("none of its 1 modules has BTF"));
  WriteModule(path, {{".BTF", Bytes(module_)}});
  EXPECT_THAT(Read().error(),
              HasSubstr("there is no vmlinuz or vmlinux here; name it with --base"));
  WriteModule("plain", {});
  EXPECT_THAT(Read((folder_.path / "plain").string()).error(), HasSubstr("has no BTF"));
  Write("base", Bytes(base_));
  EXPECT_TRUE(Read((folder_.path / "base").string()));
  Write(path, "text");
  EXPECT_THAT(Read().error(), HasSubstr("own: is no kernel module"));
  Write("x.deb", "text");
  EXPECT_THAT(ReadModules(folder_.path / "x.deb", "", {}).error(),
              HasSubstr("is no Debian package"));
}

TEST(ElfSection, SurvivesDamage) {
  EXPECT_EQ(ElfSection("", ".BTF"), std::nullopt);
  std::string image =
      "\x7f"
      "ELF\x02\x01\x01";
  image.resize(64, '\xff');
  EXPECT_EQ(ElfSection(image, ".BTF"), std::nullopt);
}

}  // namespace
}  // namespace vabi::facts
