// SPDX-License-Identifier: BSD-2-Clause
// Objects that user space makes by the firmware's own commands, and what can be done with them.
// Rules: devx.c of the kernel that a test names; commands: mlx5_ifc.h; work queue elements:
// rdma-core's mlx5dv.h.
#include <utility>

#include "shims/providers/mlx5/test_mlx5.h"
#include "shims/uverbs/objects.h"

namespace vabi::mlx5 {
namespace {

constexpr uint8_t kSignaled = 8;
constexpr uint8_t kSend = 0x0a, kSendInvalidate = 0x01, kUmr = 0x25;
constexpr uint16_t kCreateMkey = 0x200, kCreateGeneral = 0xa00, kRts2Rts = 0x505,
                   kQueryQpOpcode = 0x50b;

class DevxTest : public Mlx5Test {
 protected:
  explicit DevxTest(const char* kernel = "debian-7.3.4") : Mlx5Test(kernel) {}
  void SetUp() override { Open(kDevx); }
  void Open(uint32_t flags) {
    OpenContext(0, flags);
    Bytes reply(8);
    ASSERT_GT(Write(kAllocPd, S(VABI_S(ib_uverbs_alloc_pd)), &reply), 0);
    std::memcpy(&pdn_, reply.data() + 4, 4);
    pd_ = In(reply).U32(VABI_F(ib_uverbs_alloc_pd_resp, pd_handle));
    ASSERT_GT(Mr(memory_.base(), memory_.size(), &lkey_), 0);
    FillMemory();
  }
  Request Method(ConstId object, ConstId method) {
    return Request(static_cast<uint16_t>(C(object)), static_cast<uint16_t>(C(method)),
                   image().device[0].driver_id);
  }
  long Create(const Bytes& in) {
    Request call = Method(VABI_C(MLX5_IB_OBJECT_DEVX_OBJ), VABI_C(MLX5_IB_METHOD_DEVX_OBJ_CREATE));
    call.AddHandle(C(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE)));
    call.AddIn(C(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN)), in);
    out_.assign(16, 0xee);
    call.AddOut(C(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT)), out_);
    const long result = SendIoctl(*file_, call);
    handle_ = static_cast<uint32_t>(call.attrs()[0].data);
    return -result;
  }
  long Destroy(uint32_t handle) {
    Request call = Method(VABI_C(MLX5_IB_OBJECT_DEVX_OBJ), VABI_C(MLX5_IB_METHOD_DEVX_OBJ_DESTROY));
    call.AddHandle(C(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE)), handle);
    return -SendIoctl(*file_, call);
  }
  long Modify(uint32_t handle, const Bytes& in) {
    Request call = Method(VABI_C(MLX5_IB_OBJECT_DEVX_OBJ), VABI_C(MLX5_IB_METHOD_DEVX_OBJ_MODIFY));
    call.AddHandle(C(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE)), handle);
    call.AddIn(C(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN)), in);
    out_.assign(16, 0xee);
    call.AddOut(C(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT)), out_);
    return -SendIoctl(*file_, call);
  }
  long Query(uint32_t handle, const Bytes& in) {
    Request call = Method(VABI_C(MLX5_IB_OBJECT_DEVX_OBJ), VABI_C(MLX5_IB_METHOD_DEVX_OBJ_QUERY));
    call.AddHandle(C(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE)), handle);
    call.AddIn(C(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN)), in);
    out_.assign(16, 0xee);
    call.AddOut(C(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT)), out_);
    return -SendIoctl(*file_, call);
  }
  long General(const Bytes& in) {
    Request call = Method(VABI_C(MLX5_IB_OBJECT_DEVX), VABI_C(MLX5_IB_METHOD_DEVX_OTHER));
    call.AddIn(C(VABI_C(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN)), in);
    out_.assign(16, 0xee);
    call.AddOut(C(VABI_C(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT)), out_);
    return -SendIoctl(*file_, call);
  }
  static Bytes Command(uint16_t opcode, size_t size) {
    Bytes in(size);
    Put16(in.data(), opcode);
    return in;
  }
  // create_mkey_in: a free key of KLMs that work requests fill.
  Bytes Mkey(uint32_t pdn) {
    Bytes in = Command(kCreateMkey, 272);
    uint8_t* mkc = in.data() + 16;
    mkc[0] = 0x40;                // free
    mkc[2] = 0x80 | 0x04 | 0x02;  // umr_en, lr, access_mode_1_0
    Put32(mkc + 4, 0xffffff00);   // qpn
    Put32(mkc + 12, pdn);
    Put32(mkc + 52, 4);  // translations_octword_size
    return in;
  }
  uint32_t MakeMkey(bool remote_invalidate = false) {
    Bytes in = Mkey(pdn_);
    if (remote_invalidate) in[28] |= 0x01;  // en_rinval
    EXPECT_EQ(0, Create(in)) << LastRule();
    return Get32(out_.data() + 8) << 8;
  }

  uint32_t pdn_ = 0, handle_ = 0;
  Bytes out_ = Bytes(16);
};

TEST_F(DevxTest, AKeyIsMadeAndGoes) {
  const uint32_t key = MakeMkey();
  EXPECT_EQ(0, out_[0]) << "status";
  EXPECT_NE(0u, key);
  ASSERT_NE(nullptr, fabric::FindKey(0, key));
  EXPECT_TRUE(fabric::FindKey(0, key)->invalidated);
  EXPECT_EQ(0, Destroy(handle_));
  EXPECT_EQ(nullptr, fabric::FindKey(0, key));
}

TEST_F(DevxTest, KeysGoWithTheirFile) {
  const uint32_t key = MakeMkey();
  file_.reset();
  EXPECT_EQ(nullptr, fabric::FindKey(0, key));
}

