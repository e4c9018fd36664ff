// SPDX-License-Identifier: BSD-2-Clause
// What commands answer when nothing is wrong (uverbs_cmd.c, uverbs_std_types_*.c of Linux 7.3).
#include "shims/uverbs/mr_access.h"
#include "shims/uverbs/qp_state.h"
#include "shims/uverbs/test_uverbs.h"

namespace vabi {
namespace {

class CommandsTest : public UverbsTest {
 protected:
  void SetUp() override { OpenContext(); }
};

TEST_F(CommandsTest, QueryDeviceTellsTheDriversLimits) {
  Bytes reply(world().Size(VABI_S(ib_uverbs_query_device_resp)));
  ASSERT_GT(Write(1, S(VABI_S(ib_uverbs_query_device)), &reply), 0);
  const Body body(world(), reply.data(), reply.size());
  EXPECT_EQ(0x0123456789abcdefu, body.Get(VABI_F(ib_uverbs_query_device_resp, fw_ver)));
  EXPECT_EQ(30u, body.Get(VABI_F(ib_uverbs_query_device_resp, max_sge)))
      << "the smaller of send and receive";
  EXPECT_EQ(0x55667788u, body.Get(VABI_F(ib_uverbs_query_device_resp, device_cap_flags)))
      << "the low half";
  EXPECT_EQ(__builtin_bswap64(device().image().node_guid),
            body.Get(VABI_F(ib_uverbs_query_device_resp, node_guid)));
  EXPECT_EQ(1u, body.Get(VABI_F(ib_uverbs_query_device_resp, phys_port_cnt)));
}

TEST_F(CommandsTest, ExtendedQueryAddsTheRest) {
  Bytes reply(world().Size(VABI_S(ib_uverbs_ex_query_device_resp)));
  ASSERT_EQ(0, Invoke(0x80000001, S(VABI_S(ib_uverbs_ex_query_device)).bytes(), &reply));
  const Body body(world(), reply.data(), reply.size());
  EXPECT_EQ(reply.size(), body.Get(VABI_F(ib_uverbs_ex_query_device_resp, response_length)));
  EXPECT_EQ(0x1122331155667788u,
            body.Get(VABI_F(ib_uverbs_ex_query_device_resp, device_cap_flags_ex)));
  EXPECT_EQ(1u << 20, body.Get(VABI_F(ib_uverbs_ex_query_device_resp, max_dm_size)));
}

// uapi_create_write forgets the sizes of extended commands, so INVOKE_WRITE takes any; what is
// missing is zero.
TEST_F(CommandsTest, InvokeTakesShortExtendedCommands) {
  Bytes reply(world().Size(VABI_S(ib_uverbs_ex_query_device_resp)));
  EXPECT_EQ(0, Invoke(0x80000001, Bytes(4), &reply));
}

TEST_F(CommandsTest, QueryPortTellsTheWorldsPort) {
  Bytes reply(world().Size(VABI_S(ib_uverbs_query_port_resp)));
  ASSERT_GT(
      Write(2, S(VABI_S(ib_uverbs_query_port)).With(VABI_F(ib_uverbs_query_port, port_num), 1),
            &reply),
      0);
  const Body body(world(), reply.data(), reply.size());
  EXPECT_EQ(4u, body.Get(VABI_F(ib_uverbs_query_port_resp, state))) << "IB_PORT_ACTIVE";
  EXPECT_EQ(2u, body.Get(VABI_F(ib_uverbs_query_port_resp, link_layer)))
      << "IB_LINK_LAYER_ETHERNET";
  EXPECT_EQ(1u, body.Get(VABI_F(ib_uverbs_query_port_resp, max_vl_num)));
  EXPECT_EQ(1u, body.Get(VABI_F(ib_uverbs_query_port_resp, flags))) << "rdma_is_grh_required: RoCE";
}

// active_speed has eight bits and stops at NDR; the method's reply has the rest.
TEST_F(CommandsTest, FastPortsAreCutInTheOldReply) {
  image().device[0].ports[0].active_speed = 256;  // XDR
  Request call = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_QUERY_PORT));
  Bytes reply(world().Size(VABI_S(ib_uverbs_query_port_resp_ex)));
  call.AddConst(C(VABI_C(UVERBS_ATTR_QUERY_PORT_PORT_NUM)), 1);
  call.AddOut(C(VABI_C(UVERBS_ATTR_QUERY_PORT_RESP)), reply);
  ASSERT_EQ(0, Ioctl(call));
  const Body body(world(), reply.data(), reply.size());
  EXPECT_EQ(128u, body.Sub(VABI_F(ib_uverbs_query_port_resp_ex, legacy_resp))
                      .Get(VABI_F(ib_uverbs_query_port_resp, active_speed)));
  EXPECT_EQ(256u, body.Get(VABI_F(ib_uverbs_query_port_resp_ex, active_speed_ex)));
}

