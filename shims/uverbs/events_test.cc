// SPDX-License-Identifier: BSD-2-Clause
// Completion channels and async event files (uverbs_main.c:ib_uverbs_event_read).
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "shims/uverbs/test_uverbs.h"

namespace vabi {
namespace {

class EventsTest : public UverbsTest {
 protected:
  void SetUp() override {
    OpenContext();
    fd_ = CreateChannel();
    channel_ = CompletionChannel::From(FdTable::Get(fd_));
    ASSERT_NE(nullptr, channel_);
    Bytes reply(8);
    ASSERT_GT(Write(18, CqRequest().With(VABI_F(ib_uverbs_create_cq, comp_channel), fd_), &reply),
              0);
    handle_ = U32(reply, VABI_F(ib_uverbs_create_cq_resp, cq_handle));
    cq_ = static_cast<Cq*>(file().Find(ObjectType::kCq, handle_));
  }
  bool Readable() const {
    pollfd one = {fd_, POLLIN, 0};
    return poll(&one, 1, 0) == 1;
  }

  int fd_ = -1;
  std::shared_ptr<CompletionChannel> channel_;
  uint32_t handle_ = 0;
  Cq* cq_ = nullptr;
};

TEST_F(EventsTest, IsReadableExactlyWhileThereAreEvents) {
  EXPECT_FALSE(Readable());
  channel_->Notify(*cq_);
  channel_->Notify(*cq_);
  EXPECT_TRUE(Readable());
  uint64_t handle = 0;
  EXPECT_EQ(8, channel_->Read(&handle, 8, true));
  EXPECT_EQ(0x1234u, handle) << "the CQ's user_handle";
  EXPECT_TRUE(Readable());
  EXPECT_EQ(8, channel_->Read(&handle, 100, true));
  EXPECT_FALSE(Readable());
  EXPECT_EQ(-EAGAIN, channel_->Read(&handle, 8, true));
  EXPECT_EQ("event.read.again", LastRule());
}

TEST_F(EventsTest, ShortReadsLeaveTheEvent) {
  channel_->Notify(*cq_);
  uint64_t handle;
  EXPECT_EQ(-EINVAL, channel_->Read(&handle, 7, true));
  EXPECT_EQ("event.read.short", LastRule());
  EXPECT_EQ(8, channel_->Read(&handle, 8, true));
}

TEST_F(EventsTest, FaultsLoseTheEvent) {
  // Where no user may read to, the file is not asked (fs/read_write.c:vfs_read). No address of 32
  // bits is such a place: access_ok of a 64-bit kernel asks for its own end of user space, whoever
  // calls (arch/x86/include/asm/uaccess.h: TASK_SIZE_MAX).
  const long nowhere = sizeof(void*) == 8 ? -EFAULT : -EAGAIN;
  EXPECT_EQ(nowhere, channel_->Read(reinterpret_cast<void*>(-4096L), 8, true));
  channel_->Notify(*cq_);
  EXPECT_EQ(-EFAULT, channel_->Read(nullptr, 8, true));
  EXPECT_EQ(1u, cq_->comp_events_reported);
  uint64_t handle;
  EXPECT_EQ(-EAGAIN, channel_->Read(&handle, 8, true));
}

// Destroy replies count what was read from the channel; what was not goes with the CQ.
TEST_F(EventsTest, DestroyCountsEventsThatWereRead) {
  channel_->Notify(*cq_);
  channel_->Notify(*cq_);
  channel_->Notify(*cq_);
  uint64_t handle;
  channel_->Read(&handle, 8, true);
  channel_->Read(&handle, 8, true);
  Bytes reply(8);
  ASSERT_GT(
      Write(20,
            S(VABI_S(ib_uverbs_destroy_cq)).With(VABI_F(ib_uverbs_destroy_cq, cq_handle), handle_),
            &reply),
      0);
  EXPECT_EQ(2u, U32(reply, VABI_F(ib_uverbs_destroy_cq_resp, comp_events_reported)));
  EXPECT_FALSE(Readable());
}

TEST_F(EventsTest, BlockingReadWaits) {
  std::thread notifier([&] {
    usleep(20000);
    channel_->Notify(*cq_);
  });
  uint64_t handle = 0;
  EXPECT_EQ(8, channel_->Read(&handle, 8, false));
  notifier.join();
}

// uverbs_main.c:ib_uverbs_event_read waits by wait_event_interruptible: the handler's SA_RESTART
// decides (signal(7)).
TEST_F(EventsTest, ASignalEndsAReadUnlessItsHandlerRestarts) {
  static std::atomic<int> handled;
  const pthread_t reader = pthread_self();
  struct sigaction before;
  for (const bool restart : {false, true}) {
    struct sigaction action = {};
    action.sa_handler = [](int) { ++handled; };
    action.sa_flags = restart ? SA_RESTART : 0;
    ASSERT_EQ(0, sigaction(SIGUSR1, &action, restart ? nullptr : &before));
    std::atomic<bool> ended{false};
    handled = 0;
    std::thread sender([&] {
      for (int i = 0; i < 2000 && !ended && !(restart && handled >= 20); ++i) {
        pthread_kill(reader, SIGUSR1);
        usleep(1000);
      }
      channel_->Notify(*cq_);
    });
    uint64_t handle;
    EXPECT_EQ(restart ? 8 : -EINTR, channel_->Read(&handle, 8, false)) << restart;
    ended = true;
    sender.join();
    while (channel_->Read(&handle, 8, true) == 8) {
    }
  }
  sigaction(SIGUSR1, &before, nullptr);
}

// uverbs_main.c:ib_uverbs_comp_handler wakes the waiters for each event, so each is an edge.
TEST_F(EventsTest, EachEventIsAnEdge) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLET;
  ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, fd_, &event));
  EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));
  channel_->Notify(*cq_);
  EXPECT_EQ(1, epoll_wait(epoll, &event, 1, 0));
  EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));
  channel_->Notify(*cq_);
  EXPECT_EQ(1, epoll_wait(epoll, &event, 1, 0));
  uint64_t handle;
  EXPECT_EQ(8, channel_->Read(&handle, 8, true));
  EXPECT_TRUE(Readable());
  EXPECT_EQ(8, channel_->Read(&handle, 8, true));
  EXPECT_FALSE(Readable());
  close(epoll);
}

