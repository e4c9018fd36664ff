// SPDX-License-Identifier: BSD-2-Clause
// The ioctl front end (uverbs_ioctl.c) of Linux 7.3.
#include "shims/uverbs/ioctl.h"

#include <sys/mman.h>

#include "shims/uverbs/test_uverbs.h"

namespace vabi {
namespace {

using testing::ElementsAre;

class IoctlTest : public UverbsTest {
 protected:
  Request CreateCqCall(Bytes* cqe_reply) {
    Request call = New(VABI_C(UVERBS_OBJECT_CQ), VABI_C(UVERBS_METHOD_CQ_CREATE));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_CQ_HANDLE)));
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_CQ_CQE)), 4, 16);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_CQ_USER_HANDLE)), 8, 0x5678);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR)), 4, 0);
    call.AddOut(C(VABI_C(UVERBS_ATTR_CREATE_CQ_RESP_CQE)), *cqe_reply);
    return call;
  }
  Request InvokeAllocPd(Bytes* reply) {
    Request call = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_INVOKE_WRITE));
    call.AddConst(C(VABI_C(UVERBS_ATTR_WRITE_CMD)), 3);
    call.AddIn(C(VABI_C(UVERBS_ATTR_CORE_IN)), Bytes(8));
    call.AddOut(C(VABI_C(UVERBS_ATTR_CORE_OUT)), *reply);
    return call;
  }
};

TEST_F(IoctlTest, CreatesAndDestroys) {
  OpenContext();
  Bytes cqe(4);
  Request call = CreateCqCall(&cqe);
  ASSERT_EQ(0, Ioctl(call));
  EXPECT_EQ(0u, call.Find(C(VABI_C(UVERBS_ATTR_CREATE_CQ_HANDLE)))->data)
      << "the handle is written back";
  EXPECT_TRUE(call.Written(C(VABI_C(UVERBS_ATTR_CREATE_CQ_RESP_CQE))));
  EXPECT_FALSE(call.Written(C(VABI_C(UVERBS_ATTR_CREATE_CQ_CQE))));
  uint32_t granted;
  std::memcpy(&granted, cqe.data(), 4);
  EXPECT_EQ(31u, granted);
  const auto line = Last();
  EXPECT_EQ("ioctl", line["via"]);
  EXPECT_EQ("CQ.CREATE", line["name"]);
  EXPECT_EQ(5u, line["attrs"].size());
  EXPECT_EQ(0, line["attrs"][0]["value"]) << "the handle";
  EXPECT_EQ(16, line["attrs"][1]["value"]) << "cqe, in the attribute";
  EXPECT_FALSE(line["attrs"][4].contains("value")) << "4 bytes, but an address to answer at";

  Bytes events(8, 0xff);
  Request destroy = New(VABI_C(UVERBS_OBJECT_CQ), VABI_C(UVERBS_METHOD_CQ_DESTROY));
  destroy.AddHandle(C(VABI_C(UVERBS_ATTR_DESTROY_CQ_HANDLE)), 0);
  destroy.AddOut(C(VABI_C(UVERBS_ATTR_DESTROY_CQ_RESP)), events);
  ASSERT_EQ(0, Ioctl(destroy));
  EXPECT_EQ(Bytes(8, 0), events);
  EXPECT_EQ(-ENOENT, Ioctl(destroy));
}

// What this kernel does not know may be an address: nobody can tell.
TEST_F(IoctlTest, TracesNoValueOfUnknownAttributes) {
  OpenContext();
  Bytes cqe(4);
  Request call = CreateCqCall(&cqe);
  call.Add(0x777, 8, 0x1234, 0);
  call.Find(C(VABI_C(UVERBS_ATTR_CREATE_CQ_CQE)))->data |= 0xabcdULL << 32;
  ASSERT_EQ(0, Ioctl(call));
  const auto line = Last();
  EXPECT_EQ(0x777, line["attrs"][5]["id"]);
  EXPECT_FALSE(line["attrs"][5].contains("value"));
  EXPECT_EQ(16, line["attrs"][1]["value"])
      << "four bytes are the value, what stands behind them is not";
}