TEST_F(CommandsTest, UsersAreCounted) {
  const uint32_t pd = AllocPd(), cq = CreateCq();
  const uint32_t qp = CreateQp(pd, cq);
  EXPECT_EQ(-EBUSY, DestroyPd(pd));
  EXPECT_EQ("pd.in_use", LastRule());
  Bytes reply(8);
  EXPECT_EQ(
      -EBUSY,
      Write(20, S(VABI_S(ib_uverbs_destroy_cq)).With(VABI_F(ib_uverbs_destroy_cq, cq_handle), cq),
            &reply));
  EXPECT_EQ("cq.in_use", LastRule());
  EXPECT_EQ(2, file().Find(ObjectType::kCq, cq)->users) << "once to send, once to receive";
  ASSERT_GT(
      Write(27, S(VABI_S(ib_uverbs_destroy_qp)).With(VABI_F(ib_uverbs_destroy_qp, qp_handle), qp),
            &reply),
      0);
  EXPECT_GT(DestroyPd(pd), 0);
  EXPECT_EQ(0, file().Find(ObjectType::kCq, cq)->users);
}

TEST_F(CommandsTest, RegistersAndQueriesMemory) {
  const uint32_t pd = AllocPd();
  Bytes reply(12);
  ASSERT_GT(Write(9,
                  S(VABI_S(ib_uverbs_reg_mr))
                      .With(VABI_F(ib_uverbs_reg_mr, start), 0x10000123)
                      .With(VABI_F(ib_uverbs_reg_mr, hca_va), 0x20000123)
                      .With(VABI_F(ib_uverbs_reg_mr, length), 4096)
                      .With(VABI_F(ib_uverbs_reg_mr, pd_handle), pd)
                      .With(VABI_F(ib_uverbs_reg_mr, access_flags), kLocalWrite | kRemoteWrite),
                  &reply),
            0);
  const uint32_t mr = U32(reply, VABI_F(ib_uverbs_reg_mr_resp, mr_handle));
  EXPECT_EQ(0x200u, U32(reply, VABI_F(ib_uverbs_reg_mr_resp, rkey)));

  Request query = New(VABI_C(UVERBS_OBJECT_MR), VABI_C(UVERBS_METHOD_QUERY_MR));
  Bytes lkey(4), rkey(4), length(8), iova(8);
  query.AddHandle(C(VABI_C(UVERBS_ATTR_QUERY_MR_HANDLE)), mr);
  query.AddOut(C(VABI_C(UVERBS_ATTR_QUERY_MR_RESP_LKEY)), lkey);
  query.AddOut(C(VABI_C(UVERBS_ATTR_QUERY_MR_RESP_RKEY)), rkey);
  query.AddOut(C(VABI_C(UVERBS_ATTR_QUERY_MR_RESP_LENGTH)), length);
  query.AddOut(C(VABI_C(UVERBS_ATTR_QUERY_MR_RESP_IOVA)), iova);
  ASSERT_EQ(0, Ioctl(query));
  uint64_t value;
  std::memcpy(&value, iova.data(), 8);
  EXPECT_EQ(0x20000123u, value);

  // Another PD; REREG_PD with the PD that it has is dropped (uverbs_cmd.c since 5.11).
  const uint32_t other = AllocPd();
  Bytes keys(8);
  const auto rereg = [&](uint32_t flags, uint32_t to) {
    return Write(11,
                 S(VABI_S(ib_uverbs_rereg_mr))
                     .With(VABI_F(ib_uverbs_rereg_mr, mr_handle), mr)
                     .With(VABI_F(ib_uverbs_rereg_mr, flags), flags)
                     .With(VABI_F(ib_uverbs_rereg_mr, pd_handle), to)
                     .With(VABI_F(ib_uverbs_rereg_mr, access_flags), kLocalWrite),
                 &keys);
  };
  ASSERT_GT(rereg(6, other), 0);
  EXPECT_EQ(6u, TestDriver::last_rereg_flags);
  EXPECT_EQ(0x201u, U32(keys, VABI_F(ib_uverbs_rereg_mr_resp, rkey)));
  EXPECT_GT(DestroyPd(pd), 0);
  EXPECT_EQ(-EBUSY, DestroyPd(other));
  ASSERT_GT(rereg(6, other), 0);
  EXPECT_EQ(4u, TestDriver::last_rereg_flags);
  ASSERT_GT(
      Write(13, S(VABI_S(ib_uverbs_dereg_mr)).With(VABI_F(ib_uverbs_dereg_mr, mr_handle), mr)), 0);
  EXPECT_GT(DestroyPd(other), 0);
}

