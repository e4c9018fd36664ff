// SPDX-License-Identifier: BSD-2-Clause
// What releases of the core take otherwise than their neighbours. Expected values are from
// drivers/infiniband/core of the releases named.
#include "shims/uverbs/qp_state.h"
#include "shims/uverbs/test_uverbs.h"

namespace vabi {
namespace {

class Release : public UverbsTest {
 public:
  explicit Release(const char* kernel) : UverbsTest(kernel) {
    Bytes reply(8);
    EXPECT_GT(Write(0, S(VABI_S(ib_uverbs_get_context)), &reply), 0) << LastRule();
    fds_.push_back(static_cast<int>(U32(reply, VABI_F(ib_uverbs_get_context_resp, async_fd))));
    pd_ = AllocPd();
    cq_ = CreateCq();
  }
  using UverbsTest::LastRule;
  void TestBody() override {}

  long QpWithFlags(uint32_t flags) {
    Bytes reply(64);
    return WriteEx(24,
                   S(VABI_S(ib_uverbs_ex_create_qp))
                       .With(VABI_F(ib_uverbs_ex_create_qp, pd_handle), pd_)
                       .With(VABI_F(ib_uverbs_ex_create_qp, send_cq_handle), cq_)
                       .With(VABI_F(ib_uverbs_ex_create_qp, recv_cq_handle), cq_)
                       .With(VABI_F(ib_uverbs_ex_create_qp, max_send_wr), 8)
                       .With(VABI_F(ib_uverbs_ex_create_qp, qp_type), kQptUd)
                       .With(VABI_F(ib_uverbs_ex_create_qp, create_flags), flags)
                       .bytes(),
                   &reply);
  }
  // A queue pair in RTS stays there, with a rate limit.
  long RateLimit(uint8_t type) {
    const uint32_t qp = CreateQp(pd_, cq_, type);
    static_cast<Qp*>(file().Find(ObjectType::kQp, qp))->state = QpState::kRts;
    Struct request = S(VABI_S(ib_uverbs_ex_modify_qp));
    const Body base = request.Sub(VABI_F(ib_uverbs_ex_modify_qp, base));
    base.Set(VABI_F(ib_uverbs_modify_qp, qp_handle), qp);
    base.Set(VABI_F(ib_uverbs_modify_qp, attr_mask), kQpState | kQpRateLimit);
    base.Set(VABI_F(ib_uverbs_modify_qp, qp_state), static_cast<uint64_t>(QpState::kRts));
    return WriteEx(26, request.bytes());
  }
  // Extended MODIFY_QP of a queue pair in RESET.
  long ModifyWith(uint32_t mask) {
    if (qp_ == 0) qp_ = CreateQp(pd_, cq_, kQptRc);
    Struct request = S(VABI_S(ib_uverbs_ex_modify_qp));
    const Body base = request.Sub(VABI_F(ib_uverbs_ex_modify_qp, base));
    base.Set(VABI_F(ib_uverbs_modify_qp, qp_handle), qp_);
    base.Set(VABI_F(ib_uverbs_modify_qp, attr_mask), mask);
    return WriteEx(26, request.bytes());
  }
  // 16 work requests of 256 MiB each, of which none is there: 4 GiB, which is 0 in 32 bits.
  long PostFourGibibytes(bool send) {
    if (qp_ == 0) qp_ = CreateQp(pd_, cq_, kQptRc);
    Bytes reply(4);
    if (send) {
      return Write(28,
                   S(VABI_S(ib_uverbs_post_send))
                       .With(VABI_F(ib_uverbs_post_send, qp_handle), qp_)
                       .With(VABI_F(ib_uverbs_post_send, wr_count), 16)
                       .With(VABI_F(ib_uverbs_post_send, wqe_size), 0x10000000),
                   &reply);
    }
    return Write(29,
                 S(VABI_S(ib_uverbs_post_recv))
                     .With(VABI_F(ib_uverbs_post_recv, qp_handle), qp_)
                     .With(VABI_F(ib_uverbs_post_recv, wr_count), 16)
                     .With(VABI_F(ib_uverbs_post_recv, wqe_size), 0x10000000),
                 &reply);
  }
  // A method that both kernels of a pair have.
  std::string Refusal(bool context) {
    if (!context) Reinstall();
    Request call = New(VABI_C(UVERBS_OBJECT_DM), VABI_C(UVERBS_METHOD_DM_ALLOC));
    EXPECT_EQ(-EINVAL, Ioctl(call));
    return LastRule();
  }

