// SPDX-License-Identifier: BSD-2-Clause
//
// One program, whatever way its commands take: ioctl methods, INVOKE_WRITE, write(), nodes found by
// netlink or in sysfs. What it is told is the same in every cell of a kernel: numbers that the
// kernel's source gives (as the model's knobs hold them), and answers of one interface that agree
// with those of another.

#include <cstring>
#include <string>
#include <vector>

#include "harness/conformance/framework/abi_test.h"
#include "harness/conformance/framework/verbs.h"

namespace vabi::conformance {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

constexpr uint32_t kGids = 16;

// What a completion queue tells of its size, for what was asked.
void ExpectSizes(const std::vector<std::pair<int, int>>& sizes) {
  Context context = OpenOnlyDevice();
  for (const auto& [asked, given] : sizes) {
    CompletionQueue cq = context.CreateCq(asked);
    EXPECT_EQ(cq->cqe, given) << asked;
  }
}

}  // namespace

// sw/rxe/rxe_param.h, rxe.c:rxe_init_device_param.
ABI_TEST(Routes, RxeTellsItsLimits, Needs{.provider = "rxe"}) {
  Context context = OpenOnlyDevice();
  const ibv_device_attr attr = context.QueryDevice();
  EXPECT_EQ(attr.max_qp, cell().Knob("rxe.max_qp"));
  EXPECT_EQ(attr.max_qp_wr, cell().Knob("rxe.max_qp_wr"));
  EXPECT_EQ(attr.max_cq, cell().Knob("rxe.max_cq"));
  EXPECT_EQ(attr.max_cqe, cell().Knob("rxe.max_cqe"));
  EXPECT_EQ(attr.max_mr, cell().Knob("rxe.max_mr"));
  EXPECT_EQ(attr.max_pd, cell().Knob("rxe.max_pd"));
  EXPECT_EQ(attr.max_srq, cell().Knob("rxe.max_srq"));
  EXPECT_EQ(attr.max_srq_wr, cell().Knob("rxe.max_srq_wr"));
  EXPECT_EQ(attr.max_ah, cell().Knob("rxe.max_ah"));
  EXPECT_EQ(attr.vendor_id, static_cast<uint32_t>(cell().Knob("rxe.vendor_id")));
  // The same from 4.9 to 7.3.
  EXPECT_EQ(attr.max_sge, 32);
  EXPECT_EQ(attr.max_srq_sge, 27);
  EXPECT_EQ(attr.max_qp_rd_atom, 128);
  EXPECT_EQ(attr.max_res_rd_atom, 0x3f000);
  EXPECT_EQ(attr.max_ee, 0);
  EXPECT_EQ(attr.atomic_cap, IBV_ATOMIC_HCA);
  EXPECT_EQ(attr.local_ca_ack_delay, 15);
  EXPECT_EQ(attr.phys_port_cnt, 1);
}

ABI_TEST(Routes, RxeTellsItsPort, Needs{.provider = "rxe"}) {
  Context context = OpenOnlyDevice();
  const ibv_port_attr port = context.QueryPort();
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.phys_state, 5);  // LinkUp
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(port.max_mtu, IBV_MTU_4096);
  EXPECT_EQ(port.gid_tbl_len, 1024);
  EXPECT_EQ(port.pkey_tbl_len, cell().Knob("rxe.port.pkeys"));
  EXPECT_EQ(port.max_msg_sz, static_cast<uint32_t>(cell().Knob("rxe.port.max_msg_size")));
  EXPECT_EQ(port.max_vl_num, 1);
  EXPECT_EQ(port.lid, 0);
}

// mlx5 and rxe round up to a power of two with one more entry and tell that less one
// (rxe_queue.c:rxe_queue_init, hw/mlx5/cq.c:mlx5_ib_create_cq).
ABI_TEST(Routes, CompletionQueuesAreAsLargeAsTheDriverSays,
         Needs{.queue_pairs = true, .data_path = true}) {
  ExpectSizes({{1, 1}, {3, 3}, {4, 7}, {16, 31}, {100, 127}});
}

// hns makes no room for one more, so that 64 are told as 63 (hw/hns/hns_roce_cq.c:set_cq_param; in
// libhns the least are 64).
ABI_TEST(Routes, CompletionQueuesOfHnsTellOneLess, Needs{.provider = "hns", .queue_pairs = true}) {
  ExpectSizes({{1, 63}, {64, 63}, {65, 127}, {100, 127}});
}

