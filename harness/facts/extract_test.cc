// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/extract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "harness/facts/assertions.h"
#include "harness/facts/c_text.h"
#include "harness/facts/gcc_check.h"
#include "harness/facts/header_tree.h"
#include "harness/facts/json.h"
#include "harness/facts/sha256.h"
#include "harness/facts/subprocess.h"

namespace vabi::facts {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
namespace fs = std::filesystem;

// A folder with headers that are written by the test.
class OwnHeaders : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "vabi-extract-XXXXXX").string();
    ASSERT_TRUE(mkdtemp(name.data()));
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((dir_ / path).parent_path());
    std::ofstream(dir_ / path) << text;
  }
  Extraction Extract(const std::string& text) {
    Write("rdma/own.h", text);
    auto result = ExtractFacts(dir_, "own", {{"kind", "folder"}});
    if (!result) ADD_FAILURE() << result.error();
    return *result;
  }
  // gcc's word on what was extracted.
  void ExpectGccAgrees(const Snapshot& snapshot) {
    for (const Header& header : snapshot.headers()) {
      for (Arch arch : {Arch::kX86_64, Arch::kI386}) {
        EXPECT_THAT(GccErrors(WriteAssertions(header, arch), arch, dir_.string()), IsEmpty());
      }
    }
  }

  fs::path dir_;
};

TEST_F(OwnHeaders, GiveLayoutForBothArchitectures) {
  Extraction extraction = Extract(R"(
#include <linux/types.h>
struct mixed {
	__u32 first;
	__u64 plain;                /* at 4 on i386 */
	__aligned_u64 wide;
	void *pointer;
	unsigned long masks[64 / sizeof(long)];
	struct { __u8 a; __u64 b; } in_place;
	union { __u32 low; __be16 halves[2]; };
};
)");
  EXPECT_THAT(extraction.problems, IsEmpty());
  const Snapshot& snapshot = extraction.snapshot;
  EXPECT_EQ(snapshot.FindField("mixed", "plain")->offset, 8u);
  EXPECT_EQ(snapshot.FindField("mixed", "plain", Arch::kI386)->offset, 4u);
  EXPECT_EQ(snapshot.FindField("mixed", "wide")->type, "__aligned_u64");
  EXPECT_EQ(snapshot.FindField("mixed", "pointer", Arch::kI386)->size, 4u);
  EXPECT_THAT(snapshot.FindField("mixed", "masks")->dims, ElementsAre(8u));
  EXPECT_THAT(snapshot.FindField("mixed", "masks", Arch::kI386)->dims, ElementsAre(16u));
  EXPECT_EQ(snapshot.FindField("mixed", "in_place.b", Arch::kI386)->offset -
                snapshot.FindField("mixed", "in_place", Arch::kI386)->offset,
            4u);
  EXPECT_EQ(snapshot.FindField("mixed", "halves")->offset,
            snapshot.FindField("mixed", "low")->offset);
  ExpectGccAgrees(snapshot);
}

TEST_F(OwnHeaders, GiveBitfieldsByBits) {
  Extraction extraction = Extract(
      "#include <linux/types.h>\nstruct bits { __u8 head; __u32 a:3, b:7; __u32 :4, c:1; };\n");
  auto b = extraction.snapshot.FindField("bits", "b");
  ASSERT_TRUE(b);
  // System V ABI, x86-64 and i386: a bitfield takes the next free bits of its type's storage unit.
  EXPECT_EQ(b->bit_offset, 8u + 3);
  EXPECT_EQ(b->bit_width, 7u);
  EXPECT_EQ(extraction.snapshot.FindField("bits", "c")->bit_offset, 8u + 3 + 7 + 4);
  ExpectGccAgrees(extraction.snapshot);
}

TEST_F(OwnHeaders, KeepPackedAlignedFlexibleAndShared) {
  Extraction extraction = Extract(R"(
#include <linux/types.h>
#define LENGTH 3
struct tight { __u8 a; __u32 b; } __attribute__((packed));
struct half { __u8 a; __u64 b; } __attribute__((packed, aligned(4)));
struct open { __u32 n; __u16 table[LENGTH][2]; __u32 rest[]; };
struct twins { union { __u32 a; __u8 b[4]; } one, two; };
)");
  const Snapshot& snapshot = extraction.snapshot;
  EXPECT_TRUE(snapshot.FindStruct("tight")->packed);
  EXPECT_EQ(snapshot.FindStruct("tight")->aligned, 0u);
  EXPECT_EQ(snapshot.FindStruct("half")->aligned, 4u);
  EXPECT_EQ(snapshot.FindField("open", "table")->field->dims_text, "LENGTH ] [ 2");
  EXPECT_THAT(snapshot.FindField("open", "table")->dims, ElementsAre(3u, 2u));
  EXPECT_EQ(snapshot.FindField("open", "table[1][1]")->offset, 4u + 4 + 2);
  EXPECT_TRUE(snapshot.FindField("open", "rest")->flexible);
  EXPECT_EQ(snapshot.FindField("twins", "two")->field->same_type_as, "one");
  EXPECT_EQ(snapshot.FindField("twins", "two.b")->offset, 4u);
  ExpectGccAgrees(snapshot);
}

