// SPDX-License-Identifier: BSD-2-Clause
//
// Requests and replies that are shorter or longer than the other side's structure: what mlx5 tries
// when it opens a context, and what kernels make of lengths that no library of ours sends.
// providers/mlx5/mlx5.c: mlx5_alloc_context, mlx5_cmd_get_context (the same
// in 33.2, 44.0, 56.1, 65.0); kernel: drivers/infiniband/hw/mlx5/main.c:mlx5_ib_alloc_ucontext,
// core/uverbs_cmd.c.

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "harness/conformance/framework/abi_test.h"
#include "harness/conformance/framework/raw.h"
#include "harness/conformance/framework/raw_mlx5.h"
#include "harness/conformance/framework/verbs.h"

namespace vabi::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

constexpr int kWhole = 32;             // struct mlx5_ib_alloc_ucontext_req_v2
constexpr int kBeforeLibCaps = 24;     // offsetof(lib_caps)
constexpr int kBeforeCqeVersion = 16;  // offsetof(max_cqe_version)
constexpr int kReply = 72;             // struct mlx5_ib_alloc_ucontext_resp
constexpr unsigned kDevx = 1;          // MLX5_IB_ALLOC_UCTX_DEVX
static_assert(sizeof(mlx5_ib_alloc_ucontext_req_v2) == kWhole &&
              sizeof(mlx5_ib_alloc_ucontext_resp) == kReply);
static_assert(offsetof(mlx5_ib_alloc_ucontext_req_v2, lib_caps) == kBeforeLibCaps);
static_assert(offsetof(mlx5_ib_alloc_ucontext_req_v2, max_cqe_version) == kBeforeCqeVersion);

// One attempt to get a context: by whatever way, as the kernel's driver saw it. The driver looks at
// the length first: what it refuses for that has no flags.
struct Attempt {
  int length;
  std::optional<uint64_t> flags;
  Error answer;
  bool operator==(const Attempt& other) const {
    const bool same_flags = !flags || !other.flags || *flags == *other.flags;
    return length == other.length && same_flags && answer == other.answer;
  }
};
std::ostream& operator<<(std::ostream& out, const Attempt& attempt) {
  out << attempt.length << " bytes";
  if (attempt.flags) out << " flags " << *attempt.flags;
  return out << ": " << attempt.answer;
}

// Not what the core refused for want of the method or of ioctl.
bool ReachedTheDriver(const Command& command) {
  return command.via != "ioctl" ||
         (command.result != -ENOTTY && command.result != -EPROTONOSUPPORT);
}

// What was sent for the driver, also where an overlay answered before anybody looked at it.
int DriverLength(const Command& command) {
  if (command.uhw_in >= 0) return command.uhw_in;
  for (const traces::Attribute& attribute : command.attributes) {
    if (attribute.id == UVERBS_ATTR_UHW_IN) return static_cast<int>(attribute.length);
  }
  return -1;
}

std::vector<Attempt> Attempts() {
  std::vector<Attempt> attempts;
  for (const Command& command : trace().Of({"DEVICE.GET_CONTEXT", "GET_CONTEXT"})) {
    if (!ReachedTheDriver(command)) continue;
    attempts.push_back({command.uhw_in,
                        command.flags,
                        {command.failed() ? static_cast<int>(-command.result) : 0}});
  }
  return attempts;
}

RawRequest QueryDevice(size_t extra_zeros = 0) {
  auto request = RawRequest::Of(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, ib_uverbs_ex_query_device{});
  request.core.resize(request.core.size() + extra_zeros);
  return request;
}

constexpr size_t kLeastQueryDevice =
    offsetof(ib_uverbs_ex_query_device_resp, response_length) + sizeof(uint32_t);  // 184
uint32_t ResponseLength(const Guarded& reply) {
  return reply.Read<uint32_t>(offsetof(ib_uverbs_ex_query_device_resp, response_length));
}

}  // namespace