// uobj_destroy comes before the handler: an unwritable reply does not bring the object back.
TEST_F(IoctlTest, DestroysEvenWhenTheReplyCannotBeWritten) {
  OpenContext();
  const uint32_t cq = CreateCq();
  Request destroy = New(VABI_C(UVERBS_OBJECT_CQ), VABI_C(UVERBS_METHOD_CQ_DESTROY));
  destroy.AddHandle(C(VABI_C(UVERBS_ATTR_DESTROY_CQ_HANDLE)), cq);
  destroy.Add(C(VABI_C(UVERBS_ATTR_DESTROY_CQ_RESP)), 8, 16);
  EXPECT_EQ(-EFAULT, Ioctl(destroy));
  EXPECT_EQ("response.fault", LastRule());
  EXPECT_EQ(nullptr, file().Find(ObjectType::kCq, cq));
}

TEST_F(IoctlTest, FirstOffenceDecides) {
  OpenContext();
  Bytes cqe(4);
  // In the caller's order: a CQE of 5 bytes before an unknown mandatory attribute, and the other
  // way round.
  Request call = CreateCqCall(&cqe);
  call.Find(C(VABI_C(UVERBS_ATTR_CREATE_CQ_CQE)))->len = 5;
  call.Add(31, 0, 0);
  EXPECT_EQ(-EINVAL, Ioctl(call));
  EXPECT_EQ("ioctl.attr.long", LastRule());
  std::swap(call.attrs().front(), call.attrs().back());
  EXPECT_EQ(-EPROTONOSUPPORT, Ioctl(call));
  EXPECT_EQ("ioctl.attr.unknown_mandatory", LastRule());
}

TEST_F(IoctlTest, UnknownOptionalAttributesAreIgnored) {
  OpenContext();
  Bytes cqe(4);
  Request call = CreateCqCall(&cqe);
  call.Add(31, 3, 0, 0);
  EXPECT_EQ(0, Ioctl(call));
}

// The handle is reserved while attributes are looked at; a later offence gives it back.
TEST_F(IoctlTest, FailureGivesTheHandleBack) {
  OpenContext();
  Bytes cqe(4);
  Request call = CreateCqCall(&cqe);
  call.Add(31, 0, 0);
  EXPECT_EQ(-EPROTONOSUPPORT, Ioctl(call));
  EXPECT_EQ(0u, AllocPd());
}

TEST_F(IoctlTest, DriverFailureTakesNothingDown) {
  OpenContext();
  script().log.clear();
  script().fail_with = -ENOMEM;
  Bytes cqe(4);
  Request call = CreateCqCall(&cqe);
  EXPECT_EQ(-ENOMEM, Ioctl(call));
  EXPECT_TRUE(script().log.empty());
}

TEST_F(IoctlTest, UnwritableReplyDestroysTheNewObject) {
  OpenContext();
  script().log.clear();
  Bytes cqe(4);
  Request call = CreateCqCall(&cqe);
  call.Find(C(VABI_C(UVERBS_ATTR_CREATE_CQ_RESP_CQE)))->data = 16;
  EXPECT_EQ(-EFAULT, Ioctl(call));
  EXPECT_THAT(script().log, ElementsAre("create_cq", "destroy_cq"));
}

TEST_F(IoctlTest, PassesDriverDataInAndMarksItsReply) {
  OpenContext();
  Bytes cqe(4), in(32, 9), out(16);
  Request call = CreateCqCall(&cqe);
  call.AddIn(C(VABI_C(UVERBS_ATTR_UHW_IN)), in);
  call.AddOut(C(VABI_C(UVERBS_ATTR_UHW_OUT)), out);
  ASSERT_EQ(0, Ioctl(call));
  EXPECT_EQ(in, script().udata_in);
  EXPECT_EQ(16u, script().udata_out);
  EXPECT_TRUE(call.Written(C(VABI_C(UVERBS_ATTR_UHW_OUT))));
  EXPECT_EQ(32, Last()["uhw_in"]);
}

TEST_F(IoctlTest, ShortDriverDataStandsInTheAttribute) {
  OpenContext();
  Bytes cqe(4), in = {1, 2, 3, 4, 5};
  Request call = CreateCqCall(&cqe);
  call.AddIn(C(VABI_C(UVERBS_ATTR_UHW_IN)), in);
  ASSERT_EQ(0, Ioctl(call));
  EXPECT_EQ(in, script().udata_in);
}

TEST_F(IoctlTest, HeaderMayBeUnreadable) {
  EXPECT_EQ(-EFAULT, file().Ioctl(0xc0181b01, reinterpret_cast<void*>(8)));
  EXPECT_EQ("ioctl.header.fault", LastRule());
}