TEST_F(CommandsTest, QueuePairsThroughTheIoctl) {
  const uint32_t pd = AllocPd(), cq = CreateCq();
  Request call = New(VABI_C(UVERBS_OBJECT_QP), VABI_C(UVERBS_METHOD_QP_CREATE));
  Bytes cap(20, 1), caps(24, 0xff), number(4);
  call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_QP_HANDLE)));
  call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_QP_PD_HANDLE)), pd);
  call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE)), cq);
  call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE)), cq);
  call.Add(C(VABI_C(UVERBS_ATTR_CREATE_QP_USER_HANDLE)), 8, 1);
  call.AddIn(C(VABI_C(UVERBS_ATTR_CREATE_QP_CAP)), cap);
  call.AddConst(C(VABI_C(UVERBS_ATTR_CREATE_QP_TYPE)), kQptRc);
  call.Add(C(VABI_C(UVERBS_ATTR_CREATE_QP_FLAGS)), 4, 1 << 12);  // IB_UVERBS_QP_CREATE_SQ_SIG_ALL
  call.AddOut(C(VABI_C(UVERBS_ATTR_CREATE_QP_RESP_CAP)), caps);
  call.AddOut(C(VABI_C(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM)), number);
  ASSERT_EQ(0, Ioctl(call));
  EXPECT_EQ(Bytes(20, 1), Bytes(caps.begin(), caps.begin() + 20));
  EXPECT_EQ(Bytes(4, 0), Bytes(caps.begin() + 20, caps.end()))
      << "the rest of a longer buffer is zeroed";
  const auto* qp = static_cast<Qp*>(
      file().Find(ObjectType::kQp, call.Find(C(VABI_C(UVERBS_ATTR_CREATE_QP_HANDLE)))->data));
  ASSERT_NE(nullptr, qp);
  EXPECT_TRUE(qp->signal_all);
  EXPECT_EQ(0u, qp->create_flags);
  EXPECT_EQ(0, std::memcmp(number.data(), &qp->qp_num, 4));
}