TEST_F(DevxTest, WhatTheKernelRefuses) {
  EXPECT_EQ(EINVAL, Create(Command(0x100, 16))) << "QUERY_HCA_CAP makes nothing";
  EXPECT_EQ("mlx5.devx.not_of_objects", LastRule());
  EXPECT_EQ(EINVAL, Create(Command(0x202, 16))) << "nor does DESTROY_MKEY";
  Bytes tunnel = Mkey(pdn_);
  Put16(tunnel.data() + 4, 1);
  EXPECT_EQ(EINVAL, Create(tunnel));
  EXPECT_EQ("mlx5.devx.tunnel", LastRule());
  Bytes cut = Mkey(pdn_);
  cut.resize(79);
  EXPECT_EQ(EINVAL, Create(cut));
  EXPECT_EQ("mlx5.devx.mkey_length", LastRule());
  MakeMkey();
  EXPECT_EQ(EINVAL, Modify(handle_, Command(kCreateMkey, 16)));
  EXPECT_EQ("mlx5.devx.not_of_objects", LastRule());
  EXPECT_EQ(EINVAL, Query(handle_, Command(kRts2Rts, 16)));
  EXPECT_EQ("mlx5.devx.not_of_objects", LastRule());
  EXPECT_EQ(EINVAL, Modify(handle_, Command(kRts2Rts, 464)));
  EXPECT_EQ("mlx5.devx.other_object", LastRule());
  EXPECT_EQ(EINVAL, Query(handle_, Command(kQueryQpOpcode, 16)));
  EXPECT_EQ("mlx5.devx.other_object", LastRule());
}

TEST_F(DevxTest, WhatTheFirmwareRefuses) {
  EXPECT_EQ(EREMOTEIO, Create(Mkey(pdn_ + 1000)));
  EXPECT_EQ("mlx5.devx.firmware", LastRule());
  EXPECT_EQ(5, out_[0]) << "MLX5_CMD_STAT_BAD_RES_ERR is told";
}

class PlainTest : public DevxTest {
 protected:
  void SetUp() override { Open(0); }
};

TEST_F(PlainTest, AContextWithoutDevxMakesNothing) {
  EXPECT_EQ(EINVAL, Create(Mkey(pdn_)));
  EXPECT_EQ("mlx5.devx.no_uid", LastRule());
}

// Up to 5.17 an error of the firmware was an errno alone; 5.0 looked at neither of two.
class OldDevxTest : public DevxTest {
 protected:
  OldDevxTest() : DevxTest("linux-5.14") {}
};

TEST_F(OldDevxTest, ErrorsOfTheFirmwareAreErrnosAlone) {
  EXPECT_EQ(EINVAL, Create(Mkey(pdn_ + 1000)));
  EXPECT_EQ(Bytes(16, 0xee), out_);
}

class FirstDevxTest : public DevxTest {
 protected:
  FirstDevxTest() : DevxTest("linux-5.0") {}
};

TEST_F(FirstDevxTest, TunnelsAreNotLookedAt) {
  Bytes in = Mkey(pdn_);
  Put16(in.data() + 4, 1);
  EXPECT_EQ(0, Create(in)) << LastRule();
}

// devx.c's lists of commands, at the kernels where they changed.
struct ListCase {
  enum class List { kGeneral, kCreate, kModify, kQuery } list;
  uint16_t opcode;
  bool known;
  const char* kernel;
};
class DevxListTest : public DevxTest, public testing::WithParamInterface<ListCase> {
 protected:
  // 4.19 has DEVX on Ethernet alone.
  DevxListTest() : DevxTest(GetParam().kernel) { image().device[0].link = LinkLayer::kEthernet; }
  long Send(const Bytes& in) {
    switch (GetParam().list) {
      case ListCase::List::kGeneral:
        return General(in);
      case ListCase::List::kCreate:
        return Create(in);
      case ListCase::List::kModify:
        return Modify(handle_, in);
      case ListCase::List::kQuery:
        return Query(handle_, in);
    }
    return -1;
  }
};

TEST_P(DevxListTest, KnowsCommandsOfItsRelease) {
  MakeMkey();
  Bytes in = Command(GetParam().opcode, 16);
  in[8] = 0x10;  // CREATE_PSV asks for one
  const long error = Send(in);
  const std::string list = GetParam().list == ListCase::List::kGeneral ? "mlx5.devx.not_general"
                                                                       : "mlx5.devx.not_of_objects";
  if (GetParam().known) {
    EXPECT_NE(list, LastRule()) << error;
  } else {
    EXPECT_EQ(EINVAL, error);
    EXPECT_EQ(list, LastRule());
  }
}

using List = ListCase::List;
INSTANTIATE_TEST_SUITE_P(Lists, DevxListTest,
                         testing::Values(ListCase{List::kGeneral, 0x762, false, "linux-4.19"},
                                         ListCase{List::kGeneral, 0x762, true, "linux-4.20"},
                                         ListCase{List::kGeneral, 0xb01, false, "linux-4.20"},
                                         ListCase{List::kGeneral, 0xb01, true, "linux-5.0"},
                                         ListCase{List::kGeneral, 0x752, false, "linux-5.0"},
                                         ListCase{List::kGeneral, 0x752, true, "linux-5.3"},
                                         ListCase{List::kGeneral, 0x842, false, "linux-5.3"},
                                         ListCase{List::kGeneral, 0x842, true, "linux-5.6"},
                                         ListCase{List::kGeneral, 0x740, false, "linux-5.14"},
                                         ListCase{List::kGeneral, 0x740, true, "debian-6.1.192"},
                                         ListCase{List::kCreate, 0x600, false, "linux-5.3"},
                                         ListCase{List::kCreate, 0x600, true, "linux-5.6"},
                                         ListCase{List::kModify, 0x726, false, "linux-4.20"},
                                         ListCase{List::kModify, 0x726, true, "linux-5.0"},
                                         ListCase{List::kModify, 0x712, true, "linux-5.0"},
                                         ListCase{List::kModify, 0x712, false, "linux-5.3"},
                                         ListCase{List::kModify, 0x72a, false, "linux-5.3"},
                                         ListCase{List::kModify, 0x72a, true, "linux-5.6"},
                                         ListCase{List::kModify, 0x50e, false, "linux-5.6"},
                                         ListCase{List::kModify, 0x50e, true, "linux-5.7"},
                                         ListCase{List::kQuery, 0x727, false, "linux-4.20"},
                                         ListCase{List::kQuery, 0x727, true, "linux-5.0"}));

