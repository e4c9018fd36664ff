// SPDX-License-Identifier: BSD-2-Clause
#include "harness/probe/probe_list.h"

#include <gtest/gtest.h>

namespace vabi::probe {
namespace {

List Good(std::string_view text) {
  std::string error;
  List list = Parse(text, &error);
  EXPECT_EQ(error, "");
  return list;
}

std::string Problem(std::string_view text) {
  std::string error;
  EXPECT_TRUE(Parse(text, &error).cases.empty());
  return error;
}

TEST(ProbeList, ReadsCasesWithTheirStatementsInOrder) {
  List list = Good(
      "# a remark\ncase one\nmem q 0102,0*4,&r+8,$pd:4 edge\ncall a write $A &q+2 -1\ncase two\n");
  ASSERT_EQ(list.cases.size(), 2u);
  EXPECT_EQ(list.cases[1].name, "two");
  ASSERT_EQ(list.cases[0].statements.size(), 2u);
  const Statement& memory = list.cases[0].statements[0];
  EXPECT_EQ(memory.place, Place::kEdge);
  ASSERT_EQ(memory.blob.size(), 4u);
  EXPECT_EQ(memory.blob[0].text, "\x01\x02");
  EXPECT_EQ(memory.blob[1].text, std::string(4, '\0'));
  EXPECT_EQ(memory.blob[2].text, "r");
  EXPECT_EQ(memory.blob[2].number, 8u);
  EXPECT_EQ(memory.blob[3].kind, Part::Kind::kSymbol);
  const Statement& call = list.cases[0].statements[1];
  ASSERT_EQ(call.arguments.size(), 3u);
  EXPECT_EQ(call.arguments[1].number, 2u);
  EXPECT_EQ(call.arguments[2].number, ~uint64_t{0});
}

TEST(ProbeList, ReadsCapturesAndMasks) {
  const List list = Good("case a\ncall x write 1 &q 2 cap=pd:r:4:4 cap=fd:ret mask=key:r:0:8\n");
  const Statement& call = list.cases[0].statements[0];
  ASSERT_EQ(call.captures.size(), 2u);
  EXPECT_EQ(call.captures[0].offset, 4u);
  EXPECT_EQ(call.captures[1].object, "");
  ASSERT_EQ(call.masks.size(), 1u);
  EXPECT_EQ(call.masks[0].rule, "key");
  EXPECT_EQ(call.masks[0].length, 8u);
}

TEST(ProbeList, SaysWhichLineIsWrongAndWhy) {
  EXPECT_EQ(Problem("mem q 00\n"), "line 1: a statement before the first case");
  EXPECT_EQ(Problem("case a\nmem q 0\n"), "line 2: half a byte");
  EXPECT_EQ(Problem("case a\nmem q 0g\n"), "line 2: not a byte: '0g'");
  EXPECT_EQ(Problem("case a\nmem q 00 nowhere\n"), "line 2: unknown place: 'nowhere'");
  EXPECT_EQ(Problem("case a\ncall x write 1x\n"), "line 2: not a number: '1x'");
  EXPECT_EQ(Problem("case a\ncall x write cap=a:b\n"), "line 2: unknown option: 'cap'");
  EXPECT_EQ(Problem("case a\nmem q $pd:9\n"), "line 2: a symbol wider than 8 bytes");
}

TEST(ProbeList, IsCutIntoItsCases) {
  const auto blocks = SplitCases("# made by hand\ncase a\ncall 1 close 1\ncase b\ncase c\nx");
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[0].name, "a");
  EXPECT_EQ(blocks[0].text, "case a\ncall 1 close 1\n");
  EXPECT_EQ(blocks[0].line, 2u);
  EXPECT_EQ(blocks[1].text, "case b\n");
  EXPECT_EQ(blocks[2].text, "case c\nx");
  EXPECT_EQ(blocks[2].line, 5u);
  EXPECT_TRUE(SplitCases("no case at all\n").empty());
}

}  // namespace
}  // namespace vabi::probe
