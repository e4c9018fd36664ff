// SPDX-License-Identifier: BSD-2-Clause
// What ConnectX grants and refuses when queues are made and changed. Expected values:
// drivers/infiniband/hw/mlx5 of the kernel named (cq.c, qp.c, srq.c, mr.c, doorbell.c).
#include "shims/providers/mlx5/test_mlx5.h"

namespace vabi::mlx5 {
namespace {

class Objects : public Mlx5Test {
 protected:
  using Mlx5Test::Mlx5Test;
  void SetUp() override { OpenContext(); }
  int Cq16(Struct driver, size_t length = 0) {
    Cq cq(16);
    Bytes bytes = driver.bytes();
    if (length != 0) bytes.resize(length);
    return Errno(MakeCq(&cq, bytes));
  }
  int Srq16(Struct driver, size_t length = 0) {
    Srq srq(16);
    Bytes bytes = driver.bytes();
    if (length != 0) bytes.resize(length);
    return Errno(MakeSrq(&srq, bytes));
  }
  int Qp16(const Struct& driver, size_t length = 0, uint8_t type = 2) {
    if (queue_.handle == 0 && queue_.number == 0) MakeCq(&queue_);
    qp_.type = type;
    Struct copy = driver;
    Bytes bytes = copy.bytes();
    if (length != 0) bytes.resize(length);
    return Errno(MakeQp(queue_, queue_, &qp_, bytes, nullptr, &reply_));
  }
  Cq queue_{64}, ring_{16};
  Srq srq_{16};
  Qp qp_;
  Bytes reply_;
};

TEST_F(Objects, CqIsGrantedAsAPowerOfTwo) {
  Cq cq(16);
  Bytes reply(16);
  ASSERT_GT(Write(kCreateCq, CqRequest(cq).With(VABI_F(ib_uverbs_create_cq, cqe), 9), &reply,
                  CqPrivate(cq).bytes()),
            0);
  EXPECT_EQ(15u, In(reply).U32(VABI_F(ib_uverbs_create_cq_resp, cqe)));
}

#define CQ(field) VABI_F(mlx5_ib_create_cq, field)
TEST_F(Objects, CqRequests) {
  EXPECT_EQ(0, Cq16(CqPrivate(ring_)));
  EXPECT_EQ(EINVAL, Cq16(CqPrivate(ring_).With(CQ(cqe_size), 32)));
  EXPECT_EQ("mlx5.create_cq.size", LastRule());
  EXPECT_EQ(EINVAL, Cq16(CqPrivate(ring_).With(CQ(reserved0), 1)));
  EXPECT_EQ(EINVAL, Cq16(CqPrivate(ring_).With(CQ(reserved1), 1)));
  EXPECT_EQ("mlx5.create_cq.reserved", LastRule());
  EXPECT_EQ(EINVAL, Cq16(CqPrivate(ring_).With(CQ(flags), 8))) << "three flags are known";
  EXPECT_EQ("mlx5.create_cq.vendor_flags", LastRule());
  EXPECT_EQ(EOPNOTSUPP, Cq16(CqPrivate(ring_).With(CQ(cqe_comp_en), 1)))
      << "this NIC does not compress";
  EXPECT_EQ(EINVAL, Cq16(CqPrivate(ring_).With(CQ(buf_addr), Address(ring_.ring.base()) + 8)));
  EXPECT_EQ("mlx5.create_cq.buffer_offset", LastRule());
  EXPECT_EQ(EFAULT, Cq16(CqPrivate(ring_).With(CQ(buf_addr), 64)));
  EXPECT_EQ(0, Cq16(CqPrivate(ring_), 40)) << "zeroes behind it";
}

TEST_F(Objects, CqRequestLengths) {
  EXPECT_EQ(EINVAL, Cq16(CqPrivate(ring_), 8));
  Bytes bytes = CqPrivate(ring_).bytes();
  bytes.resize(40);
  bytes[39] = 1;
  Cq cq(16);
  EXPECT_EQ(EOPNOTSUPP, Errno(MakeCq(&cq, bytes)));
  EXPECT_EQ("mlx5.create_cq.tail", LastRule());
}

TEST_F(Objects, CqNeedsAPageWhereTheContextHasNone) {
  Reinstall();
  OpenContext(kLib4k | kLibDynamic);
  EXPECT_EQ(EINVAL, Cq16(CqPrivate(ring_)));
  EXPECT_EQ("mlx5.create_cq.no_uar", LastRule());
  EXPECT_EQ(0,
            Cq16(CqPrivate(ring_).With(CQ(flags), 2)));  // MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX
}

#define QP(field) VABI_F(mlx5_ib_create_qp, field)
TEST_F(Objects, QpRequests) {
  EXPECT_EQ(0, Qp16(QpPrivate(qp_)));
  EXPECT_EQ(EINVAL, Qp16(QpPrivate(qp_), 40)) << "up to ece_options at least";
  EXPECT_EQ("mlx5.create_qp.length", LastRule());
  EXPECT_EQ(0, Qp16(QpPrivate(qp_), 48));
  EXPECT_EQ(0, Qp16(QpPrivate(qp_), 64)) << "zeroes behind it";
  EXPECT_EQ(EINVAL, Qp16(QpPrivate(qp_).With(QP(reserved), 1)));
  EXPECT_EQ("mlx5.create_qp.tail", LastRule());
  EXPECT_EQ(EINVAL, Qp16(QpPrivate(qp_).With(QP(flags), 1u << 20)));
  EXPECT_EQ("mlx5.create_qp.vendor_flags", LastRule());
  EXPECT_EQ(EINVAL, Qp16(QpPrivate(qp_).With(QP(flags), kUarPageIndex | 1 << 3)));
  EXPECT_EQ("mlx5.create_qp.two_registers", LastRule());
}

TEST_F(Objects, QpUserIndices) {
  EXPECT_EQ(EINVAL, Qp16(QpPrivate(qp_).With(QP(uidx), 0xffffff))) << "MLX5_IB_DEFAULT_UIDX";
  EXPECT_EQ("mlx5.create_qp.user_index", LastRule());
  EXPECT_EQ(EINVAL, Qp16(QpPrivate(qp_).With(QP(uidx), 0x1000000)));
  EXPECT_EQ(0, Qp16(QpPrivate(qp_).With(QP(uidx), 0xfffffe)));
}

TEST_F(Objects, QpSizes) {
  EXPECT_EQ(EINVAL, Qp16(QpPrivate(qp_).With(QP(sq_wqe_count), 15)));
  EXPECT_EQ("mlx5.create_qp.sq_power", LastRule());
  EXPECT_EQ(EINVAL, Qp16(QpPrivate(qp_).With(QP(sq_wqe_count), 65536)));
  EXPECT_EQ("mlx5.create_qp.sq_size", LastRule());
  EXPECT_EQ(EINVAL, Qp16(QpPrivate(qp_).With(QP(rq_wqe_shift), 32)));
  EXPECT_EQ(EINVAL, Qp16(QpPrivate(qp_).With(QP(buf_addr), Address(qp_.ring.base()) + 16)));
  EXPECT_EQ(EFAULT, Qp16(QpPrivate(qp_).With(QP(buf_addr), 4096)));
  Qp none(16, 0);
  const Struct request = QpPrivate(none).With(QP(rq_wqe_count), 16);
  Struct copy = request;
  EXPECT_EQ(EINVAL, Errno(MakeQp(queue_, queue_, &none, copy.bytes())))
      << "no receives asked for, but counted";
}

TEST_F(Objects, QpTellsItsRegister) {
  ASSERT_EQ(0, Qp16(QpPrivate(qp_)));
  uint32_t index;
  std::memcpy(&index, reply_.data(), 4);
  EXPECT_LT(index, 32u);
  Reinstall();
  OpenContext(kLib4k | kLibDynamic);
  queue_.handle = queue_.number = 0;
  ASSERT_GT(MakeCq(&queue_, CqPrivate(queue_).With(CQ(flags), 2).bytes()), 0);
  EXPECT_EQ(EINVAL, Errno(MakeQp(queue_, queue_, &qp_, QpPrivate(qp_).bytes())));
  EXPECT_EQ("mlx5.create_qp.no_register", LastRule());
  ASSERT_GT(MakeQp(queue_, queue_, &qp_, QpPrivate(qp_).With(QP(flags), kUarPageIndex).bytes(),
                   nullptr, &reply_),
            0);
  std::memcpy(&index, reply_.data(), 4);
  EXPECT_EQ(0x80000000u, index) << "MLX5_IB_INVALID_BFREG";
}

TEST_F(Objects, QpTypes) {
  EXPECT_EQ(EINVAL, Qp16(QpPrivate(qp_), 0, 0xff)) << "DRIVER: neither DCI nor DCT";
  EXPECT_EQ("mlx5.create_qp.dc_type", LastRule());
}

class Linux5_0Objects : public Objects {
 protected:
  Linux5_0Objects() : Objects("linux-5.0") {}
};
TEST_F(Linux5_0Objects, DynamicTypesAreReadFirst) {
  EXPECT_EQ(EINVAL, Qp16(QpPrivate(qp_), 0, 0xff)) << "set_mlx_qp_type: neither DCI nor DCT";
  EXPECT_EQ("mlx5.create_qp.dc_type", LastRule());
  EXPECT_EQ(EINVAL, Qp16(QpPrivate(qp_).With(QP(flags), 1 << 5), 0, 0xff)) << "DCI";
  EXPECT_EQ("mlx5.create_qp.dci_receives", LastRule());
  EXPECT_EQ(EINVAL, Qp16(QpPrivate(qp_).With(QP(flags), 1 << 4), 0, 0xff)) << "DCT";
  EXPECT_EQ("mlx5.create_qp.dct_queues", LastRule());
  EXPECT_EQ(EINVAL, Qp16(QpPrivate(qp_).With(QP(flags), 1 << 4), 16, 0xff)) << "too short";
  EXPECT_EQ("mlx5.create_qp.dc_type", LastRule());
}

class Linux4_16Objects : public Objects {
 protected:
  Linux4_16Objects() : Objects("linux-4.16") {}
};
TEST_F(Linux4_16Objects, TakesSmallRequests) {
  EXPECT_EQ(0, Cq16(CqPrivate(ring_), 24));
  EXPECT_EQ(0, Qp16(QpPrivate(qp_).With(QP(flags), 1u << 30)))
      << "flags were not checked before 4.20";
}

#define SRQ(field) VABI_F(mlx5_ib_create_srq, field)
TEST_F(Objects, SrqRequests) {
  Bytes reply(24);
  ASSERT_GT(Write(kCreateSrq,
                  S(VABI_S(ib_uverbs_create_srq))
                      .With(VABI_F(ib_uverbs_create_srq, pd_handle), pd_)
                      .With(VABI_F(ib_uverbs_create_srq, max_wr), 9)
                      .With(VABI_F(ib_uverbs_create_srq, max_sge), 1),
                  &reply, SrqPrivate(srq_).bytes()),
            0);
  EXPECT_EQ(15u, In(reply).U32(VABI_F(ib_uverbs_create_srq_resp, max_wr)));
  EXPECT_EQ(EINVAL, Srq16(SrqPrivate(srq_).With(SRQ(reserved0), 1)));
  EXPECT_EQ(EINVAL, Srq16(SrqPrivate(srq_).With(SRQ(reserved1), 1)));
  EXPECT_EQ("mlx5.create_srq.reserved", LastRule());
  EXPECT_EQ(EINVAL, Srq16(SrqPrivate(srq_).With(SRQ(buf_addr), Address(srq_.ring.base()) + 4)));
  EXPECT_EQ(0, Srq16(SrqPrivate(srq_).With(SRQ(uidx), 0x5555)))
      << "basic queues have none: not looked at";
  Srq large(65536);
  EXPECT_EQ(EINVAL, Errno(MakeSrq(&large, SrqPrivate(srq_).bytes()))) << "log_max_srq_sz";
}

#define MODIFY_DRIVER(field) VABI_F(mlx5_ib_modify_qp, field)
TEST_F(Objects, ModifyLooksAtItsPrivatePart) {
  ASSERT_EQ(0, Qp16(QpPrivate(qp_)));
  const auto init = [&](Bytes driver) {
    // struct ib_uverbs_ex_modify_qp: the same, and rate_limit; only this command has a private
    // part.
    Bytes request =
        ModifyRequest(qp_, 0x1 | 0x10 | 0x20 | 0x8, {{MODIFY(qp_state), 1}, {MODIFY(port_num), 1}})
            .bytes();
    request.resize(world().Size(VABI_S(ib_uverbs_ex_modify_qp)));
    return Errno(WriteEx(26, request, nullptr, driver));
  };
  Struct own = S(VABI_S(mlx5_ib_modify_qp));
  EXPECT_EQ(0, init(own.bytes()));
  EXPECT_EQ(EOPNOTSUPP,
            init(S(VABI_S(mlx5_ib_modify_qp)).With(MODIFY_DRIVER(comp_mask), 2).bytes()));
  EXPECT_EQ("mlx5.modify_qp.comp_mask", LastRule());
  EXPECT_EQ(EINVAL, init(Bytes(8)));
  EXPECT_EQ("mlx5.modify_qp.length", LastRule());
  Bytes longer = own.bytes();
  longer.resize(longer.size() + 8);
  EXPECT_EQ(0, init(longer));
  longer.back() = 1;
  EXPECT_EQ(EOPNOTSUPP, init(longer));
}

TEST_F(Objects, ModifyChecksValues) {
  ASSERT_EQ(0, Qp16(QpPrivate(qp_)));
  ASSERT_GT(ToInit(qp_), 0);
  const uint32_t mask = 0x1 | 0x80 | 0x100 | 0x100000 | 0x1000 | 0x20000 | 0x8000;
  EXPECT_EQ(EINVAL, Errno(Modify(qp_, mask, {{MODIFY(qp_state), 2}, {MODIFY(path_mtu), 6}})));
  EXPECT_EQ("mlx5.modify_qp.mtu", LastRule());
  EXPECT_EQ(EINVAL,
            Errno(Modify(
                qp_, mask,
                {{MODIFY(qp_state), 2}, {MODIFY(path_mtu), 3}, {MODIFY(max_dest_rd_atomic), 17}})));
  EXPECT_EQ("mlx5.modify_qp.depth", LastRule());
  EXPECT_EQ(0,
            Errno(Modify(
                qp_, mask,
                {{MODIFY(qp_state), 2}, {MODIFY(path_mtu), 3}, {MODIFY(max_dest_rd_atomic), 16}})));
}

TEST_F(Objects, Windows) {
  const auto allocate = [&](Bytes driver) {
    Bytes reply(8);
    return Errno(Write(kAllocMw,
                       S(VABI_S(ib_uverbs_alloc_mw))
                           .With(VABI_F(ib_uverbs_alloc_mw, pd_handle), pd_)
                           .With(VABI_F(ib_uverbs_alloc_mw, mw_type), 1),
                       &reply, driver));
  };
  EXPECT_EQ(0, allocate({}));
  Bytes driver(8);
  EXPECT_EQ(0, allocate(driver));
  driver[4] = 1;
  EXPECT_EQ(0, allocate(driver)) << "num_klms";
  driver[5] = 1;
  EXPECT_EQ(EOPNOTSUPP, allocate(driver));
  EXPECT_EQ("mlx5.alloc_mw.reserved", LastRule());
}

// Work queues are there on Ethernet only.
class Ethernet : public Objects {
 protected:
  void SetUp() override {
    image().device[0].link = LinkLayer::kEthernet;
    Reinstall();
    OpenContext(kLib4k, kDevx);
    MakeCq(&queue_);
  }
#define WQ(field) VABI_F(mlx5_ib_create_wq, field)
  Struct WqPrivate() {
    return S(VABI_S(mlx5_ib_create_wq))
        .With(WQ(buf_addr), Address(qp_.ring.base()))
        .With(WQ(db_addr), Address(qp_.record.base()))
        .With(WQ(rq_wqe_count), 16)
        .With(WQ(rq_wqe_shift), 5)
        .With(WQ(user_index), 0x55);
  }
  int MakeWq(Struct own, size_t length = 0, uint32_t flags = 0, uint16_t room = 8) {
    Bytes driver = own.bytes();
    if (length != 0) driver.resize(length);
    Bytes reply((world().Size(VABI_S(ib_uverbs_ex_create_wq_resp)) + 7) / 8 * 8 + room);
    const long result = WriteEx(52,
                                S(VABI_S(ib_uverbs_ex_create_wq))
                                    .With(VABI_F(ib_uverbs_ex_create_wq, pd_handle), pd_)
                                    .With(VABI_F(ib_uverbs_ex_create_wq, cq_handle), queue_.handle)
                                    .With(VABI_F(ib_uverbs_ex_create_wq, max_wr), 16)
                                    .With(VABI_F(ib_uverbs_ex_create_wq, max_sge), 1)
                                    .With(VABI_F(ib_uverbs_ex_create_wq, create_flags), flags)
                                    .bytes(),
                                &reply, driver, room);
    wq_ = In(reply).U32(VABI_F(ib_uverbs_ex_create_wq_resp, wq_handle));
    wqn_ = In(reply).U32(VABI_F(ib_uverbs_ex_create_wq_resp, wqn));
    answered_ = room == 0 ? 0 : reply[reply.size() - room];
    return Errno(result);
  }
  int ModifyWq(uint32_t state, const Bytes& driver) {
    return Errno(WriteEx(53,
                         S(VABI_S(ib_uverbs_ex_modify_wq))
                             .With(VABI_F(ib_uverbs_ex_modify_wq, attr_mask), 1)
                             .With(VABI_F(ib_uverbs_ex_modify_wq, wq_handle), wq_)
                             .With(VABI_F(ib_uverbs_ex_modify_wq, wq_state), state)
                             .bytes(),
                         nullptr, driver));
  }
  int MakeTable(const Bytes& driver, uint32_t log_size = 0) {
    Struct request = S(VABI_S(ib_uverbs_ex_create_rwq_ind_table));
    request.Set(VABI_F(ib_uverbs_ex_create_rwq_ind_table, log_ind_tbl_size), log_size);
    Bytes bytes = request.bytes();
    for (uint32_t i = 0; i < 1u << log_size; ++i) {
      for (int byte = 0; byte < 4; ++byte) bytes.push_back(static_cast<uint8_t>(wq_ >> (8 * byte)));
    }
    Bytes reply((world().Size(VABI_S(ib_uverbs_ex_create_rwq_ind_table_resp)) + 7) / 8 * 8);
    const long result = WriteEx(55, bytes, &reply, driver);
    table_ = In(reply).U32(VABI_F(ib_uverbs_ex_create_rwq_ind_table_resp, ind_tbl_handle));
    return Errno(result);
  }
#define RSS(field) VABI_F(mlx5_ib_create_qp_rss, field)
  Struct RssPrivate() {
    return S(VABI_S(mlx5_ib_create_qp_rss))
        .With(RSS(rx_hash_fields_mask), 1 | 2)
        .With(RSS(rx_hash_function), 1)
        .With(RSS(rx_key_len), 40);
  }
  int MakeRss(Struct own, size_t length = 0) {
    Bytes driver = own.bytes();
    if (length != 0) driver.resize(length);
    const size_t core = (world().Size(VABI_S(ib_uverbs_ex_create_qp_resp)) + 7) / 8 * 8;
    Bytes reply(core + 40);
    const long result =
        WriteEx(24,
                S(VABI_S(ib_uverbs_ex_create_qp))
                    .With(VABI_F(ib_uverbs_ex_create_qp, comp_mask), 1)
                    .With(VABI_F(ib_uverbs_ex_create_qp, pd_handle), pd_)
                    .With(VABI_F(ib_uverbs_ex_create_qp, qp_type), 8)
                    .With(VABI_F(ib_uverbs_ex_create_qp, rwq_ind_tbl_handle), table_)
                    .bytes(),
                &reply, driver, 40);
    reply_.assign(reply.begin() + static_cast<long>(core), reply.end());
    return Errno(result);
  }
  uint32_t wq_ = 0, wqn_ = 0, table_ = 0;
  uint8_t answered_ = 0;
};

TEST_F(Ethernet, WorkQueueRequests) {
  EXPECT_EQ(0, MakeWq(WqPrivate())) << LastRule();
  EXPECT_EQ(4, answered_) << "response_length";
  EXPECT_EQ(0, MakeWq(WqPrivate(), 40)) << "up to single_stride_log_num_of_bytes";
  EXPECT_EQ(EINVAL, MakeWq(WqPrivate(), 32));
  EXPECT_EQ("mlx5.create_wq.length", LastRule());
  EXPECT_EQ(EOPNOTSUPP, MakeWq(WqPrivate().With(WQ(comp_mask), 2)));
  EXPECT_EQ("mlx5.create_wq.comp_mask", LastRule());
  EXPECT_EQ(EOPNOTSUPP, MakeWq(WqPrivate().With(WQ(comp_mask), 1)));
  EXPECT_EQ("mlx5.create_wq.striding", LastRule());
  EXPECT_EQ(EINVAL, MakeWq(WqPrivate().With(WQ(rq_wqe_count), 0)));
  EXPECT_EQ(EINVAL, MakeWq(WqPrivate().With(WQ(buf_addr), 0)));
  EXPECT_EQ("mlx5.create_wq.no_buffer", LastRule());
  EXPECT_EQ(EOPNOTSUPP, MakeWq(WqPrivate(), 0, 1)) << "CVLAN_STRIPPING";
}

TEST_F(Ethernet, WorkQueuesFlushInError) {
  ASSERT_EQ(0, MakeWq(WqPrivate()));
  EXPECT_EQ(EINVAL, ModifyWq(1, {})) << "a private part must be there";
  Bytes own(8);
  own[0] = 1;
  EXPECT_EQ(EOPNOTSUPP, ModifyWq(1, own));
  own[0] = 0, own[4] = 1;
  EXPECT_EQ(EOPNOTSUPP, ModifyWq(1, own));
  own[4] = 0;
  ASSERT_EQ(0, ModifyWq(1, own));
  qp_.Receive(memory_.base(), 64, lkey_);
  Settle();
  EXPECT_EQ(nullptr, queue_.Poll());
  ASSERT_EQ(0, ModifyWq(2, own));
  Settle();
  const uint8_t* cqe = queue_.Poll();
  ASSERT_NE(nullptr, cqe);
  EXPECT_EQ(14, cqe[63] >> 4);
  EXPECT_EQ(5, cqe[55]);
  EXPECT_EQ(0x55u, Get32(cqe + 32));
  EXPECT_EQ(wqn_, Get32(cqe + 56) & 0xffffff);
}

TEST_F(Ethernet, TablesTakeNoPrivateRequest) {
  ASSERT_EQ(0, MakeWq(WqPrivate()));
  EXPECT_EQ(0, MakeTable({})) << LastRule();
  EXPECT_EQ(0, MakeTable(Bytes(8)));
  Bytes own(8);
  own[7] = 1;
  EXPECT_EQ(EOPNOTSUPP, MakeTable(own));
  EXPECT_EQ("mlx5.create_rwq_ind_table.input", LastRule());
}

TEST_F(Ethernet, RssRequests) {
  ASSERT_EQ(0, MakeWq(WqPrivate()));
  ASSERT_EQ(0, MakeTable({}));
  ASSERT_EQ(0, MakeRss(RssPrivate())) << LastRule();
  EXPECT_EQ(1u, reply_[8]) << "MLX5_IB_CREATE_QP_RESP_MASK_TIRN";
  EXPECT_EQ(EINVAL, MakeRss(RssPrivate(), 144));
  EXPECT_EQ("mlx5.create_rss.length", LastRule());
  EXPECT_EQ(EOPNOTSUPP, MakeRss(RssPrivate().With(RSS(comp_mask), 1)));
  EXPECT_EQ("mlx5.create_rss.comp_mask", LastRule());
  EXPECT_EQ(EINVAL, MakeRss(RssPrivate().With(RSS(flags), 1)));
  EXPECT_EQ("mlx5.create_rss.flags", LastRule());
  EXPECT_EQ(0, MakeRss(RssPrivate().With(RSS(flags), 1 << 6 | 1 << 7))) << "self loopback";
  EXPECT_EQ(EOPNOTSUPP, MakeRss(RssPrivate().With(RSS(rx_hash_function), 2)));
  EXPECT_EQ(EINVAL, MakeRss(RssPrivate().With(RSS(rx_key_len), 39)));
  EXPECT_EQ("mlx5.create_rss.key", LastRule());
  EXPECT_EQ(EINVAL, MakeRss(RssPrivate().With(RSS(rx_hash_fields_mask), 1 | 8)));
  EXPECT_EQ("mlx5.create_rss.addresses", LastRule());
  EXPECT_EQ(EINVAL, MakeRss(RssPrivate().With(RSS(rx_hash_fields_mask), 16 | 64)));
  EXPECT_EQ("mlx5.create_rss.ports", LastRule());
  EXPECT_EQ(EOPNOTSUPP, MakeRss(RssPrivate().With(RSS(rx_hash_fields_mask), 0x80000001)));
  EXPECT_EQ("mlx5.create_rss.inner", LastRule());
  EXPECT_EQ(0, MakeRss(RssPrivate().With(RSS(rx_hash_fields_mask), 0))) << "a table of one queue";
}

TEST_F(Ethernet, RawPacketsTellTheirParts) {
  qp_.type = 8;
  Pages frames(4096);
  Struct own = QpPrivate(qp_).With(QP(sq_buf_addr), Address(frames.base()));
  ASSERT_GT(MakeQp(queue_, queue_, &qp_, own.bytes(), nullptr, &reply_), 0) << LastRule();
  EXPECT_EQ(0xfu, reply_[8]) << "TIRN, TISN, RQN, SQN";
  EXPECT_EQ(EFAULT,
            Errno(MakeQp(queue_, queue_, &qp_, QpPrivate(qp_).With(QP(sq_buf_addr), 64).bytes())));
  Qp none(0, 0);
  none.type = 8;
  EXPECT_EQ(EINVAL, Errno(MakeQp(queue_, queue_, &none, QpPrivate(none).bytes())));
  EXPECT_EQ("mlx5.create_qp.raw_nothing", LastRule());
}

TEST_F(Ethernet, RealTimeIsNotThere) {
  Cq real(16);
  ASSERT_GT(MakeCq(&real, CqPrivate(real).With(CQ(flags), 4).bytes()), 0);
  EXPECT_EQ(EOPNOTSUPP, Errno(MakeQp(real, real, &qp_, QpPrivate(qp_).bytes())));
  EXPECT_EQ("mlx5.real_time", LastRule());
}

// core/verbs.c:ib_port_attr_to_speed_info: lanes times the speed of one, in 100 Mb/s; what it does
// not know counts as SDR.
class PortSpeedOf : public Mlx5Test, public testing::WithParamInterface<const char*> {
 protected:
  PortSpeedOf() : Mlx5Test(GetParam()) {}
  void SetUp() override { OpenContext(); }
  uint64_t Speed(uint8_t width, uint16_t speed) {
    image().device[0].ports[0].active_width = width;
    image().device[0].ports[0].active_speed = speed;
    Bytes told(8, 0xff);
    Request call(static_cast<uint16_t>(C(VABI_C(UVERBS_OBJECT_DEVICE))),
                 static_cast<uint16_t>(C(VABI_C(UVERBS_METHOD_QUERY_PORT_SPEED))),
                 image().device[0].driver_id);
    call.AddConst(C(VABI_C(UVERBS_ATTR_QUERY_PORT_SPEED_PORT_NUM)), 1);
    call.AddOut(C(VABI_C(UVERBS_ATTR_QUERY_PORT_SPEED_RESP)), told);
    EXPECT_EQ(0, SendIoctl(*file_, call)) << LastRule();
    uint64_t value;
    std::memcpy(&value, told.data(), sizeof(value));
    return value;
  }
};

TEST_P(PortSpeedOf, LanesTimesSpeed) {
  EXPECT_EQ(1000u, Speed(2, 32)) << "4X EDR";
  EXPECT_EQ(500u, Speed(1, 64)) << "1X HDR";
  EXPECT_EQ(4000u, Speed(16, 256)) << "2X XDR";
  EXPECT_EQ(100u, Speed(2, 3)) << "4X of what is no speed";
  FindDevice(0)->Become(kPortDown);
  EXPECT_EQ(0u, Speed(2, 32));
}

INSTANTIATE_TEST_SUITE_P(Kernels, PortSpeedOf, testing::Values("debian-7.2.13", "debian-7.3.4"));

}  // namespace
}  // namespace vabi::mlx5
