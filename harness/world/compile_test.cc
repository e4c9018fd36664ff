// SPDX-License-Identifier: BSD-2-Clause
#include "harness/world/compile.h"

#include <gmock/gmock.h>

#include <fstream>

#include "harness/world/test_world.h"

namespace vabi {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

// A root of its own, with links to the real facts, in which a test may put broken files.
class ScratchRoot : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() /
            ("vabi-world-" + std::to_string(::getpid()) + "-" +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(root_ / "matrix");
    fs::create_directory_symlink(fs::absolute("reference-headers"), root_ / "reference-headers");
    for (const char* dir : {"kernels", "providers", "overlays"}) {
      fs::copy(fs::path("matrix") / dir, root_ / "matrix" / dir);
    }
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::ofstream(root_ / "matrix" / path) << text;
  }
  std::string ErrorFor(const std::string& kernel, const std::string& overlay = "",
                       const std::string& provider = "mlx5") {
    WorldSpec spec;
    spec.kernel = kernel;
    spec.devices.push_back({provider, "", ""});
    if (!overlay.empty()) spec.overlays.push_back(OverlaySpec::Parse(overlay));
    WorldCompiler compiler(root_);
    auto world = compiler.Compile(spec);
    return world ? "no error" : world.error();
  }

  fs::path root_;
};

// rdma/ib_user_verbs.h and rdma/rdma_user_ioctl_cmds.h of the package: the write header is two
// words, the ioctl header 24 bytes since it carries driver_id; modify_qp starts with two 32-byte
// address vectors.
TEST(WorldCompiler, TakesSizesAndPlacesFromTheKernelsOwnHeaders) {
  TestWorld newest("debian-7.3.4", {"mlx5"});
  EXPECT_EQ(newest.world().Size(VABI_S(ib_uverbs_cmd_hdr)), 8U);
  EXPECT_EQ(newest.world().Size(VABI_S(ib_uverbs_ioctl_hdr)), 24U);
  EXPECT_EQ(newest.world().At(VABI_F(ib_uverbs_modify_qp, qp_handle)).offset, 64);
  EXPECT_EQ(newest.world().Constant(VABI_C(UVERBS_METHOD_GET_CONTEXT)), 3);
}

// The kernel is a 64-bit one whatever the width of its callers. The facts of 4.10's
// rdma/rdma_user_rxe.h have 208, 40, 56 and 144 bytes for x86-64, but 196, 36, 52 and 136 for i386;
// sizes of later headers agree (which is what rxe's ABI 2 is for).
// L1-03
TEST(WorldCompiler, KeepsTheLayoutsOfA64BitKernelInEveryBuild) {
  TestWorld old("linux-4.10", {"rxe"});
  EXPECT_EQ(old.world().Size(VABI_S(rxe_send_wqe)), 208U);
  EXPECT_EQ(old.world().Size(VABI_S(rxe_recv_wqe)), 40U);
  EXPECT_EQ(old.world().At(VABI_F(rxe_send_wqe, av)).offset, 56);
  EXPECT_EQ(old.world().At(VABI_F(rxe_send_wqe, status)).offset, 144);
  EXPECT_STREQ(old.image().arch, "x86_64");
}

// All members of an image stand where a shim of another width looks for them: see image.h. Numbers
// of x86-64's rules of alignment.
TEST(WorldImage, HasOneLayoutForEveryWidth) {
  EXPECT_EQ(offsetof(WorldImage, tables_digest), 8U);
  EXPECT_EQ(offsetof(ConstEntry, present), 8U);
  EXPECT_EQ(offsetof(DeviceImage, node_guid) % 8, 0U);
  EXPECT_EQ(offsetof(ScriptStep, after_ns), 16U);
  for (const size_t offset : {offsetof(WorldImage, constant), offsetof(WorldImage, knob),
                              offsetof(WorldImage, device), offsetof(WorldImage, script)}) {
    EXPECT_EQ(offset % 8, 0U);
  }
}

TEST(WorldCompiler, NamesTheNearestKernel) {
  WorldCompiler compiler(".");
  WorldSpec spec;
  spec.kernel = "debian-6.1.19";
  auto world = compiler.Compile(spec);
  ASSERT_FALSE(world.ok());
  EXPECT_THAT(world.error(), AllOf(HasSubstr("unknown kernel \"debian-6.1.19\""),
                                   HasSubstr("did you mean \"debian-6.1.192\"")));
}

