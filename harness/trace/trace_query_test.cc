// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "harness/trace/matchers.h"
#include "harness/trace/trace.h"

namespace vabi::traces {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TraceTest : public ::testing::Test {
 protected:
  TraceTest() : path_("/tmp/vabi-traces-query-" + std::to_string(getpid())), trace_(Reader(path_)) {
    std::remove(path_.c_str());
    Append(R"({"via":"netlink","device":"","name":"GET","result":0})");
    Append(R"({"via":"open","device":"rxe0","name":"open","result":3})");
    Append(
        R"({"via":"ioctl","device":"rxe0","name":"DEVICE.INVOKE_WRITE","result":-25,"errno":"ENOTTY","rule":"ioctl.absent"})");
    Append(R"({"via":"write","device":"rxe0","name":"GET_CONTEXT","result":16})");
    Append(R"({"via":"mmap","device":"rxe0","name":"mmap:queue","result":0,"flags":"0x1000"})");
    Append(R"({"via":"write_ex","device":"rxe0","name":"QUERY_DEVICE","result":32})");
  }
  ~TraceTest() override { std::remove(path_.c_str()); }
  void Append(const std::string& line) { std::ofstream(path_, std::ios::app) << line << '\n'; }

  const std::string path_;
  Trace trace_;
};

TEST_F(TraceTest, EachQuestionHasItsFrontEnds) {
  EXPECT_THAT(trace_.All(), SizeIs(6));
  EXPECT_THAT(trace_.Ioctls(), ElementsAre(Failed("DEVICE.INVOKE_WRITE", ENOTTY)));
  EXPECT_THAT(trace_.Writes(), ElementsAre(Wrote("GET_CONTEXT").Answered(16),
                                           WroteExtended("QUERY_DEVICE").Answered(32)));
  EXPECT_THAT(trace_.Commands(), ElementsAre(Wrote("GET_CONTEXT"), WroteExtended("QUERY_DEVICE")));
  EXPECT_THAT(trace_.Mmaps(), ElementsAre(Mapped("queue")));
  EXPECT_THAT(trace_.Netlink(), SizeIs(1));
  EXPECT_THAT(trace_.Opens(), SizeIs(1));
  EXPECT_THAT(trace_.Refused(), SizeIs(1));
  EXPECT_THAT(trace_.Of("GET_CONTEXT"), SizeIs(1));
  EXPECT_THAT(trace_.Of("REG_MR"), IsEmpty());
}

TEST_F(TraceTest, WhatNoQuestionAnsweredIsLeft) {
  EXPECT_THAT(trace_.Unchecked(), SizeIs(3));
  trace_.Ioctls();
  EXPECT_THAT(trace_.Unchecked(), ElementsAre(Wrote("GET_CONTEXT"), WroteExtended("QUERY_DEVICE")));
  trace_.Writes();
  EXPECT_THAT(trace_.Unchecked(), IsEmpty());
  Append(R"({"via":"write","device":"rxe0","name":"ALLOC_PD","result":16})");
  EXPECT_THAT(trace_.Unchecked(), ElementsAre(Wrote("ALLOC_PD")));
}

TEST_F(TraceTest, WhatIsForgottenIsNotAskedAgain) {
  trace_.Forget();
  EXPECT_THAT(trace_.All(), IsEmpty());
  Append(R"({"via":"write","device":"rxe0","name":"ALLOC_PD","result":16})");
  EXPECT_THAT(trace_.Commands(), ElementsAre(Wrote("ALLOC_PD")));
}

TEST_F(TraceTest, TheTailSaysHowMuchIsBefore) {
  const std::string tail = trace_.Tail(2);
  EXPECT_THAT(tail, HasSubstr("4 before"));
  EXPECT_THAT(tail, HasSubstr("#5 write_ex QUERY_DEVICE: ok"));
}

}  // namespace
}  // namespace vabi::traces
