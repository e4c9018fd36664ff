// SPDX-License-Identifier: BSD-2-Clause
// What sysfs shows of a device in one release and otherwise in the next. Expected texts and names:
// drivers/infiniband of the releases around each change.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "harness/world/test_world.h"
#include "shims/sysfs/describe.h"

namespace vabi::sysfs {
namespace {

constexpr const char* kAbsent = "(absent)";
constexpr const char* kNone = "0\n";  // a counter

class Port {
 public:
  Port(const char* kernel, const char* driver) : world_(kernel, {driver}) {}
  PortImage& image() { return world_.image().device[0].ports[0]; }
  // Below ports/1: the file's text, the errno of reading it as "errno N", or kAbsent.
  std::string Read(const std::string& name) {
    Tree tree;
    DescribeSysfs(world_.image(), &tree);
    const std::string device = world_.image().device[0].name;
    const auto found =
        tree.files().find(tree.Canonical("/sys/class/infiniband/" + device + "/ports/1/" + name));
    if (found == tree.files().end()) return kAbsent;
    return found->second.read_errno != 0 ? "errno " + std::to_string(found->second.read_errno)
                                         : found->second.content;
  }

 private:
  TestWorld world_;
};

// core/sysfs.c:rate_show: HDR in 4.16, a name for SDR in 4.17, NDR in 5.14 (not in 5.10), XDR in
// 6.12 (not in 6.6). A speed that it does not know is told as SDR's.
TEST(SysfsReleases, SpeedsThatHaveAName) {
  constexpr int kSdr = 1, kHdr = 64, kNdr = 128, kXdr = 256, kFourLanes = 2;
  const struct {
    const char* kernel;
    int speed;
    const char* rate;
  } cases[] = {
      {"linux-4.10", kHdr, "10 Gb/sec (4X)\n"},
      {"linux-4.16", kHdr, "200 Gb/sec (4X HDR)\n"},
      {"linux-4.16", kSdr, "10 Gb/sec (4X)\n"},
      {"linux-4.17", kSdr, "10 Gb/sec (4X SDR)\n"},
      {"debian-5.10.223", kNdr, "10 Gb/sec (4X SDR)\n"},
      {"linux-5.14", kNdr, "400 Gb/sec (4X NDR)\n"},
      {"linux-6.6", kXdr, "10 Gb/sec (4X SDR)\n"},
      {"debian-6.12.117", kXdr, "800 Gb/sec (4X XDR)\n"},
  };
  for (const auto& row : cases) {
    Port port(row.kernel, "mlx5");
    port.image().active_width = kFourLanes;
    port.image().active_speed = static_cast<uint16_t>(row.speed);
    EXPECT_EQ(row.rate, port.Read("rate")) << row.kernel << " " << row.speed;
  }
}

// core/sysfs.c:add_port has gid_attrs in 4.10, not in 4.4; _show_port_gid_attr reads an empty slot
// like any other up to 4.17 (type 0), and as EINVAL in 4.18.
TEST(SysfsReleases, GidAttributes) {
  EXPECT_EQ(kAbsent, Port("linux-4.4", "mlx5").Read("gid_attrs/types/0"));
  for (const auto& [kernel, empty] : {std::pair{"linux-4.10", std::string("IB/RoCE v1\n")},
                                      {"linux-4.17", "IB/RoCE v1\n"},
                                      {"linux-4.18", "errno " + std::to_string(EINVAL)},
                                      {"debian-7.3.4", "errno " + std::to_string(EINVAL)}}) {
    Port port(kernel, "mlx5");
    EXPECT_EQ("IB/RoCE v1\n", port.Read("gid_attrs/types/0")) << kernel;
    ASSERT_LT(port.image().gid_count, port.image().gid_table_length);
    EXPECT_EQ(empty, port.Read("gid_attrs/types/" + std::to_string(port.image().gid_count)))
        << kernel;
  }
}

struct Counter {
  const char* driver;
  const char* name;
  const char* without;
  const char* with;
};

// What the first of two neighbours has not.
const Counter kCounters[] = {
    // sw/rxe/rxe_hw_counters.c: 4.14, other names in 5.0, bytes in 7.2; rxe_mad.c in 7.2
    {"rxe", "hw_counters/out_of_sequence", "linux-4.10", "linux-4.16"},
    {"rxe", "hw_counters/out_of_sequence", "linux-5.0", "linux-4.18"},
    {"rxe", "hw_counters/ack_deffered", "linux-5.0", "linux-4.18"},
    {"rxe", "hw_counters/out_of_seq_request", "linux-4.18", "linux-5.0"},
    {"rxe", "hw_counters/rdma_recvs", "linux-4.18", "linux-5.0"},
    {"rxe", "hw_counters/sent_bytes", "linux-6.16", "debian-7.2.13"},
    {"rxe", "counters/port_xmit_data", "linux-6.16", "debian-7.2.13"},
    // hw/mlx5/main.c:basic_q_cnts and the other lists, counters.c since 5.10
    {"mlx5", "hw_counters/out_of_buffer", "linux-4.10", "linux-4.16"},
    {"mlx5", "hw_counters/rx_icrc_encapsulated", "linux-4.18", "linux-4.19"},
    {"mlx5", "hw_counters/roce_slow_restart", "linux-5.3", "linux-5.6"},
    {"mlx5", "hw_counters/rx_dct_connect", "debian-6.1.192", "linux-6.6"},
    {"mlx5", "hw_counters/req_rnr_retries_exceeded", "linux-6.6", "debian-6.12.117"},
    // core/cm.c:cm_create_port_fs, below infiniband_cm before 5.2
    {"mlx5", "cm_tx_retries/sidr_req", "linux-5.0", "linux-5.3"},
};

class SysfsCounter : public testing::TestWithParam<Counter> {};
void PrintTo(const Counter& counter, std::ostream* out) { *out << counter.driver << counter.name; }

TEST_P(SysfsCounter, IsOfTheRelease) {
  const Counter& row = GetParam();
  EXPECT_EQ(kAbsent, Port(row.without, row.driver).Read(row.name));
  EXPECT_EQ(kNone, Port(row.with, row.driver).Read(row.name));
}

INSTANTIATE_TEST_SUITE_P(All, SysfsCounter, testing::ValuesIn(kCounters), [](const auto& info) {
  const std::string name = info.param.name;
  return std::to_string(info.index) + "_" + info.param.driver + "_" +
         name.substr(name.find('/') + 1);
});

}  // namespace
}  // namespace vabi::sysfs
