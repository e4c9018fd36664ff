// SPDX-License-Identifier: BSD-2-Clause
//
// What stands in the library's requests: flags that a kernel may not know, and the lengths of what
// is asked for.

#include "harness/conformance/framework/requests.h"

#include <rdma/ib_user_verbs.h>

#include <cstddef>

#include "harness/conformance/framework/abi_test.h"
#include "harness/conformance/framework/verbs.h"

namespace vabi::conformance {
namespace {

using ::testing::SizeIs;

// Bytes before the structures of ib_user_verbs.h begin in what is recorded: INVOKE_WRITE carries
// them whole, response address included, as write() does.
constexpr size_t kAccess = offsetof(ib_uverbs_reg_mr, access_flags);
constexpr size_t kLength = offsetof(ib_uverbs_reg_mr, length);

// The access flags of the one region that is registered.
Request RegisterRelaxed() {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  alignas(4096) static uint8_t bytes[8192];
  RequestWatch watch;
  MemoryRegion region =
      pd.RegMr(bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
  const std::vector<Request> sent = watch.Of(IB_USER_VERBS_CMD_REG_MR);
  EXPECT_THAT(sent, SizeIs(1));
  return sent.empty() ? Request() : sent[0];
}

}  // namespace

// libibverbs/verbs.c:ibv_reg_mr_iova2: optional access flags go to a kernel that says in
// GET_CONTEXT that it ignores what it does not know of them (5.6). L3-12.
ABI_TEST(Requests, OptionalAccessIsAskedOfAKernelThatKnowsOfIt,
         Needs{.served = {"DEVICE.GET_CONTEXT"}}) {
  const Request sent = RegisterRelaxed();
  EXPECT_EQ(sent.U32(kAccess), uint32_t{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING});
  EXPECT_EQ(sent.U32(kLength), 8192u);
}

// A context that was written has no such answer. L3-11, L3-12.
ABI_TEST(Requests, OptionalAccessIsLeftOutForAnOlderKernel,
         Needs{.missing = {"DEVICE.GET_CONTEXT"}}) {
  EXPECT_EQ(RegisterRelaxed().U32(kAccess), uint32_t{IBV_ACCESS_LOCAL_WRITE});
}

}  // namespace vabi::conformance