TEST_F(CommandsTest, QueryQpGivesBackWhatModifySet) {
  const uint32_t qp = CreateQp(AllocPd(), CreateCq());
  ASSERT_GT(Write(26, S(VABI_S(ib_uverbs_modify_qp))
                          .With(VABI_F(ib_uverbs_modify_qp, qp_handle), qp)
                          .With(VABI_F(ib_uverbs_modify_qp, attr_mask),
                                kQpState | kQpPkeyIndex | kQpPort | kQpAccessFlags)
                          .With(VABI_F(ib_uverbs_modify_qp, qp_state), 1)
                          .With(VABI_F(ib_uverbs_modify_qp, port_num), 1)
                          .With(VABI_F(ib_uverbs_modify_qp, qp_access_flags), 7)),
            0);
  Struct rtr = S(VABI_S(ib_uverbs_modify_qp))
                   .With(VABI_F(ib_uverbs_modify_qp, qp_handle), qp)
                   .With(VABI_F(ib_uverbs_modify_qp, attr_mask),
                         kQpState | kQpAv | kQpPathMtu | kQpDestQpn | kQpRqPsn |
                             kQpMaxDestRdAtomic | kQpMinRnrTimer)
                   .With(VABI_F(ib_uverbs_modify_qp, qp_state), 2)
                   .With(VABI_F(ib_uverbs_modify_qp, path_mtu), 3)
                   .With(VABI_F(ib_uverbs_modify_qp, dest_qp_num), 0x55)
                   .With(VABI_F(ib_uverbs_modify_qp, rq_psn), 0x81234567);
  const Body dest = rtr.Sub(VABI_F(ib_uverbs_modify_qp, dest));
  dest.SetBytes(VABI_F(ib_uverbs_qp_dest, dgid), device().port(1).gids[1].raw, 16);
  dest.Set(VABI_F(ib_uverbs_qp_dest, is_global), 1);
  dest.Set(VABI_F(ib_uverbs_qp_dest, sgid_index), 1);
  dest.Set(VABI_F(ib_uverbs_qp_dest, port_num), 1);
  ASSERT_GT(Write(26, rtr), 0) << Last();
  Bytes reply(world().Size(VABI_S(ib_uverbs_query_qp_resp)));
  ASSERT_GT(Write(25, S(VABI_S(ib_uverbs_query_qp)).With(VABI_F(ib_uverbs_query_qp, qp_handle), qp),
                  &reply),
            0);
  const Body body(world(), reply.data(), reply.size());
  EXPECT_EQ(2u, body.Get(VABI_F(ib_uverbs_query_qp_resp, qp_state)));
  EXPECT_EQ(0x55u, body.Get(VABI_F(ib_uverbs_query_qp_resp, dest_qp_num)));
  EXPECT_EQ(0x234567u, body.Get(VABI_F(ib_uverbs_query_qp_resp, rq_psn))) << "24 bits";
  EXPECT_EQ(7u, body.Get(VABI_F(ib_uverbs_query_qp_resp, qp_access_flags)));
  EXPECT_EQ(8u, body.Get(VABI_F(ib_uverbs_query_qp_resp, max_send_wr)));
  EXPECT_EQ(
      1u,
      body.Sub(VABI_F(ib_uverbs_query_qp_resp, dest)).Get(VABI_F(ib_uverbs_qp_dest, sgid_index)));
}

// SQD: an AV without a port brings its port along.
TEST_F(CommandsTest, AvInSqdSetsThePort) {
  const uint32_t handle = CreateQp(AllocPd(), CreateCq());
  auto* qp = static_cast<Qp*>(file().Find(ObjectType::kQp, handle));
  qp->state = QpState::kSqd;
  Struct request = S(VABI_S(ib_uverbs_modify_qp))
                       .With(VABI_F(ib_uverbs_modify_qp, qp_handle), handle)
                       .With(VABI_F(ib_uverbs_modify_qp, attr_mask), kQpAv);
  const Body dest = request.Sub(VABI_F(ib_uverbs_modify_qp, dest));
  dest.Set(VABI_F(ib_uverbs_qp_dest, sgid_index), 1);
  dest.SetBytes(VABI_F(ib_uverbs_qp_dest, dgid), device().port(1).gids[1].raw, 16);
  dest.Set(VABI_F(ib_uverbs_qp_dest, is_global), 1);
  dest.Set(VABI_F(ib_uverbs_qp_dest, port_num), 1);
  ASSERT_GT(Write(26, request), 0) << Last();
  EXPECT_EQ(uint32_t{kQpAv | kQpPort}, TestDriver::last_modify_mask);
  EXPECT_EQ(1, qp->attr.port_num);
}

TEST_F(CommandsTest, SharedQueues) {
  const uint32_t pd = AllocPd();
  Bytes reply(16);
  ASSERT_GT(Write(32,
                  S(VABI_S(ib_uverbs_create_srq))
                      .With(VABI_F(ib_uverbs_create_srq, pd_handle), pd)
                      .With(VABI_F(ib_uverbs_create_srq, max_wr), 100)
                      .With(VABI_F(ib_uverbs_create_srq, max_sge), 4),
                  &reply),
            0);
  const uint32_t srq = U32(reply, VABI_F(ib_uverbs_create_srq_resp, srq_handle));
  EXPECT_EQ(0u, U32(reply, VABI_F(ib_uverbs_create_srq_resp, srqn)))
      << "only XRC queues tell their number";
  ASSERT_GT(Write(33, S(VABI_S(ib_uverbs_modify_srq))
                          .With(VABI_F(ib_uverbs_modify_srq, srq_handle), srq)
                          .With(VABI_F(ib_uverbs_modify_srq, attr_mask), 2)
                          .With(VABI_F(ib_uverbs_modify_srq, srq_limit), 8)),
            0);
  Bytes attr(16);
  ASSERT_GT(
      Write(34, S(VABI_S(ib_uverbs_query_srq)).With(VABI_F(ib_uverbs_query_srq, srq_handle), srq),
            &attr),
      0);
  EXPECT_EQ(100u, U32(attr, VABI_F(ib_uverbs_query_srq_resp, max_wr)));
  EXPECT_EQ(8u, U32(attr, VABI_F(ib_uverbs_query_srq_resp, srq_limit)));
  EXPECT_EQ(-EBUSY, DestroyPd(pd));
  Bytes events(4);
  ASSERT_GT(
      Write(35,
            S(VABI_S(ib_uverbs_destroy_srq)).With(VABI_F(ib_uverbs_destroy_srq, srq_handle), srq),
            &events),
      0);
  EXPECT_GT(DestroyPd(pd), 0);
}

