// SPDX-License-Identifier: BSD-2-Clause
//
// Which ABI versions libibverbs takes, of uverbs itself and of a driver, on each route of
// discovery, and what it says when it does not. The same in 33.2, 44.0, 56.1 and 65.0:
// libibverbs/init.c (check_abi_version, match_device, try_drivers), ibdev_nl.c (find_uverbs_nl_cb,
// find_sysfs_devs_nl); providers/rxe/rxe.c and providers/mlx5/mlx5.c for their ranges.

#include <cstdlib>
#include <string>
#include <vector>

#include "harness/conformance/framework/abi_test.h"
#include "harness/conformance/framework/verbs.h"

namespace vabi::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

// The kernel tells of devices, but of no node, or of nothing: then sysfs is asked, and its
// abi_version holds.
const std::vector<KnobNeed> kNoChardev = {{"netlink.level", 0, 1}};

std::string Fatal(int version) {
  return "libibverbs: Fatal: kernel ABI version " + std::to_string(version) +
         " doesn't match library version 6.";
}

std::string Warning(const char* driver, unsigned version, unsigned least, unsigned most,
                    const std::string& device) {
  return std::string("libibverbs: Warning: Driver ") + driver +
         " does not support the kernel ABI of " + std::to_string(version) + " (supports " +
         std::to_string(least) + " to " + std::to_string(most) +
         ") for device /sys/class/infiniband/" + device;
}

// providers/rxe/rxe.c: match_min_abi_version. librxe of 32 bits takes no ABI 1, whose structures
// have another layout there.
constexpr bool kWide = sizeof(void*) == 8;
constexpr unsigned kRxeLeast = kWide ? 1 : 2;
constexpr const char* kRxeTakes = kWide ? "provider-abi=@(1|2)" : "provider-abi=2";

std::string RxeWarning(unsigned version, const std::string& device) {
  return Warning("rxe", version, kRxeLeast, 2, device);
}

// The version that the provider-abi overlay gives, as unsigned int: that is how the library keeps
// it.
unsigned ProviderAbi() {
  return static_cast<unsigned>(
      std::strtoul(cell().OverlayValue("provider-abi")->c_str(), nullptr, 10));
}

std::vector<std::string> Times(int count, const std::string& line) {
  return std::vector<std::string>(count, line);
}

}  // namespace

// init.c:check_abi_version: IB_USER_VERBS_MIN_ABI_VERSION is 3, _MAX_ 6.
// L2-08
ABI_TEST(Negotiation, GlobalAbiFromThreeToSixIsTaken,
         Needs{.knobs = kNoChardev, .overlays = {"global-abi=[3-6]"}}) {
  StandardError messages;
  DeviceList list;
  EXPECT_THAT(list.names(), ElementsAre(cell().device().name));
  EXPECT_THAT(messages.Lines(), IsEmpty());
}

// L2-08
ABI_TEST(Negotiation, GlobalAbiOutsideIsFatalAndToldOnce,
         Needs{.knobs = kNoChardev,
               .overlays = {"global-abi=[0-9]*"},
               .not_overlays = {"global-abi=[3-6]"}}) {
  StandardError messages;
  DeviceList list;
  EXPECT_THAT(list.error(), FailsWith(ENOSYS));
  EXPECT_THAT(messages.Lines(), ElementsAre(Fatal(std::stoi(*cell().OverlayValue("global-abi")))));
}

// strtol finds no digit: version 0.
ABI_TEST(Negotiation, GlobalAbiThatIsNoNumberIsFatalAsZero,
         Needs{.knobs = kNoChardev, .overlays = {"global-abi=garbage"}}) {
  StandardError messages;
  DeviceList list;
  EXPECT_THAT(list.error(), FailsWith(ENOSYS));
  EXPECT_THAT(messages.Lines(), ElementsAre(Fatal(0)));
}

// ibv_read_sysfs_file fails: ENOSYS without a word.
ABI_TEST(Negotiation, GlobalAbiThatCannotBeReadIsFatalInSilence,
         Needs{.knobs = kNoChardev, .overlays = {"global-abi=@(missing|unreadable)"}}) {
  StandardError messages;
  DeviceList list;
  EXPECT_THAT(list.error(), FailsWith(ENOSYS));
  EXPECT_THAT(messages.Lines(), IsEmpty());
}

// check_abi_version keeps the version before it looks at it, and asks no more once there is one: a
// second call in the same process takes what the first refused. A defect of the library, the same
// in all four releases.
ABI_TEST(Negotiation, ASecondCallTakesTheGlobalAbiThatTheFirstRefused,
         Needs{.knobs = kNoChardev, .overlays = {"global-abi=[27]"}}) {
  StandardError messages;
  { DeviceList refused; }
  DeviceList list;
  EXPECT_THAT(list.names(), ElementsAre(cell().device().name));
  EXPECT_THAT(messages.Lines(), ElementsAre(Fatal(std::stoi(*cell().OverlayValue("global-abi")))));
}