// uverbs_main.c:ib_uverbs_event_poll says EPOLLIN | EPOLLRDNORM, and of writing nothing.
TEST_F(EventsTest, IsNeverWritable) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLOUT;
  ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, fd_, &event));
  for (const bool readable : {false, true}) {
    if (readable) channel_->Notify(*cq_);
    EXPECT_EQ(readable ? 1 : 0, epoll_wait(epoll, &event, 1, 0));
    EXPECT_EQ(readable ? static_cast<uint32_t>(EPOLLIN) : event.events, event.events);
    fd_set in, out;
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(fd_, &in);
    FD_SET(fd_, &out);
    timeval none = {};
    EXPECT_EQ(readable ? 1 : 0, select(fd_ + 1, &in, &out, nullptr, &none));
    EXPECT_EQ(readable, FD_ISSET(fd_, &in) != 0);
    EXPECT_FALSE(FD_ISSET(fd_, &out));
  }
  close(epoll);
}

// uverbs_destroy_ufile_hw closes the channels of the file.
TEST_F(EventsTest, ClosingTheDeviceEndsReaders) {
  file().Release();
  uint64_t handle;
  EXPECT_EQ(-EIO, channel_->Read(&handle, 8, false));
  EXPECT_EQ("event.read.closed", LastRule());
  EXPECT_TRUE(Readable());
  EXPECT_EQ(POLLERR, channel_->PollAs(true));
}

// anon_inode_getfd(…, O_RDONLY); uverbs_main.c:ib_uverbs_event_poll
TEST_F(EventsTest, IsForReadingOnly) {
  EXPECT_EQ(-EBADF, channel_->Write("12345678", 8));
  EXPECT_TRUE(channel_->ReadOnly());
  EXPECT_EQ(0, channel_->PollAs(false));
  channel_->Notify(*cq_);
  EXPECT_EQ(POLLIN | POLLRDNORM, channel_->PollAs(true));
}

TEST_F(EventsTest, PollSaysNothingOfTheEndInOlderKernels) {  // 4.4 to 5.6
  image().knob[Index(KnobId::event_closed_error)] = 0;
  file().Release();
  EXPECT_EQ(0, channel_->PollAs(true));
  EXPECT_FALSE(Readable()) << "nor do select and epoll";
}

TEST_F(EventsTest, AsyncEventsCarryElementAndType) {
  Request call = New(VABI_C(UVERBS_OBJECT_ASYNC_EVENT), VABI_C(UVERBS_METHOD_ASYNC_EVENT_ALLOC));
  call.AddHandle(C(VABI_C(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE)));
  ASSERT_EQ(0, Ioctl(call));
  fds_.push_back(static_cast<int>(call.attrs()[0].data));
  uint32_t reported = 0;
  file().async_events->Report(0x77, 5, &reported, nullptr);
  uint8_t event[16];
  EXPECT_EQ(-EINVAL, file().async_events->Read(event, 15, true));
  EXPECT_EQ(16, file().async_events->Read(event, 16, true));
  EXPECT_EQ(0x77, event[0]);
  EXPECT_EQ(5, event[8]);
  EXPECT_EQ(1u, reported);
}

// __uverbs_cleanup_ufile: from the newest to the oldest, again while any could go.
TEST_F(EventsTest, CloseDestroysNewestFirst) {
  const uint32_t pd = AllocPd();
  CreateQp(pd, handle_);
  script().log.clear();
  file().Release();
  EXPECT_THAT(script().log,
              testing::ElementsAre("destroy_qp", "dealloc_pd", "destroy_cq", "dealloc_ucontext"));
}

TEST_F(EventsTest, CloseComesBackToWhatWasInUse) {
  Bytes reply(4);
  const uint32_t qp = CreateQp(AllocPd(), handle_);
  const uint32_t other = AllocPd();
  // A window keeps the newer PD until it is gone itself.
  ASSERT_GT(Write(14,
                  S(VABI_S(ib_uverbs_alloc_mw))
                      .With(VABI_F(ib_uverbs_alloc_mw, pd_handle), other)
                      .With(VABI_F(ib_uverbs_alloc_mw, mw_type), 1),
                  &(reply = Bytes(8))),
            0);
  static_cast<Qp*>(file().Find(ObjectType::kQp, qp))->users = 0;
  script().log.clear();
  file().Release();
  EXPECT_THAT(script().log, testing::ElementsAre("dealloc_mw", "dealloc_pd", "destroy_qp",
                                                 "dealloc_pd", "destroy_cq", "dealloc_ucontext"));
}

}  // namespace
}  // namespace vabi