TEST_F(CommandsTest, XrcDomainsAreSharedByInode) {
  const int fd = fileno(tmpfile());
  const auto open = [&](uint32_t flags, Bytes* reply) {
    return Write(37,
                 S(VABI_S(ib_uverbs_open_xrcd))
                     .With(VABI_F(ib_uverbs_open_xrcd, fd), static_cast<uint32_t>(fd))
                     .With(VABI_F(ib_uverbs_open_xrcd, oflags), flags),
                 reply);
  };
  Bytes first(4), second(4);
  EXPECT_EQ(-EAGAIN, open(0, &first));
  EXPECT_EQ("xrcd.not_there", LastRule());
  ASSERT_GT(open(0100 /* O_CREAT */, &first), 0);
  ASSERT_GT(open(0, &second), 0);
  EXPECT_EQ(-EINVAL, open(0200 /* O_EXCL */, &second));
  EXPECT_EQ(1, std::count(script().log.begin(), script().log.end(), "alloc_xrcd"));

  // A target belongs to the domain: OPEN_QP finds it through the other handle.
  Bytes reply(32), opened(32);
  ASSERT_GT(
      Write(24, QpRequest(U32(first, VABI_F(ib_uverbs_open_xrcd_resp, xrcd_handle)), 0, kQptXrcTgt),
            &reply),
      0)
      << Last();
  const uint32_t number = U32(reply, VABI_F(ib_uverbs_create_qp_resp, qpn));
  ASSERT_GT(Write(40,
                  S(VABI_S(ib_uverbs_open_qp))
                      .With(VABI_F(ib_uverbs_open_qp, pd_handle), 1)
                      .With(VABI_F(ib_uverbs_open_qp, qpn), number)
                      .With(VABI_F(ib_uverbs_open_qp, qp_type), kQptXrcTgt),
                  &opened),
            0)
      << Last();
  EXPECT_EQ(number, U32(opened, VABI_F(ib_uverbs_create_qp_resp, qpn)));
  const auto close_domain = [&](uint32_t handle) {
    return Write(
        38,
        S(VABI_S(ib_uverbs_close_xrcd)).With(VABI_F(ib_uverbs_close_xrcd, xrcd_handle), handle));
  };
  EXPECT_EQ(-EBUSY, close_domain(0));
  EXPECT_EQ("xrcd.handle_in_use", LastRule());
  const auto destroy = [&](const Bytes& created) {
    Bytes events(4);
    return Write(27,
                 S(VABI_S(ib_uverbs_destroy_qp))
                     .With(VABI_F(ib_uverbs_destroy_qp, qp_handle),
                           U32(created, VABI_F(ib_uverbs_create_qp_resp, qp_handle))),
                 &events);
  };
  script().log.clear();
  EXPECT_GT(destroy(reply), 0);
  EXPECT_TRUE(script().log.empty()) << "the other handle still has it";
  EXPECT_GT(destroy(opened), 0);
  EXPECT_THAT(script().log, testing::ElementsAre("destroy_qp"));
  EXPECT_GT(close_domain(0), 0);
  EXPECT_GT(close_domain(1), 0);
  EXPECT_THAT(script().log, testing::ElementsAre("destroy_qp", "dealloc_xrcd"));
}

