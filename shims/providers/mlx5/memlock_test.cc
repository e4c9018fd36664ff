// SPDX-License-Identifier: BSD-2-Clause
// RLIMIT_MEMLOCK as core/umem.c:ib_umem_get looks at it: what all of a process' objects keep pinned
// counts, a page of doorbell records once (doorbell.c:mlx5_ib_db_map_user), and every page comes
// back with its object.
#include <sys/wait.h>

#include "shims/providers/mlx5/test_mlx5.h"
#include "shims/uverbs/pinned_memory.h"
#include "shims/uverbs/test_memlock.h"

namespace vabi::mlx5 {
namespace {

class MemlockTest : public Mlx5Test {
 protected:
  explicit MemlockTest(const char* kernel = "debian-7.3.4") : Mlx5Test(kernel) {}
  void SetUp() override {
    OpenContext();
    image().check_permissions = 1;
    image().uid = 1000;
    before_ = PagesPinned();
  }
  uint64_t Held() { return PagesPinned() - before_; }
  int Reg(uint64_t start, uint64_t length, uint32_t access = 1) {
    MrMade mr;
    const long result = RegMr(start, length, start, access, &mr);
    if (result > 0) mr_ = mr.handle;
    return Errno(result);
  }
  int RegPages(int first, int count) {
    return Reg(Address(memory_.At(size_t{4096} * first)), uint64_t{4096} * count);
  }
  int Rereg(int first, int count) {
    constexpr uint32_t kTrans = 1;
    const uint64_t at = Address(memory_.At(size_t{4096} * first));
    Bytes reply(world().Size(VABI_S(ib_uverbs_rereg_mr_resp)));
    return Errno(Write(11,
                       S(VABI_S(ib_uverbs_rereg_mr))
                           .With(VABI_F(ib_uverbs_rereg_mr, mr_handle), mr_)
                           .With(VABI_F(ib_uverbs_rereg_mr, flags), kTrans)
                           .With(VABI_F(ib_uverbs_rereg_mr, start), at)
                           .With(VABI_F(ib_uverbs_rereg_mr, hca_va), at)
                           .With(VABI_F(ib_uverbs_rereg_mr, length), uint64_t{4096} * count),
                       &reply));
  }
  int Dereg() {
    Bytes none;
    return Errno(Write(
        13, S(VABI_S(ib_uverbs_dereg_mr)).With(VABI_F(ib_uverbs_dereg_mr, mr_handle), mr_), &none));
  }
  // Its records stand `at` bytes into the page of `page`.
  int CqBeside(Cq* cq, const Cq& page, uint64_t at) {
    Struct own =
        CqPrivate(*cq).With(VABI_F(mlx5_ib_create_cq, db_addr), Address(page.record.base()) + at);
    return Errno(MakeCq(cq, own.bytes()));
  }
  int Resize(const Cq& cq, const Cq& larger) {
    Struct own = S(VABI_S(mlx5_ib_resize_cq));
    own.Set(VABI_F(mlx5_ib_resize_cq, buf_addr), Address(larger.ring.base()));
    own.Set(VABI_F(mlx5_ib_resize_cq, cqe_size), 64);
    Bytes reply(world().Size(VABI_S(ib_uverbs_resize_cq_resp)));
    return Errno(Write(kResizeCq,
                       S(VABI_S(ib_uverbs_resize_cq))
                           .With(VABI_F(ib_uverbs_resize_cq, cq_handle), cq.handle)
                           .With(VABI_F(ib_uverbs_resize_cq, cqe), larger.count - 1),
                       &reply, own.bytes()));
  }
  int Destroy(const Cq& cq) {
    Bytes reply(world().Size(VABI_S(ib_uverbs_destroy_cq_resp)));
    return Errno(Write(
        kDestroyCq,
        S(VABI_S(ib_uverbs_destroy_cq)).With(VABI_F(ib_uverbs_destroy_cq, cq_handle), cq.handle),
        &reply));
  }

