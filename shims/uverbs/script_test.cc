// SPDX-License-Identifier: BSD-2-Clause
// What a world's script does: events as ib_dispatch_event brings them, and the removal of a device
// (uverbs_main.c:ib_uverbs_remove_one, rdma_core.c:uverbs_destroy_ufile_hw,
// uverbs_uapi.c:uverbs_disassociate_api_pre).
#include "shims/uverbs/script.h"

#include <sys/mman.h>
#include <unistd.h>

#include "shims/uverbs/test_uverbs.h"

namespace vabi {
namespace {

class ScriptTest : public UverbsTest {
 protected:
  explicit ScriptTest(const char* kernel = "debian-7.3.4") : UverbsTest(kernel) {}
  void Start(std::initializer_list<ScriptStep> steps) {
    image().script_count = 0;
    for (const ScriptStep& step : steps) image().script[image().script_count++] = step;
    Reinstall();
    OpenContext();
    Request call = New(VABI_C(UVERBS_OBJECT_ASYNC_EVENT), VABI_C(UVERBS_METHOD_ASYNC_EVENT_ALLOC));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE)));
    ASSERT_EQ(0, Ioctl(call)) << LastRule();
    fds_.push_back(static_cast<int>(call.attrs()[0].data));
    events_ = FdTable::Get(fds_.back());
    // The clock starts when there is somebody to hear: what happens before is lost, as in the
    // kernel.
    ScriptOpened(file_);
  }
  // The world of this test goes: nothing may happen to it any more.
  ~ScriptTest() override { ResetScript(); }
  // struct ib_uverbs_async_event_desc: element, type; false: none there.
  bool Next(uint64_t* element, uint32_t* type) {
    uint8_t event[16];
    if (events_->Read(event, sizeof(event), true) != 16) return false;
    std::memcpy(element, event, 8);
    std::memcpy(type, event + 8, 4);
    return true;
  }
  uint32_t PortState() {
    Bytes reply(world().Size(VABI_S(ib_uverbs_query_port_resp)));
    EXPECT_GT(
        Write(2, S(VABI_S(ib_uverbs_query_port)).With(VABI_F(ib_uverbs_query_port, port_num), 1),
              &reply),
        0);
    return U32(reply, VABI_F(ib_uverbs_query_port_resp, state));
  }
  int AllocFails() {
    Bytes reply(4);
    const long result = Write(3, S(VABI_S(ib_uverbs_alloc_pd)), &reply);
    return result < 0 ? static_cast<int>(-result) : 0;
  }
  int DeallocFails(uint32_t pd) {
    const long result =
        Write(4, S(VABI_S(ib_uverbs_dealloc_pd)).With(VABI_F(ib_uverbs_dealloc_pd, pd_handle), pd));
    return result < 0 ? static_cast<int>(-result) : 0;
  }
  // GET_CONTEXT and ASYNC_EVENT.ALLOC are the first two commands.
  static ScriptStep At(ScriptStep::Kind kind, uint32_t calls, uint32_t event = 0) {
    return {kind, 0, event, calls, 0};
  }

  std::shared_ptr<File> events_;
  uint64_t element_ = 0;
  uint32_t type_ = 0;
};

TEST_F(ScriptTest, PortsGoDownAndUp) {
  Start({At(ScriptStep::kPortEvent, 3, 10), At(ScriptStep::kPortEvent, 4, 9)});
  EXPECT_EQ(4u, PortState()) << "IB_PORT_ACTIVE";
  EXPECT_FALSE(Next(&element_, &type_));
  EXPECT_EQ(1u, PortState()) << "IB_PORT_DOWN: before the fourth command";
  ASSERT_TRUE(Next(&element_, &type_));
  EXPECT_EQ(1u, element_) << "the port";
  EXPECT_EQ(10u, type_) << "IB_EVENT_PORT_ERR";
  EXPECT_FALSE(Next(&element_, &type_)) << "once";
  EXPECT_EQ(4u, PortState());
  ASSERT_TRUE(Next(&element_, &type_));
  EXPECT_EQ(9u, type_) << "IB_EVENT_PORT_ACTIVE";
}

TEST_F(ScriptTest, TimeAlsoMakesThemHappen) {
  Start({{ScriptStep::kDeviceFatal, 0, 0, 0, 1'000'000}});
  for (int i = 0; i < 2000 && !Next(&element_, &type_); ++i) usleep(5000);
  EXPECT_EQ(8u, type_) << "IB_EVENT_DEVICE_FATAL";
}