TEST_F(IoctlTest, AttributesMayBeUnreadable) {
  // The header ends where the mapped page does.
  void* pages = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(static_cast<uint8_t*>(pages) + 4096, 4096, PROT_NONE);
  Request call = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_GET_CONTEXT));
  call.header().num_attrs = 1;
  call.header().length = 40;
  void* at = static_cast<uint8_t*>(pages) + 4096 - 24;
  std::memcpy(at, &call.header(), 24);
  EXPECT_EQ(-EFAULT, file().Ioctl(0xc0181b01, at));
  EXPECT_EQ("ioctl.attributes.fault", LastRule());
  munmap(pages, 8192);
}

TEST_F(IoctlTest, OtherNumbersAreNoIoctlOfOurs) {
  Request call = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_GET_CONTEXT));
  EXPECT_EQ(-ENOTTY, Ioctl(call, 0xc0101b01)) << "the number of kernels with the 16-byte header";
  EXPECT_EQ("ioctl.number", LastRule());
  image().knob[Index(KnobId::ioctl)] = 0;
  EXPECT_EQ(-ENOTTY, Ioctl(call));
  EXPECT_EQ("ioctl.absent", LastRule());
}

TEST_F(IoctlTest, MethodsNeedTheDriversOperation) {
  script().lacks = {Op::destroy_cq};
  Reinstall();
  OpenContext();
  Bytes cqe(4);
  Request call = CreateCqCall(&cqe);
  EXPECT_EQ(-EPROTONOSUPPORT, Ioctl(call));
  EXPECT_EQ("ioctl.method.unknown", LastRule());
  EXPECT_EQ("CQ.CREATE", Last()["name"]) << "named all the same";
  // uapi_finalize_disable: QP_CREATE's CQ handles are optional, so the method stays.
  Request qp = New(VABI_C(UVERBS_OBJECT_QP), VABI_C(UVERBS_METHOD_QP_CREATE));
  EXPECT_EQ(-EINVAL, Ioctl(qp));
  EXPECT_EQ("ioctl.mandatory.missing", LastRule());
}

TEST_F(IoctlTest, MandatoryHandleOfAMissingObjectTakesTheMethodAway) {
  script().lacks = {Op::dealloc_dm};
  Reinstall();
  OpenContext();
  Request call = New(VABI_C(UVERBS_OBJECT_MR), VABI_C(UVERBS_METHOD_DM_MR_REG));
  EXPECT_EQ(-EPROTONOSUPPORT, Ioctl(call));
}

TEST_F(IoctlTest, NamesWhatIsNotModelled) {
  OpenContext();
  Request call = New(VABI_C(UVERBS_OBJECT_DMAH), VABI_C(UVERBS_METHOD_DMAH_ALLOC));
  EXPECT_EQ(-EOPNOTSUPP, Ioctl(call));
  EXPECT_EQ("DMAH.ALLOC", Last()["unmodelled"]);
  script().lacks = {Op::alloc_dmah};
  Reinstall();
  EXPECT_EQ(-EPROTONOSUPPORT, Ioctl(call)) << "a driver without the operation has not the method";
}

TEST_F(IoctlTest, ProbeOfLibibverbsAnswersEnospc) {
  // rdma-core sends INVOKE_WRITE of QUERY_DEVICE with the command alone, to learn whether it
  // exists.
  OpenContext();
  EXPECT_EQ(-ENOSPC, Invoke(1, {}));
  EXPECT_EQ("invoke_write.request.short", LastRule());
  EXPECT_EQ("QUERY_DEVICE", Last()["inner"]);
  EXPECT_EQ("DEVICE.INVOKE_WRITE", Last()["name"]);
}

TEST_F(IoctlTest, InvokeWriteMarksTheCoreReply) {
  OpenContext();
  Bytes reply(4);
  Request call = InvokeAllocPd(&reply);
  ASSERT_EQ(0, Ioctl(call));
  EXPECT_TRUE(call.Written(C(VABI_C(UVERBS_ATTR_CORE_OUT))));
}

// ib_user_verbs.h: the request of a command with a reply starts with `response`, an address.
TEST_F(IoctlTest, TracesNoValueOfARequestThatIsTheAddressOfItsReply) {
  OpenContext();
  Bytes reply(4);
  Request call = InvokeAllocPd(&reply);
  ASSERT_EQ(0, Ioctl(call));
  EXPECT_EQ("ALLOC_PD", Last()["inner"]);
  EXPECT_EQ(3, Last()["attrs"][0]["value"]) << "the command";
  EXPECT_FALSE(Last()["attrs"][1].contains("value"));

  Request other = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_INVOKE_WRITE));
  other.AddConst(C(VABI_C(UVERBS_ATTR_WRITE_CMD)), 4);
  other.AddIn(C(VABI_C(UVERBS_ATTR_CORE_IN)), reply);
  ASSERT_EQ(0, Ioctl(other));
  EXPECT_EQ("DEALLOC_PD", Last()["inner"]);
  EXPECT_TRUE(Last()["attrs"][1].contains("value")) << "the handle: there is no reply";
}

