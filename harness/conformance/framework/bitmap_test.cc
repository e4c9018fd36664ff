// SPDX-License-Identifier: BSD-2-Clause
#include "harness/conformance/framework/bitmap.h"

#include <gmock/gmock.h>

#include <cerrno>

namespace vabi::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using traces::Command;

Command Made(const char* via, const char* name, long result = 0) {
  Command command;
  command.via = via;
  command.name = name;
  command.result = result;
  return command;
}

std::vector<std::string> Follow(std::vector<Command> commands) {
  return Bitmap({44, 0}).Follow(commands);
}

TEST(Bitmap, AGoodLibraryContradictsNothing) {
  EXPECT_THAT(Follow({Made("ioctl", "CQ.CREATE", -EPROTONOSUPPORT), Made("write", "CREATE_CQ"),
                      Made("write", "CREATE_CQ"), Made("ioctl", "PD.DESTROY"),
                      Made("ioctl", "PD.DESTROY"), Made("write", "ALLOC_PD")}),
              IsEmpty());
}

TEST(Bitmap, TryingAgainIsWrong) {
  EXPECT_THAT(Follow({Made("ioctl", "CQ.CREATE", -EPROTONOSUPPORT),
                      Made("ioctl", "CQ.CREATE", -EPROTONOSUPPORT)}),
              ElementsAre(HasSubstr("is tried although bit create_cq is set")));
}

TEST(Bitmap, AfterEnottyTryingAnythingIsWrong) {
  EXPECT_THAT(Follow({Made("ioctl", "CQ.CREATE", -ENOTTY), Made("ioctl", "PD.DESTROY", -ENOTTY)}),
              ElementsAre(HasSubstr("bit dealloc_pd")));
  EXPECT_THAT(Follow({Made("ioctl", "CQ.CREATE", -ENOTTY), Made("ioctl", "DEVX.OTHER", -ENOTTY)}),
              IsEmpty());
}

TEST(Bitmap, WritingWithoutATryIsWrong) {
  EXPECT_THAT(Follow({Made("write", "DEALLOC_PD")}),
              ElementsAre(HasSubstr("is written although bit dealloc_pd")));
}

TEST(Bitmap, OtherErrnosMarkNothing) {
  EXPECT_THAT(Follow({Made("ioctl", "CQ.CREATE", -EINVAL), Made("write", "CREATE_CQ")}),
              ElementsAre(HasSubstr("is written although bit create_cq")));
}

TEST(Bitmap, MethodsShareBits) {
  EXPECT_THAT(Follow({Made("ioctl", "AH.DESTROY", -EPROTONOSUPPORT),
                      Made("write_ex", "DESTROY_RWQ_IND_TBL")}),
              IsEmpty());
  EXPECT_THAT(
      Follow({Made("ioctl", "AH.DESTROY", -EPROTONOSUPPORT), Made("ioctl", "RWQ_IND_TBL.DESTROY")}),
      ElementsAre(HasSubstr("bit destroy_ah is set")));
}

TEST(Bitmap, TheProbeMarksNothing) {
  Command probe = Made("ioctl", "DEVICE.INVOKE_WRITE", -EPROTONOSUPPORT);
  probe.inner = "QUERY_DEVICE";
  EXPECT_THAT(Follow({probe, Made("ioctl", "DEVICE.GET_CONTEXT")}), IsEmpty());
}

}  // namespace
}  // namespace vabi::conformance