TEST_F(CommandsTest, WorkQueuesAndTheirTable) {
  const uint32_t pd = AllocPd(), cq = CreateCq();
  Bytes reply(24);
  Struct request = S(VABI_S(ib_uverbs_ex_create_wq))
                       .With(VABI_F(ib_uverbs_ex_create_wq, pd_handle), pd)
                       .With(VABI_F(ib_uverbs_ex_create_wq, cq_handle), cq)
                       .With(VABI_F(ib_uverbs_ex_create_wq, max_wr), 12);
  ASSERT_GT(WriteEx(52, request.bytes(), &reply), 0) << Last();
  const uint32_t wq = U32(reply, VABI_F(ib_uverbs_ex_create_wq_resp, wq_handle));
  Struct table = S(VABI_S(ib_uverbs_ex_create_rwq_ind_table), 8)
                     .With(VABI_F(ib_uverbs_ex_create_rwq_ind_table, log_ind_tbl_size), 1);
  const uint32_t handles[2] = {wq, wq};
  std::memcpy(table.bytes().data() + world().Size(VABI_S(ib_uverbs_ex_create_rwq_ind_table)),
              handles, 8);
  Bytes answer(16);
  ASSERT_GT(WriteEx(55, table.bytes(), &answer), 0) << Last();
  EXPECT_EQ(9u, U32(answer, VABI_F(ib_uverbs_ex_create_rwq_ind_table_resp, ind_tbl_num)));
  EXPECT_EQ(2, file().Find(ObjectType::kWq, wq)->users);
  Struct destroy =
      S(VABI_S(ib_uverbs_ex_destroy_wq)).With(VABI_F(ib_uverbs_ex_destroy_wq, wq_handle), wq);
  Bytes events(16);
  EXPECT_EQ(-EBUSY, WriteEx(54, destroy.bytes(), &events));
  EXPECT_EQ("wq.in_use", LastRule());
}

TEST_F(CommandsTest, MulticastTwiceIsOnce) {
  const uint32_t qp = CreateQp(AllocPd(), CreateCq(), kQptUd);
  Struct attach =
      S(VABI_S(ib_uverbs_attach_mcast)).With(VABI_F(ib_uverbs_attach_mcast, qp_handle), qp);
  const uint8_t gid[16] = {0xff, 0x0e};
  attach.SetBytes(VABI_F(ib_uverbs_attach_mcast, gid), gid, 16);
  ASSERT_GT(Write(30, attach), 0) << Last();
  ASSERT_GT(Write(30, attach), 0);
  EXPECT_EQ(1, std::count(script().log.begin(), script().log.end(), "attach_mcast"));
  Bytes events(4);
  const auto destroy = [&] {
    return Write(27,
                 S(VABI_S(ib_uverbs_destroy_qp)).With(VABI_F(ib_uverbs_destroy_qp, qp_handle), qp),
                 &events);
  };
  EXPECT_EQ(-EBUSY, destroy());
  EXPECT_EQ("qp.mcast_attached", LastRule());
  ASSERT_GT(Write(31, attach), 0);
  EXPECT_EQ(-EINVAL, Write(31, attach));
  EXPECT_EQ("mcast.none", LastRule());
  EXPECT_GT(destroy(), 0);
}

TEST_F(CommandsTest, DoorbellOfSoftDrivers) {
  const uint32_t qp = CreateQp(AllocPd(), CreateCq());
  Bytes reply(4, 0xff);
  ASSERT_GT(Write(28,
                  S(VABI_S(ib_uverbs_post_send))
                      .With(VABI_F(ib_uverbs_post_send, qp_handle), qp)
                      .With(VABI_F(ib_uverbs_post_send, wqe_size),
                            world().Size(VABI_S(ib_uverbs_send_wr))),
                  &reply),
            0)
      << Last();
  EXPECT_EQ(Bytes(4, 0), reply) << "bad_wr";
  EXPECT_EQ("post_send", script().log.back());
}