// 4.4: only lengths of 8 and 16 are known, and flags are refused: the last attempt alone is left.
ABI_TEST(RequestLength, Mlx5On44ComesDownToTheShortestRequestWithoutFlags,
         Needs{.provider = "mlx5", .kernels = {"linux-4.4"}}) {
  Context context = OpenOnlyDevice();
  EXPECT_THAT(
      Attempts(),
      ElementsAre(Attempt{kWhole, kDevx, {EINVAL}}, Attempt{kBeforeLibCaps, kDevx, {EINVAL}},
                  Attempt{kBeforeCqeVersion, kDevx, {EINVAL}}, Attempt{kWhole, 0, {EINVAL}},
                  Attempt{kBeforeLibCaps, 0, {EINVAL}}, Attempt{kBeforeCqeVersion, 0, {0}}));
}

// 4.10: the flag is refused at every length; without it the whole request is, for the lib_caps
// behind the 24 bytes that this kernel knows.
ABI_TEST(RequestLength, Mlx5On410LeavesLibCapsOut,
         Needs{.provider = "mlx5", .kernels = {"linux-4.10"}}) {
  Context context = OpenOnlyDevice();
  EXPECT_THAT(
      Attempts(),
      ElementsAre(Attempt{kWhole, kDevx, {EINVAL}}, Attempt{kBeforeLibCaps, kDevx, {EINVAL}},
                  Attempt{kBeforeCqeVersion, kDevx, {EINVAL}}, Attempt{kWhole, 0, {EOPNOTSUPP}},
                  Attempt{kBeforeLibCaps, 0, {0}}));
}

// 4.14 to 4.18: longer requests are taken, DEVX is not: the flag is what is refused.
ABI_TEST(RequestLength, Mlx5Before419LeavesDevxOut,
         Needs{.provider = "mlx5", .kernels = {"linux-4.16", "linux-4.17", "linux-4.18"}}) {
  Context context = OpenOnlyDevice();
  EXPECT_THAT(
      Attempts(),
      ElementsAre(Attempt{kWhole, kDevx, {EINVAL}}, Attempt{kBeforeLibCaps, kDevx, {EINVAL}},
                  Attempt{kBeforeCqeVersion, kDevx, {EINVAL}}, Attempt{kWhole, 0, {0}}));
}

// 4.19: DEVX is known, and not permitted on InfiniBand.
ABI_TEST(RequestLength, Mlx5On419HasNoDevxOnInfiniBand,
         Needs{.provider = "mlx5", .link = "ib", .kernels = {"linux-4.19"}}) {
  Context context = OpenOnlyDevice();
  EXPECT_THAT(Attempts(),
              ElementsAre(Attempt{kWhole, kDevx, {EPERM}}, Attempt{kBeforeLibCaps, kDevx, {EPERM}},
                          Attempt{kBeforeCqeVersion, kDevx, {EPERM}}, Attempt{kWhole, 0, {0}}));
}

ABI_TEST(RequestLength, Mlx5On419HasDevxOnEthernet,
         Needs{.provider = "mlx5", .link = "roce", .kernels = {"linux-4.19"}}) {
  Context context = OpenOnlyDevice();
  EXPECT_THAT(Attempts(), ElementsAre(Attempt{kWhole, kDevx, {0}}));
}

ABI_TEST(RequestLength, Mlx5Since420AsksOnce,
         Needs{.provider = "mlx5", .kernels = {"linux-4.20", "linux-[5-9].*", "debian-*"}}) {
  Context context = OpenOnlyDevice();
  EXPECT_THAT(Attempts(), ElementsAre(Attempt{kWhole, kDevx, {0}}));
}

// Whatever the errno: three lengths with DEVX, three without, then the open fails with the last
// answer. All stay on the way of the first: an errno that is no ENOTTY or EPROTONOSUPPORT is final
// (libibverbs/cmd_fallback.c).
ABI_TEST(RequestLength, Mlx5TriesSixTimesAndGivesUp,
         Needs{.provider = "mlx5",
               .served = {"DEVICE.GET_CONTEXT"},
               .overlays = {"errno@DEVICE.GET_CONTEXT=*"},
               .not_overlays = {"*=@(ENOTTY|EPROTONOSUPPORT)"}}) {
  Error error;
  Context context = TryOpen(cell().device().name, &error);
  EXPECT_FALSE(context);
  EXPECT_EQ(ErrorName(error.value), *cell().OverlayValue("errno@DEVICE.GET_CONTEXT"));
  std::vector<int> lengths;
  for (const Command& command : trace().Of({"DEVICE.GET_CONTEXT", "GET_CONTEXT"})) {
    EXPECT_EQ(command.via, "ioctl") << command;
    lengths.push_back(DriverLength(command));
  }
  EXPECT_THAT(lengths, ElementsAre(kWhole, kBeforeLibCaps, kBeforeCqeVersion, kWhole,
                                   kBeforeLibCaps, kBeforeCqeVersion));
}

