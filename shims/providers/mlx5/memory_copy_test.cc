// SPDX-License-Identifier: BSD-2-Clause
// Copies by the NIC: rdma-core's wqe.h (struct mlx5_mmo_wqe), mlx5_wr_memcpy(3).
#include "shims/providers/mlx5/test_mlx5.h"
#include "shims/uverbs/objects.h"

namespace vabi::mlx5 {
namespace {

constexpr uint8_t kSignaled = 8, kMmo = 0x2f, kDma = 1;
enum Syndrome : uint8_t { kQpOperation = 0x02, kProtection = 0x04 };

class MemoryCopyTest : public Mlx5Test {
 protected:
  void SetUp() override {
    OpenContext();
    MakeCq(&cq_);
    MakeQp(cq_, cq_, &qp_);
    Connect(qp_, qp_.number);
    FillMemory();
  }
  void Copy(const uint8_t* from, uint32_t length, uint32_t key, const uint8_t* to,
            uint32_t target_length, uint32_t target_key, uint8_t modifier = kDma) {
    Bytes wqe(64);
    PutPointer(wqe.data() + 32, from, length, key);
    PutPointer(wqe.data() + 48, to, target_length, target_key);
    const uint32_t block = qp_.posted_blocks;
    qp_.Post(wqe, kMmo, kSignaled);
    qp_.Block(block)[0] = modifier;
    Settle();
  }
  void Fails(Syndrome syndrome) {
    const uint8_t* cqe = cq_.Poll();
    ASSERT_NE(nullptr, cqe);
    EXPECT_EQ(13, cqe[63] >> 4) << "MLX5_CQE_REQ_ERR";
    EXPECT_EQ(syndrome, cqe[55]);
    for (uint32_t i = 0; i < 4096; ++i) ASSERT_EQ(0, To()[i]) << "nothing is written";
  }

  Cq cq_{16};
  Qp qp_;
};

TEST_F(MemoryCopyTest, BytesGoFromOneRegionToAnother) {
  Copy(From() + 3, 1000, lkey_, To() + 5, 1000, lkey_);
  const uint8_t* cqe = cq_.Poll();
  ASSERT_NE(nullptr, cqe);
  EXPECT_EQ(0, cqe[63] >> 4) << "MLX5_CQE_REQ";
  EXPECT_EQ(kMmo, cqe[56]);
  EXPECT_EQ(0, std::memcmp(From() + 3, To() + 5, 1000));
  EXPECT_EQ(0, To()[4]);
  EXPECT_EQ(0, To()[1005]);
}

TEST_F(MemoryCopyTest, BothRegionsMustAllowIt) {
  uint32_t read_only = 0;
  ASSERT_GT(Mr(To(), 4096, &read_only, 0x4), 0);
  Copy(From(), 64, lkey_, To(), 64, read_only);
  Fails(kProtection);
}

TEST_F(MemoryCopyTest, FromAReadOnlyRegion) {
  uint32_t read_only = 0;
  ASSERT_GT(Mr(From(), 4096, &read_only, 0), 0);
  Copy(From(), 64, read_only, To(), 64, lkey_);
  ASSERT_NE(nullptr, cq_.Poll());
  EXPECT_EQ(0, std::memcmp(From(), To(), 64));
}

TEST_F(MemoryCopyTest, BothRegionsBelongToTheQueuePairsDomain) {
  pd_ = Pd();
  uint32_t strange = 0;
  ASSERT_GT(Mr(To(), 4096, &strange), 0);
  Copy(From(), 64, lkey_, To(), 64, strange);
  Fails(kProtection);
}

TEST_F(MemoryCopyTest, NotBehindTheRegionsEnd) {
  Copy(memory_.At(memory_.size() - 10), 11, lkey_, To(), 11, lkey_);
  Fails(kProtection);
}

TEST_F(MemoryCopyTest, OtherElementsAreNotKnown) {
  Copy(From(), 64, lkey_, To(), 64, lkey_, 3);
  Fails(kQpOperation);
}

TEST_F(MemoryCopyTest, BothLengthsAreTheSame) {
  Copy(From(), 64, lkey_, To(), 65, lkey_);
  Fails(kQpOperation);
}

}  // namespace
}  // namespace vabi::mlx5
