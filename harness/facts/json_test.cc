// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/facts/sha256.h"

namespace vabi::facts {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
namespace fs = std::filesystem;

constexpr char kHead[] = R"({"format":1,"header":"rdma/x.h","includes":[],"decls":[)";

std::string ErrorOf(const std::string& decls) {
  auto header = ParseHeader(kHead + decls + "]}", "x.json");
  return header ? "no error" : header.error();
}

TEST(ParseHeader, SaysWhereTextIsCutOff) {
  auto header = ParseHeader("{\"format\":1,\n\"header\":\"rdma/x.h\",\n\"incl", "x.json");
  ASSERT_FALSE(header);
  EXPECT_THAT(
      header.error(),
      StartsWith("x.json:3:6: expected JSON, found the end of the file: it seems to be cut off"));
  EXPECT_THAT(ParseHeader("", "x.json").error(),
              StartsWith("x.json:1:1: expected JSON, found the end of the file"));
}

TEST(ParseHeader, SaysWhereTheSyntaxIsWrong) {
  auto header = ParseHeader("{\"format\":1,\n oops}", "x.json");
  EXPECT_THAT(header.error(), StartsWith("x.json:2:2: expected JSON, found a syntax error"));
}

TEST(ParseHeader, PointsAtAValueOfTheWrongKind) {
  EXPECT_EQ(ErrorOf(R"({"macro":"A","value":"1"})"),
            "x.json: at /decls/0/value: expected an integer, found \"1\"");
  EXPECT_EQ(ErrorOf(R"({"macro":"A"},{"enum":"e","values":[["A"]]})"),
            "x.json: at /decls/1/values/0: expected at least 2 elements, found [\"A\"]");
  EXPECT_EQ(ErrorOf(R"({"struct":"s","size":-4,"align":4,"fields":[]})"),
            "x.json: at /decls/0/size: expected a number from 0 to 2^32-1, found -4");
  EXPECT_EQ(
      ErrorOf(
          R"({"struct":"s","size":4,"align":4,"fields":[{"n":"a","t":"__u32","o":4294967296,"s":4}]})"),
      "x.json: at /decls/0/fields/0/o: expected a number from 0 to 2^32-1, found 4294967296");
  EXPECT_EQ(ErrorOf(R"({"struct":"s","size":4,"align":4,"fields":{}})"),
            "x.json: at /decls/0/fields: expected an array, found {}");
  EXPECT_EQ(ErrorOf("7"), "x.json: at /decls/0: expected an object, found 7");
}

TEST(ParseHeader, PointsAtMissingAndUnknownMembers) {
  EXPECT_EQ(ErrorOf(R"({"struct":"s","size":4,"fields":[]})"),
            "x.json: at /decls/0: expected a member \"align\", found "
            "{\"struct\":\"s\",\"size\":4,\"fields\":[]}");
  EXPECT_THAT(ErrorOf(R"({"macro":"A","valeu":1})"), HasSubstr("but not \"valeu\""));
  EXPECT_THAT(ErrorOf(R"({"function":"f"})"),
              HasSubstr("expected a declaration with one of the members struct, union,"));
  EXPECT_THAT(ErrorOf(R"({"struct":"s","size":4,"align":4,"fields":[{"t":"__u32","o":0,"s":4}]})"),
              HasSubstr("/decls/0/fields/0: expected a name"));
}

TEST(ParseHeader, RefusesANewerFormat) {
  auto header = ParseHeader(R"({"format":2,"header":"rdma/x.h"})", "x.json");
  EXPECT_EQ(header.error(),
            "x.json: at /format: expected facts format 1 (this file is of a newer verbs-abi: "
            "update this one), found 2");
}

TEST(WriteHeader, GivesBackWhatEachStoredFileSays) {
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator("reference-headers/headers")) {
    if (!entry.is_regular_file()) continue;
    ++files;
    std::ifstream in(entry.path());
    std::ostringstream text;
    text << in.rdbuf();
    auto header = ParseHeader(text.str(), entry.path().string());
    ASSERT_TRUE(header) << header.error();
    EXPECT_EQ(WriteHeader(*header), text.str());
  }
  EXPECT_GT(files, 200u);
}