// One passing failure costs the longest request, not the open.
ABI_TEST(RequestLength, Mlx5GoesOnWithAShorterRequestAfterOneFailure,
         Needs{.provider = "mlx5",
               .kernels = kSince50,
               .served = {"DEVICE.GET_CONTEXT"},
               .overlays = {"errno-once@DEVICE.GET_CONTEXT=EINVAL"}}) {
  Context context = OpenOnlyDevice();
  std::vector<int> lengths;
  for (const Command& command : trace().Of({"DEVICE.GET_CONTEXT", "GET_CONTEXT"})) {
    lengths.push_back(DriverLength(command));
  }
  EXPECT_THAT(lengths, ElementsAre(kWhole, kBeforeLibCaps));
}

// The reply has the library's size whatever the kernel's is.
ABI_TEST(RequestLength, Mlx5AlwaysHasRoomForItsWholeReply, Needs{.provider = "mlx5"}) {
  Context context = OpenOnlyDevice();
  for (const Command& command : trace().Of({"DEVICE.GET_CONTEXT", "GET_CONTEXT"})) {
    if (ReachedTheDriver(command)) {
      EXPECT_EQ(command.uhw_out, kReply) << command;
    }
  }
}

// hw/mlx5/main.c, 5.9 on: response_length = min(outlen, sizeof(resp)), and as much is copied;
// since 7.2 the rest of the buffer is zeroed. Nothing is written behind the caller's buffer.
ABI_TEST(RequestLength, Mlx5ContextRepliesAreCutToTheBuffer,
         Needs{.provider = "mlx5",
               .served = {"DEVICE.GET_CONTEXT"},
               .knobs = {{"mlx5.ucontext.reply", 2, 2}, {"mlx5.respond_zeroes", 0, 0}}}) {
  const size_t whole = cell().SizeOf("mlx5_ib_alloc_ucontext_resp");
  for (const size_t length : {44, 48, 56, 64, 72, 80, 128}) {
    RawFile file;
    Guarded reply(128);
    EXPECT_THAT(GetMlx5Context(file.fd(), UsualMlx5Context(), reply.data(), length), Succeeds())
        << length;
    EXPECT_TRUE(reply.intact()) << length;
    EXPECT_LE(reply.written(), std::min(length, whole)) << length;
    EXPECT_EQ(reply.Read<uint32_t>(offsetof(mlx5_ib_alloc_ucontext_resp, response_length)),
              std::min(length, whole))
        << length;
  }
}

// Too short for response_length itself: still cut, still a context.
ABI_TEST(RequestLength, Mlx5ContextRepliesMayBeVeryShort,
         Needs{.provider = "mlx5",
               .served = {"DEVICE.GET_CONTEXT"},
               .knobs = {{"mlx5.ucontext.reply", 2, 2}}}) {
  for (const size_t length : {16, 32, 40}) {
    RawFile file;
    Guarded reply(128);
    EXPECT_THAT(GetMlx5Context(file.fd(), UsualMlx5Context(), reply.data(), length), Succeeds())
        << length;
    EXPECT_TRUE(reply.intact());
    EXPECT_LE(reply.written(), length);
  }
}

// core/uverbs_cmd.c:uverbs_response, uverbs_response_length (5.0 on): shorter replies are cut, the
// rest of longer ones is zeroed, and response_length says how much is meant. The least lengths that
// the table names for extended commands are not looked at: uverbs_uapi.c:uapi_create_write takes
// them over for legacy commands only.
ABI_TEST(RequestLength, QueryDeviceRepliesAreCutOrZeroFilled,
         Needs{.kernels = kSince50, .served = {"EX_QUERY_DEVICE"}, .ops = {"query_device_ex"}}) {
  Context context = OpenOnlyDevice();
  const size_t whole = cell().SizeOf("ib_uverbs_ex_query_device_resp");
  for (const size_t length :
       {size_t{8}, size_t{176}, kLeastQueryDevice, size_t{208}, whole, whole + 64}) {
    Guarded reply(512);
    RawRequest request = QueryDevice();
    request.reply = &reply;
    EXPECT_THAT(RawExtended(context->cmd_fd, request, length, 0), Succeeds()) << length;
    EXPECT_TRUE(reply.intact());
    EXPECT_EQ(reply.written(), length) << "bytes written of " << length;
    if (length >= kLeastQueryDevice) {
      EXPECT_EQ(ResponseLength(reply), std::min(length, whole)) << length;
    }
    for (size_t i = whole; i < length; ++i) EXPECT_EQ(reply.Read<uint8_t>(i), 0) << i;
  }
}

