// SPDX-License-Identifier: BSD-2-Clause
#include "harness/trace/reader.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>

namespace vabi::traces {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

class ReaderTest : public ::testing::Test {
 protected:
  ReaderTest() : path_("/tmp/vabi-traces-reader-" + std::to_string(getpid())) {
    std::remove(path_.c_str());
  }
  ~ReaderTest() override { std::remove(path_.c_str()); }
  void Append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  const std::string path_;
};

TEST_F(ReaderTest, EveryKeyOfALineIsTaken) {
  Command command;
  ASSERT_TRUE(Parse(
      R"({"via":"ioctl","device":"mlx5_0","name":"DEVICE.INVOKE_WRITE","inner":"QUERY_DEVICE",)"
      R"("object":0,"method":1,"command":1,"core_in":8,"core_out":304,"uhw_in":4,"uhw_out":104,)"
      R"("flags":"0x1f","attrs":[{"id":2,"len":8,"flags":1,"value":2147483649},{"id":4096,"len":8,"flags":1}],)"
      R"("result":-22,"errno":"EINVAL","rule":"a.b","fault":"errno","unmodelled":"x","pid":7,"tid":8,"t":9})",
      &command));
  EXPECT_EQ(command.via, "ioctl");
  EXPECT_EQ(command.device, "mlx5_0");
  EXPECT_EQ(command.name, "DEVICE.INVOKE_WRITE");
  EXPECT_EQ(command.what(), "QUERY_DEVICE");
  EXPECT_EQ(command.object, 0);
  EXPECT_EQ(command.method, 1);
  EXPECT_EQ(command.command, 1);
  EXPECT_EQ(command.core_in, 8);
  EXPECT_EQ(command.core_out, 304);
  EXPECT_EQ(command.uhw_in, 4);
  EXPECT_EQ(command.uhw_out, 104);
  EXPECT_EQ(command.flags, 0x1f);
  ASSERT_EQ(command.attributes.size(), 2u);
  EXPECT_EQ(command.attributes[0].value, 2147483649u);
  EXPECT_EQ(command.attributes[1].id, 4096u);
  EXPECT_EQ(command.attributes[1].length, 8u);
  EXPECT_FALSE(command.attributes[1].value.has_value());
  EXPECT_EQ(command.result, -EINVAL);
  EXPECT_EQ(command.rule, "a.b");
  EXPECT_EQ(command.fault, "errno");
  EXPECT_EQ(command.unmodelled, "x");
  EXPECT_EQ(command.pid, 7);
  EXPECT_TRUE(command.extended());
  EXPECT_TRUE(command.failed());
}

TEST_F(ReaderTest, EventsAndRubbishAreNoCommands) {
  Command command;
  EXPECT_FALSE(Parse(R"({"event":"nic","text":"started"})", &command));
  EXPECT_FALSE(Parse("{\"via\":", &command));
  EXPECT_FALSE(Parse("", &command));
}

TEST_F(ReaderTest, AHalfWrittenLineWaits) {
  Reader reader(path_);
  EXPECT_THAT(reader.Next(), IsEmpty());
  Append("{\"via\":\"write\",\"name\":\"ALLOC_PD\",\"result\":0}\n{\"via\":\"write\",\"na");
  EXPECT_THAT(reader.Next(), ElementsAre(Field(&Command::name, "ALLOC_PD")));
  EXPECT_THAT(reader.Next(), IsEmpty());
  Append("me\":\"REG_MR\",\"result\":0}\n");
  EXPECT_THAT(reader.Next(), ElementsAre(Field(&Command::name, "REG_MR")));
}

TEST_F(ReaderTest, OnlyTheProcessThatIsAskedFor) {
  Append(
      "{\"via\":\"write\",\"name\":\"A\",\"result\":0,\"pid\":1}\n{\"via\":\"write\",\"name\":"
      "\"B\",\"result\":0,\"pid\":2}\n");
  EXPECT_THAT(Reader(path_, 2).Next(), ElementsAre(Field(&Command::name, "B")));
}

TEST_F(ReaderTest, SkippingLeavesOutWhatWasThere) {
  Append("{\"via\":\"write\",\"name\":\"A\",\"result\":0}\n");
  Reader reader(path_);
  reader.SkipToEnd();
  Append("{\"via\":\"write\",\"name\":\"B\",\"result\":0}\n");
  EXPECT_THAT(reader.Next(), ElementsAre(Field(&Command::name, "B")));
}

}  // namespace
}  // namespace vabi::traces