// erdma's, efa's and siw's are powers of two (siw_verbs.c:siw_create_cq; in user space:
// providers/erdma/erdma_verbs.c:erdma_create_cq, providers/efa/verbs.c:create_cq).
ABI_TEST(Routes, CompletionQueuesOfErdmaArePowersOfTwo, Needs{.provider = "erdma"}) {
  ExpectSizes({{1, 64}, {64, 64}, {65, 128}});
}
ABI_TEST(Routes, CompletionQueuesOfEfaArePowersOfTwo, Needs{.provider = "efa"}) {
  ExpectSizes({{3, 4}, {16, 16}, {100, 128}});
}
ABI_TEST(Routes, CompletionQueuesOfSiwArePowersOfTwo, Needs{.provider = "siw"}) {
  ExpectSizes({{1, 1}, {3, 4}, {100, 128}});
}
// So are vmw_pvrdma's (pvrdma_cq.c:pvrdma_create_cq).
ABI_TEST(Routes, CompletionQueuesOfVmwPvrdmaArePowersOfTwo, Needs{.provider = "vmw_pvrdma"}) {
  ExpectSizes({{1, 1}, {3, 4}, {16, 16}, {100, 128}});
}
// mlx4's are, less one (hw/mlx4/cq.c:mlx4_ib_create_cq; providers/mlx4/verbs.c: create_cq).
ABI_TEST(Routes, CompletionQueuesOfMlx4TellOneLess, Needs{.provider = "mlx4"}) {
  ExpectSizes({{1, 1}, {3, 3}, {4, 7}, {16, 31}, {100, 127}});
}
// bnxt_re makes room for one more and tells all (hw/bnxt_re/ib_verbs.c:bnxt_re_create_cq). Later
// releases ask for twice as many, and kernels since 6.12 give them what they ask for.
ABI_TEST(Routes, CompletionQueuesOfBnxtReTellAll, Needs{.provider = "bnxt_re", .until = {56, 0}}) {
  ExpectSizes({{1, 2}, {3, 4}, {4, 8}, {16, 32}, {100, 128}});
}
// libirdma tells what was asked for (providers/irdma/uverbs.c:ucreate_cq).
ABI_TEST(Routes, CompletionQueuesOfIrdmaTellWhatWasAsked, Needs{.provider = "irdma"}) {
  ExpectSizes({{1, 1}, {3, 3}, {16, 16}, {100, 100}});
}

// The extended query's old part is the old query
// (libibverbs/cmd_device.c:ibv_cmd_query_device_any).
ABI_TEST(Routes, BothDeviceQueriesAgree, Needs{}) {
  Context context = OpenOnlyDevice();
  const ibv_device_attr attr = context.QueryDevice();
  ibv_device_attr_ex extended = {};
  ASSERT_THAT(FromVerb(ibv_query_device_ex(context.get(), nullptr, &extended)), Succeeds());
  const ibv_device_attr& same = extended.orig_attr;
  EXPECT_STREQ(same.fw_ver, attr.fw_ver);
  EXPECT_EQ(same.node_guid, attr.node_guid);
  EXPECT_EQ(same.sys_image_guid, attr.sys_image_guid);
  EXPECT_EQ(same.max_mr_size, attr.max_mr_size);
  EXPECT_EQ(same.page_size_cap, attr.page_size_cap);
  EXPECT_EQ(same.vendor_id, attr.vendor_id);
  EXPECT_EQ(same.vendor_part_id, attr.vendor_part_id);
  EXPECT_EQ(same.hw_ver, attr.hw_ver);
  EXPECT_EQ(same.max_qp, attr.max_qp);
  EXPECT_EQ(same.max_qp_wr, attr.max_qp_wr);
  EXPECT_EQ(same.device_cap_flags, attr.device_cap_flags);
  EXPECT_EQ(same.max_sge, attr.max_sge);
  EXPECT_EQ(same.max_cq, attr.max_cq);
  EXPECT_EQ(same.max_cqe, attr.max_cqe);
  EXPECT_EQ(same.max_mr, attr.max_mr);
  EXPECT_EQ(same.max_pd, attr.max_pd);
  EXPECT_EQ(same.atomic_cap, attr.atomic_cap);
  EXPECT_EQ(same.max_srq, attr.max_srq);
  EXPECT_EQ(same.phys_port_cnt, attr.phys_port_cnt);
}