 private:
  uint32_t pd_, cq_, qp_ = 0;
};

// uverbs_cmd.c:create_qp
TEST(Releases, FlagsOfANewQueuePair) {
  for (const auto& [kernel, known] : {std::pair<const char*, uint32_t>{"linux-4.4", 0x2},
                                      {"linux-4.10", 0x11e},
                                      {"linux-4.16", 0xf1e},
                                      {"debian-5.10.223", 0xf1e},
                                      {"debian-7.3.4", 0xf1e}}) {
    Release release(kernel);
    for (int bit = 0; bit < 14; ++bit) {
      const long result = release.QpWithFlags(1u << bit);
      if ((known >> bit & 1) != 0) {
        EXPECT_GT(result, 0) << kernel << " bit " << bit << ": " << release.LastRule();
      } else {
        EXPECT_EQ(-EINVAL, result) << kernel << " bit " << bit;
        EXPECT_EQ("qp.create_flags", release.LastRule()) << kernel << " bit " << bit;
      }
    }
  }
}

// verbs.c:qp_state_table has IB_QP_RATE_LIMIT for raw packets; since 7.2 ib_modify_qp_is_ok lets it
// pass for all.
TEST(Releases, RateLimits) {
  for (const char* kernel : {"linux-4.10", "debian-5.10.223", "debian-6.12.117", "linux-6.16"}) {
    Release release(kernel);
    EXPECT_GT(release.RateLimit(kQptRawPacket), 0) << kernel << ": " << release.LastRule();
    EXPECT_EQ(-EINVAL, release.RateLimit(kQptRc)) << kernel;
    EXPECT_EQ("qp.modify.transition", release.LastRule()) << kernel;
  }
  Release newer("debian-7.2.13");
  EXPECT_GT(newer.RateLimit(kQptRc), 0) << newer.LastRule();
}

// uverbs_cmd.c:ib_uverbs_ex_modify_qp: up to 5.10 every bit up to IB_USER_LAST_QP_ATTR_MASK, which
// is IB_QP_RATE_LIMIT's; since 5.11 those that have a name: IB_QP_ATTR_STANDARD_BITS (up to
// IB_QP_DEST_QPN) and IB_QP_RATE_LIMIT. The other bits are for the driver to refuse.
TEST(Releases, BitsOfExtendedModifyQp) {
  constexpr uint32_t kUpToRateLimit = (1u << 26) - 1, kNamed = ((1u << 21) - 1) | 1u << 25;
  for (const auto& [kernel, known] : {std::pair{"linux-4.10", kUpToRateLimit},
                                      {"debian-5.10.223", kUpToRateLimit},
                                      {"linux-5.14", kNamed},
                                      {"debian-7.3.4", kNamed}}) {
    Release release(kernel);
    for (int bit = 0; bit < 32; ++bit) {
      const long result = release.ModifyWith(1u << bit);
      if ((known >> bit & 1) != 0) {
        EXPECT_NE("qp.modify.ex_mask", release.LastRule()) << kernel << " bit " << bit;
      } else {
        EXPECT_EQ(-EOPNOTSUPP, result) << kernel << " bit " << bit;
        EXPECT_EQ("qp.modify.ex_mask", release.LastRule()) << kernel << " bit " << bit;
      }
    }
  }
}

// uverbs_cmd.c:ib_uverbs_post_send, ib_uverbs_unmarshall_recv: wqe_size * wr_count in 32 bits, so
// that 4 GiB are nothing and only kmalloc refuses one request's size; size_mul since 6.12, and in
// 6.1.192: they do not fit into the command.
TEST(Releases, SizesOfWorkRequestsWrappedAround) {
  for (const auto& [kernel, error] : {std::pair{"linux-4.20", -ENOMEM},
                                      {"debian-5.10.223", -ENOMEM},
                                      {"debian-6.1.192", -ENOSPC},
                                      {"linux-6.6", -ENOMEM},
                                      {"debian-6.12.117", -ENOSPC}}) {
    Release release(kernel);
    EXPECT_EQ(error, release.PostFourGibibytes(true)) << kernel << ": " << release.LastRule();
    EXPECT_EQ(error, release.PostFourGibibytes(false)) << kernel << ": " << release.LastRule();
  }
}

// uverbs_ioctl.c:ib_uverbs_cmd_verbs looked for a context first, and uverbs_handle_method refused a
// call without attributes, before it asked which are missing.
TEST(Releases, TheFirstIoctlsLookedForAContextFirst) {
  for (const char* kernel : {"linux-4.17", "linux-4.18"}) {
    EXPECT_EQ("ioctl.no_context", Release(kernel).Refusal(false)) << kernel;
    EXPECT_EQ("ioctl.no_attributes", Release(kernel).Refusal(true)) << kernel;
  }
  EXPECT_EQ("ioctl.mandatory.missing", Release("linux-4.19").Refusal(true));
}

}  // namespace
}  // namespace vabi