TEST(WorldCompiler, GivesEachDeviceAddressesOfItsOwn) {
  TestWorld test("debian-6.12.117", {"mlx5", "mlx5", "rxe"});
  const WorldImage& image = test.image();
  ASSERT_EQ(image.device_count, 3U);
  EXPECT_STREQ(image.device[1].name, "mlx5_1");
  EXPECT_STREQ(image.device[2].name, "rxe0");
  EXPECT_NE(image.device[0].node_guid, image.device[1].node_guid);
  EXPECT_NE(image.device[0].ports[0].lid, image.device[1].ports[0].lid);
  EXPECT_STRNE(image.device[0].pci_address, image.device[1].pci_address);
  EXPECT_STREQ(image.node[2].path, "/dev/infiniband/uverbs2");
  EXPECT_EQ(image.node[2].minor, 194U);
}

std::vector<std::string> NodesOf(const WorldImage& image) {
  std::vector<std::string> nodes;
  for (uint32_t i = 0; i < image.node_count; ++i) {
    const NodeView& node = image.node[i];
    nodes.push_back(std::string(node.path).substr(16) + " " + std::to_string(node.major) + ":" +
                    std::to_string(node.minor) + (node.mode == 0600 ? " private" : ""));
  }
  return nodes;
}

// core/user_mad.c:ib_umad_init_port, with and without rdma_cap_ib_smi before issmN;
// core/ucma.c:ucma_misc.
TEST(WorldCompiler, GivesNodesOfTheModulesThatAreLoaded) {
  TestWorld newer("debian-6.12.117", {"mlx5", "rxe"});
  ASSERT_EQ(newer.image().device[0].link, LinkLayer::kInfiniband);
  EXPECT_THAT(NodesOf(newer.image()),
              ElementsAre("uverbs0 231:192", "uverbs1 231:193", "umad0 231:0 private",
                          "issm0 231:64 private", "umad1 231:1 private", "rdma_cm 10:256"));
  TestWorld older("debian-6.1.192", {"rxe"});
  EXPECT_THAT(NodesOf(older.image()), ElementsAre("uverbs0 231:192", "umad0 231:0 private",
                                                  "issm0 231:64 private", "rdma_cm 10:256"));
  TestWorld proxy("gvisor-rdmaproxy", {"rxe"});
  EXPECT_THAT(NodesOf(proxy.image()), ElementsAre("uverbs0 231:192"));
}

// sw/rxe/rxe.h, rxe_param.h: what a device tells can be another number in another kernel.
TEST(WorldCompiler, GivesDevicesTheNumbersOfTheirKernel) {
  TestWorld old("linux-4.16", {"rxe"}), middle("linux-5.8", {"rxe"}),
      newest("debian-7.3.4", {"rxe"});
  EXPECT_EQ(old.image().device[0].abi_version, 1U);
  EXPECT_EQ(middle.image().device[0].abi_version, 2U);
  EXPECT_EQ(middle.image().device[0].ports[0].pkey_count, 64);
  EXPECT_EQ(newest.image().device[0].ports[0].pkey_count, 1);
  EXPECT_EQ(middle.image().device[0].ports[0].max_msg_size, 0x800000U);
  EXPECT_EQ(newest.image().device[0].ports[0].max_msg_size, 0x80000000U);
}

// Which tree has which driver (drivers/infiniband/hw, sw), and i40iw's uverbs_abi_ver, which 4.x
// leaves 0.
TEST(WorldCompiler, KnowsWhichKernelHasWhichDriver) {
  WorldCompiler compiler(".");
  const auto has = [&](const char* kernel, DriverId driver) {
    auto model = compiler.Kernel(kernel);
    return model.ok() && (*model)->HasDriver(driver);
  };
  EXPECT_TRUE(has("linux-4.4", DriverId::qib));
  EXPECT_FALSE(has("linux-4.4", DriverId::hns));
  EXPECT_FALSE(has("linux-4.10", DriverId::hns)) << "of no PCI device";
  EXPECT_TRUE(has("linux-4.16", DriverId::hns));
  EXPECT_FALSE(has("linux-5.0", DriverId::efa));
  EXPECT_TRUE(has("linux-5.3", DriverId::efa));
  EXPECT_TRUE(has("debian-5.10.223", DriverId::i40iw));
  EXPECT_FALSE(has("debian-5.10.223", DriverId::irdma));
  EXPECT_FALSE(has("linux-5.14", DriverId::i40iw));
  EXPECT_TRUE(has("linux-5.14", DriverId::irdma));
  EXPECT_FALSE(has("debian-6.12.117", DriverId::ionic));
  EXPECT_TRUE(has("debian-7.2.13", DriverId::ionic));
  EXPECT_FALSE(has("debian-7.2.13", DriverId::qib));
  TestWorld old("linux-4.16", {"i40iw"}), newer("linux-5.6", {"i40iw", "siw"}),
      newest("debian-6.12.117", {"siw"});
  EXPECT_EQ(old.image().device[0].abi_version, 0U);
  EXPECT_EQ(newer.image().device[0].abi_version, 5U);
  EXPECT_STRNE(newer.image().device[1].pci_address, "");
  EXPECT_STREQ(newest.image().device[0].pci_address, "");
}