// Up to 4.20 the handler adds field after field that fits, and leaves the rest of the buffer alone.
ABI_TEST(RequestLength, QueryDeviceRepliesLeaveTheRestAloneUntil420,
         Needs{.kernels = kUntil420, .served = {"EX_QUERY_DEVICE"}, .ops = {"query_device_ex"}}) {
  Context context = OpenOnlyDevice();
  const size_t whole = cell().SizeOf("ib_uverbs_ex_query_device_resp");
  for (const size_t length : {kLeastQueryDevice, whole, whole + 64}) {
    Guarded reply(512);
    RawRequest request = QueryDevice();
    request.reply = &reply;
    EXPECT_THAT(RawExtended(context->cmd_fd, request, length, 0), Succeeds()) << length;
    EXPECT_TRUE(reply.intact());
    EXPECT_EQ(ResponseLength(reply), std::min(length, whole)) << length;
    EXPECT_LE(reply.written(), std::min(length, whole)) << length;
  }
}

// The handler's own least length before 5.0.
ABI_TEST(RequestLength, AQueryDeviceReplyThatIsTooShortIsRefusedUntouchedUntil420,
         Needs{.kernels = kUntil420, .served = {"EX_QUERY_DEVICE"}, .ops = {"query_device_ex"}}) {
  Context context = OpenOnlyDevice();
  Guarded reply(512);
  RawRequest request = QueryDevice();
  request.reply = &reply;
  EXPECT_THAT(RawExtended(context->cmd_fd, request, kLeastQueryDevice - 8, 0), FailsWith(ENOSPC));
  EXPECT_EQ(reply.written(), 0u);
  EXPECT_TRUE(reply.intact());
}

// uverbs_request: a longer request is a newer library's; what it adds must be zero. Before 5.0
// nobody looked.
ABI_TEST(RequestLength, ALongerRequestMustEndInZeros,
         Needs{.kernels = kSince50, .served = {"EX_QUERY_DEVICE"}, .ops = {"query_device_ex"}}) {
  Context context = OpenOnlyDevice();
  Guarded reply(512);
  RawRequest request = QueryDevice(16);
  request.reply = &reply;
  const size_t whole = cell().SizeOf("ib_uverbs_ex_query_device_resp");
  EXPECT_THAT(RawExtended(context->cmd_fd, request, whole, 0), Succeeds());
  for (size_t i = sizeof(ib_uverbs_ex_query_device); i < request.core.size(); ++i) {
    RawRequest other = request;
    other.core[i] = 1;
    Guarded untouched(512);
    other.reply = &untouched;
    EXPECT_THAT(RawExtended(context->cmd_fd, other, whole, 0), FailsWith(EOPNOTSUPP)) << i;
    EXPECT_EQ(untouched.written(), 0u);
  }
}

ABI_TEST(RequestLength, ALongerRequestIsIgnoredUntil420,
         Needs{.kernels = kUntil420, .served = {"EX_QUERY_DEVICE"}, .ops = {"query_device_ex"}}) {
  Context context = OpenOnlyDevice();
  Guarded reply(512);
  RawRequest request = QueryDevice(16);
  request.core.back() = 1;
  request.reply = &reply;
  EXPECT_THAT(
      RawExtended(context->cmd_fd, request, cell().SizeOf("ib_uverbs_ex_query_device_resp"), 0),
      Succeeds());
}