TEST_F(OwnHeaders, EvaluateMacrosAndEnums) {
  Extraction extraction = Extract(R"(
#include <linux/types.h>
#include <linux/ioctl.h>
enum { FIRST, TENTH = 10, HIGH = 0x80000000u };
enum named { NEGATIVE = -2 };
#define FLAG (1UL << 3)
#define TOP (1ULL << 63)
#define TEXT "no number"
#define CALL(a, b) ((a) + (b))
#define NUMBER _IOWR(0x1b, CALL(1, 2), unsigned long)
#define NEEDS_MORE NLA_F_NESTED
#define NEVER some_function()
)");
  const Snapshot& snapshot = extraction.snapshot;
  EXPECT_EQ(snapshot.Constant("HIGH"), 0x80000000);
  EXPECT_EQ(snapshot.Constant("NEGATIVE"), -2);
  EXPECT_EQ(snapshot.Constant("FLAG"), 8);
  EXPECT_TRUE(snapshot.FindMacro("TOP")->is_unsigned);
  EXPECT_EQ(snapshot.Constant("TEXT"), std::nullopt);
  EXPECT_EQ(snapshot.FindMacro("CALL")->params, "( a , b )");
  EXPECT_EQ(snapshot.FindMacro("CALL")->body, "( ( a ) + ( b ) )");
  EXPECT_EQ(snapshot.Constant("NUMBER"), 0xc0081b03);
  EXPECT_EQ(snapshot.Constant("NUMBER", Arch::kI386), 0xc0041b03);
  EXPECT_EQ(snapshot.Constant("NEEDS_MORE"), 0x8000);
  EXPECT_TRUE(snapshot.FindMacro("NEEDS_MORE")->needs_prelude);
  EXPECT_EQ(snapshot.Constant("NEVER"), std::nullopt);
  ExpectGccAgrees(snapshot);
}

TEST_F(OwnHeaders, ThatDoNotParseAreNamedAndTheOthersStay) {
  Write("rdma/good.h", "struct good { int a; };\n");
  Extraction extraction = Extract("\n\nstruct own { unknown_type a; };\n");
  ASSERT_THAT(extraction.problems, SizeIs(1));
  EXPECT_EQ(extraction.problems[0].header, "rdma/own.h");
  EXPECT_EQ(extraction.problems[0].line, 3u);
  EXPECT_EQ(extraction.problems[0].message, "unknown type name 'unknown_type'");
  EXPECT_NE(extraction.snapshot.FindStruct("good"), nullptr);
  EXPECT_EQ(extraction.snapshot.FindStruct("own"), nullptr);
  EXPECT_EQ(extraction.snapshot.SourceOf("broken"), "rdma/own.h");
}

TEST_F(OwnHeaders, ThatAllFailAreAnError) {
  Write("rdma/own.h", "#include <linux/nowhere.h>\n");
  auto result = ExtractFacts(dir_, "own", {{"kind", "folder"}});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error(),
              HasSubstr("none of its 1 headers can be parsed; the first: rdma/own.h:1: "
                        "'linux/nowhere.h' file not found"));
}

TEST_F(OwnHeaders, GiveTheSameModelAfterWritingAndReading) {
  Extraction extraction = Extract("struct own { struct inner { long a : 3; } in; void *p[2]; };\n");
  const Header& header = extraction.snapshot.headers()[0];
  std::string text = WriteHeader(header);
  EXPECT_EQ(ShortDigest(text), header.digest);
  auto again = ParseHeader(text, "own.json");
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(WriteHeader(*again), text);
  EXPECT_EQ(std::get<Struct>(again->decls[0]).fields[0].record->name, "inner");
}

// Every header that is installed here, whatever its version, judged by another compiler.
TEST(InstalledHeaders, AreExtractedAsGccSeesThem) {
  auto tree = OpenHeaders("/usr/include");
  ASSERT_TRUE(tree) << tree.error();
  auto extraction = ExtractFacts(tree->include_dir, "installed", tree->source);
  ASSERT_TRUE(extraction) << extraction.error();
  EXPECT_THAT(extraction->problems, IsEmpty());
  EXPECT_GT(extraction->snapshot.headers().size(), 25u);
  for (const Header& header : extraction->snapshot.headers()) {
    for (Arch arch : {Arch::kX86_64, Arch::kI386}) {
      EXPECT_THAT(GccErrors(WriteAssertions(header, arch), arch, ""), IsEmpty()) << header.path;
    }
  }
}

