// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/facts/binary.h"
#include "harness/facts/extract.h"
#include "harness/facts/generate.h"
#include "harness/facts/subprocess.h"
#include "harness/facts/temporary.h"

namespace vabi::facts {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

// Headers, facts of them, and libraries that gcc builds with them.
class Dwarf : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_.path / name).parent_path());
    std::ofstream(folder_.path / name) << text;
  }
  Snapshot Facts(const std::string& text) {
    Write("rdma/own.h", text);
    auto extraction = ExtractFacts(folder_.path, "own", {{"kind", "folder"}});
    EXPECT_TRUE(extraction) << extraction.error();
    return std::move(extraction->snapshot);
  }
  fs::path Library(const std::string& text, const std::string& debug = "-g") {
    Write("lib.c", text);
    fs::path out = folder_.path / "libown.so";
    auto ran = RunProcess({"gcc", "-shared", "-fPIC", debug, "-I" + folder_.path.string(), "-o",
                           out.string(), (folder_.path / "lib.c").string()});
    EXPECT_EQ(ran->status, 0) << ran->output;
    return out;
  }
  LayoutReport Compare(const Snapshot& facts, const std::string& library) {
    auto types = ReadDwarf(Library(library), StructNames(facts));
    EXPECT_TRUE(types) << types.error();
    return CompareLayouts(facts, *types);
  }
  static std::vector<std::string> Told(const LayoutReport& report) {
    std::vector<std::string> told;
    for (const LayoutDifference& one : report.differences) {
      told.push_back(std::string(one.change.dangerous ? "! " : "") +
                     std::string(ClassName(one.change.change_class)) + " " + one.change.subject +
                     ": " + one.change.before + " → " + one.change.after);
    }
    return told;
  }

  TemporaryFolder folder_;
};

constexpr char kHeader[] = R"(
#include <linux/types.h>
struct inner { __u32 a; __u16 b; };
struct own_req {
  __u32 first;
  struct inner in;
  union { __u64 wide; struct { __u32 low, high; } halves; } u;
  struct { __u8 x, y; };
  __u32 bits : 3, more : 5;
  __u32 table[2][3];
  __u64 rest[];
};
struct unused { int a; };
)";

TEST_F(Dwarf, AgreesWithTheHeadersThatALibraryWasBuiltWith) {
  LayoutReport report = Compare(Facts(kHeader), "#include <rdma/own.h>\nstruct own_req r;\n");
  EXPECT_THAT(Told(report), IsEmpty());
  EXPECT_THAT(report.equal, ElementsAre("inner", "own_req"));
  // gcc leaves out what no code refers to.
  EXPECT_THAT(report.absent, ElementsAre("unused"));
}

TEST_F(Dwarf, TellsMembersThatStandElsewhere) {
  Snapshot facts = Facts(kHeader);
  LayoutReport report = Compare(facts, R"(
#include <stdint.h>
struct inner { uint32_t a; uint16_t b; };
struct own_req {
  struct inner in;
  uint32_t first;
  union { uint64_t wide; struct { uint32_t high, low; } halves; } u;
  struct { uint8_t x, y; };
  uint32_t bits : 3, more : 5;
  uint32_t table[2][3];
  uint64_t rest[];
} r;
)");
  EXPECT_TRUE(report.dangerous());
  EXPECT_THAT(Told(report),
              ElementsAre("! moved own_req.in: struct inner in @4 → struct inner in @0",
                          "! moved own_req.first: __u32 first @0 → uint32_t first @8",
                          "! moved own_req.u.halves.high: __u32 u.halves.high @20 → uint32_t "
                          "u.halves.high @16",
                          "! moved own_req.u.halves.low: __u32 u.halves.low @16 → uint32_t "
                          "u.halves.low @20"));
  EXPECT_THAT(report.equal, ElementsAre("inner"));
}

TEST_F(Dwarf, TakesGrowthAtTheEndForWhatItIsOnBothSides) {
  Snapshot facts = Facts("#include <linux/types.h>\nstruct a_resp { __u32 a, b; };\n");
  LayoutReport shorter = Compare(facts, "struct a_resp { unsigned a; } r;\n");
  EXPECT_FALSE(shorter.dangerous());
  EXPECT_THAT(Told(shorter), ElementsAre("appended struct a_resp: 8 bytes: __u32 b @4 → 4 bytes"));
  LayoutReport longer = Compare(facts, "struct a_resp { unsigned a, b, c; } r;\n");
  EXPECT_FALSE(longer.dangerous());
  EXPECT_THAT(Told(longer),
              ElementsAre("appended struct a_resp: 8 bytes → 12 bytes: unsigned int c @8"));
}

TEST_F(Dwarf, TakesWhatWasCarvedFromReservedForThatOnBothSides) {
  const std::string
      old = "struct a_resp { unsigned a; unsigned char reserved[4]; }",
      now = "struct a_resp { unsigned a; unsigned short flags; unsigned char rsvd[2]; }";
  EXPECT_THAT(Told(Compare(Facts(old + ";\n"), now + " r;\n")),
              ElementsAre("carved_reserved a_resp.flags: unsigned char[4] reserved @4 → short "
                          "unsigned int flags @4"));
  EXPECT_THAT(Told(Compare(Facts(now + ";\n"), old + " r;\n")),
              ElementsAre("carved_reserved a_resp.flags: unsigned short flags @4 → unsigned "
                          "char[4] reserved @4"));
}

TEST_F(Dwarf, ComparesBitfieldsBitByBit) {
  Snapshot facts = Facts("#include <linux/types.h>\nstruct b { __u32 one:3, two:5; };\n");
  LayoutReport report = Compare(facts, "struct b { unsigned one:4, two:5; } r;\n");
  EXPECT_THAT(Told(report), Contains(HasSubstr("! resized b.one")));
  EXPECT_THAT(Told(report), Contains(HasSubstr("! moved b.two")));
}

TEST_F(Dwarf, NamesWhatCannotBeRead) {
  Snapshot facts = Facts(kHeader);
  auto silent = ReadDwarf(Library("int x;", "-g0"), StructNames(facts));
  ASSERT_TRUE(silent) << silent.error();
  EXPECT_THAT(silent->silent, ElementsAre("libown.so"));
  Write("text", "no library");
  EXPECT_THAT(ReadDwarf(folder_.path / "text", {}).error(),
              HasSubstr("is no ELF file; expected a library built with -g"));
  EXPECT_THAT(ReadDwarf("/no/such/library.so", {}).error(), HasSubstr("cannot be read"));
}

// Every struct of a real kernel, by a compiler that has not seen the facts.
TEST_F(Dwarf, AgreesForAllStructsOfARealKernel) {
  auto facts = Snapshot::Load("reference-headers", "debian-6.12.117");
  ASSERT_TRUE(facts) << facts.error();
  ASSERT_TRUE(GenerateHeaders(*facts, folder_.path.string()));
  std::string code;
  for (const Header& header : facts->headers()) code += "#include <" + header.path + ">\n";
  facts->ForEachStruct([&](const Header&, const Struct& record) {
    if (record.name.empty()) return;
    code += (record.is_union ? "union " : "struct ") + record.name + " *use_" + record.name + ";\n";
  });
  LayoutReport report = Compare(*facts, code);
  EXPECT_THAT(Told(report), IsEmpty());
  EXPECT_THAT(report.absent, IsEmpty());
  EXPECT_GT(report.equal.size(), 300u);
}

}  // namespace
}  // namespace vabi::facts