// The members of the extended reply stand where the kernel puts them, the last ones too.
// hw/mlx5/main.c: mlx5_ib_query_device: as many events and microseconds as the CQ context has bits
// for, 16 and 12 (since 4.15); the flags' lower half is the legacy reply's.
ABI_TEST(Routes, Mlx5TellsWhatStandsBehindTheFlags,
         Needs{.provider = "mlx5",
               .kernels = {"linux-4.1[6-9]", "linux-4.20", "linux-[5-9].*", "debian-*"}}) {
  Context context = OpenOnlyDevice();
  ibv_device_attr_ex attr = {};
  ASSERT_THAT(FromVerb(ibv_query_device_ex(context.get(), nullptr, &attr)), Succeeds());
  EXPECT_EQ(static_cast<uint32_t>(attr.device_cap_flags_ex), attr.orig_attr.device_cap_flags);
  EXPECT_EQ(attr.cq_mod_caps.max_cq_count, 0xffff);
  EXPECT_EQ(attr.cq_mod_caps.max_cq_period, 0xfff);
}

// Netlink's NODE_GUID, sysfs' node_guid and QUERY_DEVICE are one number.
ABI_TEST(Routes, TheListAndTheDeviceTellTheSameGuid, Needs{}) {
  DeviceList list;
  ibv_device* device = list.Find(cell().device().name);
  ASSERT_NE(device, nullptr);
  const __be64 listed = ibv_get_device_guid(device);
  EXPECT_NE(listed, 0u);
  Context context = OpenOnlyDevice();
  EXPECT_EQ(context.QueryDevice().node_guid, listed);
}

// libibverbs/cmd_device.c: by method, or line by line from sysfs.
ABI_TEST(Routes, GidEntriesAndTheGidTableAgree, Needs{}) {
  Context context = OpenOnlyDevice();
  ibv_gid_entry table[kGids] = {};
  const ssize_t count = ibv_query_gid_table(context.get(), table, kGids, 0);
  ASSERT_GE(count, 1);
  for (ssize_t i = 0; i < count; ++i) {
    ibv_gid gid = {};
    ibv_gid_entry entry = {};
    ASSERT_THAT(
        FromVerb(ibv_query_gid(context.get(), 1, static_cast<int>(table[i].gid_index), &gid)),
        Succeeds());
    ASSERT_THAT(FromVerb(ibv_query_gid_ex(context.get(), 1, table[i].gid_index, &entry, 0)),
                Succeeds());
    EXPECT_EQ(std::memcmp(&gid, &table[i].gid, sizeof gid), 0) << i;
    EXPECT_EQ(std::memcmp(&entry.gid, &table[i].gid, sizeof gid), 0) << i;
    EXPECT_EQ(entry.gid_type, table[i].gid_type) << i;
    EXPECT_EQ(entry.port_num, 1u);
  }
}

ABI_TEST(Routes, GidTypesFollowTheLink, Needs{.link = "ib"}) {
  Context context = OpenOnlyDevice();
  ibv_gid_entry entry = {};
  ASSERT_THAT(FromVerb(ibv_query_gid_ex(context.get(), 1, 0, &entry, 0)), Succeeds());
  EXPECT_EQ(entry.gid_type, static_cast<uint32_t>(IBV_GID_TYPE_IB));
  EXPECT_EQ(context.QueryPort().link_layer, IBV_LINK_LAYER_INFINIBAND);
}

// Asking twice answers the same, and asking changes nothing.
ABI_TEST(Routes, QueriesRepeat, Needs{}) {
  Context context = OpenOnlyDevice();
  const ibv_device_attr first = context.QueryDevice();
  const ibv_device_attr second = context.QueryDevice();
  EXPECT_EQ(std::memcmp(&first, &second, sizeof first), 0);
}