// The core's own look at work requests (ib_uverbs_post_send), and which of them it says was
// refused.
TEST_F(CommandsTest, PostSendParsesWorkRequests) {
  const uint32_t qp = CreateQp(AllocPd(), CreateCq());
  const size_t size = world().Size(VABI_S(ib_uverbs_send_wr));
  const auto post = [&](uint64_t opcode, uint32_t num_sge, Bytes* reply) {
    Bytes request = S(VABI_S(ib_uverbs_post_send))
                        .With(VABI_F(ib_uverbs_post_send, qp_handle), qp)
                        .With(VABI_F(ib_uverbs_post_send, wr_count), 1)
                        .With(VABI_F(ib_uverbs_post_send, wqe_size), size)
                        .bytes();
    const Bytes wr = S(VABI_S(ib_uverbs_send_wr))
                         .With(VABI_F(ib_uverbs_send_wr, opcode), opcode)
                         .With(VABI_F(ib_uverbs_send_wr, num_sge), num_sge)
                         .bytes();
    request.insert(request.end(), wr.begin(), wr.end());
    return Invoke(28, request, reply);
  };
  Bytes reply(4, 0xff);
  EXPECT_EQ(0, post(2, 0, &reply));
  EXPECT_EQ(Bytes(4), reply);
  EXPECT_EQ(-EINVAL, post(7, 0, &reply)) << "LOCAL_INV";
  EXPECT_EQ(-EINVAL, post(2, 1, &reply)) << "more entries than there are";
  script().fail_with = -EINVAL;
  EXPECT_EQ(-EINVAL, post(2, 0, &reply));
  EXPECT_EQ((Bytes{1, 0, 0, 0}), reply) << "bad_wr counts from 1";
}

// ib_uverbs_unmarshall_recv: struct ib_uverbs_recv_wr has 16 bytes, and an element as well.
TEST_F(CommandsTest, PostRecvParsesWorkRequests) {
  Bytes request = S(VABI_S(ib_uverbs_post_recv))
                      .With(VABI_F(ib_uverbs_post_recv, qp_handle), CreateQp(AllocPd(), CreateCq()))
                      .With(VABI_F(ib_uverbs_post_recv, wr_count), 2)
                      .With(VABI_F(ib_uverbs_post_recv, sge_count), 3)
                      .With(VABI_F(ib_uverbs_post_recv, wqe_size), 24)
                      .bytes();
  for (const uint32_t entries : {1u, 2u}) {
    Bytes wr = S(VABI_S(ib_uverbs_recv_wr), 8)
                   .With(VABI_F(ib_uverbs_recv_wr, wr_id), 0x77 + entries)
                   .With(VABI_F(ib_uverbs_recv_wr, num_sge), entries)
                   .bytes();
    request.insert(request.end(), wr.begin(), wr.end());
  }
  for (const uint64_t address : {0x1000, 0x2000, 0x3000}) {
    Bytes sge = S(VABI_S(ib_uverbs_sge))
                    .With(VABI_F(ib_uverbs_sge, addr), address)
                    .With(VABI_F(ib_uverbs_sge, length), 5)
                    .With(VABI_F(ib_uverbs_sge, lkey), 9)
                    .bytes();
    request.insert(request.end(), sge.begin(), sge.end());
  }
  Bytes reply(4, 0xff);
  EXPECT_EQ(0, Invoke(29, request, &reply)) << Last();
  EXPECT_EQ(Bytes(4), reply);
  ASSERT_EQ(2u, script().receives.size());
  EXPECT_EQ(0x78u, script().receives[0].wr_id);
  EXPECT_EQ(0x1000u, script().receives[0].sges[0].address);
  EXPECT_EQ(2u, script().receives[1].sge_count);
  EXPECT_EQ(0x3000u, script().receives[1].sges[1].address);
  EXPECT_EQ(9u, script().receives[1].sges[1].lkey);
  script().room_for_receives = 3;
  EXPECT_EQ(-ENOMEM, Invoke(29, request, &reply));
  EXPECT_EQ((Bytes{2, 0, 0, 0}), reply) << "the second was refused";
}

// ib_uverbs_poll_cq: count and reserved, and not a byte more.
TEST_F(CommandsTest, PollOfAnEmptyQueue) {
  Bytes reply(16, 0xff);
  ASSERT_GT(Write(21,
                  S(VABI_S(ib_uverbs_poll_cq))
                      .With(VABI_F(ib_uverbs_poll_cq, cq_handle), CreateCq())
                      .With(VABI_F(ib_uverbs_poll_cq, ne), 1),
                  &reply),
            0);
  Bytes expected(16, 0xff);
  std::fill_n(expected.begin(), 8, 0);
  EXPECT_EQ(expected, reply);
  EXPECT_EQ("poll_cq", script().log.back());
}

// uverbs_cmd.c:create_qp: who names no receive CQ of his own gets that of the sends, XRC initiators
// too.
TEST_F(CommandsTest, XrcInitiatorHasItsSendQueueForBoth) {
  const uint32_t handle = CreateQp(AllocPd(), CreateCq(), kQptXrcIni);
  const auto* qp = static_cast<Qp*>(file().Find(ObjectType::kQp, handle));
  ASSERT_NE(nullptr, qp);
  EXPECT_NE(nullptr, qp->send_cq);
  EXPECT_EQ(qp->send_cq, qp->recv_cq);
}