TEST_F(ScriptTest, TimedStepsHappenInTheOrderInWhichTheyAreDue) {
  Start({{ScriptStep::kPortEvent, 0, 9, 0, 20'000'000},
         {ScriptStep::kPortEvent, 0, 10, 0, 10'000'000}});
  for (const uint32_t expected : {10u, 9u}) {
    type_ = 0;
    for (int i = 0; i < 2000 && !Next(&element_, &type_); ++i) usleep(5000);
    EXPECT_EQ(expected, type_);
  }
}

TEST_F(ScriptTest, WhatWasDueInAWorldThatIsGoneNeverHappens) {
  Start({{ScriptStep::kDeviceFatal, 0, 0, 0, 20'000'000}});
  Start({{ScriptStep::kPortEvent, 0, 10, 0, 60'000'000}});
  for (int i = 0; i < 2000 && !Next(&element_, &type_); ++i) usleep(5000);
  EXPECT_EQ(10u, type_) << "IB_EVENT_PORT_ERR: not the first world's IB_EVENT_DEVICE_FATAL";
}

TEST_F(ScriptTest, ARemovedDeviceAnswersEio) {
  Start({At(ScriptStep::kUnplug, 3)});
  const uint32_t pd = AllocPd();
  EXPECT_EQ(EIO, AllocFails());
  EXPECT_EQ("device.gone", LastRule());
  Request query = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_QUERY_PORT));
  Bytes reply(world().Size(VABI_S(ib_uverbs_query_port_resp_ex)));
  query.AddConst(C(VABI_C(UVERBS_ATTR_QUERY_PORT_PORT_NUM)), 1);
  query.AddOut(C(VABI_C(UVERBS_ATTR_QUERY_PORT_RESP)), reply);
  EXPECT_EQ(-EIO, Ioctl(query)) << LastRule();
  EXPECT_EQ(-EIO, file().Mmap(nullptr, 4096, PROT_READ, MAP_SHARED, 0));
  ASSERT_TRUE(Next(&element_, &type_));
  EXPECT_EQ(8u, type_) << "IB_EVENT_DEVICE_FATAL is the last one";
  EXPECT_FALSE(Next(&element_, &type_));
  EXPECT_EQ(0, DeallocFails(pd)) << "DESTROY goes on (4.19)";
  EXPECT_EQ(ENOENT, DeallocFails(pd));
  Opened opened;
  ASSERT_EQ(-ENXIO, FakeKernel::OpenNode(image().node[0].path, 0, &opened));
  EXPECT_EQ("device.gone.open", LastRule());
}

TEST_F(ScriptTest, ChannelsOfARemovedDeviceEnd) {
  Start({At(ScriptStep::kUnplug, 4)});
  Bytes reply(4);
  EXPECT_GT(Write(17, S(VABI_S(ib_uverbs_create_comp_channel)), &reply), 0);
  fds_.push_back(static_cast<int>(U32(reply, VABI_F(ib_uverbs_create_comp_channel_resp, fd))));
  AllocPd();
  EXPECT_EQ(EIO, AllocFails());
  uint64_t event;
  EXPECT_EQ(-EIO, FdTable::Get(fds_.back())->Read(&event, sizeof(event), true));
}

TEST_F(ScriptTest, ADriverThatCannotLetGoWaits) {
  image().op_served[Index(DriverId::rxe)][Index(Op::disassociate_ucontext)] = 0;
  Start({At(ScriptStep::kUnplug, 3)});
  AllocPd();
  EXPECT_EQ(0, AllocFails()) << "wait_for_completion(&uverbs_dev->comp)";
  Opened opened;
  EXPECT_EQ(-ENXIO, FakeKernel::OpenNode(image().node[0].path, 0, &opened));
}

class OldScriptTest : public ScriptTest {
 protected:
  OldScriptTest() : ScriptTest("debian-5.10.223") {
    image().rule[Index(RuleId::device_gone_destroy)].on = 1;  // as up to 4.18
  }
};

TEST_F(OldScriptTest, NothingGoesOn) {
  Start({At(ScriptStep::kUnplug, 3)});
  const uint32_t pd = AllocPd();
  EXPECT_EQ(EIO, AllocFails());
  EXPECT_EQ("device.gone.destroy", LastRule());
  EXPECT_EQ(EIO, DeallocFails(pd));
}

}  // namespace
}  // namespace vabi
