// SPDX-License-Identifier: BSD-2-Clause
// The recorder's own tables against the facts of the oldest and the newest recorded kernel, and
// what it reads from a program's memory. Numbers in the calls are those of rdma/ib_user_verbs.h and
// rdma/rdma_user_ioctl_cmds.h.
#include "shims/recorder/describe.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "harness/world/test_world.h"
#include "shims/uverbs/command_table.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/method_table.h"

namespace vabi::recorder {
namespace {

constexpr uint32_t kIoctl = 0xc0181b01;

struct Told {
  trace::Record record;
  NewFile made;
};

Told Write(const std::vector<uint32_t>& words, size_t size) {
  Told told;
  DescribeWrite(words.data(), size, &told.record, &told.made);
  return told;
}
Told Write(const std::vector<uint32_t>& words) { return Write(words, words.size() * 4); }

struct Attribute {
  uint16_t id, length, flags, more;
  uint64_t data;
};
struct Ioctl {
  uint16_t length, object, method, count;
  uint64_t reserved1 = 0;
  uint32_t driver = 0, reserved2 = 0;
  Attribute attributes[40] = {};
  Ioctl(uint16_t object, uint16_t method, const std::vector<Attribute>& list)
      : length(static_cast<uint16_t>(24 + 16 * list.size())),
        object(object),
        method(method),
        count(static_cast<uint16_t>(list.size())) {
    std::copy(list.begin(), list.end(), attributes);
  }
};
Told Ask(const Ioctl& call) {
  Told told;
  DescribeIoctl(kIoctl, &call, &told.record, &told.made);
  return told;
}

class Facts : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Recorded, Facts, ::testing::Values("debian-5.10.223", "debian-7.3.4"));

TEST_P(Facts, DrawTheBorderBetweenCoreAndDriverInLegacyCommands) {
  const TestWorld world(GetParam(), {"rxe"});
  for (const CommandRow& row : CommandRows()) {
    const std::string name = WriteNames()[Index(row.id)];
    SCOPED_TRACE(name);
    const auto number = world.world().Constant(std::vector{
#define VABI_WRITE(name) ConstId::IB_USER_VERBS_CMD_##name,
#include "harness/world/all_tables.inc"
    }[Index(row.id)]);
    ASSERT_TRUE(number);
    const auto request = static_cast<int32_t>(world.world().Size(row.request));
    const int32_t reply = row.response == StructId::kCount
                              ? 0
                              : static_cast<int32_t>(world.world().Size(row.response));
    // 8 bytes more than the core has, there and back.
    const auto in = static_cast<uint32_t>(8 + request + 8) / 4,
               out = static_cast<uint32_t>(reply + 8) / 4;
    std::vector<uint32_t> words(in);
    words[0] = static_cast<uint32_t>(*number);
    words[1] = out << 16 | in;
    const trace::Record record = Write(words).record;
    EXPECT_EQ(record.name, name);
    EXPECT_EQ(record.command, *number);
    EXPECT_EQ(record.uhw_in, row.has_udata ? 8 : -1);
    EXPECT_EQ(record.core_in, row.has_udata ? request : request + 8);
    const bool reply_split = row.has_udata && reply != 0;
    EXPECT_EQ(record.uhw_out, reply_split ? 8 : -1);
    EXPECT_EQ(record.core_out, reply_split ? reply : reply + 8);
  }
}

TEST_P(Facts, SayWhichMethodsHandADriversPartOn) {
  const TestWorld world(GetParam(), {"mlx5"});
  ASSERT_TRUE(InstallWorld(world.world()));
  const MethodTable& methods = FindDevice(0)->methods();
  size_t found = 0;
  for (uint16_t object = 0; object < 32; ++object) {
    for (uint16_t method = 0; method < 16; ++method) {
      const CompiledMethod* known = methods.Find(object, method);
      if (known == nullptr || known->spec->unmodelled != nullptr) continue;
      SCOPED_TRACE(known->name);
      const trace::Record record =
          Ask(Ioctl(object, method, {{0x1000, 40, 1, 0, 1}, {0x1001, 48, 1, 0, 1}})).record;
      EXPECT_STREQ(record.name, known->name);
      EXPECT_EQ(record.uhw_in, known->has_udata ? 40 : -1);
      EXPECT_EQ(record.uhw_out, known->has_udata ? 48 : -1);
      found += known->has_udata;
    }
  }
  EXPECT_GE(found, 4U);
}

TEST(Writes, ThatAreExtendedTellTheirPartsThemselves) {
  // CREATE_CQ: 40 bytes and 8 of the driver; reply of 24 and 16
  const trace::Record record =
      Write({0x80000000 | 18, 3u << 16 | 5, 0x1000, 0, 2u << 16 | 1, 0}).record;
  EXPECT_EQ(record.front_end, trace::FrontEnd::kWriteEx);
  EXPECT_STREQ(record.name, "CREATE_CQ");
  EXPECT_EQ(record.core_in, 40);
  EXPECT_EQ(record.core_out, 24);
  EXPECT_EQ(record.uhw_in, 8);
  EXPECT_EQ(record.uhw_out, 16);
}

TEST(Writes, ThatNobodyKnowsAreNamedByNumber) {
  EXPECT_STREQ(Write({77, 2}).record.name, "command 77");
  EXPECT_STREQ(Write({0x80000000 | 2, 2}).record.name, "command 2");  // no extended QUERY_PORT
  EXPECT_STREQ(Write({77, 2}, 7).record.name, "write of 7 bytes");
  Told told;
  DescribeWrite(reinterpret_cast<void*>(8), 64, &told.record, &told.made);
  EXPECT_STREQ(told.record.name, "write of 64 bytes");
}

TEST(Writes, ThatMakeFilesSayWhereTheNumberWillStand) {
  const Told channel = Write({17, 1u << 16 | 4, 0x5678, 0x1234});
  EXPECT_EQ(channel.made.kind, NewFile::Kind::kCompletionEvents);
  EXPECT_EQ(channel.made.address, 0x123400005678u);
  EXPECT_EQ(Write({0, 2u << 16 | 4, 0x5678, 0x1234}).made.kind, NewFile::Kind::kAsyncEvents);
  EXPECT_EQ(Write({3, 1u << 16 | 4, 0x5678, 0x1234}).made.kind, NewFile::Kind::kNone);
}

TEST(Ioctls, KeepAttributesAndLeaveAddressesOut) {
  // CQ.CREATE with a handle, a number in place, and a reply whose address fits
  const trace::Record record =
      Ask(Ioctl(3, 0,
                {{0, 0, 1, 0, 7}, {1, 4, 1, 0, 0xffffffff00000010}, {2, 8, 1, 0, 0x7f0000001000}}))
          .record;
  EXPECT_STREQ(record.name, "CQ.CREATE");
  ASSERT_EQ(record.attribute_count, 3);
  EXPECT_TRUE(record.attributes[0].is_inline);
  EXPECT_EQ(record.attributes[0].value, 7u);
  EXPECT_FALSE(record.attributes[2].is_inline);
  EXPECT_EQ(record.attributes[2].length, 8);
}

TEST(Ioctls, ThatInvokeAWriteTellWhich) {
  // CREATE_COMP_CHANNEL by its number 17: request of 8 bytes in place, reply of 4 elsewhere
  const Told told =
      Ask(Ioctl(0, 0, {{2, 8, 1, 0, 17}, {0, 8, 1, 0, 0}, {1, 4, 1, 0, 0x7f0000002000}}));
  EXPECT_STREQ(told.record.name, "DEVICE.INVOKE_WRITE");
  EXPECT_STREQ(told.record.inner, "CREATE_COMP_CHANNEL");
  EXPECT_EQ(told.record.command, 17);
  EXPECT_EQ(told.record.core_in, 8);
  EXPECT_EQ(told.record.core_out, 4);
  EXPECT_EQ(told.made.kind, NewFile::Kind::kCompletionEvents);
  EXPECT_EQ(told.made.address, 0x7f0000002000u);
}

TEST(Ioctls, ThatCannotBeReadAreNamedByNumber) {
  Told told;
  DescribeIoctl(0x5401, nullptr, &told.record, &told.made);
  EXPECT_STREQ(told.record.name, "ioctl 0x5401");
  DescribeIoctl(kIoctl, reinterpret_cast<void*>(16), &told.record, &told.made);
  EXPECT_STREQ(told.record.name, "ioctl 0xc0181b01");
  EXPECT_STREQ(Ask(Ioctl(3, 99, {})).record.name, "object 3 method 99");
  // More attributes than a line has room for.
  Ioctl many(3, 0, {});
  many.count = 40;
  EXPECT_EQ(Ask(many).record.attribute_count, trace::kMaxAttributes);
}

TEST(Netlink, IsNamedByItsCommand) {
  trace::Record record;
  DescribeNetlink(5 << 10 | 15, 20, &record);
  EXPECT_STREQ(record.name, "GET_CHARDEV");
  EXPECT_EQ(record.core_in, 20);
  EXPECT_EQ(record.command, 15);
  DescribeNetlink(4 << 10 | 1, 0, &record);
  EXPECT_STREQ(record.name, "netlink type 4097");
}

}  // namespace
}  // namespace vabi::recorder
