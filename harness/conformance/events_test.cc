// SPDX-License-Identifier: BSD-2-Clause
//
// What happens to devices while a program uses them: port events reach ibv_get_async_event(3), and
// a removed device answers EIO to everything but destruction, which goes on
// (libibverbs/cmd_fallback.c, kernel: rdma_core.c:uverbs_destroy_ufile_hw).

#include <poll.h>

#include "harness/conformance/framework/abi_test.h"
#include "harness/conformance/framework/verbs.h"

namespace vabi::conformance {
namespace {

// Commands without an effect, more than any overlay of these cells waits for.
void PassTheTime(const Context& context) {
  for (int i = 0; i < 100; ++i) {
    ibv_port_attr attr = {};
    if (ibv_query_port(context.get(), 1, &attr) != 0) return;
  }
}

bool EventWaits(const Context& context) {
  pollfd waiting = {context->async_fd, POLLIN, 0};
  return poll(&waiting, 1, 2000) == 1;
}

}  // namespace

ABI_TEST(Events, APortThatGoesDownIsTold, Needs{.overlays = {"event=PORT_ERR@*cmds"}}) {
  Context context = OpenOnlyDevice();
  EXPECT_EQ(context.QueryPort().state, IBV_PORT_ACTIVE);
  PassTheTime(context);
  ASSERT_TRUE(EventWaits(context));
  ibv_async_event event = {};
  ASSERT_EQ(ibv_get_async_event(context.get(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ERR);
  EXPECT_EQ(event.element.port_num, 1);
  ibv_ack_async_event(&event);
  EXPECT_EQ(context.QueryPort().state, IBV_PORT_DOWN);
}

ABI_TEST(Events, ARemovedDeviceAnswersEio,
         Needs{.ops = {"disassociate_ucontext"}, .overlays = {"unplug@*cmds"}}) {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  PassTheTime(context);
  ibv_port_attr attr = {};
  EXPECT_EQ(ErrorName(ibv_query_port(context.get(), 1, &attr)), "EIO");
  errno = 0;
  EXPECT_EQ(ibv_alloc_pd(context.get()), nullptr);
  EXPECT_EQ(ErrorName(errno), "EIO");
  ASSERT_TRUE(EventWaits(context));
  ibv_async_event event = {};
  ASSERT_EQ(ibv_get_async_event(context.get(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_DEVICE_FATAL);
  ibv_ack_async_event(&event);
  EXPECT_THAT(pd.TryDestroy(), Succeeds());
}

}  // namespace vabi::conformance