class DevxOnlyTest : public DevxTest {
 protected:
  DevxOnlyTest() : DevxTest("linux-4.20") {}
};
TEST_F(DevxOnlyTest, HandlesAreThoseOfDevxObjects) {
  EXPECT_EQ(EINVAL, Query(pd_, Command(kQueryQpOpcode, 16)));
  EXPECT_EQ("handle.kind", LastRule());
}
// 4.20 asks for CAP_NET_RAW at each call, except for queries that need no DEVX context.
TEST_F(DevxOnlyTest, CallsNeedTheCapability) {
  MakeMkey();
  const uint32_t made = handle_;
  image().check_permissions = 1;
  image().uid = 1000;
  EXPECT_EQ(EPERM, Create(Mkey(pdn_)));
  EXPECT_EQ("mlx5.devx.raw", LastRule());
  EXPECT_EQ(EPERM, Modify(made, Command(kRts2Rts, 464)));
  EXPECT_EQ("mlx5.devx.raw", LastRule());
  EXPECT_EQ(EPERM, General(Command(0x750, 16)));
  EXPECT_EQ("mlx5.devx.raw", LastRule());
  EXPECT_EQ(0, General(Command(0x100, 16))) << LastRule();
}
TEST_F(FirstDevxTest, CallsNeedNoCapability) {
  image().check_permissions = 1;
  image().uid = 1000;
  EXPECT_EQ(0, Create(Mkey(pdn_))) << LastRule();
}

// 4.19 asks for it where the context is made.
class RawContextTest : public DevxTest {
 protected:
  RawContextTest() : DevxTest("linux-4.19") { image().device[0].link = LinkLayer::kEthernet; }
  void SetUp() override {}
};
TEST_F(RawContextTest, DevxNeedsTheCapability) {
  image().check_permissions = 1;
  image().uid = 1000;
  Bytes reply(512);
  EXPECT_EQ(EPERM, Errno(GetContext(ContextRequest(0, kDevx).bytes(), &reply)));
  EXPECT_EQ("mlx5.ucontext.devx.raw", LastRule());
  EXPECT_GT(GetContext(ContextRequest(0, 0).bytes(), &reply), 0) << LastRule();
}
TEST_F(RawContextTest, LaterCallsNeedNone) {
  Open(kDevx);
  image().check_permissions = 1;
  image().uid = 1000;
  EXPECT_EQ(0, Create(Mkey(pdn_))) << LastRule();
}

TEST_F(FirstDevxTest, HandlesMayBeOfAllObjects) {
  EXPECT_EQ(EINVAL, Query(pd_, Command(kQueryQpOpcode, 16)));
  EXPECT_EQ("mlx5.devx.other_object", LastRule());
}

// create_sched_elem_in: general_obj_in_cmd_hdr, sched_elem with its sched_context.
class ScheduleTest : public DevxTest {
 protected:
  static constexpr uint8_t kNode = 0, kLeaf = 4;
  static Bytes Element(uint16_t opcode, uint8_t type, uint32_t parent, uint32_t share = 0) {
    Bytes in = Command(opcode, 16 + 128);
    Put16(in.data() + 6, 0x26);
    if (share != 0) in[23] = 1;  // modify_field_select: bw_share
    in[24] = 3;                  // scheduling_hierarchy: NIC
    in[48] = type;
    Put32(in.data() + 56, parent);
    Put32(in.data() + 68, share);
    return in;
  }
  uint32_t Make(uint8_t type, uint32_t parent, uint32_t share = 0) {
    EXPECT_EQ(0, Create(Element(0xa00, type, parent, share))) << LastRule();
    return Get32(out_.data() + 8);
  }
  long Change(uint32_t handle, uint32_t number, uint8_t type, uint32_t share) {
    Bytes in = Element(0xa01, type, 0, share);
    Put32(in.data() + 8, number);
    return Modify(handle, in);
  }
};

TEST_F(ScheduleTest, ATreeIsMadeAndGoes) {
  const uint32_t root = Make(kNode, 0), root_handle = handle_;
  const uint32_t node = Make(kNode, root, 7), node_handle = handle_;
  const uint32_t leaf = Make(kLeaf, node, 2), leaf_handle = handle_;
  EXPECT_NE(0u, root);
  EXPECT_NE(root, node);
  EXPECT_NE(node, leaf);
  EXPECT_EQ(0, Change(node_handle, node, kNode, 3)) << LastRule();
  EXPECT_EQ(0, Change(leaf_handle, leaf, kLeaf, 3)) << LastRule();
  EXPECT_EQ(0, Destroy(leaf_handle));
  EXPECT_EQ(0, Destroy(node_handle));
  EXPECT_EQ(0, Destroy(root_handle));
}

TEST_F(ScheduleTest, WhatNobodyToldOfTheFirmware) {
  const uint32_t root = Make(kNode, 0), root_handle = handle_;
  const uint32_t leaf = Make(kLeaf, root), leaf_handle = handle_;
  EXPECT_NE(0, Create(Element(0xa00, kLeaf, 0))) << "a leaf at the root";
  EXPECT_NE(0, Create(Element(0xa00, kNode, 0, 7))) << "a root with a share";
  EXPECT_NE(0, Create(Element(0xa00, kNode, leaf))) << "below a leaf";
  EXPECT_NE(0, Create(Element(0xa00, kNode, root + 1000))) << "below nothing";
  EXPECT_NE(0, Create(Element(0xa00, 1, root))) << "a vport";
  EXPECT_NE(0, Change(leaf_handle, leaf, kNode, 3)) << "of another type";
  EXPECT_NE(0, Change(root_handle, root, kNode, 3)) << "the root has no share";
  EXPECT_NE(0, Destroy(root_handle)) << "with a leaf below it";
  EXPECT_EQ(EINVAL, Change(leaf_handle, root, kLeaf, 3));
  EXPECT_EQ("mlx5.devx.other_object", LastRule());
  EXPECT_EQ(0, Destroy(leaf_handle));
  EXPECT_EQ(0, Destroy(root_handle)) << "the leaf is gone";
}

