// SPDX-License-Identifier: BSD-2-Clause
#include "harness/trace/matchers.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <sstream>

namespace vabi::traces {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Command Made(const char* via, const char* name, long result) {
  Command command;
  command.via = via;
  command.name = name;
  command.result = result;
  return command;
}

std::string Why(const Wanted& wanted, const Command& command) {
  std::ostringstream why;
  EXPECT_FALSE(wanted.MatchAndExplain(command, &why));
  return why.str();
}

TEST(Matchers, TheWayMatters) {
  EXPECT_THAT(Made("write", "ALLOC_PD", 16), Wrote("ALLOC_PD"));
  EXPECT_THAT(Made("write_ex", "CREATE_QP", 16), Not(Wrote("CREATE_QP")));
  EXPECT_THAT(Made("write_ex", "CREATE_QP", 16), WroteExtended("CREATE_QP"));
  EXPECT_THAT(Made("ioctl", "CQ.CREATE", 0), Called("CQ.CREATE"));
  EXPECT_THAT(Made("ioctl", "CQ.CREATE", 0), Not(Wrote("CQ.CREATE")));
}

TEST(Matchers, TheErrnoMatters) {
  const Command refused = Made("ioctl", "CQ.CREATE", -EPROTONOSUPPORT);
  EXPECT_THAT(refused, Failed("CQ.CREATE", EPROTONOSUPPORT));
  EXPECT_THAT(refused, Not(Failed("CQ.CREATE", ENOTTY)));
  EXPECT_THAT(refused, Not(Called("CQ.CREATE")));
  EXPECT_THAT(Why(Failed("CQ.CREATE", ENOTTY), refused), HasSubstr("refused with EPROTONOSUPPORT"));
  EXPECT_THAT(Why(Failed("CQ.CREATE", ENOTTY), Made("ioctl", "CQ.CREATE", 0)),
              HasSubstr("carried out"));
}

TEST(Matchers, InvokeWriteIsToldApartByItsCommandAndForm) {
  Command command = Made("ioctl", "DEVICE.INVOKE_WRITE", 0);
  command.inner = "QUERY_DEVICE";
  command.attributes = {{0, 8, 1, 0x80000000}, {2, 8, 1, 0x80000001}};
  EXPECT_THAT(command, InvokedExtended("QUERY_DEVICE"));
  EXPECT_THAT(command, Not(Invoked("QUERY_DEVICE")));
  command.attributes = {{0, 8, 1, 0x80000000}, {2, 8, 1, 1}};
  EXPECT_THAT(command, Invoked("QUERY_DEVICE"));
  EXPECT_THAT(command, Not(Invoked("ALLOC_PD")));
  command.result = -ENOSPC;
  EXPECT_THAT(command, Failed("DEVICE.INVOKE_WRITE", ENOSPC));
  EXPECT_THAT(command, Failed("QUERY_DEVICE", ENOSPC));
}

TEST(Matchers, LengthsFlagsRuleAndDeviceMatter) {
  Command command = Made("ioctl", "DEVICE.GET_CONTEXT", -EINVAL);
  command.uhw_in = 32;
  command.uhw_out = 72;
  command.flags = 1;
  command.rule = "mlx5.ucontext.flags";
  command.device = "mlx5_0";
  const Wanted wanted = Called("DEVICE.GET_CONTEXT").Fails(EINVAL);
  EXPECT_THAT(command,
              wanted.Uhw(32, 72).Flags(1).Refusing("mlx5.ucontext.flags").Device("mlx5_0"));
  EXPECT_THAT(command, Not(wanted.Uhw(24, 72)));
  EXPECT_THAT(command, Not(wanted.Uhw(32, 64)));
  EXPECT_THAT(command, Not(wanted.Flags(0)));
  EXPECT_THAT(command, Not(wanted.Refusing("mlx5.ucontext.length")));
  EXPECT_THAT(command, Not(wanted.Device("mlx5_1")));
}

TEST(Matchers, AMismatchShowsTheTraceAround) {
  auto all = std::make_shared<std::vector<Command>>();
  for (const char* name : {"GET_CONTEXT", "ALLOC_PD", "REG_MR"}) {
    all->push_back(Made("write", name, 0));
    all->back().place = all->size() - 1;
  }
  Command command = (*all)[1];
  command.trace = all;
  const std::string why = Why(Wrote("CREATE_CQ"), command);
  EXPECT_THAT(why, HasSubstr("is ALLOC_PD"));
  EXPECT_THAT(
      why,
      HasSubstr(
          "    #0 write GET_CONTEXT: ok\n  > #1 write ALLOC_PD: ok\n    #2 write REG_MR: ok\n"));
}

}  // namespace
}  // namespace vabi::traces