  uint64_t before_ = 0;
  uint32_t mr_ = 0;
};

class Memlock419Test : public MemlockTest {
 protected:
  Memlock419Test() : MemlockTest("linux-4.19") {}
};
class Memlock420Test : public MemlockTest {
 protected:
  Memlock420Test() : MemlockTest("linux-4.20") {}
};
class Memlock510Test : public MemlockTest {
 protected:
  Memlock510Test() : MemlockTest("debian-5.10.223") {}
};

TEST_F(MemlockTest, WhatIsPinnedAddsUpAndComesBack) {
  const Memlock limit(before_ + 4);
  EXPECT_EQ(0, RegPages(0, 3));
  const uint32_t first = mr_;
  EXPECT_EQ(ENOMEM, RegPages(0, 2));
  EXPECT_EQ("umem.memlock", LastRule());
  EXPECT_EQ(0, RegPages(3, 1)) << "just as much as it may";
  EXPECT_EQ(ENOMEM, RegPages(0, 1)) << "the same page counts again";
  mr_ = first;
  EXPECT_EQ(0, Dereg());
  EXPECT_EQ(1u, Held());
  EXPECT_EQ(0, RegPages(0, 3));
}

TEST_F(MemlockTest, AByteInTwoPagesIsTwo) {
  EXPECT_EQ(0, Reg(Address(memory_.At(4095)), 2));
  EXPECT_EQ(2u, Held());
}

TEST_F(MemlockTest, RootMayLockAll) {
  image().uid = 0;
  const Memlock limit(0);
  EXPECT_EQ(0, RegPages(0, 3));
  EXPECT_EQ(3u, Held()) << "it counts all the same";
}

TEST_F(MemlockTest, WhoMayLockNothingIsToldSoFirst) {
  const Memlock limit(0);
  EXPECT_EQ(EPERM, RegPages(0, 1));
  EXPECT_EQ("umem.no_lock", LastRule());
  EXPECT_EQ(EPERM, Reg(64, 4096)) << "before anything is pinned";
  EXPECT_EQ(EINVAL, Reg(~uint64_t{0}, 2)) << "what wraps around is told before";
}

TEST_F(MemlockTest, ALimitThatNobodyChangedIsTheMachines) {
  EXPECT_EQ(0, RegPages(0, 3));
  EXPECT_EQ(std::nullopt, MemlockLimit());
}

TEST_F(MemlockTest, WhatCannotBePinnedIsNotCounted) {
  const Memlock limit(before_ + 4);
  EXPECT_EQ(EFAULT, Reg(65536, 4096 * 4));
  EXPECT_EQ(0u, Held());
}

TEST_F(MemlockTest, PagedMemoryIsNotPinned) {
  constexpr uint32_t kOnDemand = 64;
  const Memlock limit(before_);
  EXPECT_EQ(0, Reg(Address(memory_.base()), 4096, 1 | kOnDemand));
  EXPECT_EQ(0u, Held());
}

TEST_F(MemlockTest, RecordsInOnePageArePinnedOnce) {
  Cq first(64), second(64), third(64);
  const Memlock limit(before_ + 3);
  EXPECT_EQ(0, CqBeside(&first, first, 0));
  EXPECT_EQ(2u, Held()) << "its ring and the page";
  EXPECT_EQ(0, CqBeside(&second, first, 8));
  EXPECT_EQ(3u, Held());
  EXPECT_EQ(ENOMEM, CqBeside(&third, first, 16));
  EXPECT_EQ(3u, Held());
  EXPECT_EQ(0, Destroy(first));
  EXPECT_EQ(2u, Held()) << "the other one's records are there";
  EXPECT_EQ(ENOMEM, CqBeside(&third, third, 0)) << "a page of its own as well";
  EXPECT_EQ(0, CqBeside(&third, first, 16));
  EXPECT_EQ(0, Destroy(second));
  EXPECT_EQ(0, Destroy(third));
  EXPECT_EQ(0u, Held());
}

TEST_F(MemlockTest, AResizedCqHasBothBuffersForAWhile) {
  Cq cq(64), larger(128);
  ASSERT_EQ(0, CqBeside(&cq, cq, 0));
  {
    const Memlock limit(before_ + 3);
    EXPECT_EQ(ENOMEM, Resize(cq, larger));
    EXPECT_EQ(2u, Held());
  }
  const Memlock limit(before_ + 4);
  EXPECT_EQ(0, Resize(cq, larger));
  EXPECT_EQ(3u, Held()) << "two pages of the new ring, and the record's";
}

TEST_F(MemlockTest, NewMemoryIsPinnedBeforeTheOldIsLetGo) {
  const Memlock limit(before_ + 4);
  ASSERT_EQ(0, RegPages(0, 3));
  EXPECT_EQ(ENOMEM, Rereg(1, 3));
  EXPECT_EQ(3u, Held());
  EXPECT_EQ(0, Rereg(1, 1));
  EXPECT_EQ(1u, Held());
}

TEST_F(Memlock510Test, OldMemoryIsLetGoFirst) {
  const Memlock limit(before_ + 4);
  ASSERT_EQ(0, RegPages(0, 3));
  EXPECT_EQ(0, Rereg(1, 3));
  EXPECT_EQ(3u, Held());
  EXPECT_EQ(ENOMEM, Rereg(0, 5));
  EXPECT_EQ(0u, Held());
}

// 2^33 pages
TEST_F(Memlock419Test, TheLimitIsLookedAtBeforeTheNumberOfPages) {
  const Memlock limit(before_ + 4);
  EXPECT_EQ(ENOMEM, Reg(4096, uint64_t{1} << 45));
  EXPECT_EQ("umem.memlock", LastRule());
}
TEST_F(Memlock420Test, TheNumberOfPagesIsLookedAtBeforeTheLimit) {
  const Memlock limit(before_ + 4);
  EXPECT_EQ(EINVAL, Reg(4096, uint64_t{1} << 45));
  EXPECT_EQ("mlx5.memory.nothing", LastRule());
}

TEST_F(MemlockTest, AllComesBackWithTheFile) {
  Cq cq(64);
  ASSERT_EQ(0, CqBeside(&cq, cq, 0));
  ASSERT_EQ(0, RegPages(0, 3));
  Reinstall();
  EXPECT_EQ(before_ - memory_.size() / 4096, PagesPinned()) << "what OpenContext registers, too";
}

// rdma_core.c:uverbs_destroy_ufile_hw lets the hardware's objects go; their handles are left.
TEST_F(MemlockTest, AllComesBackWhenTheDeviceGoes) {
  Cq cq(64);
  ASSERT_EQ(0, CqBeside(&cq, cq, 0));
  ASSERT_EQ(0, RegPages(0, 3));
  FindDevice(0)->SetGone(true);
  file_->Disassociate();
  EXPECT_EQ(before_ - memory_.size() / 4096, PagesPinned()) << "what OpenContext registers, too";
}

// kernel/fork.c:mm_init, and the region's memory is its owner's (umem.c: owning_mm).
TEST_F(MemlockTest, AChildBeginsWithNothing) {
  ASSERT_EQ(0, RegPages(0, 3));
  const pid_t child = fork();
  if (child == 0) {
    const bool empty = PagesPinned() == 0;
    PinnedPages own;
    own.Take(2);
    file_.reset();
    _exit(empty && PagesPinned() == 2 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
  EXPECT_EQ(3u, Held());
}

}  // namespace
}  // namespace vabi::mlx5