TEST_F(ScheduleTest, ATreeGoesWithItsFile) {
  const uint32_t root = Make(kNode, 0);
  Make(kLeaf, root);
  file_ = std::make_shared<UverbsFile>(*FindDevice(0));
  Open(kDevx);
  EXPECT_NE(0, Create(Element(0xa00, kLeaf, root)));
}

// Numbers that no queue pair gets.
TEST_F(DevxTest, NumbersAreReserved) {
  Bytes in = Command(kCreateGeneral, 32);
  Put16(in.data() + 6, 0x2c);
  in[12] = 5;  // log_obj_range
  Cq cq{64, 64};
  MakeCq(&cq);
  std::vector<uint32_t> firsts, made;
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(0, Create(in)) << LastRule();
    firsts.push_back(Get32(out_.data() + 8));
    Qp qp{16, 16};
    MakeQp(cq, cq, &qp);
    made.push_back(qp.number);
  }
  for (size_t i = 0; i < firsts.size(); ++i) {
    for (size_t k = 0; k < made.size(); ++k) {
      EXPECT_FALSE(made[k] >= firsts[i] && made[k] < firsts[i] + 32) << made[k];
      EXPECT_TRUE(i == k || firsts[i] >= firsts[k] + 32 || firsts[k] >= firsts[i] + 32);
    }
  }
}

// Keys that stand for pieces of other regions.
class KeyUpdateTest : public DevxTest {
 protected:
  void SetUp() override {
    DevxTest::SetUp();
    MakeCq(&cq_);
    MakeQp(cq_, cq_, &left_);
    MakeQp(cq_, cq_, &right_);
    Connect(left_, right_.number);
    Connect(right_, left_.number);
  }
  struct Part {
    uint8_t* at;
    uint32_t length, skip = 0;
  };
  static constexpr uint64_t kMask = 1 | 1 << 13 | 15 << 18 | 1 << 29;
  // Control, UMR control, key context, then translations in groups of four.
  Bytes Update(uint32_t key, uint64_t length, const Bytes& translations, uint64_t mask = kMask,
               uint8_t access = 0x08 | 0x10 | 0x20) {
    Bytes wqe(16 + 48 + 64);
    wqe[16] = 0x80;
    Put16(wqe.data() + 20, static_cast<uint32_t>(translations.size() / 16));
    Put64(wqe.data() + 24, mask);
    wqe[66] = access;
    Put32(wqe.data() + 68, 0xffffff00 | (key & 0xff));
    Put64(wqe.data() + 88, length);
    wqe.insert(wqe.end(), translations.begin(), translations.end());
    return wqe;
  }
  Bytes List(std::initializer_list<Part> parts) {
    Bytes all((parts.size() + 3) / 4 * 64);
    uint8_t* at = all.data();
    for (const Part& part : parts) {
      PutPointer(at, part.at, part.length, lkey_);
      at += 16;
    }
    return all;
  }
  Bytes Interleaved(uint32_t repeat, std::initializer_list<Part> parts) {
    Bytes all((parts.size() + 4) / 4 * 64);
    uint8_t* at = all.data();
    uint32_t bytes = 0;
    for (const Part& part : parts) bytes += part.length;
    Put32(at, bytes);
    Put32(at + 4, 0x400);
    Put32(at + 8, repeat);
    Put16(at + 14, static_cast<uint32_t>(parts.size()));
    for (const Part& part : parts) {
      at += 16;
      Put16(at, part.length + part.skip);
      Put16(at + 2, part.length);
      Put32(at + 4, lkey_);
      Put64(at + 8, Address(part.at));
    }
    return all;
  }
  void Post(Qp& qp, const Bytes& wqe, uint32_t key) {
    qp.Post(wqe, kUmr, kSignaled, __builtin_bswap32(key));
    Settle();
  }
  void Send(Qp& qp, uint32_t length, uint32_t key, uint8_t opcode = kSend, uint32_t immediate = 0) {
    Bytes wqe(32);
    Put32(wqe.data() + 16, length);
    Put32(wqe.data() + 20, key);
    if (length == 0) wqe.resize(16);  // a count of 0 would be 2 GiB
    qp.Post(wqe, opcode, kSignaled, immediate);
    Settle();
  }
  const uint8_t* Next(uint8_t opcode) { return Mlx5Test::Next(cq_, opcode); }

  Cq cq_{64, 64};
  Qp left_{64, 16}, right_{64, 16};
};

TEST_F(KeyUpdateTest, AListIsSentAndReceived) {
  const uint32_t source = MakeMkey(), target = MakeMkey();
  Post(left_, Update(source, 28, List({{From(100), 8}, {From(700), 20}})), source);
  EXPECT_EQ(uint32_t{kUmr} << 24 | left_.number, Get32(Next(0) + 56));
  Post(right_, Update(target, 28, List({{To(50), 3}, {To(1000), 25}})), target);
  Next(0);
  right_.Receive(nullptr, 28, target);
  Send(left_, 28, source);
  EXPECT_EQ(28u, Get32(Next(2) + 44));
  Next(0);
  Bytes want(From(100), From(108)), got(To(50), To(53));
  want.insert(want.end(), From(700), From(720));
  got.insert(got.end(), To(1000), To(1025));
  EXPECT_EQ(want, got);
  EXPECT_EQ(0, To(53)[0]);
  EXPECT_EQ(0, To(1025)[0]);
}