TEST(InstalledHeaders, OfLibrdmacmAreNoKernelHeaders) {
  auto extraction = ExtractFacts("/usr/include", "installed", {{"kind", "folder"}});
  ASSERT_TRUE(extraction) << extraction.error();
  EXPECT_EQ(extraction->snapshot.FindHeader("rdma/rdma_cma.h"), nullptr);
  EXPECT_NE(extraction->snapshot.FindHeader("rdma/rdma_user_cm.h"), nullptr);
}

TEST_F(OwnHeaders, AreFoundInEachKindOfTree) {
  const std::string text = "struct own { int a; };\n";
  Write("kernel/include/uapi/rdma/own.h", text);
  Write("kernel/Makefile", "# SPDX\nVERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 192\n");
  Write("library/kernel-headers/rdma/own.h", text);
  Write("library/CMakeLists.txt", "project(x)\nset(PACKAGE_VERSION \"44.0\")\n");
  Write("root/usr/include/rdma/own.h", text);

  auto kernel = OpenHeaders((dir_ / "kernel").string());
  ASSERT_TRUE(kernel) << kernel.error();
  EXPECT_EQ(kernel->name, "linux-6.1.192");
  auto library = OpenHeaders((dir_ / "library/").string());
  ASSERT_TRUE(library) << library.error();
  EXPECT_EQ(library->name, "rdma-core-v44");
  EXPECT_EQ(library->source[0].second, "rdma-core");
  auto root = OpenHeaders((dir_ / "root").string());
  ASSERT_TRUE(root) << root.error();
  EXPECT_EQ(root->name, "root");
  for (const auto& tree : {kernel, library, root}) {
    auto extraction = ExtractFacts(tree->include_dir, tree->name, tree->source);
    ASSERT_TRUE(extraction) << extraction.error();
    EXPECT_EQ(extraction->snapshot.FindStruct("own")->size, 4u);
  }
}

TEST_F(OwnHeaders, AreTakenFromADebianPackage) {
  Write("p/usr/include/rdma/own.h", "struct own { int a; };\n");
  Write("p/DEBIAN/control",
        "Package: linux-libc-dev\nVersion: 9.8.7-6\nArchitecture: all\nMaintainer: "
        "nobody\nDescription: test\n");
  std::string deb = (dir_ / "p.deb").string();
  ASSERT_EQ(
      RunProcess({"dpkg-deb", "--root-owner-group", "-b", (dir_ / "p").string(), deb})->status, 0);
  fs::path unpacked;
  {
    auto tree = OpenHeaders(deb);
    ASSERT_TRUE(tree) << tree.error();
    EXPECT_EQ(tree->name, "debian-9.8.7");
    EXPECT_THAT(tree->source,
                ElementsAre(std::pair("kind", "debian"), std::pair("package", "linux-libc-dev"),
                            std::pair("version", "9.8.7-6")));
    unpacked = tree->include_dir;
    EXPECT_TRUE(fs::exists(unpacked / "rdma/own.h"));
  }
  EXPECT_FALSE(fs::exists(unpacked));
}

// As distributions' kernel-devel packages are made: a whole tree below usr/src/kernels.
TEST_F(OwnHeaders, AreTakenFromAnRpmPackage) {
  const std::string place = "usr/src/kernels/5.10.0-216.x86_64";
  Write("p/" + place + "/include/uapi/rdma/own.h", "struct own { int a, b, c; };\n");
  Write("kernel.spec",
        "Name: kernel-devel\nVersion: 5.10.0\nRelease: 216\nSummary: t\nLicense: t\n"
        "BuildArch: noarch\n%description\nt\n%install\nmkdir -p %{buildroot}\ncp -r " +
            (dir_ / "p").string() + "/* %{buildroot}\n%files\n/" + place + "\n");
  auto built = RunProcess({"rpmbuild", "-bb", "--quiet", "--define", "_topdir " + dir_.string(),
                           (dir_ / "kernel.spec").string()});
  ASSERT_TRUE(built) << built.error();
  ASSERT_EQ(built->status, 0) << built->output;
  std::string rpm = (dir_ / "RPMS/noarch/kernel-devel-5.10.0-216.noarch.rpm").string();
  auto tree = OpenHeaders(rpm);
  ASSERT_TRUE(tree) << tree.error();
  EXPECT_EQ(tree->name, "kernel-devel-5.10.0-216.noarch");
  EXPECT_EQ(tree->source[0].second, "rpm");
  auto extraction = ExtractFacts(tree->include_dir, tree->name, tree->source);
  ASSERT_TRUE(extraction) << extraction.error();
  EXPECT_EQ(extraction->snapshot.FindStruct("own")->size, 12u);

  Write("x.rpm", "x");
  EXPECT_THAT(OpenHeaders((dir_ / "x.rpm").string()).error(), HasSubstr("cannot be unpacked"));
}

