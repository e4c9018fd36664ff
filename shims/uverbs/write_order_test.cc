// SPDX-License-Identifier: BSD-2-Clause
// write() before 5.0: which check comes first, and with which errno. Expected values are from
// uverbs_main.c:ib_uverbs_write of the releases named.
#include "shims/uverbs/test_uverbs.h"

namespace vabi {
namespace {

constexpr uint32_t kAllocPd = 3, kAllocMw = 14, kCreateCqEx = 18;

class OldWriteTest : public UverbsTest {
 protected:
  explicit OldWriteTest(const char* kernel) : UverbsTest(kernel) {}

  void OpenContextByWrite() {
    Bytes reply(8);
    ASSERT_GT(Write(0, S(VABI_S(ib_uverbs_get_context)), &reply), 0);
    fds_.push_back(static_cast<int>(U32(reply, VABI_F(ib_uverbs_get_context_resp, async_fd))));
  }
  // A bare header; in_words as the caller wants it.
  long Header(uint32_t command, uint16_t in_words, size_t count) {
    Bytes all(std::max<size_t>(count, 8));
    std::memcpy(all.data(), &command, 4);
    std::memcpy(all.data() + 4, &in_words, 2);
    return file().Write(all.data(), count);
  }
};

struct Answers {
  const char* kernel;
  long unknown;         // command 60, which no kernel has
  long unknown_ex;      // the same extended
  long hole_ex;         // extended command 3; legacy command 3 is ALLOC_PD, which the device has
  long flags;           // flag bit 30
  long unserved;        // ALLOC_MW without the driver's function, lengths right
  long unserved_words;  // the same with wrong lengths
  long early;           // ALLOC_MW without the function and before a context
  const char* early_rule;
};

void PrintTo(const Answers& answers, std::ostream* out) { *out << answers.kernel; }

class WriteOrderTest : public OldWriteTest, public testing::WithParamInterface<Answers> {
 protected:
  WriteOrderTest() : OldWriteTest(GetParam().kernel) {}
};

TEST_P(WriteOrderTest, UnknownCommands) {
  OpenContextByWrite();
  EXPECT_EQ(GetParam().unknown, Header(60, 4, 16));
  EXPECT_EQ(GetParam().unknown_ex, Header(0x80000000 | 60, 0, 24));
  EXPECT_EQ(GetParam().hole_ex, Header(0x80000000 | kAllocPd, 0, 24));
}

TEST_P(WriteOrderTest, Flags) {
  OpenContextByWrite();
  EXPECT_EQ(GetParam().flags, Header(0x40000000 | kAllocPd, 4, 16));
  EXPECT_EQ(-EINVAL, Header(0x100 | kAllocPd, 4, 16));
  EXPECT_EQ("write.command.bits", LastRule());
}

TEST_P(WriteOrderTest, CommandsThatTheDriverHasNot) {
  script().lacks = {Op::alloc_mw};
  Reinstall();
  EXPECT_EQ(GetParam().early, Header(kAllocMw, 6, 24));
  EXPECT_EQ(GetParam().early_rule, LastRule());
  OpenContextByWrite();
  EXPECT_EQ(GetParam().unserved, Header(kAllocMw, 6, 24));
  EXPECT_EQ("write.masked", LastRule());
  EXPECT_EQ(GetParam().unserved_words, Header(kAllocMw, 7, 24));
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, WriteOrderTest,
    testing::Values(Answers{"linux-4.4", -EINVAL, -ENOSYS, -ENOSYS, -ENOSYS, -ENOSYS, -ENOSYS,
                            -EINVAL, "write.no_context"},
                    Answers{"linux-4.10", -EOPNOTSUPP, -EOPNOTSUPP, -ENOSYS, -ENOSYS, -EOPNOTSUPP,
                            -EOPNOTSUPP, -EOPNOTSUPP, "write.masked"},
                    Answers{"linux-4.16", -EINVAL, -EINVAL, -ENOSYS, -ENOSYS, -EOPNOTSUPP,
                            -EOPNOTSUPP, -EOPNOTSUPP, "write.masked"},
                    Answers{"linux-4.17", -EOPNOTSUPP, -EOPNOTSUPP, -EOPNOTSUPP, -EINVAL,
                            -EOPNOTSUPP, -EINVAL, -EINVAL, "write.no_context"},
                    Answers{"linux-4.18", -EOPNOTSUPP, -EOPNOTSUPP, -EOPNOTSUPP, -EINVAL,
                            -EOPNOTSUPP, -EINVAL, -EINVAL, "write.no_context"},
                    Answers{"linux-4.20", -EOPNOTSUPP, -EOPNOTSUPP, -EOPNOTSUPP, -EINVAL,
                            -EOPNOTSUPP, -EINVAL, -EOPNOTSUPP, "write.masked"}),
    [](const auto& info) { return CaseName(info.param.kernel); });

struct ContextOrder {
  const char* kernel;
  bool replies_before_driver, replies_before_second;
};
void PrintTo(const ContextOrder& order, std::ostream* out) { *out << order.kernel; }

class ContextOrderTest : public OldWriteTest, public testing::WithParamInterface<ContextOrder> {
 protected:
  ContextOrderTest() : OldWriteTest(GetParam().kernel) {}
  long GetContext(Bytes* reply) { return Write(0, S(VABI_S(ib_uverbs_get_context)), reply); }
  // To a reply that cannot be written.
  long GetContextNowhere() {
    Struct request = S(VABI_S(ib_uverbs_get_context));
    Bytes command = LegacyCommand(0, request.bytes(), nullptr, {});
    const uint64_t nowhere = 16;
    const uint16_t out_words = 2;
    std::memcpy(command.data() + 6, &out_words, sizeof(out_words));
    std::memcpy(command.data() + 8, &nowhere, sizeof(nowhere));
    return SendWrite(file(), command);
  }
  std::vector<std::string>& log() { return TestDriver::script().log; }
};

TEST_P(ContextOrderTest, ARefusedOneMayHaveReplied) {
  TestDriver::script().fail_with = -ENODEV;
  Bytes reply(8, 0xff);
  EXPECT_EQ(-ENODEV, GetContext(&reply));
  EXPECT_EQ(GetParam().replies_before_driver, reply != Bytes(8, 0xff));
  ASSERT_GT(GetContext(&reply), 0) << "nothing of the refused one is left";
  fds_.push_back(static_cast<int>(U32(reply, VABI_F(ib_uverbs_get_context_resp, async_fd))));
  reply.assign(8, 0xff);
  EXPECT_EQ(-EINVAL, GetContext(&reply));
  EXPECT_EQ("context.twice", LastRule());
  EXPECT_EQ(GetParam().replies_before_second, reply != Bytes(8, 0xff));
}

TEST_P(ContextOrderTest, WhichErrnoIsFirst) {
  using Log = std::vector<std::string>;
  TestDriver::script().fail_with = -ENODEV;
  EXPECT_EQ(GetParam().replies_before_driver ? -EFAULT : -ENODEV, GetContextNowhere());
  TestDriver::script().fail_with = 0;
  log().clear();
  EXPECT_EQ(-EFAULT, GetContextNowhere());
  EXPECT_EQ(GetParam().replies_before_driver ? Log{} : (Log{"alloc_ucontext", "dealloc_ucontext"}),
            log());
  OpenContextByWrite();
  EXPECT_EQ(GetParam().replies_before_second ? -EFAULT : -EINVAL, GetContextNowhere());
}

INSTANTIATE_TEST_SUITE_P(Kernels, ContextOrderTest,
                         testing::Values(ContextOrder{"linux-4.4", false, false},
                                         ContextOrder{"linux-5.0", false, false},
                                         ContextOrder{"linux-5.3", true, false},
                                         ContextOrder{"linux-5.6", true, true},
                                         ContextOrder{"debian-7.3.4", true, true}));

class Write416Test : public OldWriteTest {
 protected:
  Write416Test() : OldWriteTest("linux-4.16") {}
};

// uverbs_cmd.c:ib_uverbs_alloc_pd copied its structure from wherever the request began.
TEST_F(Write416Test, ShortRequestsAreReadBeyondTheirEnd) {
  OpenContextByWrite();
  Bytes reply(4, 0xff);
  struct {
    uint32_t command = kAllocPd;
    uint16_t in_words = 2, out_words = 1;
    uint64_t response;  // behind the 8 bytes that the caller names
  } call;
  call.response = reinterpret_cast<uintptr_t>(reply.data());
  EXPECT_EQ(8, file().Write(&call, 8));
  EXPECT_EQ(0u, U32(reply, VABI_F(ib_uverbs_alloc_pd_resp, pd_handle)));
}

TEST_F(Write416Test, TailOfALegacyRequestIsIgnored) {
  OpenContextByWrite();
  EXPECT_EQ(0u, AllocPd());
  Struct request = S(VABI_S(ib_uverbs_dealloc_pd), 4);
  request.bytes().back() = 1;
  EXPECT_GT(Write(4, request), 0);
}

// ib_uverbs_ex_create_cq: EINVAL below its structure, ENOSPC for a reply without response_length;
// what is behind the structure is not looked at, and what is behind the reply is not written.
TEST_F(Write416Test, LengthsOfAnExtendedCommand) {
  OpenContextByWrite();
  Struct request =
      S(VABI_S(ib_uverbs_ex_create_cq))
          .With(VABI_F(ib_uverbs_ex_create_cq, cqe), 4)
          .With(VABI_F(ib_uverbs_ex_create_cq, comp_channel), static_cast<uint32_t>(-1));
  Bytes reply(24, 0xff);
  const Bytes shorter(request.bytes().begin(), request.bytes().end() - 8);
  EXPECT_EQ(-EINVAL, WriteEx(kCreateCqEx, shorter, &reply));
  EXPECT_EQ("write_ex.request.short", LastRule());
  Bytes small(8);
  EXPECT_EQ(-ENOSPC, WriteEx(kCreateCqEx, request.bytes(), &small));
  EXPECT_EQ("write_ex.response.short", LastRule());
  Bytes longer = request.bytes();
  longer.resize(longer.size() + 8, 1);
  EXPECT_GT(WriteEx(kCreateCqEx, longer, &reply), 0);
  EXPECT_EQ(Bytes(8, 0xff), Bytes(reply.begin() + 16, reply.end()));
}

// ib_uverbs_ex_create_wq: the tail must be zero.
TEST_F(Write416Test, TailOfAnExtendedRequest) {
  OpenContextByWrite();
  Bytes request = S(VABI_S(ib_uverbs_ex_create_wq)).bytes();
  request.resize(request.size() + 8, 1);
  Bytes reply(24);
  EXPECT_EQ(-EOPNOTSUPP, WriteEx(52, request, &reply));
  EXPECT_EQ("request.tail", LastRule());
}

// ib_uverbs_post_send: EINVAL for arrays that do not fit (ENOSPC from 5.0 on).
TEST_F(Write416Test, ArraysOfAPostMustFit) {
  OpenContextByWrite();
  Bytes reply(4);
  Struct request = S(VABI_S(ib_uverbs_post_send))
                       .With(VABI_F(ib_uverbs_post_send, wr_count), 1)
                       .With(VABI_F(ib_uverbs_post_send, wqe_size), 1024);
  EXPECT_EQ(-EINVAL, Write(28, request, &reply));
  EXPECT_EQ("request.next.short", LastRule());
}

}  // namespace
}  // namespace vabi