// 0 is kept as "not asked yet", so a file without a number is refused, and told of, each time.
ABI_TEST(Negotiation, ASecondCallRefusesGarbageAgain,
         Needs{.knobs = kNoChardev, .overlays = {"global-abi=garbage"}}) {
  StandardError messages;
  { DeviceList refused; }
  DeviceList list;
  EXPECT_THAT(list.error(), FailsWith(ENOSYS));
  EXPECT_THAT(messages.Lines(), ElementsAre(Fatal(0), Fatal(0)));
}

// ibdev_nl.c:find_uverbs_nl_cb: an answer to GET_CHARDEV makes the global version 6; sysfs is not
// asked.
ABI_TEST(Negotiation, NetlinkMakesTheGlobalAbiSixWhateverSysfsSays,
         Needs{.discovery = Discovery::kNetlink, .overlays = {"global-abi=*"}}) {
  StandardError messages;
  DeviceList list;
  EXPECT_THAT(list.names(), ElementsAre(cell().device().name));
  EXPECT_THAT(messages.Lines(), IsEmpty());
  EXPECT_THAT(trace().Netlink(),
              ElementsAre(Wanted({"netlink"}, "GET"), Wanted({"netlink"}, "GET_CHARDEV")));
}

// ibdev_nl.c:find_sysfs_devs_nl: where GET_CHARDEV is refused, the node is looked for in sysfs, and
// netlink's own list of devices stays.
ABI_TEST(Negotiation, WithoutChardevTheNodeComesFromSysfs,
         Needs{.discovery = Discovery::kNetlinkAndSysfs}) {
  StandardError messages;
  DeviceList list;
  EXPECT_THAT(list.names(), ElementsAre(cell().device().name));
  EXPECT_THAT(messages.Lines(), IsEmpty());
  EXPECT_THAT(trace().Netlink(),
              ElementsAre(Wanted({"netlink"}, "GET"), Failed("GET_CHARDEV", EINVAL)));
}

// The same function looks below the device's parent; a device without one is dropped, and since
// netlink did answer, nothing asks sysfs for it again. rxe has no parent since 5.10.
ABI_TEST(Negotiation, WithoutChardevADeviceWithoutParentIsNotFound,
         Needs{.discovery = Discovery::kNetlinkAndSysfs, .provider = "rxe", .found = false}) {
  StandardError messages;
  DeviceList list;
  EXPECT_THAT(list.error(), Succeeds());
  EXPECT_THAT(list.names(), IsEmpty());
  EXPECT_THAT(messages.Lines(), IsEmpty());
}

// L2-14, without contradictions
ABI_TEST(Negotiation, WithoutNetlinkTheDeviceComesFromSysfs,
         Needs{.discovery = Discovery::kSysfs}) {
  StandardError messages;
  DeviceList list;
  EXPECT_THAT(list.names(), ElementsAre(cell().device().name));
  EXPECT_THAT(messages.Lines(), IsEmpty());
  EXPECT_THAT(trace().Of("GET_CHARDEV"), IsEmpty());
}

// The driver's own version: rxe 1 to 2 (of 32 bits 2 alone), mlx5 1 to 1.
// L2-01
ABI_TEST(Negotiation, RxeTakesDriverAbiOneAndTwo,
         Needs{.provider = "rxe", .overlays = {kRxeTakes}}) {
  StandardError messages;
  Context context = OpenOnlyDevice();
  EXPECT_THAT(messages.Lines(), IsEmpty());
}

ABI_TEST(Negotiation, RxeWithAnotherDriverAbiIsWarnedOfTwiceOnNetlink,
         Needs{.discovery = Discovery::kNetlink,
               .provider = "rxe",
               .overlays = {"provider-abi=[0-9]*"},
               .not_overlays = {kRxeTakes}}) {
  StandardError messages;
  DeviceList list;
  EXPECT_THAT(list.names(), IsEmpty());
  EXPECT_THAT(messages.Lines(),
              ElementsAreArray(Times(2, RxeWarning(ProviderAbi(), cell().device().name))));
}

ABI_TEST(Negotiation, RxeWithAnotherDriverAbiIsWarnedOfOnceOnSysfs,
         Needs{.provider = "rxe",
               .knobs = kNoChardev,
               .overlays = {"provider-abi=[0-9]*"},
               .not_overlays = {kRxeTakes}}) {
  StandardError messages;
  DeviceList list;
  EXPECT_THAT(list.names(), IsEmpty());
  EXPECT_THAT(messages.Lines(),
              ElementsAreArray(Times(1, RxeWarning(ProviderAbi(), cell().device().name))));
}

ABI_TEST(Negotiation, Mlx5WithAnotherDriverAbiIsWarnedOfTwiceOnNetlink,
         Needs{.discovery = Discovery::kNetlink,
               .provider = "mlx5",
               .overlays = {"provider-abi=[0-9]*"},
               .not_overlays = {"provider-abi=1"}}) {
  StandardError messages;
  DeviceList list;
  EXPECT_THAT(list.names(), IsEmpty());
  EXPECT_THAT(
      messages.Lines(),
      ElementsAreArray(Times(2, Warning("mlx5", ProviderAbi(), 1, 1, cell().device().name))));
}

