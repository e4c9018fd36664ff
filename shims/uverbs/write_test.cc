// SPDX-License-Identifier: BSD-2-Clause
// The write front end (uverbs_main.c:ib_uverbs_write, verify_hdr) of Linux 7.3.
#include "shims/uverbs/test_uverbs.h"

namespace vabi {
namespace {

using testing::ElementsAre;

class WriteTest : public UverbsTest {};

TEST_F(WriteTest, ReturnsTheCountAndTracesTheCommand) {
  OpenContext();
  Bytes reply(4);
  EXPECT_EQ(8 + 8, Write(3, S(VABI_S(ib_uverbs_alloc_pd)), &reply));
  EXPECT_EQ(0u, U32(reply, VABI_F(ib_uverbs_alloc_pd_resp, pd_handle)));
  const auto line = Last();
  EXPECT_EQ("write", line["via"]);
  EXPECT_EQ("ALLOC_PD", line["name"]);
  EXPECT_EQ(16, line["result"]);
  EXPECT_EQ("rxe0", line["device"]);
  EXPECT_FALSE(line.contains("rule"));
}

// Legacy write() has no border between core and driver: the kernel's sizes draw it.
TEST_F(WriteTest, SplitsDriverDataBySizes) {
  OpenContext();
  Bytes reply(4 + 12);
  EXPECT_EQ(8 + 8 + 20, Write(3, S(VABI_S(ib_uverbs_alloc_pd)), &reply, Bytes(20, 7)));
  EXPECT_EQ(Bytes(20, 7), script().udata_in);
  EXPECT_EQ(12u, script().udata_out);
}

TEST_F(WriteTest, HandsOutTheLowestFreeHandle) {
  OpenContext();
  EXPECT_EQ(0u, AllocPd());
  EXPECT_EQ(1u, CreateCq()) << "one number space for all types since 4.14";
  EXPECT_EQ(2u, AllocPd());
  EXPECT_GT(DestroyPd(0), 0);
  EXPECT_EQ(0u, AllocPd());
  EXPECT_EQ(3u, AllocPd());
}

// FNV-1a of the reply's four bytes: 0, and 1 in the machine's order.
TEST_F(WriteTest, TheTraceTellsRepliesApart) {
  OpenContext();
  EXPECT_EQ(0u, AllocPd());
  EXPECT_EQ("0x4b95f515", Last().value("answer", ""));
  EXPECT_EQ(1u, AllocPd());
  EXPECT_EQ("0xfb69b604", Last().value("answer", ""));
  EXPECT_GT(DestroyPd(1), 0);
  EXPECT_FALSE(Last().contains("answer")) << "it replies with nothing";
}

TEST_F(WriteTest, FailedCommandsGiveTheirHandleBack) {
  OpenContext();
  script().fail_with = -ENOMEM;
  Bytes reply(4);
  EXPECT_EQ(-ENOMEM, Write(3, S(VABI_S(ib_uverbs_alloc_pd)), &reply));
  EXPECT_EQ(0u, AllocPd());
}

// uobj_finalize_uobj_create before the reply: an unwritable reply destroys the new object.
TEST_F(WriteTest, UnwritableReplyTakesTheObjectDown) {
  OpenContext();
  script().log.clear();
  Struct request = S(VABI_S(ib_uverbs_alloc_pd));
  request.Set(VABI_F(ib_uverbs_alloc_pd, response), 16);
  Bytes all(8);
  const uint32_t command = 3;
  const uint16_t words[2] = {4, 1};
  std::memcpy(all.data(), &command, 4);
  std::memcpy(all.data() + 4, words, 4);
  all.insert(all.end(), request.bytes().begin(), request.bytes().end());
  EXPECT_EQ(-EFAULT, file().Write(all.data(), all.size()));
  EXPECT_EQ("response.fault", LastRule());
  EXPECT_THAT(script().log, ElementsAre("alloc_pd", "dealloc_pd"));
  EXPECT_EQ(0u, AllocPd());
}

// rdma-core 18 and 19 send DESTROY_CQ as 16 bytes; it counts as six words.
TEST_F(WriteTest, ExemptsDestroyCqOfSixteenBytes) {
  OpenContext();
  const uint32_t cq = CreateCq();
  Bytes reply(8);
  struct {
    uint32_t command = 20;
    uint16_t in_words = 4, out_words = 2;
    uint64_t response;
    uint32_t handle;  // behind the 16 bytes, as those releases leave it
    uint32_t reserved = 0;
  } call;
  call.response = reinterpret_cast<uintptr_t>(reply.data());
  call.handle = cq;
  EXPECT_EQ(16, file().Write(&call, 16));
  EXPECT_EQ(nullptr, file().Find(ObjectType::kCq, cq));
}

TEST_F(WriteTest, OtherCommandsOfThatLengthAreTooShort) {
  OpenContext();
  struct {
    uint32_t command = 27;  // DESTROY_QP
    uint16_t in_words = 4, out_words = 1;
    uint64_t response = 0;
  } call;
  EXPECT_EQ(-ENOSPC, file().Write(&call, 16));
  EXPECT_EQ("write.request.short", LastRule());
}

TEST_F(WriteTest, ExtendedBodiesAreZeroExtended) {
  OpenContext();
  // Only user_handle, cqe, comp_vector and comp_channel (20 of 32 bytes; rounded up to 24).
  Struct request =
      S(VABI_S(ib_uverbs_ex_create_cq))
          .With(VABI_F(ib_uverbs_ex_create_cq, cqe), 4)
          .With(VABI_F(ib_uverbs_ex_create_cq, comp_channel), static_cast<uint32_t>(-1));
  Bytes reply(16);
  EXPECT_EQ(24 + 24,
            WriteEx(18, Bytes(request.bytes().begin(), request.bytes().begin() + 20), &reply));
  EXPECT_EQ("write_ex", Last()["via"]);
  const Body answer(world(), reply.data(), reply.size());
  EXPECT_EQ(7u, answer.Sub(VABI_F(ib_uverbs_ex_create_cq_resp, base))
                    .U32(VABI_F(ib_uverbs_create_cq_resp, cqe)));
  EXPECT_EQ(16u, answer.U32(VABI_F(ib_uverbs_ex_create_cq_resp, response_length)));
}

TEST_F(WriteTest, ExtendedRepliesAreCutAndSaySo) {
  OpenContext();
  Bytes reply(8);
  Struct request =
      S(VABI_S(ib_uverbs_ex_create_cq))
          .With(VABI_F(ib_uverbs_ex_create_cq, cqe), 4)
          .With(VABI_F(ib_uverbs_ex_create_cq, comp_channel), static_cast<uint32_t>(-1));
  EXPECT_GT(WriteEx(18, request.bytes(), &reply), 0);
  EXPECT_EQ(7u, U32(reply, VABI_F(ib_uverbs_create_cq_resp, cqe)));
}

TEST_F(WriteTest, LongerReplyBuffersAreZeroed) {
  OpenContext();
  Bytes reply(500, 0xff);
  EXPECT_GT(WriteEx(1, S(VABI_S(ib_uverbs_ex_query_device)).bytes(), &reply), 0);
  const size_t size = world().Size(VABI_S(ib_uverbs_ex_query_device_resp));
  ASSERT_LT(size, reply.size());
  EXPECT_EQ(Bytes(496 - size, 0), Bytes(reply.begin() + size, reply.begin() + 496));
  EXPECT_EQ(Bytes(4, 0xff), Bytes(reply.begin() + 496, reply.end()))
      << "62 words of 8 bytes were offered";
}

// An extended command that is not served falls into the legacy length rule (uverbs_uapi.c:
// notsupp_method is not extended).
TEST_F(WriteTest, UnservedExtendedCommandMeetsTheLegacyLengthRule) {
  script().lacks = {Op::create_wq};
  Reinstall();
  OpenContext();
  EXPECT_EQ(-EINVAL, WriteEx(52, Bytes(40)));  // CREATE_WQ
  EXPECT_EQ("write.in_words", LastRule());
  // By accident in_words * 4 is the count: 24 + 40 = 64 bytes.
  Bytes call(64);
  const uint32_t command = 0x80000000 | 52;
  const uint16_t words = 16;
  std::memcpy(call.data(), &command, 4);
  std::memcpy(call.data() + 4, &words, 2);
  EXPECT_EQ(-EOPNOTSUPP, file().Write(call.data(), call.size()));
  EXPECT_EQ("write.not_served", LastRule());
}

TEST_F(WriteTest, TableEndsWithTheLastServedCommand) {
  script().lacks = {Op::alloc_xrcd, Op::create_srq};
  Reinstall();
  // OPEN_QP (40), CREATE_XSRQ (39), CLOSE_XRCD and OPEN_XRCD (38, 37) are gone: POST_SRQ_RECV is
  // the last.
  EXPECT_EQ(-EOPNOTSUPP, Write(37, S(VABI_S(ib_uverbs_open_xrcd))));
  EXPECT_EQ("write.command.range", LastRule());
  EXPECT_EQ(-EOPNOTSUPP, Write(32, S(VABI_S(ib_uverbs_create_srq))));
  EXPECT_EQ("write.not_served", LastRule());
}

TEST_F(WriteTest, NamesUnknownCommands) {
  EXPECT_EQ(-EOPNOTSUPP, Write(200, S(VABI_S(ib_uverbs_alloc_pd))));
  EXPECT_EQ("command 200", Last()["name"]);
}

// ib_safe_file_access: identity, not uid.
TEST_F(WriteTest, RefusesAfterAChangeOfCredentials) {
  OpenContext();
  BumpCredentialGeneration();
  Bytes reply(4);
  EXPECT_EQ(-EACCES, Write(3, S(VABI_S(ib_uverbs_alloc_pd)), &reply));
  EXPECT_EQ("write.credentials", LastRule());
  Bytes out(4);
  EXPECT_EQ(0, Invoke(3, Bytes(8), &out)) << "ioctl does not ask";
}

TEST_F(WriteTest, BadPointersAreFaults) {
  EXPECT_EQ(-EFAULT, file().Write(reinterpret_cast<void*>(8), 64));
  EXPECT_EQ("write.header.fault", LastRule());
}

TEST_F(WriteTest, ReadOnlyDescriptorsCannotWrite) {
  file().set_access_mode(0);  // O_RDONLY
  EXPECT_EQ(-EBADF, Write(3, S(VABI_S(ib_uverbs_alloc_pd))));
}

class OldHandlesTest : public UverbsTest {
 protected:
  OldHandlesTest() { image().knob[Index(KnobId::uverbs_handles)] = 1; }
};

TEST_F(OldHandlesTest, EachTypeCountsForItself) {
  Reinstall();
  OpenContext();
  EXPECT_EQ(0u, AllocPd());
  EXPECT_EQ(0u, CreateCq());
  EXPECT_EQ(1u, AllocPd());
}

class FaultTest : public UverbsTest {};

TEST_F(FaultTest, AnswersInsteadOfTheKernelAndSaysSo) {
  OpenContext();
  Fault& fault = image().fault[0];
  std::strcpy(fault.step, "ALLOC_PD");
  fault.error = EIO;
  fault.after = 1;
  fault.count = 1;
  image().fault_count = 1;
  Bytes reply(4);
  EXPECT_GT(Write(3, S(VABI_S(ib_uverbs_alloc_pd)), &reply), 0);
  EXPECT_EQ(-EIO, Invoke(3, Bytes(8), &reply)) << "whichever way the command comes";
  EXPECT_EQ("errno", Last()["fault"]);
  EXPECT_GT(Write(3, S(VABI_S(ib_uverbs_alloc_pd)), &reply), 0);
}

}  // namespace
}  // namespace vabi