// addr.c:rdma_resolve_ip
TEST_F(CommandsTest, AddressesOfTwoFamiliesDoNotMeet) {
  const uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2};
  Struct request =
      S(VABI_S(ib_uverbs_create_ah)).With(VABI_F(ib_uverbs_create_ah, pd_handle), AllocPd());
  const Body attr = request.Sub(VABI_F(ib_uverbs_create_ah, attr));
  attr.Set(VABI_F(ib_uverbs_ah_attr, port_num), 1);
  attr.Set(VABI_F(ib_uverbs_ah_attr, is_global), 1);
  attr.Sub(VABI_F(ib_uverbs_ah_attr, grh))
      .SetBytes(VABI_F(ib_uverbs_global_route, dgid), mapped, 16);
  Bytes reply(world().Size(VABI_S(ib_uverbs_create_ah_resp)));
  EXPECT_EQ(-EINVAL, Write(5, request, &reply)) << "sgid_index 0 is a link-local IPv6 address";
}

TEST_F(CommandsTest, DeviceMemory) {
  Request alloc = New(VABI_C(UVERBS_OBJECT_DM), VABI_C(UVERBS_METHOD_DM_ALLOC));
  alloc.AddHandle(C(VABI_C(UVERBS_ATTR_ALLOC_DM_HANDLE)));
  alloc.Add(C(VABI_C(UVERBS_ATTR_ALLOC_DM_LENGTH)), 8, 4096);
  alloc.Add(C(VABI_C(UVERBS_ATTR_ALLOC_DM_ALIGNMENT)), 4, 0);
  ASSERT_EQ(0, Ioctl(alloc));
  const uint64_t dm = alloc.attrs()[0].data;
  const uint32_t pd = AllocPd();
  Bytes lkey(4), rkey(4);
  Request reg = New(VABI_C(UVERBS_OBJECT_MR), VABI_C(UVERBS_METHOD_DM_MR_REG));
  reg.AddHandle(C(VABI_C(UVERBS_ATTR_REG_DM_MR_HANDLE)));
  reg.Add(C(VABI_C(UVERBS_ATTR_REG_DM_MR_OFFSET)), 8, 0);
  reg.Add(C(VABI_C(UVERBS_ATTR_REG_DM_MR_LENGTH)), 8, 4096);
  reg.AddHandle(C(VABI_C(UVERBS_ATTR_REG_DM_MR_PD_HANDLE)), pd);
  reg.Add(C(VABI_C(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS)), 4, kZeroBased);
  reg.AddHandle(C(VABI_C(UVERBS_ATTR_REG_DM_MR_DM_HANDLE)), dm);
  reg.AddOut(C(VABI_C(UVERBS_ATTR_REG_DM_MR_RESP_LKEY)), lkey);
  reg.AddOut(C(VABI_C(UVERBS_ATTR_REG_DM_MR_RESP_RKEY)), rkey);
  ASSERT_EQ(0, Ioctl(reg)) << Last();
  Request free_dm = New(VABI_C(UVERBS_OBJECT_DM), VABI_C(UVERBS_METHOD_DM_FREE));
  free_dm.AddHandle(C(VABI_C(UVERBS_ATTR_FREE_DM_HANDLE)), dm);
  EXPECT_EQ(-EBUSY, Ioctl(free_dm));
  EXPECT_EQ("dm.in_use", LastRule());
}

TEST_F(CommandsTest, WriteContextComesWithItsEventFile) {
  Reinstall();
  Bytes reply(8);
  ASSERT_GT(Write(0, S(VABI_S(ib_uverbs_get_context)), &reply), 0);
  const int fd = static_cast<int>(U32(reply, VABI_F(ib_uverbs_get_context_resp, async_fd)));
  fds_.push_back(fd);
  EXPECT_EQ(2u, U32(reply, VABI_F(ib_uverbs_get_context_resp, num_comp_vectors)));
  EXPECT_NE(nullptr, AsyncEventFile::From(FdTable::Get(fd)));
  EXPECT_EQ(-EINVAL, Write(0, S(VABI_S(ib_uverbs_get_context)), &reply));
  EXPECT_EQ("context.twice", LastRule());
}

}  // namespace
}  // namespace vabi