// ibv_query_qp(3) tells what ibv_create_qp and ibv_modify_qp were given.
ABI_TEST(Routes, AQueuePairTellsWhatItIs,
         Needs{.not_provider = "vmw_pvrdma", .queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  CompletionQueue cq = context.CreateCq(16);
  QueuePair qp = pd.CreateRc(cq.get());
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  ASSERT_THAT(FromVerb(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_CAP, &init)),
              Succeeds());
  EXPECT_EQ(attr.qp_state, IBV_QPS_RESET);
  EXPECT_EQ(init.qp_type, IBV_QPT_RC);
  EXPECT_GE(attr.cap.max_send_wr, 8u);
  EXPECT_GE(attr.cap.max_recv_wr, 8u);
  // hns_roce_v2_query_qp: not told up to 5.11
  const bool is_hns = cell().device().driver == "hns";
  EXPECT_GE(attr.cap.max_inline_data,
            is_hns && cell().Knob("hns.query_qp.inline_told") == 0 ? 0u : 32u);
  ibv_qp_attr change = {};
  change.qp_state = IBV_QPS_INIT;
  change.port_num = 1;
  // mlx5 drops reading while there is no responder depth (hw/mlx5/qp.c: max_dest_rd_atomic).
  change.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  ASSERT_THAT(
      FromVerb(ibv_modify_qp(qp.get(), &change,
                             IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS)),
      Succeeds());
  ASSERT_THAT(FromVerb(ibv_query_qp(qp.get(), &attr,
                                    IBV_QP_STATE | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, &init)),
              Succeeds());
  EXPECT_EQ(attr.qp_state, IBV_QPS_INIT);
  // bnxt_re_query_qp: not told before 6.12
  if (cell().device().driver != "bnxt_re" || cell().Knob("bnxt_re.query_qp.port_told") != 0) {
    EXPECT_EQ(attr.port_num, 1);
  }
  // hns_roce_v2_query_qp (5.3): reading and writing change places
  const unsigned write = is_hns && cell().Knob("hns.query_qp.access_swapped") != 0
                             ? IBV_ACCESS_REMOTE_READ
                             : IBV_ACCESS_REMOTE_WRITE;
  EXPECT_EQ(attr.qp_access_flags & write, write);
}

// hw/vmw_pvrdma/pvrdma_qp.c:pvrdma_query_qp: of one in RESET the state alone, later what it has.
ABI_TEST(Routes, AQueuePairOfVmwPvrdmaTellsItsSizesInInit, Needs{.provider = "vmw_pvrdma"}) {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  CompletionQueue cq = context.CreateCq(16);
  QueuePair qp = pd.CreateRc(cq.get());
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  ASSERT_THAT(FromVerb(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_CAP, &init)),
              Succeeds());
  EXPECT_EQ(attr.qp_state, IBV_QPS_RESET);
  ibv_qp_attr change = {};
  change.qp_state = IBV_QPS_INIT;
  change.port_num = 1;
  ASSERT_THAT(
      FromVerb(ibv_modify_qp(qp.get(), &change,
                             IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS)),
      Succeeds());
  ASSERT_THAT(FromVerb(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_CAP, &init)),
              Succeeds());
  EXPECT_EQ(attr.qp_state, IBV_QPS_INIT);
  EXPECT_GE(attr.cap.max_send_wr, 8u);
  EXPECT_GE(attr.cap.max_recv_wr, 8u);
}

// core/verbs.c:ib_modify_qp_is_ok.
ABI_TEST(Routes, AQueuePairCannotSkipStates, Needs{.queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  CompletionQueue cq = context.CreateCq(16);
  QueuePair qp = pd.CreateRc(cq.get());
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTS;
  EXPECT_THAT(FromVerb(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE)), FailsWith(EINVAL));
  attr.qp_state = IBV_QPS_INIT;  // without port, key and access
  EXPECT_THAT(FromVerb(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE)), FailsWith(EINVAL));
}

// What is still used cannot go (EBUSY in all kernels), and goes afterwards.
ABI_TEST(Routes, WhatIsUsedStays, Needs{.queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  CompletionQueue cq = context.CreateCq(16);
  QueuePair qp = pd.CreateRc(cq.get());
  EXPECT_THAT(pd.TryDestroy(), FailsWith(EBUSY));
  EXPECT_THAT(cq.TryDestroy(), FailsWith(EBUSY));
  EXPECT_THAT(qp.TryDestroy(), Succeeds());
  EXPECT_THAT(cq.TryDestroy(), Succeeds());
  EXPECT_THAT(pd.TryDestroy(), Succeeds());
}

// include/rdma/ib_verbs.h:ib_check_mr_access: remote writing and atomics need local writing.
ABI_TEST(Routes, RemoteWritingNeedsLocalWriting, Needs{}) {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  alignas(4096) static uint8_t bytes[4096];
  for (const int access : {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC}) {
    errno = 0;
    MemoryRegion mr(ibv_reg_mr(pd.get(), bytes, sizeof bytes, access));
    EXPECT_FALSE(mr);
    EXPECT_EQ(ErrorName(errno), "EINVAL") << access;
  }
}

}  // namespace vabi::conformance