TEST_F(KeyUpdateTest, AnInterleavedOneIsSent) {
  const uint32_t source = MakeMkey();
  Post(left_, Update(source, 18, Interleaved(3, {{From(100), 4, 2}, {From(500), 2, 5}})), source);
  Next(0);
  right_.Receive(To(), 100, lkey_);
  Send(left_, 18, source);
  Next(2), Next(0);
  Bytes want;
  for (uint32_t turn = 0; turn < 3; ++turn) {
    want.insert(want.end(), From(100 + turn * 6), From(104 + turn * 6));
    want.insert(want.end(), From(500 + turn * 7), From(502 + turn * 7));
  }
  EXPECT_EQ(want, Bytes(To(), To(18)));
}

TEST_F(KeyUpdateTest, BehindItsLengthItEnds) {
  const uint32_t source = MakeMkey();
  Post(left_, Update(source, 28, List({{From(100), 8}, {From(700), 20}})), source);
  Next(0);
  right_.Receive(To(), 100, lkey_);
  Send(left_, 29, source);
  EXPECT_EQ(0x04, Next(13)[55]) << "MLX5_CQE_SYNDROME_LOCAL_PROT_ERR";
}

TEST_F(KeyUpdateTest, AFreeKeyIsNotUsed) {
  const uint32_t source = MakeMkey();
  right_.Receive(To(), 100, lkey_);
  Send(left_, 8, source);
  EXPECT_EQ(0x04, Next(13)[55]);
}

TEST_F(KeyUpdateTest, InvalidatedItIsFreeAgain) {
  const uint32_t source = MakeMkey();
  Post(left_, Update(source, 8, List({{From(100), 8}})), source);
  Next(0);
  Bytes invalidate(16 + 48 + 64);
  invalidate[16] = 0x80 | 0x10;
  Put64(invalidate.data() + 24, 1 << 13 | 1 << 29);
  invalidate[64] = 0x40;
  Put32(invalidate.data() + 68, 0xffffff00);
  Post(left_, invalidate, source);
  Next(0);
  EXPECT_TRUE(fabric::FindKey(0, source)->invalidated);
  right_.Receive(To(), 100, lkey_);
  Send(left_, 8, source);
  EXPECT_EQ(0x04, Next(13)[55]);
}

TEST_F(KeyUpdateTest, AnswersNeedToBeWritten) {
  const uint32_t target = MakeMkey();
  Post(right_, Update(target, 8, List({{To(), 8}}), kMask, 0), target);
  Next(0);
  right_.Receive(nullptr, 8, target);
  Bytes wqe(32);
  Put32(wqe.data() + 16, 8);
  Put32(wqe.data() + 20, lkey_);
  Put64(wqe.data() + 24, Address(From()));
  left_.Post(wqe, kSend, kSignaled);
  Settle();
  EXPECT_EQ(0x04, Next(14)[55]);
  EXPECT_EQ(0x14, Next(13)[55]) << "MLX5_CQE_SYNDROME_REMOTE_OP_ERR";
  EXPECT_EQ(0, To()[0]);
}

TEST_F(KeyUpdateTest, APeerInvalidatesOnlyWhatIsMadeForIt) {
  const uint32_t target = MakeMkey(true), other = MakeMkey();
  Post(right_, Update(target, 8, List({{To(), 8}})), target);
  Post(right_, Update(other, 8, List({{To(), 8}})), other);
  Next(0), Next(0);
  right_.Receive(To(), 8, lkey_);
  Send(left_, 0, lkey_, kSendInvalidate, __builtin_bswap32(target));
  EXPECT_EQ(target, Get32(Next(4) + 36));
  Next(0);
  EXPECT_TRUE(fabric::FindKey(0, target)->invalidated);
  right_.Receive(To(), 8, lkey_);
  Send(left_, 0, lkey_, kSendInvalidate, __builtin_bswap32(other));
  EXPECT_EQ(14, (Next(14)[63]) >> 4);
  EXPECT_FALSE(fabric::FindKey(0, other)->invalidated);
}

TEST_F(KeyUpdateTest, MoreTranslationsThanItHasRoomFor) {
  const uint32_t source = MakeMkey();
  Post(left_,
       Update(source, 40, List({{From(), 8}, {From(), 8}, {From(), 8}, {From(), 8}, {From(), 8}})),
       source);
  EXPECT_EQ(0x06, Next(13)[55]) << "MLX5_CQE_SYNDROME_MW_BIND_ERR";
}

TEST_F(KeyUpdateTest, AnotherDomainsKeyIsNotUpdated) {
  const uint32_t source = MakeMkey();
  fabric::FindKey(0, source)->pd = pdn_ + 1;
  Post(left_, Update(source, 8, List({{From(), 8}})), source);
  EXPECT_EQ(0x06, Next(13)[55]);
}