TEST(WriteHeader, KeepsBitfieldsAnd32BitLayoutAndLargeConstants) {
  std::string text =
      std::string(kHead) +
      "\n{\"macro\":\"TOP\",\"body\":\"( 1ULL << 63 )\",\"value\":9223372036854775808},\n"
      "{\"macro\":\"LONG\",\"body\":\"sizeof ( long )\",\"value\":8,\"i386\":4},\n"
      "{\"union\":\"u\",\"size\":16,\"align\":8,\"packed\":1,\"aligned\":8,\"i386\":{\"size\":12,"
      "\"align\":4},"
      "\"fields\":[{\"n\":\"low\",\"t\":\"__u32\",\"o\":0,\"s\":4,\"b\":[3,5]},"
      "{\"n\":\"p\",\"t\":\"void *\",\"o\":8,\"s\":8,\"i386\":[8,4]},"
      "{\"t\":\"struct\",\"o\":0,\"s\":8,\"f\":[{\"n\":\"q\",\"t\":\"__u64\",\"o\":0,\"s\":8}]}]}"
      "\n]}\n";
  auto header = ParseHeader(text, "x.json");
  ASSERT_TRUE(header) << header.error();
  EXPECT_EQ(WriteHeader(*header), text);
  EXPECT_TRUE(std::get<Macro>(header->decls[0]).is_unsigned);
  EXPECT_EQ(std::get<Struct>(header->decls[2]).i386->fields[1].size, 4u);
}

class BrokenFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "vabi-facts-XXXXXX").string();
    ASSERT_TRUE(mkdtemp(name.data()));
    dir_ = name;
    auto header = ParseHeader(std::string(kHead) + "{\"macro\":\"A\",\"value\":1}]}", "x.json");
    ASSERT_TRUE(header) << header.error();
    header->digest = ShortDigest(WriteHeader(*header));
    auto snapshot = Snapshot::FromHeaders("small", {{"kind", "folder"}}, {*header});
    ASSERT_TRUE(snapshot) << snapshot.error();
    auto saved = SaveSnapshot(*snapshot, dir_);
    ASSERT_TRUE(saved) << saved.error();
    header_file_ = HeaderFile(dir_, "rdma/x.h", header->digest);
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::string LoadError() {
    auto snapshot = Snapshot::Load(dir_, "small");
    return snapshot ? "no error" : snapshot.error();
  }
  static void Write(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }

  fs::path dir_, header_file_;
};

TEST_F(BrokenFolder, LoadsWhileItIsWhole) {
  auto snapshot = Snapshot::Load(dir_, "small");
  ASSERT_TRUE(snapshot) << snapshot.error();
  EXPECT_EQ(snapshot->Constant("A"), 1);
}

TEST_F(BrokenFolder, NamesTheSnapshotThatIsNotThere) {
  auto snapshot = Snapshot::Load(dir_, "large");
  EXPECT_EQ(snapshot.error(),
            (dir_ / "large.json").string() +
                ": cannot be read; expected the file of snapshot 'large' (this folder has 1, from "
                "small to small)");
}

TEST_F(BrokenFolder, NamesTheHeaderFileThatIsMissing) {
  fs::remove(header_file_);
  EXPECT_EQ(LoadError(), (dir_ / "small.json").string() +
                             ": at /headers/rdma/x.h: expected the facts of this header in " +
                             header_file_.string() + ", which cannot be read");
}

TEST_F(BrokenFolder, NamesTheHeaderFileThatIsCutOff) {
  Write(header_file_, "{\"format\":1,");
  EXPECT_THAT(LoadError(), StartsWith(header_file_.string() +
                                      ":1:13: expected JSON, found the end of the file"));
}

TEST_F(BrokenFolder, NoticesAChangedHeaderFile) {
  Write(header_file_, std::string(kHead) + "{\"macro\":\"A\",\"value\":2}]}");
  EXPECT_THAT(LoadError(), HasSubstr("the file was changed; extract the facts again"));
}

TEST_F(BrokenFolder, NoticesAFileOfAnotherHeader) {
  Write(header_file_, R"({"format":1,"header":"rdma/y.h","includes":[],"decls":[]})");
  EXPECT_EQ(LoadError(),
            header_file_.string() + ": at /header: expected \"rdma/x.h\", found \"rdma/y.h\"");
}

TEST_F(BrokenFolder, PointsIntoTheSnapshotFile) {
  std::string file = (dir_ / "small.json").string();
  Write(file, R"({"format":1,"name":"other"})");
  EXPECT_EQ(LoadError(),
            file + ": at /name: expected the name of the file, \"small\", found \"other\"");
  Write(file,
        R"({"format":1,"name":"small","stack":"rdma-core","page_size":4096,"arch":["sparc"]})");
  EXPECT_EQ(LoadError(), file + ": at /arch/0: expected one of x86_64, i386, found \"sparc\"");
  Write(
      file,
      R"({"format":1,"name":"small","stack":"rdma-core","page_size":4096,"arch":[],"source":{"kind":"git"},"headers":[]})");
  EXPECT_EQ(LoadError(),
            file + ": at /headers: expected an object of header path: digest, found []");
}

// FIPS 180-4's own examples.
TEST(Sha256, AgreesWithTheStandardsExamples) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256Hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace vabi::facts