// libibverbs/cmd_device.c:ibv_cmd_query_device_any: fields behind the kernel's response_length stay
// zero, and zero means that the feature is not there.
ABI_TEST(RequestLength, WhatTheKernelDoesNotAnswerIsUnsupported,
         Needs{.served = {"EX_QUERY_DEVICE"},
               .ops = {"query_device_ex"},
               .structs = {{"ib_uverbs_ex_query_device_resp", 1, 224}}}) {
  Context context = OpenOnlyDevice();
  ibv_device_attr_ex attr;
  std::memset(&attr, 0xff, sizeof attr);
  ASSERT_THAT(FromVerb(ibv_query_device_ex(context.get(), nullptr, &attr)), Succeeds());
  EXPECT_EQ(attr.device_cap_flags_ex & ~uint64_t{0xffffffff}, 0u);
  EXPECT_EQ(attr.tm_caps.max_num_tags, 0u);
  EXPECT_EQ(attr.cq_mod_caps.max_cq_count, 0u);
  EXPECT_EQ(attr.max_dm_size, 0u);
  EXPECT_EQ(attr.xrc_odp_caps, 0u);
}

// ibv_cmd_query_device_any: EOPNOTSUPP or ENOSYS of the extended command asks the legacy one.
ABI_TEST(RequestLength, WithoutTheExtendedQueryTheLegacyOneAnswers,
         Needs{.provider = "rxe", .kernels = kUntil420, .no_ops = {"query_device_ex"}}) {
  Context context = OpenOnlyDevice();
  trace().Forget();
  ibv_device_attr_ex attr;
  std::memset(&attr, 0xff, sizeof attr);
  ASSERT_THAT(FromVerb(ibv_query_device_ex(context.get(), nullptr, &attr)), Succeeds());
  EXPECT_THAT(
      trace().Of("QUERY_DEVICE"),
      ElementsAre(Wanted({"write_ex"}, "QUERY_DEVICE").Fails(EOPNOTSUPP), Wrote("QUERY_DEVICE")));
  EXPECT_EQ(attr.orig_attr.max_qp, cell().Knob("rxe.max_qp"));
  EXPECT_EQ(attr.max_dm_size, 0u);
}

// core/uverbs_std_types_device.c: QUERY_PORT's reply may be longer, then it is zero-filled, but not
// shorter.
ABI_TEST(RequestLength, QueryPortRepliesHaveALeastLength, Needs{.served = {"DEVICE.QUERY_PORT"}}) {
  Context context = OpenOnlyDevice();
  const size_t whole = sizeof(ib_uverbs_query_port_resp_ex);
  for (const size_t length : {whole, whole + 16}) {
    Guarded reply(128);
    RawIoctl call(context->cmd_fd, DriverId(), UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
    call.Value(UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1)
        .Out(UVERBS_ATTR_QUERY_PORT_RESP, reply.data(), length);
    EXPECT_THAT(call.Call(), Succeeds()) << length;
    EXPECT_TRUE(call.ValidOutput(UVERBS_ATTR_QUERY_PORT_RESP));
    EXPECT_TRUE(reply.intact());
    EXPECT_EQ(reply.written(), length);
  }
  Guarded reply(128);
  RawIoctl call(context->cmd_fd, DriverId(), UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
  call.Value(UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1).Out(UVERBS_ATTR_QUERY_PORT_RESP, reply.data(), 40);
  EXPECT_THAT(call.Call(), FailsWith(EINVAL));
  EXPECT_EQ(reply.written(), 0u);
}

// A legacy reply of 8 bytes where 16 are due (ALLOC_PD has 4, REG_MR 12): refused, untouched.
ABI_TEST(RequestLength, ALegacyReplyThatIsTooShortIsRefusedUntouched, Needs{}) {
  Context context = OpenOnlyDevice();
  Guarded reply(256);
  auto request = RawRequest::Of(IB_USER_VERBS_CMD_QUERY_DEVICE, ib_uverbs_query_device{});
  request.reply = &reply;
  request.reply_length = sizeof(ib_uverbs_query_device_resp) - 4;
  EXPECT_THAT(RawWrite(context->cmd_fd, request), FailsWith(ENOSPC));
  EXPECT_EQ(reply.written(), 0u);
  EXPECT_TRUE(reply.intact());
  request.reply_length += 4;
  EXPECT_THAT(RawWrite(context->cmd_fd, request), Succeeds());
  EXPECT_EQ(reply.written(), sizeof(ib_uverbs_query_device_resp));
  EXPECT_TRUE(reply.intact());
}

}  // namespace vabi::conformance