// Queues in memory that was registered: mlx5_ifc_create_cq_in_bits, mlx5_ifc_create_qp_in_bits and
// their contexts.
class QueuesTest : public DevxTest {
 protected:
  long Umem(const void* at, uint64_t size, uint32_t* id, uint64_t access = 1, uint64_t pages = 0) {
    Request call = Method(VABI_C(MLX5_IB_OBJECT_DEVX_UMEM), VABI_C(MLX5_IB_METHOD_DEVX_UMEM_REG));
    call.AddHandle(C(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE)));
    call.Add(C(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR)), 8, Address(at));
    call.Add(C(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN)), 8, size);
    call.Add(C(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS)), 4, access);
    if (pages != 0) call.AddConst(C(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP)), pages);
    out_.assign(4, 0);
    call.AddOut(C(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID)), out_);
    const long result = -SendIoctl(*file_, call);
    if (id != nullptr) std::memcpy(id, out_.data(), 4);
    umem_handle_ = static_cast<uint32_t>(call.attrs()[0].data);
    return result;
  }
  uint32_t Registered(const Pages& pages) {
    uint32_t id = 0;
    EXPECT_EQ(0, Umem(pages.base(), pages.size(), &id)) << LastRule();
    return id;
  }
  // A doorbell page of the context's, by the NIC's number.
  uint32_t Uar() {
    if (uar_ != 0) return uar_;
    Request call = Method(VABI_C(MLX5_IB_OBJECT_UAR), VABI_C(MLX5_IB_METHOD_UAR_OBJ_ALLOC));
    Bytes number(4), length(4), offset(8);
    call.AddHandle(C(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE)));
    call.AddConst(C(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE)), 1);  // non-cached
    call.AddOut(C(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID)), number);
    call.AddOut(C(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH)), length);
    call.AddOut(C(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET)), offset);
    EXPECT_EQ(0, SendIoctl(*file_, call)) << LastRule();
    std::memcpy(&uar_, number.data(), 4);
    return uar_;
  }
  // 64 elements of 64 bytes; the record at byte 64 of its page.
  Bytes CqCommand(uint32_t buffer, uint32_t record) {
    Bytes in = Command(0x400, 272);
    uint8_t* cqc = in.data() + 16;
    Put32(cqc + 4, record);
    Put32(cqc + 12, 6u << 24 | Uar());
    cqc[23] = 8;  // the first completion vector's
    Put64(cqc + 56, 64);
    Put32(in.data() + 88, buffer);
    return in;
  }
  // 16 receives of 32 bytes, then 16 blocks.
  Bytes QpCommand(uint32_t cqn, uint32_t buffer, uint32_t record) {
    Bytes in = Command(0x500, 272);
    uint8_t* qpc = in.data() + 24;
    Put32(qpc + 4, pdn_);
    qpc[9] = 4 << 3 | 1;
    qpc[10] = 4 << 3;
    Put32(qpc + 12, Uar());
    Put32(qpc + 16, 0x55);
    Put32(qpc + 124, cqn);
    Put32(qpc + 156, cqn);
    Put32(qpc + 228, record);
    Put32(in.data() + 264, buffer);
    return in;
  }
  struct Devx {
    Qp qp;
    uint32_t handle = 0;
  };
  void MakeQueue(uint32_t cqn, Devx* made) {
    const uint32_t buffer = Registered(made->qp.ring), record = Registered(made->qp.record);
    ASSERT_EQ(0, Create(QpCommand(cqn, buffer, record))) << LastRule();
    made->handle = handle_;
    made->qp.number = Get32(out_.data() + 8);
  }
  Bytes QpChange(uint16_t opcode, const Devx& of) {
    Bytes in = Command(opcode, 272);
    Put32(in.data() + 8, of.qp.number);
    in[24 + 24 + 37] = 1;  // vhca_port_num
    return in;
  }
  void ToRts(const Devx& from, const Devx& to) {
    const PortImage& port = image().device[0].ports[0];
    Bytes in = QpChange(0x502, from);
    in[24 + 146] = 0xc0;  // rre, rwe
    ASSERT_EQ(0, Modify(from.handle, in)) << LastRule();
    EXPECT_EQ(EREMOTEIO, Modify(from.handle, in)) << "it is in INIT already";
    EXPECT_EQ(9, out_[0]);
    in = QpChange(0x503, from);
    uint8_t* qpc = in.data() + 24;
    qpc[8] = 3 << 5;
    Put32(qpc + 20, to.qp.number);
    Put32(qpc + 148, uint32_t{1} << 24 | 7);  // min_rnr_nak, next_rcv_psn
    Put16(qpc + 24 + 6, port.lid);
    ASSERT_EQ(0, Modify(from.handle, in)) << LastRule();
    in = QpChange(0x504, from);
    qpc = in.data() + 24;
    qpc[113] = 1;          // retry_count
    qpc[114] = 1 << 5;     // rnr_retry
    Put32(qpc + 120, 7);   // next_send_psn
    qpc[24 + 8] = 1 << 3;  // ack_timeout
    ASSERT_EQ(0, Modify(from.handle, in)) << LastRule();
  }

  uint32_t umem_handle_ = 0, uar_ = 0;
};

TEST_F(QueuesTest, MessagesArrive) {
  Cq cq{64, 64};
  Pages record{4096};
  ASSERT_EQ(0, Create(CqCommand(Registered(cq.ring), Registered(record)))) << LastRule();
  const uint32_t cqn = Get32(out_.data() + 8), cq_handle = handle_;
  Devx left, right;
  MakeQueue(cqn, &left);
  MakeQueue(cqn, &right);
  ToRts(left, right);
  ToRts(right, left);
  right.qp.Receive(memory_.At(32768), 100, lkey_);
  Bytes wqe(32);
  PutPointer(wqe.data() + 16, memory_.base(), 60, lkey_);
  left.qp.Post(wqe, kSend, kSignaled);
  Settle();
  EXPECT_EQ(0, std::memcmp(memory_.At(32768), memory_.base(), 60));
  const uint8_t* cqe = cq.Poll();
  ASSERT_NE(nullptr, cqe);
  EXPECT_EQ(2, cqe[63] >> 4);
  EXPECT_EQ(60u, Get32(cqe + 44));
  EXPECT_EQ(0x55u, Get32(cqe + 32));
  EXPECT_EQ(right.qp.number, Get32(cqe + 56) & 0xffffff);
  cqe = cq.Poll();
  ASSERT_NE(nullptr, cqe);
  EXPECT_EQ(0, cqe[63] >> 4);
  EXPECT_EQ(0, Destroy(left.handle));
  EXPECT_EQ(nullptr, fabric::FindEndpoint(0, left.qp.number));
  EXPECT_EQ(0, Destroy(right.handle));
  EXPECT_EQ(0, Destroy(cq_handle));
}