TEST_F(ScratchRoot, ANumberOfAnUnknownKnobIsNamed) {
  Write("providers/rxe.json",
        R"({"driver": "rxe", "links": ["roce"], "port": {"max_mtu": {"knob": "rxe.mtu"}}})");
  EXPECT_THAT(ErrorFor("debian-7.3.4", "", "rxe"),
              AllOf(HasSubstr("rxe.json"), HasSubstr("/port: /max_mtu"),
                    HasSubstr("unknown knob \"rxe.mtu\"")));
}

TEST_F(ScratchRoot, BrokenJsonIsNamedWithItsLine) {
  Write("kernels/broken.json", "{\n  \"name\": \"broken\",\n  oops\n}\n");
  EXPECT_THAT(ErrorFor("broken"), HasSubstr("broken.json:3: not valid JSON"));
}

TEST_F(ScratchRoot, AChangeThatNamesNothingIsRefusedWithItsPointer) {
  Write("kernels/odd.json",
        R"({"name":"odd","parent":"base","known_by":"source",
            "changes":[{"knob":"ioctl","value":0,"why":"x"},{"rule":"ioctl.absnt","on":false,"why":"x"}]})");
  EXPECT_THAT(ErrorFor("odd"),
              AllOf(HasSubstr("odd.json: /changes/1: unknown rule \"ioctl.absnt\""),
                    HasSubstr("did you mean \"ioctl.absent\"")));
}

TEST_F(ScratchRoot, AChangeNeedsItsReason) {
  Write("kernels/odd.json", R"({"name":"odd","parent":"base","known_by":"source",
                                "changes":[{"knob":"ioctl","value":0}]})");
  EXPECT_THAT(ErrorFor("odd"), HasSubstr("/changes/0: needs a \"why\""));
}

TEST_F(ScratchRoot, ParentsThatGoInACircleEnd) {
  Write("kernels/a.json",
        R"({"name":"a","parent":"b","known_by":"source","headers":"debian-7.3.4"})");
  Write("kernels/b.json", R"({"name":"b","parent":"a","known_by":"source"})");
  EXPECT_THAT(ErrorFor("a"), HasSubstr("/parent: the chain of parents has no end"));
}

TEST_F(ScratchRoot, AKernelWithoutTheDriverMakesTheWorldAbsent) {
  Write("kernels/old.json", R"({"name":"old","parent":"base","known_by":"source",
                                "changes":[{"driver":"rxe","present":false,"why":"x"}]})");
  WorldSpec spec;
  spec.kernel = "old";
  spec.devices.push_back({"rxe", "", ""});
  WorldCompiler compiler(root_);
  auto world = compiler.Compile(spec);
  ASSERT_TRUE(world.ok()) << world.error();
  EXPECT_EQ(world->absent, "old has no driver rxe");
}

TEST_F(ScratchRoot, OverlaysTurnKernelsAndViews) {
  Write("overlays/o.json",
        R"({"name":"o","value":"N","changes":[{"device":"abi_version","value":"$VALUE"},
            {"sysfs":"class/infiniband_verbs/uverbs$UVERBS/abi_version","content":"$VALUE\n"},
            {"knob":"ioctl","value":0},{"node":"mode","value":384}]})");
  WorldSpec spec;
  spec.kernel = "debian-6.12.117";
  spec.devices = {{"mlx5", "", ""}, {"mlx5", "", ""}};
  spec.overlays.push_back(OverlaySpec::Parse("o@mlx5_1=2"));
  WorldCompiler compiler(root_);
  auto world = compiler.Compile(spec);
  ASSERT_TRUE(world.ok()) << world.error();
  EXPECT_EQ(world->image->device[0].abi_version, 1U);
  EXPECT_EQ(world->image->device[1].abi_version, 2U);
  EXPECT_EQ(world->image->node[0].mode, 0666U);
  EXPECT_EQ(world->image->node[1].mode, 0600U);
  EXPECT_EQ(world->image->knob[Index(KnobId::ioctl)], 0);
  ASSERT_EQ(world->sysfs_edits.size(), 1U);
  EXPECT_EQ(world->sysfs_edits[0].path, "/sys/class/infiniband_verbs/uverbs1/abi_version");
  EXPECT_EQ(world->sysfs_edits[0].content, "2\n");
}

