// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_COMMON_TEST_LIMITS_H_
#define VABI_SHIMS_PROVIDERS_COMMON_TEST_LIMITS_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "shims/providers/common/test_hca.h"

// A device with room for two objects of a kind gives two, refuses the third as its driver does, and
// has room again when one of the two has gone.

namespace vabi {

// What the objects of one driver are made with.
struct LimitKit {
  // An open context with a PD.
  std::function<std::unique_ptr<TestHca>(const char* kernel, uint32_t* pd)> start;
  // Private requests; may make what they need first.
  std::function<Bytes(TestHca&)> mr, cq, qp, srq;
  size_t room;   // for any private reply
  uint8_t type;  // of a queue pair
  uint32_t cqe = 15;
  size_t mr_room = 0;
};

// LimitKit::start of a driver's test machine. Some open a context only when they are told to.
template <typename Machine>
std::unique_ptr<TestHca> StartMachine(const char* kernel, uint32_t* pd) {
  auto hca = std::make_unique<Machine>(kernel);
  if constexpr (requires { hca->Start(); }) hca->Start();
  *pd = hca->pd;
  return hca;
}

struct LimitRow {
  const char* kernel;
  const char* rule;
  int error;  // positive errno
  ObjectType kind;
};

class LimitTester {
 public:
  LimitTester(const LimitKit& kit, const LimitRow& row)
      : kit_(kit), row_(row), hca_(kit.start(row.kernel, &pd_)) {}

  void Run() {
    if (row_.kind == ObjectType::kQp) cq_ = MakeCq();
    // A device tells its limits once, when it appears.
    auto& limits = const_cast<DeviceAttributes&>(hca_->device().attributes());
    limits.*Limit() = row_.kind == ObjectType::kPd ? 3 : 2;
    uint32_t first = 0, other = 0;
    ASSERT_GT(Make(&first), 0) << hca_->LastRule() << hca_->LastUnmodelled();
    ASSERT_GT(Make(&other), 0) << hca_->LastRule();
    EXPECT_EQ(-row_.error, Make(&other)) << hca_->LastUnmodelled();
    EXPECT_EQ(row_.rule, hca_->LastRule());
    ASSERT_GT(Remove(first), 0) << hca_->LastRule();
    EXPECT_GT(Make(&other), 0) << hca_->LastRule();
  }

 private:
  uint32_t DeviceAttributes::*Limit() const {
    switch (row_.kind) {
      case ObjectType::kPd:
        return &DeviceAttributes::max_pd;
      case ObjectType::kCq:
        return &DeviceAttributes::max_cq;
      case ObjectType::kQp:
        return &DeviceAttributes::max_qp;
      case ObjectType::kSrq:
        return &DeviceAttributes::max_srq;
      case ObjectType::kAh:
        return &DeviceAttributes::max_ah;
      default:
        return &DeviceAttributes::max_mr;
    }
  }
  Bytes Request(const std::function<Bytes(TestHca&)>& make) { return make ? make(*hca_) : Bytes(); }

  uint32_t MakeCq() {
    TestHca::CqMade made;
    EXPECT_GT(hca_->CreateCq(kit_.cqe, &made, Request(kit_.cq), kit_.room), 0) << hca_->LastRule();
    return made.handle;
  }
  long Make(uint32_t* handle) {
    TestHca& hca = *hca_;
    switch (row_.kind) {
      case ObjectType::kPd:
        return hca.AllocPd(handle, {}, kit_.room);
      case ObjectType::kMr: {
        TestHca::MrMade made;
        const long result = hca.RegMr(pd_, {}, &made, Request(kit_.mr), kit_.mr_room);
        *handle = made.handle;
        return result;
      }
      case ObjectType::kMw: {
        Bytes request = hca.Zero(VABI_S(ib_uverbs_alloc_mw));
        hca.In(request).Set(VABI_F(ib_uverbs_alloc_mw, pd_handle), pd_);
        hca.In(request).Set(VABI_F(ib_uverbs_alloc_mw, mw_type), 1);
        const long result =
            hca.Command(TestHca::kAllocMw, request, VABI_S(ib_uverbs_alloc_mw_resp));
        if (result > 0) *handle = hca.U32(VABI_F(ib_uverbs_alloc_mw_resp, mw_handle));
        return result;
      }
      case ObjectType::kCq: {
        TestHca::CqMade made;
        const Bytes request = Request(kit_.cq);
        const long result = hca.CreateCq(kit_.cqe, &made, request, kit_.room);
        *handle = made.handle;
        return result;
      }
      case ObjectType::kQp: {
        TestHca::QpWish wish;
        wish.pd = pd_;
        wish.send_cq = wish.recv_cq = cq_;
        wish.type = kit_.type;
        TestHca::QpMade made;
        const Bytes request = Request(kit_.qp);
        const long result = hca.CreateQp(wish, &made, request, kit_.room);
        *handle = made.handle;
        return result;
      }
      case ObjectType::kSrq: {
        TestHca::SrqMade made;
        const long result = hca.CreateSrq(pd_, 15, 1, 0, &made, Request(kit_.srq), kit_.room);
        *handle = made.handle;
        return result;
      }
      default:
        return hca.CreateAh(pd_, handle, {}, kit_.room);
    }
  }
  long Remove(uint32_t handle) {
    switch (row_.kind) {
      case ObjectType::kPd:
        return hca_->DeallocPd(handle);
      case ObjectType::kMr:
        return hca_->DeregMr(handle);
      case ObjectType::kMw: {
        Bytes request = hca_->Zero(VABI_S(ib_uverbs_dealloc_mw));
        hca_->In(request).Set(VABI_F(ib_uverbs_dealloc_mw, mw_handle), handle);
        return hca_->Command(TestHca::kDeallocMw, request);
      }
      case ObjectType::kCq:
        return hca_->DestroyCq(handle);
      case ObjectType::kQp:
        return hca_->DestroyQp(handle);
      case ObjectType::kSrq:
        return hca_->DestroySrq(handle);
      default:
        return hca_->DestroyAh(handle);
    }
  }

  const LimitKit& kit_;
  const LimitRow& row_;
  uint32_t pd_ = 0, cq_ = 0;
  std::unique_ptr<TestHca> hca_;
};

inline std::string CaseName(const LimitRow& row) {
  return CaseName(std::string(row.rule) + "_" + row.kernel);
}

}  // namespace vabi

#endif  // VABI_SHIMS_PROVIDERS_COMMON_TEST_LIMITS_H_