TEST_F(OwnHeaders, AreTakenFromAGitRevision) {
  Write("r/include/uapi/rdma/own.h", "struct own { int a; };\n");
  std::string repo = (dir_ / "r").string();
  auto git = [&](std::vector<std::string> rest) {
    rest.insert(rest.begin(),
                {"git", "-C", repo, "-c", "user.name=t", "-c", "user.email=t@example.org"});
    return RunProcess(rest)->status;
  };
  ASSERT_EQ(git({"init", "-q"}), 0);
  ASSERT_EQ(git({"add", "."}), 0);
  ASSERT_EQ(git({"commit", "-q", "-m", "one"}), 0);
  ASSERT_EQ(git({"tag", "v6.99"}), 0);
  Write("r/include/uapi/rdma/own.h", "struct own { int a, b; };\n");
  auto tree = OpenHeaders("git:" + repo + "@v6.99");
  ASSERT_TRUE(tree) << tree.error();
  EXPECT_EQ(tree->name, "linux-v6.99");
  auto extraction = ExtractFacts(tree->include_dir, tree->name, tree->source);
  ASSERT_TRUE(extraction) << extraction.error();
  EXPECT_EQ(extraction->snapshot.FindStruct("own")->size, 4u);
  EXPECT_THAT(std::string(extraction->snapshot.SourceOf("commit")), SizeIs(12));

  EXPECT_THAT(OpenHeaders("git:" + repo + "@v7").error(), HasSubstr("no commit 'v7' in " + repo));
  EXPECT_THAT(OpenHeaders("git:" + repo).error(), HasSubstr("expected git:PATH@REVISION"));
}

TEST_F(OwnHeaders, ThatAreNotThereAreNamed) {
  EXPECT_EQ(OpenHeaders("/no/such/place").error(),
            "/no/such/place: there is no such file or folder");
  EXPECT_THAT(OpenHeaders(dir_.string()).error(),
              HasSubstr("has no RDMA kernel headers; looked for rdma/*.h in"));
  Write("x.txt", "x");
  EXPECT_THAT(OpenHeaders((dir_ / "x.txt").string()).error(),
              HasSubstr("expected a folder, a .deb, a .rpm or git:"));
  Write("x.deb", "x");
  EXPECT_THAT(OpenHeaders((dir_ / "x.deb").string()).error(), HasSubstr("is no Debian package"));
  Write("p/DEBIAN/control",
        "Package: other\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: test\n");
  std::string deb = (dir_ / "p.deb").string();
  ASSERT_EQ(
      RunProcess({"dpkg-deb", "--root-owner-group", "-b", (dir_ / "p").string(), deb})->status, 0);
  EXPECT_EQ(
      OpenHeaders(deb).error(),
      deb +
          ": package other has no rdma headers; expected usr/include/rdma, as linux-libc-dev has");
}

TEST(CText, SplitsIntoTokensWithoutComments) {
  EXPECT_THAT(CTokens("a<<1 /* no */ \"x y\" \\\n //end\n b->c"),
              ElementsAre("a", "<<", "1", "\"x y\"", "b", "->", "c"));
  EXPECT_EQ(JoinTokens("( 1UL<<0 )"), "( 1UL << 0 )");
}

TEST(CText, ReadsMacroCallsAndDimensions) {
  MacroCall call = ReadMacroCall("RDMA_UAPI_PTR(struct a *, name);");
  EXPECT_EQ(call.name, "RDMA_UAPI_PTR");
  EXPECT_THAT(call.arguments, ElementsAre("struct a *", "name"));
  EXPECT_EQ(ReadMacroCall("__u32 a;").name, "");
  EXPECT_EQ(SymbolicDims("[N];"), "N");
  EXPECT_EQ(SymbolicDims("[N + 1][2];"), "N + 1 ] [ 2");
  EXPECT_EQ(SymbolicDims("[16];"), "");
  EXPECT_EQ(SymbolicDims("[0x10];"), "");
  EXPECT_EQ(SymbolicDims("[];"), "");
  EXPECT_EQ(SymbolicDims("; int b[N];"), "");
}

}  // namespace
}  // namespace vabi::facts