TEST_F(QueuesTest, TheirMemoryMustBeThere) {
  Cq cq{64, 64};
  Pages record{4096};
  const uint32_t ring = Registered(cq.ring), word = Registered(record);
  EXPECT_EQ(EREMOTEIO, Create(CqCommand(ring + 100, word)));
  EXPECT_EQ(5, out_[0]);
  EXPECT_EQ(EREMOTEIO, Create(CqCommand(ring, word + 100)));
  Bytes large = CqCommand(ring, word);
  large[28] = 7;
  EXPECT_EQ(EREMOTEIO, Create(large)) << "128 elements are more than it holds";
  ASSERT_EQ(0, Create(CqCommand(ring, word))) << LastRule();
  const uint32_t cqn = Get32(out_.data() + 8);
  Qp qp;
  const uint32_t buffer = Registered(qp.ring), records = Registered(qp.record);
  EXPECT_EQ(EREMOTEIO, Create(QpCommand(cqn, buffer + 100, records)));
  EXPECT_EQ(5, out_[0]);
  Bytes other = QpCommand(cqn, buffer, records);
  Put32(other.data() + 28, pdn_ + 1000);
  EXPECT_EQ(EREMOTEIO, Create(other));
}

// The NIC takes doorbell pages and event queues of the caller's alone (each context has a uid);
// with which words it refuses others nobody told.
TEST_F(QueuesTest, OthersDoorbellPagesAndNoEventQueuesAreNotTaken) {
  Cq cq{64, 64};
  Devx pair;
  Pages record{4096};
  const uint32_t ring = Registered(cq.ring), word = Registered(record);
  const Bytes right = CqCommand(ring, word);
  for (const size_t at : {size_t{16 + 15}, size_t{16 + 23}}) {
    Bytes wrong = right;
    wrong[at] ^= 0x40;
    EXPECT_EQ(EOPNOTSUPP, Create(wrong)) << at;
  }
  ASSERT_EQ(0, Create(right)) << LastRule();
  const uint32_t cqn = Get32(out_.data() + 8);
  const uint32_t buffer = Registered(pair.qp.ring), doorbell = Registered(pair.qp.record);
  Bytes wrong = QpCommand(cqn, buffer, doorbell);
  wrong[24 + 15] ^= 0x40;
  EXPECT_EQ(EOPNOTSUPP, Create(wrong));
  EXPECT_EQ(0, Create(QpCommand(cqn, buffer, doorbell))) << LastRule();
}

// Domains, memory and completion queues of another context exist, but are not the caller's.
TEST_F(QueuesTest, ObjectsOfOtherContextsAreNotTaken) {
  Cq cq{64, 64};
  Pages record{4096};
  Devx pair;
  const uint32_t ring = Registered(cq.ring), word = Registered(record);
  ASSERT_EQ(0, Create(CqCommand(ring, word))) << LastRule();
  const uint32_t cqn = Get32(out_.data() + 8), pdn = pdn_;
  const auto first = std::exchange(file_, std::make_shared<UverbsFile>(*FindDevice(0)));
  uar_ = 0;
  Open(kDevx);
  ASSERT_NE(pdn, pdn_);
  EXPECT_EQ(EOPNOTSUPP, Create(Mkey(pdn)));
  const uint32_t own_ring = Registered(cq.ring), own_word = Registered(record);
  EXPECT_EQ(EOPNOTSUPP, Create(CqCommand(ring, own_word)));
  EXPECT_EQ(EOPNOTSUPP, Create(CqCommand(own_ring, word)));
  ASSERT_EQ(0, Create(CqCommand(own_ring, own_word))) << LastRule();
  const uint32_t own_cqn = Get32(out_.data() + 8);
  const uint32_t buffer = Registered(pair.qp.ring), doorbell = Registered(pair.qp.record);
  EXPECT_EQ(EOPNOTSUPP, Create(QpCommand(cqn, buffer, doorbell)));
  EXPECT_EQ(EOPNOTSUPP, Create(QpCommand(own_cqn, ring, doorbell)));
  EXPECT_EQ(EOPNOTSUPP, Create(QpCommand(own_cqn, buffer, word)));
  Bytes domain = QpCommand(own_cqn, buffer, doorbell);
  Put32(domain.data() + 28, pdn);
  EXPECT_EQ(EOPNOTSUPP, Create(domain));
  EXPECT_EQ(0, Create(QpCommand(own_cqn, buffer, doorbell))) << LastRule();
}

TEST_F(QueuesTest, WhatRegistrationRefuses) {
  EXPECT_EQ(EINVAL, Umem(memory_.base(), 4096, nullptr, 2)) << "REMOTE_WRITE without LOCAL_WRITE";
  EXPECT_EQ("mr.access.needs_local_write", LastRule());
  EXPECT_EQ(EINVAL, Umem(memory_.base(), 4096, nullptr, 1 << 3)) << "REMOTE_ATOMIC";
  EXPECT_EQ(EINVAL, Umem(memory_.base(), 4096, nullptr, 1, 1 << 13)) << "larger than all of it";
  EXPECT_EQ("mlx5.devx.umem_pages", LastRule());
  EXPECT_EQ(0, Umem(memory_.base(), 4097, nullptr, 1, 1 << 13)) << LastRule();
  EXPECT_EQ(0, Umem(memory_.base(), 4096, nullptr, 1 | 1 << 20)) << "RELAXED_ORDERING (6.1)";
}

TEST_F(OldDevxTest, RelaxedOrderingIsNotKnown) {
  Request call = Method(VABI_C(MLX5_IB_OBJECT_DEVX_UMEM), VABI_C(MLX5_IB_METHOD_DEVX_UMEM_REG));
  call.AddHandle(C(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE)));
  call.Add(C(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR)), 8, Address(memory_.base()));
  call.Add(C(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN)), 8, 4096);
  call.Add(C(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS)), 4, 1 | 1 << 20);
  call.AddOut(C(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID)), out_).len = 4;
  EXPECT_EQ(-EINVAL, SendIoctl(*file_, call));
}