ABI_TEST(Negotiation, Mlx5WithAnotherDriverAbiIsWarnedOfOnceOnSysfs,
         Needs{.provider = "mlx5",
               .knobs = kNoChardev,
               .overlays = {"provider-abi=[0-9]*"},
               .not_overlays = {"provider-abi=1"}}) {
  StandardError messages;
  DeviceList list;
  EXPECT_THAT(list.names(), IsEmpty());
  EXPECT_THAT(
      messages.Lines(),
      ElementsAreArray(Times(1, Warning("mlx5", ProviderAbi(), 1, 1, cell().device().name))));
}

// init.c:setup_sysfs_uverbs: a file that says nothing leaves the version 0, and so does one without
// a number.
ABI_TEST(Negotiation, ADriverAbiThatCannotBeReadIsZero,
         Needs{.provider = "rxe",
               .knobs = kNoChardev,
               .overlays = {"provider-abi=@(missing|empty|garbage|unreadable)"}}) {
  StandardError messages;
  DeviceList list;
  EXPECT_THAT(list.names(), IsEmpty());
  EXPECT_THAT(messages.Lines(), ElementsAre(RxeWarning(0, cell().device().name)));
}

ABI_TEST(Negotiation, ADriverAbiWithoutNewlineIsReadAllTheSame,
         Needs{.knobs = kNoChardev, .overlays = {"provider-abi=no-newline"}}) {
  StandardError messages;
  if (cell().device().driver == "rxe" && !kWide) {
    DeviceList list;
    EXPECT_THAT(list.names(), IsEmpty());
    EXPECT_THAT(messages.Lines(), ElementsAre(RxeWarning(1, cell().device().name)));
    return;
  }
  Context context = OpenOnlyDevice();
  EXPECT_THAT(messages.Lines(), IsEmpty());
}

// Netlink brings the number itself: what the file says, or that it is not there, is not looked at.
ABI_TEST(Negotiation, NetlinkDoesNotReadTheDriversAbiFile,
         Needs{.discovery = Discovery::kNetlink,
               .overlays = {"provider-abi=@(missing|empty|garbage|unreadable)"}}) {
  StandardError messages;
  Context context = OpenOnlyDevice();
  EXPECT_THAT(messages.Lines(), IsEmpty());
}

// init.c:ibverbs_get_device_list: what found no driver is tried again by the next call, and warned
// of again.
ABI_TEST(Negotiation, EachCallWarnsAgain,
         Needs{
             .discovery = Discovery::kNetlink, .provider = "rxe", .overlays = {"provider-abi=0"}}) {
  StandardError messages;
  { DeviceList first; }
  DeviceList second;
  EXPECT_THAT(second.names(), IsEmpty());
  EXPECT_THAT(messages.Lines(), ElementsAreArray(Times(4, RxeWarning(0, cell().device().name))));
}

// init.c:ibverbs_get_device_list, IBV_SHOW_WARNINGS.
ABI_TEST(Negotiation, TheRefusedDeviceIsNamedOnRequest,
         Needs{.knobs = kNoChardev, .overlays = {"provider-abi=0"}}) {
  setenv("IBV_SHOW_WARNINGS", "1", 1);
  StandardError messages;
  DeviceList list;
  EXPECT_THAT(list.names(), IsEmpty());
  ASSERT_EQ(messages.Lines().size(), 2u);
  EXPECT_EQ(
      messages.Lines()[1],
      "libibverbs: Warning: no userspace device-specific driver found for " + cell().device().name);
}

// A device that no driver takes harms no other.
// L2-17
ABI_TEST(Negotiation, ABadDeviceLeavesTheGoodOneAlone,
         Needs{.devices = 2, .overlays = {"provider-abi@rxe0=9"}}) {
  StandardError messages;
  DeviceList list;
  EXPECT_THAT(list.names(), ElementsAre("mlx5_0"));
  EXPECT_THAT(messages.Lines(), ElementsAreArray(Times(2, RxeWarning(9, "rxe0"))));
  Error error;
  Context context = TryOpen("mlx5_0", &error);
  EXPECT_THAT(error, Succeeds());
}

ABI_TEST(Negotiation, TwoGoodDevicesBothOpen, Needs{.devices = 2}) {
  StandardError messages;
  DeviceList list;
  EXPECT_THAT(list.names(),
              ::testing::UnorderedElementsAre(cell().devices[0].name, cell().devices[1].name));
  for (const CellDevice& device : cell().devices) {
    Error error;
    Context context = TryOpen(device.name, &error);
    EXPECT_THAT(error, Succeeds()) << device.name;
  }
  EXPECT_THAT(messages.Lines(), IsEmpty());
}

}  // namespace vabi::conformance
