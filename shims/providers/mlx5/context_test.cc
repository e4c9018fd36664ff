// SPDX-License-Identifier: BSD-2-Clause
// mlx5_ib_alloc_ucontext and mlx5_ib_mmap. Expected values: drivers/infiniband/hw/mlx5/main.c of
// the kernel named.
#include "shims/providers/mlx5/test_mlx5.h"

namespace vabi::mlx5 {
namespace {

#define REQ(field) VABI_F(mlx5_ib_alloc_ucontext_req_v2, field)
#define RESP(field) VABI_F(mlx5_ib_alloc_ucontext_resp, field)

class ContextTest : public Mlx5Test {
 protected:
  using Mlx5Test::Mlx5Test;
  // errno of a GET_CONTEXT with so many bytes of the request, on a new file.
  int Ask(Bytes request, size_t room = 72) {
    Reinstall();
    reply_.assign(room, 0);
    return Errno(GetContext(request, &reply_));
  }
  int Ask(const Struct& request, size_t length) {
    Struct copy = request;
    Bytes bytes = copy.bytes();
    bytes.resize(length);
    return Ask(bytes);
  }
  uint64_t Got(FieldId field) {
    Bytes whole = reply_;
    whole.resize(128);
    return In(whole).Get(field);
  }
  Bytes reply_;
};

TEST_F(ContextTest, AnswersTheLibrary) {
  ASSERT_EQ(0, Ask(ContextRequest(kLib4k, kDevx).bytes()));
  EXPECT_EQ(72u, Got(RESP(response_length)));
  EXPECT_EQ(1u, Got(RESP(cqe_version)));
  EXPECT_EQ(16u, Got(RESP(tot_bfregs)));
  EXPECT_EQ(1024u, Got(RESP(num_dyn_bfregs))) << "MLX5_MAX_DYN_BFREGS";
  EXPECT_EQ(1u, Got(RESP(num_ports)));
  EXPECT_EQ(12u, Got(RESP(log_uar_size)));
  EXPECT_EQ(1u, Got(RESP(num_uars_per_page)));
  EXPECT_EQ(3u, Got(RESP(cmds_supp_uhw))) << "QUERY_DEVICE and CREATE_AH";
  EXPECT_EQ(1u, Got(RESP(comp_mask)) & 1) << "CORE_CLOCK_OFFSET";
}

TEST_F(ContextTest, DynamicRegistersLeaveNoStaticOnes) {
  ASSERT_EQ(0, Ask(ContextRequest(kLib4k | kLibDynamic).bytes()));
  EXPECT_EQ(0u, Got(RESP(tot_bfregs)));
  EXPECT_EQ(0u, Got(RESP(num_dyn_bfregs)));
}

TEST_F(ContextTest, ReplyIsCutToTheCallersRoom) {
  ASSERT_EQ(0, Ask(ContextRequest().bytes(), 48));
  EXPECT_EQ(48u, Got(RESP(response_length)));
}

TEST_F(ContextTest, Lengths) {
  const Struct request = ContextRequest();
  EXPECT_EQ(0, Ask(request, 8)) << "struct mlx5_ib_alloc_ucontext_req";
  EXPECT_EQ(0u, Got(RESP(cqe_version)));
  EXPECT_EQ(EINVAL, Ask(request, 4));
  EXPECT_EQ(EINVAL, Ask(request, 12)) << "up to max_cqe_version at least";
  EXPECT_EQ("mlx5.ucontext.length", LastRule());
  EXPECT_EQ(0, Ask(request, 16));
  EXPECT_EQ(0, Ask(request, 24));
  EXPECT_EQ(0, Ask(request, 32));
  EXPECT_EQ(0, Ask(request, 40)) << "zeroes behind it";
  Struct longer = request;
  Bytes bytes = longer.bytes();
  bytes.resize(40);
  bytes[36] = 1;
  EXPECT_EQ(0, Ask(bytes)) << "and anything else";
}

TEST_F(ContextTest, EveryReservedByteIsLookedAt) {
  const FieldId fields[] = {REQ(comp_mask), REQ(reserved0), REQ(reserved1), REQ(reserved2)};
  for (const FieldId field : fields) {
    EXPECT_EQ(EOPNOTSUPP, Ask(ContextRequest().With(field, 1).bytes()));
    EXPECT_EQ("mlx5.ucontext.reserved", LastRule());
  }
  EXPECT_EQ(EOPNOTSUPP, Ask(ContextRequest(0, 2).bytes())) << "only DEVX is known";
  EXPECT_EQ("mlx5.ucontext.flags", LastRule());
  EXPECT_EQ(0, Ask(ContextRequest(~uint64_t{0} & ~uint64_t{kLibDynamic}).bytes()))
      << "unknown library capabilities";
}

TEST_F(ContextTest, Registers) {
  EXPECT_EQ(EINVAL, Ask(ContextRequest()
                            .With(REQ(total_num_bfregs), 0)
                            .With(REQ(num_low_latency_bfregs), 0)
                            .bytes()));
  EXPECT_EQ(ENOMEM, Ask(ContextRequest().With(REQ(total_num_bfregs), 513).bytes()))
      << "MLX5_MAX_BFREGS";
  EXPECT_EQ(0, Ask(ContextRequest().With(REQ(total_num_bfregs), 512).bytes()));
  EXPECT_EQ(EINVAL, Ask(ContextRequest().With(REQ(num_low_latency_bfregs), 16).bytes()));
  EXPECT_EQ(0, Ask(ContextRequest().With(REQ(num_low_latency_bfregs), 15).bytes()));
}

class Linux4_4Context : public ContextTest {
 protected:
  Linux4_4Context() : ContextTest("linux-4.4") {}
};
TEST_F(Linux4_4Context, TakesTwoLengthsOnly) {
  const Struct request = ContextRequest();
  EXPECT_EQ(0, Ask(request, 8));
  EXPECT_EQ(0, Ask(request, 16));
  EXPECT_EQ(EINVAL, Ask(request, 24));
  EXPECT_EQ(EINVAL, Ask(request, 32));
  EXPECT_EQ(EINVAL, Ask(ContextRequest(0, 1).bytes())) << "req.flags || req.reserved";
}

class Linux4_10Context : public ContextTest {
 protected:
  Linux4_10Context() : ContextTest("linux-4.10") {}
};
TEST_F(Linux4_10Context, TailsAreLookedAt) {
  Struct request = ContextRequest();
  Bytes bytes = request.bytes();
  bytes.resize(32);
  bytes[31] = 1;
  EXPECT_EQ(EOPNOTSUPP, Ask(bytes));
  EXPECT_EQ("mlx5.ucontext.tail", LastRule());
}
TEST_F(Linux4_10Context, LooksAtNumbersFirst) {
  EXPECT_EQ(EINVAL, Ask(ContextRequest(0, 1).bytes())) << "any flag";
  EXPECT_EQ(0, Ask(ContextRequest(), 32)) << "the library of today: 32 bytes, zeroes behind the 24";
  Struct request = ContextRequest().With(REQ(total_num_uuars), 600).With(REQ(comp_mask), 1);
  EXPECT_EQ(ENOMEM, Ask(request.bytes()));
  request = ContextRequest().With(REQ(comp_mask), 1);
  EXPECT_EQ(EOPNOTSUPP, Ask(request.bytes()));
}

class Linux4_16Context : public ContextTest {
 protected:
  Linux4_16Context() : ContextTest("linux-4.16") {}
};
TEST_F(Linux4_16Context, KnowsNoFlag) {
  EXPECT_EQ(EINVAL, Ask(ContextRequest(kLib4k, kDevx).bytes()));
  EXPECT_EQ("mlx5.ucontext.flags", LastRule());
  EXPECT_EQ(0, Ask(ContextRequest(kLib4k).bytes()));
  Struct request = ContextRequest();
  Bytes bytes = request.bytes();
  bytes.resize(64);
  bytes[63] = 1;
  EXPECT_EQ(0, Ask(bytes)) << "copies what it knows and ignores the rest";
  EXPECT_EQ(0, Ask(ContextRequest(kLibDynamic).bytes()));
  EXPECT_EQ(16u, Got(RESP(tot_bfregs))) << "dynamic UARs came with 5.7";
}

class MapTest : public Mlx5Test {
 protected:
  using Mlx5Test::Mlx5Test;
  // Errno of mapping; what was mapped is unmapped.
  int Map(uint64_t command, uint64_t index, size_t length = 4096,
          int protection = PROT_READ | PROT_WRITE, int flags = MAP_SHARED) {
    const uint64_t page = command << 8 | (index & 0xff) | (index >> 8) << 16;
    const long at =
        file_->Mmap(nullptr, length, protection, flags, static_cast<int64_t>(page << 12));
    if (at < 0 && at > -4096) return static_cast<int>(-at);
    munmap(reinterpret_cast<void*>(at), length);
    return 0;
  }
  // enum mlx5_ib_mmap_cmd
  enum : uint64_t {
    kRegular = 0,
    kContiguous = 1,
    kWc = 2,
    kNc = 3,
    kClock = 5,
    kAllocWc = 6,
    kInfo = 7
  };
};

TEST_F(MapTest, StaticRegisterPages) {
  OpenContext(kLib4k);
  for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(0, Map(kRegular, i)) << "16 registers, two in a page";
  EXPECT_EQ(EINVAL, Map(kRegular, 8));
  EXPECT_EQ(0, Map(kWc, 7));
  EXPECT_EQ(0, Map(kNc, 7));
  EXPECT_EQ(EINVAL, Map(kNc, 8));
  EXPECT_EQ(EINVAL, Map(kRegular, 0, 8192));
  EXPECT_EQ("mlx5.mmap.uar.length", LastRule());
}

TEST_F(MapTest, DynamicRegisterPagesBelongToOne) {
  OpenContext(kLib4k);
  EXPECT_EQ(0, Map(kAllocWc, 0));
  EXPECT_EQ(EINVAL, Map(kAllocWc, 0)) << "in use";
  EXPECT_EQ(0, Map(kAllocWc, 511));
  EXPECT_EQ(EINVAL, Map(kAllocWc, 512)) << "1024 registers";
}

TEST_F(MapTest, NoPagesWithoutStaticRegisters) {
  OpenContext(kLib4k | kLibDynamic);
  EXPECT_EQ(EINVAL, Map(kRegular, 0));
  EXPECT_EQ("mlx5.mmap.uar.dynamic_context", LastRule());
}

TEST_F(MapTest, OtherCommands) {
  OpenContext(kLib4k);
  EXPECT_EQ(ENOSYS, Map(kContiguous, 0));
  EXPECT_EQ(EINVAL, Map(200, 0));
  EXPECT_EQ("mlx5.mmap.offset", LastRule());
}

TEST_F(MapTest, Clocks) {
  OpenContext(kLib4k);
  EXPECT_EQ(EPERM, Map(kClock, 0));
  EXPECT_EQ(0, Map(kClock, 0, 4096, PROT_READ));
  EXPECT_EQ(EINVAL, Map(kClock, 0, 8192, PROT_READ));
  EXPECT_EQ(0, Map(kInfo, 0, 4096, PROT_READ));
  EXPECT_EQ(EPERM, Map(kInfo, 0));
  EXPECT_EQ(EPERM, Map(kInfo, 0, 4096, PROT_READ | PROT_EXEC));
  EXPECT_EQ(EOPNOTSUPP, Map(kInfo, 1, 4096, PROT_READ)) << "there is version 0 only";
}

// main.c:mlx5_ib_mmap, vm_flags_clear(vma, VM_MAYWRITE); vm_insert_page.
TEST_F(MapTest, ClocksStayReadOnly) {
  OpenContext(kLib4k);
  ASSERT_EQ(0, Map(kClock, 0, 4096, PROT_READ));
  EXPECT_FALSE(NewestVma().may_write);
  EXPECT_EQ(DeviceVma::Pages::kIo, NewestVma().pages);
  ASSERT_EQ(0, Map(kInfo, 0, 4096, PROT_READ));
  EXPECT_FALSE(NewestVma().may_write);
  EXPECT_EQ(DeviceVma::Pages::kInserted, NewestVma().pages);
  ASSERT_EQ(0, Map(kRegular, 0, 4096, PROT_READ));
  EXPECT_TRUE(NewestVma().may_write);
}

// core/ib_core_uverbs.c:rdma_user_mmap_io; main.c:mlx5_ib_mmap_clock_info_page asks before it looks
// at the index.
TEST_F(MapTest, PrivateOnesAreRefused) {
  OpenContext(kLib4k);
  constexpr int kBoth = PROT_READ | PROT_WRITE;
  EXPECT_EQ(EINVAL, Map(kRegular, 0, 4096, kBoth, MAP_PRIVATE));
  EXPECT_EQ("mmap.private", LastRule());
  EXPECT_EQ(EINVAL, Map(kAllocWc, 0, 4096, kBoth, MAP_PRIVATE));
  EXPECT_EQ(0, Map(kAllocWc, 0)) << "it was not taken";
  EXPECT_EQ(EPERM, Map(kClock, 0, 4096, kBoth, MAP_PRIVATE));
  EXPECT_EQ(EINVAL, Map(kClock, 0, 4096, PROT_READ, MAP_PRIVATE));
  EXPECT_EQ(EINVAL, Map(kInfo, 1, 4096, PROT_READ, MAP_PRIVATE));
  // mm/mmap.c:do_mmap: a node that cannot be written to has no VM_SHARED.
  file_->set_access_mode(O_RDONLY);
  EXPECT_EQ(EINVAL, Map(kRegular, 0, 4096, PROT_READ));
  EXPECT_EQ("mmap.private", LastRule());
}

class Linux5_0Map : public MapTest {
 protected:
  Linux5_0Map() : MapTest("linux-5.0") {}
};
TEST_F(Linux5_0Map, TakesPrivateOnes) {
  OpenContext(kLib4k);
  EXPECT_EQ(0, Map(kRegular, 0, 4096, PROT_READ, MAP_PRIVATE));
  EXPECT_EQ(0, Map(kInfo, 0, 4096, PROT_READ, MAP_PRIVATE));
  ASSERT_EQ(0, Map(kClock, 0, 4096, PROT_READ));
  EXPECT_TRUE(NewestVma().may_write) << "VM_MAYWRITE stays up to 5.0";
}

}  // namespace
}  // namespace vabi::mlx5
