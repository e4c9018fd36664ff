// SPDX-License-Identifier: BSD-2-Clause
// What drivers tell of their devices otherwise from one release on. Expected values are from
// drivers/infiniband/hw of the releases around the change; what is the card's own is any value but
// none.
#include <functional>

#include "shims/providers/common/test_hca.h"
#include "shims/providers/irdma/test_irdma.h"

namespace vabi {
namespace {

constexpr uint64_t kAny = ~uint64_t{0};  // whatever the card has, but something
constexpr uint64_t kLocalDmaLkey = 1 << 15, kRnrNak = 1 << 12, kMemWindow = 1 << 17,
                   kMemMgtExtensions = 1 << 21;

struct Change {
  const char* driver;
  const char* what;
  const char* before;
  uint64_t old_value;
  const char* after;
  uint64_t new_value;
  std::function<uint64_t(TestHca&)> read;
};

// A program's device_cap_flags may have none of what only the kernel uses.
uint64_t LocalDmaLkey(TestHca& hca) { return hca.Attributes().device_cap_flags & kLocalDmaLkey; }

DeviceAttributes OnEthernet(TestHca& hca) {
  hca.image().device[0].link = LinkLayer::kEthernet;
  hca.Reinstall();
  return hca.Attributes();
}

const Change kChanges[] = {
    // bnxt_re/ib_verbs.c:bnxt_re_query_device: IB_ATOMIC_GLOB; BNXT_RE_PAGE_SIZE_SUPPORTED
    {"bnxt_re", "atomic_cap", "debian-5.10.223", 0, "linux-5.14", 2,
     [](TestHca& hca) { return hca.Attributes().atomic_cap; }},
    {"bnxt_re", "page_size_cap", "linux-5.14", 0x201000, "debian-6.1.192", 0x7ffff000,
     [](TestHca& hca) { return hca.Attributes().page_size_cap; }},
    {"bnxt_re", "LOCAL_DMA_LKEY", "linux-5.14", kLocalDmaLkey, "debian-6.1.192", 0, LocalDmaLkey},
    // efa/efa_verbs.c:efa_query_device, efa_main.c:efa_ib_device_add
    {"efa", "max_sge_rd", "linux-5.3", 0, "linux-5.6", kAny,
     [](TestHca& hca) { return hca.Attributes().max_sge_rd; }},
    {"efa", "max_pkeys", "linux-5.6", 0, "linux-5.7", 1,
     [](TestHca& hca) { return hca.Attributes().max_pkeys; }},
    {"efa", "num_comp_vectors", "linux-5.14", 1, "debian-6.1.192", 2,
     [](TestHca& hca) { return hca.device().driver().CompVectors(hca.device()); }},
    // hns/hns_roce_main.c:hns_roce_query_device: caps.max_sq_sg
    {"hns", "max_sge_rd", "linux-5.14", 1, "debian-6.12.117", 64,
     [](TestHca& hca) { return hca.Attributes().max_sge_rd; }},
    // irdma/verbs.c:irdma_query_device, hw.c:irdma_rt_init_hw; an E810
    {"irdma", "max_cqe", "linux-5.14", 1048575, "debian-6.1.192", 1048574,
     [](TestHca& hca) { return hca.Attributes().max_cqe; }},
    {"irdma", "device_cap_flags", "linux-5.14", kLocalDmaLkey | kMemWindow | kMemMgtExtensions,
     "debian-6.1.192", kMemWindow | kMemMgtExtensions | kRnrNak,
     [](TestHca& hca) { return hca.Attributes().device_cap_flags; }},
    {"irdma", "max_mw", "debian-6.12.117", kAny, "debian-7.2.13", 0,
     [](TestHca& hca) { return hca.Attributes().max_mw; }},
    {"irdma", "timestamp_mask", "debian-6.12.117", 0x1ffff, "debian-7.2.13", 0,
     [](TestHca& hca) { return hca.Attributes().timestamp_mask; }},
    {"irdma", "max_srq_wr", "debian-6.12.117", 0, "debian-7.2.13", kAny,
     [](TestHca& hca) { return hca.Attributes().max_srq_wr; }},
    // mlx4/main.c:mlx4_ib_query_device: INT_MAX; 1 << IB_QPT_RAW_PACKET
    {"mlx4", "max_ah", "linux-4.4", 0, "linux-4.10", 0x7fffffff,
     [](TestHca& hca) { return hca.Attributes().max_ah; }},
    {"mlx4", "LOCAL_DMA_LKEY", "linux-5.14", kLocalDmaLkey, "debian-6.1.192", 0, LocalDmaLkey},
    {"mlx4", "rss_caps.supported_qpts", "linux-4.10", 0, "linux-4.16", 1 << 8,
     [](TestHca& hca) { return OnEthernet(hca).rss_supported_qpts; }},
    // IB_RAW_PACKET_CAP_SCATTER_FCS
    {"mlx4", "raw_packet_caps", "linux-4.16", 0, "linux-4.17", 2,
     [](TestHca& hca) { return OnEthernet(hca).raw_packet_caps & 2; }},
    // mlx5/main.c:get_atomic_caps: IB_ATOMIC_HCA
    {"mlx5", "atomic_cap", "linux-4.4", 0, "linux-4.10", 1,
     [](TestHca& hca) { return hca.Attributes().atomic_cap; }},
    // mlx5/main.c:mlx5_ib_query_device: INT_MAX; device_cap_flags without what concerns the kernel
    {"mlx5", "max_ah", "linux-4.4", 0, "linux-4.10", 0x7fffffff,
     [](TestHca& hca) { return hca.Attributes().max_ah; }},
    {"mlx5", "BLOCK_MULTICAST_LOOPBACK", "linux-5.14", 1 << 22, "debian-6.1.192", 0,
     [](TestHca& hca) { return hca.Attributes().device_cap_flags & (1 << 22); }},
    // mlx5_ib_calc_max_qp_wr: elements of 64 bytes; the largest overhead of any service and one
    // element are 164 bytes, so 256. 6.12.117 has it, 6.17 not.
    {"mlx5", "max_qp_wr", "linux-6.6", 1 << 15, "debian-6.12.117", 1 << 13,
     [](TestHca& hca) { return hca.Attributes().max_qp_wr; }},
    {"mlx5", "max_qp_wr_of_7_2", "linux-6.16", 1 << 15, "debian-7.2.13", 1 << 13,
     [](TestHca& hca) { return hca.Attributes().max_qp_wr; }},
    // mlx5/odp.c:mlx5_ib_internal_fill_odp_caps: IB_ODP_SUPPORT_SRQ_RECV, and XRC's (5.1)
    {"mlx5", "odp_caps.rc", "linux-5.0", 0, "linux-5.3", 0x20,
     [](TestHca& hca) { return hca.Attributes().odp_rc & 0x20; }},
    {"mlx5", "xrc_odp_caps", "linux-5.0", 0, "linux-5.3", kAny,
     [](TestHca& hca) { return hca.Attributes().xrc_odp_caps; }},
    // rxe/rxe_param.h, rxe.c:rxe_init_device_param
    {"rxe", "max_qp", "linux-5.14", 0x10000, "debian-6.1.192", (1 << 20) - 16,
     [](TestHca& hca) { return hca.Attributes().max_qp; }},
    {"rxe", "max_qp_wr", "linux-5.14", 0x4000, "debian-6.1.192", 1 << 20,
     [](TestHca& hca) { return hca.Attributes().max_qp_wr; }},
    {"rxe", "max_cq", "linux-5.14", 16384, "debian-6.1.192", 1 << 20,
     [](TestHca& hca) { return hca.Attributes().max_cq; }},
    {"rxe", "max_pd", "linux-5.14", 0x7ffc, "debian-6.1.192", 1 << 20,
     [](TestHca& hca) { return hca.Attributes().max_pd; }},
    {"rxe", "max_ah", "linux-5.14", 100, "debian-6.1.192", (1 << 15) - 1,
     [](TestHca& hca) { return hca.Attributes().max_ah; }},
    {"rxe", "max_srq_wr", "linux-5.14", 0x4000, "debian-6.1.192", 1 << 20,
     [](TestHca& hca) { return hca.Attributes().max_srq_wr; }},
    {"rxe", "max_srq", "debian-5.10.223", 960, "linux-5.14", 0x1000,
     [](TestHca& hca) { return hca.Attributes().max_srq; }},
    {"rxe", "max_srq_of_6_1", "linux-5.14", 0x1000, "debian-6.1.192", (1 << 20) - 0x20001,
     [](TestHca& hca) { return hca.Attributes().max_srq; }},
    {"rxe", "max_mr", "linux-4.18", 2 * 1024, "linux-4.19", 256 * 1024,
     [](TestHca& hca) { return hca.Attributes().max_mr; }},
    {"rxe", "max_mr_of_5_14", "debian-5.10.223", 256 * 1024, "linux-5.14", 0x1000,
     [](TestHca& hca) { return hca.Attributes().max_mr; }},
    {"rxe", "max_mr_of_6_1", "linux-5.14", 0x1000, "debian-6.1.192", (1 << 19) - 1,
     [](TestHca& hca) { return hca.Attributes().max_mr; }},
    {"rxe", "max_mw", "debian-5.10.223", 0, "linux-5.14", 0x1000,
     [](TestHca& hca) { return hca.Attributes().max_mw; }},
    {"rxe", "max_mw_of_6_1", "linux-5.14", 0x1000, "debian-6.1.192", (1 << 20) - (1 << 19) - 1,
     [](TestHca& hca) { return hca.Attributes().max_mw; }},
    {"rxe", "max_pkeys", "linux-5.8", 64, "linux-5.9", 1,
     [](TestHca& hca) { return hca.Attributes().max_pkeys; }},
    {"rxe", "max_pkeys_of_6_1", "linux-5.14", 1, "debian-6.1.192", 64,
     [](TestHca& hca) { return hca.Attributes().max_pkeys; }},
    {"rxe", "vendor_id", "linux-5.6", 0, "linux-5.7", 0xffffff,
     [](TestHca& hca) { return hca.Attributes().vendor_id; }},
    // rxe_param.h: RXE_PORT_PKEY_TBL_LEN, RXE_PORT_MAX_MSG_SZ
    {"rxe", "port.pkey_tbl_len", "linux-5.8", 64, "linux-5.9", 1,
     [](TestHca& hca) { return hca.image().device[0].ports[0].pkey_count; }},
    {"rxe", "port.max_msg_sz", "linux-6.6", 0x800000, "debian-6.12.117", 1u << 31,
     [](TestHca& hca) { return hca.image().device[0].ports[0].max_msg_size; }},
    // rxe.c:rxe_init_device_param: FLUSH and ATOMIC_WRITE on demand (6.17)
    {"rxe", "odp_caps.rc", "debian-6.12.117", 0, "debian-7.2.13", 0xff,
     [](TestHca& hca) { return hca.Attributes().odp_rc; }},
    // siw_verbs.c:siw_query_port; siw_main.c:siw_device_create: below the network card
    {"siw", "port.pkey_tbl_len", "linux-5.8", 1, "linux-5.9", 0,
     [](TestHca& hca) { return hca.image().device[0].ports[0].pkey_count; }},
    {"siw", "parent", "linux-5.9", kAny, "linux-5.10", 0,
     [](TestHca& hca) { return static_cast<uint64_t>(hca.image().device[0].pci_address[0]); }},
    // i40iw/i40iw_verbs.c: uverbs_abi_ver; I40IW_ABI_VER
    {"i40iw", "uverbs_abi_ver", "linux-5.0", 0, "linux-5.3", 5,
     [](TestHca& hca) { return hca.image().device[0].abi_version; }},
};

// ib_respond_udata, with which 7.2 replaced ib_copy_to_udata: what the caller's buffer has beyond
// the reply becomes zero.
TEST(Replies, TheirRestIsClearedSince72) {
  for (const char* driver : {"erdma", "hns", "irdma"}) {
    for (const auto& [kernel, rest] : {std::pair{"debian-6.12.117", 0xee}, {"debian-7.2.13", 0}}) {
      TestHca hca(kernel, driver);
      hca.room_filled_with = 0xee;
      Bytes request;
      if (std::string(driver) == "irdma") request = irdma::ContextBytes(hca);
      if (std::string(driver) == "hns") request = Bytes(8);
      ASSERT_GT(hca.Open(request, 128), 0) << driver << " " << kernel << ": " << hca.LastRule();
      EXPECT_EQ(rest, hca.told.back()) << driver << " " << kernel;
    }
  }
}

class Attribute : public testing::TestWithParam<Change> {};

void PrintTo(const Change& change, std::ostream* out) { *out << change.driver << change.what; }

TEST_P(Attribute, IsOfTheRelease) {
  const Change& change = GetParam();
  for (const auto& [kernel, expected] :
       {std::pair{change.before, change.old_value}, {change.after, change.new_value}}) {
    TestHca hca(kernel, change.driver);
    if (expected == kAny) {
      EXPECT_NE(0u, change.read(hca)) << kernel;
    } else {
      EXPECT_EQ(expected, change.read(hca)) << kernel;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Attribute, testing::ValuesIn(kChanges), [](const auto& info) {
  std::string name = std::string(info.param.driver) + "_" + info.param.what;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace vabi