TEST_F(ScratchRoot, AnOverlaySaysWhetherItTakesAValue) {
  Write("overlays/o.json", R"({"name":"o","value":"a number","changes":[]})");
  EXPECT_THAT(ErrorFor("debian-6.12.117", "o"), HasSubstr("overlay o: needs a value: a number"));
  EXPECT_THAT(ErrorFor("debian-6.12.117", "o="), HasSubstr("overlay o=: needs a value: a number"));
  Write("overlays/p.json", R"({"name":"p","changes":[]})");
  EXPECT_THAT(ErrorFor("debian-6.12.117", "p=1"), HasSubstr("takes no value"));
  EXPECT_THAT(ErrorFor("debian-6.12.117", "pp"), HasSubstr("unknown overlay \"pp\""));
}

TEST_F(ScratchRoot, ABrokenChangeOfAnOverlayIsToldWithItsPlaceInTheFile) {
  Write("overlays/o.json", R"({"name":"o","changes":[{"knob":"ioctl","value":0},
                                                     {"knob":"ioctl","value":[]}]})");
  EXPECT_THAT(ErrorFor("debian-6.12.117", "o"), HasSubstr("overlays/o.json: /changes/1: needs"));
  Write("overlays/o.json",
        R"({"name":"o","value":"N","changes":[{"knob":"ioctl","value":"$VALUE"}]})");
  EXPECT_THAT(ErrorFor("debian-6.12.117", "o=x"), HasSubstr("overlay o=x: "));
  Write("overlays/o.json", R"({"name":"o","changes":[{"method":"x","served":false}]})");
  const std::string said = ErrorFor("debian-6.12.117", "o");
  EXPECT_THAT(said, HasSubstr("/changes/0: unknown method \"x\""));
  EXPECT_THAT(said, testing::Not(HasSubstr("\"\"")));
}

TEST_F(ScratchRoot, ANumberOrStepThatCannotBeIsNotTakenForAnother) {
  const auto said = [&](const char* overlay) { return ErrorFor("debian-6.12.117", overlay); };
  EXPECT_THAT(said("provider-abi=4294967297"), HasSubstr("needs a number of 32 bits"));
  EXPECT_THAT(said("provider-abi=99999999999999999999"), HasSubstr("needs a number of 32 bits"));
  EXPECT_THAT(said("cdev-rdev=99999999999"), HasSubstr("needs a number of 32 bits"));
  EXPECT_EQ(said("provider-abi=4294967295"), "no error");
  EXPECT_EQ(said("provider-abi=-1"), "no error");
  EXPECT_THAT(said("cdev-mode=600"), HasSubstr("with a leading 0"));
  EXPECT_THAT(said("cdev-mode=010000"), HasSubstr("with a leading 0"));
  EXPECT_EQ(said("cdev-mode=0600"), "no error");
  EXPECT_THAT(said("errno@CREATE_CQQ=EIO"),
              HasSubstr("step \"CREATE_CQQ\" (did you mean \"CREATE_CQ\"?)"));
  EXPECT_THAT(said("errno-once@CQ.CREAT=EIO"), HasSubstr("(did you mean \"CQ.CREATE\"?)"));
  for (const char* step : {"CREATE_CQ", "CREATE_WQ", "CQ.CREATE", "DEVX_OBJ.CREATE", "open",
                           "mmap:UAR", "netlink:GET_CHARDEV", "command 77"}) {
    EXPECT_EQ(said((std::string("errno@") + step + "=EIO").c_str()), "no error") << step;
  }
}

TEST_F(ScratchRoot, ADeviceIsCalledWhatAFolderCanBe) {
  WorldCompiler compiler(root_);
  for (const char* name : {"../x", "a/b", ".", ".."}) {
    WorldSpec spec;
    spec.kernel = "debian-6.12.117";
    spec.devices = {{"mlx5", name, ""}};
    auto world = compiler.Compile(spec);
    ASSERT_FALSE(world.ok()) << name;
    EXPECT_THAT(world.error(), HasSubstr("no folder of sysfs"));
  }
}

TEST_F(ScratchRoot, UnknownProvidersAndLinksAreNamed) {
  EXPECT_THAT(ErrorFor("debian-6.12.117", "", "mlx55"), HasSubstr("did you mean \"mlx5\""));
}

TEST(OverlaySpec, ReadsNameStepAndValue) {
  const OverlaySpec overlay = OverlaySpec::Parse("errno@DEVICE.GET_CONTEXT=EIO");
  EXPECT_EQ(overlay.name, "errno");
  EXPECT_EQ(overlay.step, "DEVICE.GET_CONTEXT");
  EXPECT_EQ(overlay.value, "EIO");
}

}  // namespace
}  // namespace vabi
