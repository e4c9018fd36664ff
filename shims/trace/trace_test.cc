// SPDX-License-Identifier: BSD-2-Clause
#include "shims/trace/trace.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shims/trace/errno_name.h"
#include "shims/trace/gaps.h"

namespace vabi::trace {
namespace {

class TraceTest : public testing::Test {
 protected:
  TraceTest() : path_(testing::TempDir() + "/trace_test." + std::to_string(getpid())) {
    unlink(path_.c_str());
  }
  ~TraceTest() override {
    Open("");
    unlink(path_.c_str());
  }
  std::vector<nlohmann::json> Lines() {
    std::vector<nlohmann::json> lines;
    std::ifstream in(path_);
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  std::string path_;
};

TEST_F(TraceTest, WritesNothingWhenItIsOff) {
  Record record;
  record.front_end = FrontEnd::kWrite;
  EXPECT_FALSE(Enabled());
  Write(record);
  EXPECT_TRUE(Lines().empty());
}

TEST_F(TraceTest, WritesOnlyGapsWhenOnlyTheyAreWanted) {
  Open(("gaps:" + path_).c_str());
  EXPECT_FALSE(Enabled());
  Record known;
  known.front_end = FrontEnd::kWrite;
  strcpy(known.name, "ALLOC_PD");
  EXPECT_FALSE(Wants(known));
  Write(known);
  Record gap = known;
  strcpy(gap.name, "CREATE_FLOW");
  gap.unmodelled = "a tunnel";
  EXPECT_TRUE(Wants(gap));
  Write(gap);
  Event("not_intercepted", "a raw system call");
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["name"], "CREATE_FLOW");
  EXPECT_EQ(lines[0]["unmodelled"], "a tunnel");
  EXPECT_EQ(lines[1]["event"], "not_intercepted");
}

TEST_F(TraceTest, AFaultIsTheTracesOwnLineOnlyWhereCommandsHaveNone) {
  Open(path_.c_str());
  Fault("CREATE_CQ");
  EXPECT_TRUE(Lines().empty());
  Open(("gaps:" + path_).c_str());
  Fault("CREATE_CQ");
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["event"], "fault");
  EXPECT_EQ(lines[0]["text"], "CREATE_CQ");
}

TEST_F(TraceTest, AFullDiskIsToldOnceForEachTrace) {
  Record record;
  record.front_end = FrontEnd::kWrite;
  for (int trace = 0; trace < 2; ++trace) {
    Open("/dev/full");
    testing::internal::CaptureStderr();
    Write(record);
    Write(record);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "verbs-abi: the trace lacks lines: its file cannot be written (ENOSPC)\n");
  }
}

TEST_F(TraceTest, ALineHasADigestOfWhatTheAnswerTold) {
  Open(path_.c_str());
  Record record;
  record.front_end = FrontEnd::kIoctl;
  const auto answer = [&](std::initializer_list<std::vector<uint8_t>> parts) {
    for (const auto& part : parts) Answered(part.data(), part.size());
    Write(record);
    return Lines().back().value("answer", std::string("none"));
  };
  EXPECT_EQ(answer({}), "none");
  // FNV-1a of "a" and of "foobar", as its authors give them.
  EXPECT_EQ(answer({{'a'}}), "0xe40c292c");
  EXPECT_EQ(answer({{'f', 'o', 'o', 'b', 'a', 'r'}}), "0xbf9cf968");
  EXPECT_EQ(answer({{'f', 'o', 'o'}, {'b', 'a', 'r'}}), "0xbf9cf968");
  EXPECT_EQ(answer({}), "none") << "an answer is told once";
  // Eight bytes that are an address in the program say nothing: it differs from run to run.
  const uint64_t here = 0x00007f1234567890, there = 0x000055aabbccddee, number = 0x1234567890;
  const auto bytes = [](uint64_t word) {
    std::vector<uint8_t> all(8);
    std::memcpy(all.data(), &word, 8);
    return all;
  };
  EXPECT_EQ(answer({bytes(here)}), answer({bytes(there)}));
  EXPECT_EQ(answer({bytes(here)}), answer({bytes(0)}));
  EXPECT_NE(answer({bytes(number)}), answer({bytes(0)}));
}