// Streams of a DCI: mlx5dv_dci_stream_id_reset(3).
class StreamTest : public DevxTest {
 protected:
  void SetUp() override {
    DevxTest::SetUp();
    MakeCq(&cq_);
    Qp& qp = initiator_;
    qp.type = 0xff;
    const size_t core = world().Size(VABI_S(ib_uverbs_create_qp_resp));
    Bytes reply(core + 40);
    Struct request = QpRequest(cq_, cq_, qp);
    request.Set(VABI_F(ib_uverbs_create_qp, max_recv_sge), 0);
    Struct own = QpPrivate(qp).With(VABI_F(mlx5_ib_create_qp, flags), 1 << 5 | 1 << 11);
    own.Sub(VABI_F(mlx5_ib_create_qp, dci_streams))
        .Set(VABI_F(mlx5_ib_create_qp_dci_streams, log_num_concurent), 3);
    own.Sub(VABI_F(mlx5_ib_create_qp, dci_streams))
        .Set(VABI_F(mlx5_ib_create_qp_dci_streams, log_num_errored), 1);
    ASSERT_GT(Write(kCreateQp, request, &reply, own.bytes()), 0) << LastRule();
    qp.handle = In(reply).U32(VABI_F(ib_uverbs_create_qp_resp, qp_handle));
    qp.number = In(reply).U32(VABI_F(ib_uverbs_create_qp_resp, qpn));
    const auto to = [&](uint64_t state, uint32_t mask) {
      return Mlx5Test::Modify(qp, mask,
                              {{VABI_F(ib_uverbs_modify_qp, qp_state), state},
                               {VABI_F(ib_uverbs_modify_qp, port_num), 1},
                               {VABI_F(ib_uverbs_modify_qp, path_mtu), 3},
                               {VABI_F(ib_uverbs_modify_qp, timeout), 1},
                               {VABI_F(ib_uverbs_modify_qp, retry_cnt), 1}});
    };
    ASSERT_GT(to(1, 0x31), 0) << LastRule();
    ASSERT_GT(to(2, 0x101), 0) << LastRule();
    ASSERT_GT(to(3, 0x1 | 0x200 | 0x400 | 0x800 | 0x2000 | 0x10000), 0) << LastRule();
  }
  // A write with a bad local key: an error of its own.
  void Fail(uint16_t stream) {
    Bytes wqe(64 + 16 + 16);
    Put32(wqe.data() + 24, 0x80000000 | 0x1234);
    Put32(wqe.data() + 80, 8);
    Put32(wqe.data() + 84, lkey_ + 0x100);
    Put16(wqe.data() + 9, stream);
    initiator_.Post(wqe, 0x08, kSignaled);
    Settle();
  }
  uint8_t Syndrome() {
    const uint8_t* cqe = cq_.Poll();
    EXPECT_NE(nullptr, cqe);
    return cqe == nullptr ? 0 : cqe[55];
  }
  long Reset(uint16_t stream) {
    Bytes in = Command(kRts2Rts, 464);
    Put32(in.data() + 8, 0x80000000 | initiator_.number);
    Put64(in.data() + 264, 1);
    Put16(in.data() + 272 + 2, stream);
    return Modify(initiator_.handle, in);
  }

  Cq cq_{64, 64};
  Qp initiator_{16, 0};
};

TEST_F(StreamTest, AnErrorIsItsStreamsAlone) {
  Fail(3);
  EXPECT_EQ(0x04, Syndrome());
  Fail(3);
  EXPECT_EQ(0x05, Syndrome()) << "flushed, and not carried out";
  EXPECT_EQ(fabric::EndpointState::kRts, fabric::FindEndpoint(0, initiator_.number)->state);
  EXPECT_EQ(0, Reset(3)) << LastRule();
  EXPECT_EQ(EREMOTEIO, Reset(3)) << "in error no more";
  EXPECT_EQ(9, out_[0]) << "MLX5_CMD_STAT_BAD_RES_STATE_ERR";
  Fail(3);
  EXPECT_EQ(0x04, Syndrome());
}

TEST_F(StreamTest, TwoInErrorAreAll) {
  Fail(1);
  EXPECT_EQ(0x04, Syndrome());
  Fail(2);
  EXPECT_EQ(0x04, Syndrome());
  EXPECT_EQ(fabric::EndpointState::kErr, fabric::FindEndpoint(0, initiator_.number)->state);
  Fail(5);
  EXPECT_EQ(0x05, Syndrome());
  EXPECT_EQ(EREMOTEIO, Reset(1)) << "the queue pair is not in RTS";
}

TEST_F(StreamTest, TheDeviceTellsOfThem) {
  Request call = Method(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_INVOKE_WRITE));
  Bytes core(8), reply(world().Size(VABI_S(ib_uverbs_ex_query_device_resp)));
  Bytes own(world().Size(VABI_S(mlx5_ib_query_device_resp)));
  call.AddConst(C(VABI_C(UVERBS_ATTR_WRITE_CMD)), 1 | 0x80000000);
  call.AddIn(C(VABI_C(UVERBS_ATTR_CORE_IN)), core);
  call.AddOut(C(VABI_C(UVERBS_ATTR_CORE_OUT)), reply);
  call.AddOut(C(VABI_C(UVERBS_ATTR_UHW_OUT)), own);
  ASSERT_EQ(0, SendIoctl(*file_, call)) << LastRule();
  const Body streams = In(own).Sub(VABI_F(mlx5_ib_query_device_resp, dci_streams_caps));
  EXPECT_EQ(6u, streams.Get(VABI_F(mlx5_ib_dci_streams_caps, max_log_num_concurent)));
  EXPECT_EQ(6u, streams.Get(VABI_F(mlx5_ib_dci_streams_caps, max_log_num_errored)));
}

}  // namespace
}  // namespace vabi::mlx5