TEST_F(IoctlTest, HandlesOfOtherFilesAreNotThere) {
  OpenContext();
  const uint32_t pd = AllocPd();
  auto other = std::make_shared<UverbsFile>(*FindDevice(0));
  EXPECT_EQ(nullptr, other->FindAny(ObjectType::kPd, pd));
}

TEST_F(IoctlTest, ChannelsOfOtherFilesAreBadDescriptors) {
  OpenContext();
  const int channel = CreateChannel();
  auto other = std::make_shared<UverbsFile>(*FindDevice(0));
  std::swap(other, file_);
  OpenContext();
  Bytes cqe(4);
  Request call = CreateCqCall(&cqe);
  call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL)), static_cast<uint64_t>(channel));
  EXPECT_EQ(-EBADF, Ioctl(call));
  EXPECT_EQ("fd.wrong", LastRule());
}

TEST_F(IoctlTest, InfoHandlesListsNewestFirst) {
  OpenContext();
  AllocPd();
  CreateCq();
  AllocPd();
  Request call = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_INFO_HANDLES));
  Bytes total(4), list(32, 0xff);
  call.AddConst(C(VABI_C(UVERBS_ATTR_INFO_OBJECT_ID)), C(VABI_C(UVERBS_OBJECT_PD)));
  call.AddOut(C(VABI_C(UVERBS_ATTR_INFO_TOTAL_HANDLES)), total);
  call.AddOut(C(VABI_C(UVERBS_ATTR_INFO_HANDLES_LIST)), list);
  ASSERT_EQ(0, Ioctl(call));
  uint32_t count, handles[2];
  std::memcpy(&count, total.data(), 4);
  std::memcpy(handles, list.data(), 8);
  EXPECT_EQ(2u, count);
  EXPECT_THAT(handles, ElementsAre(2u, 0u));
  EXPECT_EQ(0xff, list[8]) << "only so many bytes as there are handles";
}

TEST_F(IoctlTest, QueryGidTableGivesFilledEntries) {
  OpenContext();
  Request call = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_QUERY_GID_TABLE));
  Bytes entries(32 * 8), count(8);
  call.AddConst(C(VABI_C(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE)), 32);
  call.AddOut(C(VABI_C(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES)), entries);
  call.AddOut(C(VABI_C(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES)), count);
  ASSERT_EQ(0, Ioctl(call));
  uint64_t number;
  std::memcpy(&number, count.data(), 8);
  EXPECT_EQ(device().port(1).gid_count, number);
  EXPECT_EQ(0, std::memcmp(entries.data(), device().port(1).gids[0].raw, 16));
}

TEST_F(IoctlTest, AsyncEventFileGetsADescriptorAtOnce) {
  OpenContext();
  Request call = New(VABI_C(UVERBS_OBJECT_ASYNC_EVENT), VABI_C(UVERBS_METHOD_ASYNC_EVENT_ALLOC));
  call.AddHandle(C(VABI_C(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE)));
  ASSERT_EQ(0, Ioctl(call));
  const int fd = static_cast<int>(call.attrs()[0].data);
  fds_.push_back(fd);
  EXPECT_NE(nullptr, AsyncEventFile::From(FdTable::Get(fd)));
  EXPECT_EQ(FdTable::Get(fd), std::static_pointer_cast<File>(file().async_events));
}

TEST_F(IoctlTest, GetContextAnswersVectorsAndSupport) {
  Request call = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_GET_CONTEXT));
  Bytes vectors(4), support(8);
  call.AddOut(C(VABI_C(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS)), vectors);
  call.AddOut(C(VABI_C(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT)), support);
  ASSERT_EQ(0, Ioctl(call));
  EXPECT_EQ(2, vectors[0]);
  EXPECT_EQ(1, support[0] & 1) << "IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS";
  EXPECT_EQ(-EINVAL, Ioctl(call));
  EXPECT_EQ("context.twice", LastRule());
}

}  // namespace
}  // namespace vabi