TEST_F(TraceTest, TellsWhatAFileOfSysfsHeld) {
  EXPECT_TRUE(WritesAll(path_.c_str()));
  EXPECT_FALSE(WritesAll(("gaps:" + path_).c_str()));
  EXPECT_FALSE(WritesAll(""));
  Sysfs("/sys/a", "1\n", 2, 0);
  Open(("gaps:" + path_).c_str());
  Sysfs("/sys/a", "1\n", 2, 0);
  EXPECT_TRUE(Lines().empty());
  Open(path_.c_str());
  Sysfs("/sys/a", "1\n", 2, 0);
  Sysfs("/sys/b", nullptr, 0, ENOENT);
  const std::string longer(64, 'x'), one(70, 'x'), other = std::string(69, 'x') + 'y';
  Sysfs("/sys/c", longer.data(), longer.size(), 0);
  Sysfs("/sys/c", one.data(), one.size(), 0);
  Sysfs("/sys/c", other.data(), other.size(), 0);
  Sysfs("/sys/d", "\n", 1, 0);
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0]["event"], "sysfs");
  EXPECT_EQ(lines[0]["text"], "/sys/a: 1");
  EXPECT_EQ(lines[1]["text"], "/sys/b: ENOENT");
  EXPECT_EQ(lines[2]["text"], "/sys/c: " + longer);
  EXPECT_EQ(lines[3]["text"].get<std::string>().find("/sys/c: " + longer + "... (70 bytes, 0x"),
            0u);
  EXPECT_NE(lines[3]["text"], lines[4]["text"]);
  EXPECT_EQ(lines[5]["text"], "/sys/d: ");
}

TEST_F(TraceTest, ALoopOverAGapDoesNotFillTheDisk) {
  Open(("gaps:" + path_).c_str());
  Record gap;
  gap.front_end = FrontEnd::kWrite;
  gap.unmodelled = "a tunnel";
  for (int i = 0; i < 5000; ++i) Write(gap);
  const size_t written = Lines().size();
  EXPECT_GE(written, 1u);
  EXPECT_LE(written, 256u);
  Open(path_.c_str());
  for (int i = 0; i < 5000; ++i) Write(gap);
  EXPECT_EQ(Lines().size(), written + 5000) << "a whole trace leaves nothing out";
}

TEST_F(TraceTest, WritesARefusedIoctlWithItsRule) {
  Open(path_.c_str());
  ASSERT_TRUE(Enabled());
  Record record;
  record.front_end = FrontEnd::kIoctl;
  record.device = "mlx5_0";
  strcpy(record.name, "DEVICE.INVOKE_WRITE");
  strcpy(record.inner, "CREATE_CQ");
  record.object = 0;
  record.method = 0;
  record.core_in = 32;
  record.uhw_in = 0;
  record.has_flags = true;
  record.flags = 0x10;
  record.attribute_count = 2;
  record.attributes[0] = {3, 8, 1, 18, true};
  record.attributes[1] = {1, 32, 1, 0x7fff1234, false};
  record.result = -ENOTTY;
  record.rule = static_cast<int>(RuleId::ioctl_absent);
  Write(record);

  const auto lines = Lines();
  ASSERT_EQ(1u, lines.size());
  const auto& line = lines[0];
  EXPECT_EQ("ioctl", line["via"]);
  EXPECT_EQ("CREATE_CQ", line["inner"]);
  EXPECT_EQ(-ENOTTY, line["result"]);
  EXPECT_EQ("ENOTTY", line["errno"]);
  EXPECT_EQ("ioctl.absent", line["rule"]);
  EXPECT_EQ("0x10", line["flags"]);
  EXPECT_EQ(0, line["uhw_in"]);
  EXPECT_FALSE(line.contains("uhw_out"));
  EXPECT_FALSE(line.contains("fault"));
  ASSERT_EQ(2u, line["attrs"].size());
  EXPECT_EQ(18, line["attrs"][0]["value"]);
  EXPECT_FALSE(line["attrs"][1].contains("value")) << "pointers differ from run to run";
}

TEST_F(TraceTest, EscapesText) {
  Open(path_.c_str());
  Event("note", "say \"hi\"\n\\");
  ASSERT_EQ(1u, Lines().size());
  EXPECT_EQ("say \"hi\"\n\\", Lines()[0]["text"]);
}

TEST(ErrnoName, KnowsWhatUverbsAnswers) {
  EXPECT_STREQ("EPROTONOSUPPORT", ErrnoName(EPROTONOSUPPORT));
  EXPECT_STREQ("EOPNOTSUPP", ErrnoName(95));
  EXPECT_EQ(nullptr, ErrnoName(100000));
}

}  // namespace
}  // namespace vabi::trace
