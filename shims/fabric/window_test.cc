// SPDX-License-Identifier: BSD-2-Clause
// Memory windows. Rules: IBTA as rxe_mw.c cites it.
#include "shims/fabric/window.h"

#include "shims/fabric/test_endpoint.h"

namespace vabi::fabric {
namespace {

class Window : public FabricTest {
 protected:
  void SetUp() override {
    FabricTest::SetUp();
    MemoryKey* region = FindKey(1, b.key);
    region->access = kAccessLocalWrite | kAccessMwBind;
    MemoryKey window = {};
    window.pd = b.qp.pd;
    window.kind = MemoryKey::Kind::kWindow2;
    window.invalidated = true;
    AddKey(1, 0x8000100, window);
    window.kind = MemoryKey::Kind::kWindow1;
    AddKey(1, 0x8000200, window);
  }
  Bind Good(uint32_t window = 0x8000100) const {
    return {window, 0x42, b.key, b.address() + 1000, 500, kAccessRemoteWrite | kAccessRemoteRead};
  }
  SendRequest Write(uint32_t rkey, uint32_t offset, uint32_t length) {
    SendRequest request = Remote(Opcode::kWrite, {a.At(0, length)}, offset);
    request.rkey = rkey;
    return request;
  }
  Status Try(const SendRequest& request) {
    a.qp.state = b.qp.state = EndpointState::kRts;
    return Run(request).status;
  }
};

TEST_F(Window, GivesAccessToItsPartOnly) {
  ASSERT_TRUE(BindWindow(b.qp, Good()));
  EXPECT_EQ(FindKey(1, 0x8000100), nullptr) << "its key has changed";
  EXPECT_EQ(Try(Write(0x8000142, 1000, 500)), Status::kSuccess);
  EXPECT_EQ(b.memory[1000], PatternAt(100, 0));
  EXPECT_EQ(Try(Write(0x8000142, 1001, 500)), Status::kRemoteAccess);
  EXPECT_EQ(Try(Write(0x8000142, 999, 1)), Status::kRemoteAccess);
  EXPECT_EQ(Try(Write(b.key, 1000, 8)), Status::kRemoteAccess)
      << "the region itself allows no remote access";
  // rxe_resp.c: check_rkey has the range checked against the region alone.
  b.qp.test_wording.windows_bound_range = false;
  EXPECT_EQ(Try(Write(0x8000142, 1001, 500)), Status::kSuccess);
  EXPECT_EQ(Try(Write(0x8000142, kSize - 4, 8)), Status::kRemoteAccess);
}

TEST_F(Window, OfTypeTwoServesTheQueuePairThatBoundIt) {
  ASSERT_TRUE(BindWindow(b.qp, Good()));
  FindKey(1, 0x8000142)->qpn = 4711;
  EXPECT_EQ(Try(Write(0x8000142, 1000, 8)), Status::kRemoteAccess);
  ASSERT_TRUE(BindWindow(b.qp, Good(0x8000200)));
  EXPECT_EQ(Try(Write(0x8000242, 1000, 8)), Status::kSuccess) << "type 1 serves all of its PD";
}

TEST_F(Window, ZeroBasedCountsFromZero) {
  Bind bind = Good();
  bind.access |= kAccessZeroBased;
  ASSERT_TRUE(BindWindow(b.qp, bind));
  SendRequest request = Write(0x8000142, 0, 8);
  request.remote_address = 10;
  EXPECT_EQ(Try(request), Status::kSuccess);
  EXPECT_EQ(b.memory[1010], PatternAt(100, 0));
}

TEST_F(Window, BindingIsRefused) {
  struct {
    const char* why;
    void (*spoil)(Window&, Bind&);
  } const cases[] = {
      {"no such window", [](Window&, Bind& bind) { bind.window = 1; }},
      {"a region is no window", [](Window& t, Bind& bind) { bind.window = t.b.key; }},
      {"no such region", [](Window&, Bind& bind) { bind.region = 1; }},
      {"type 2 to nothing", [](Window&, Bind& bind) { bind.length = 0; }},
      {"type 1 zero based",
       [](Window&, Bind& bind) {
         bind.window = 0x8000200;
         bind.access |= kAccessZeroBased;
       }},
      {"PD of the window", [](Window&, Bind& bind) { FindKey(1, bind.window)->pd = 8; }},
      {"PD of the region", [](Window& t, Bind&) { FindKey(1, t.b.key)->pd = 8; }},
      {"region zero based",
       [](Window& t, Bind&) { FindKey(1, t.b.key)->access |= kAccessZeroBased; }},
      {"region without MW_BIND",
       [](Window& t, Bind&) { FindKey(1, t.b.key)->access &= ~kAccessMwBind; }},
      {"region not writable",
       [](Window& t, Bind&) { FindKey(1, t.b.key)->access &= ~kAccessLocalWrite; }},
      {"before the region", [](Window&, Bind& bind) { bind.address -= 1001; }},
      {"past the region", [](Window&, Bind& bind) { bind.length = kSize - 999; }},
      {"past the region, wrapping", [](Window&, Bind& bind) { bind.length = ~0ULL; }},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.why);
    ForgetAll();
    SetUp();
    Bind bind = Good();
    one.spoil(*this, bind);
    EXPECT_FALSE(BindWindow(b.qp, bind));
  }
}

TEST_F(Window, TheDriverMayNotLookAtThePd) {
  // rxe_mw.c:rxe_check_bind_mw of 7.2 holds only windows of type 2 against the queue pair's PD.
  b.qp.test_wording.windows_check_pd = false;
  FindKey(1, 0x8000200)->pd = 8;
  FindKey(1, b.key)->pd = 8;
  EXPECT_TRUE(BindWindow(b.qp, Good(0x8000200)));
  FindKey(1, 0x8000100)->pd = 8;
  EXPECT_FALSE(BindWindow(b.qp, Good()));
}

TEST_F(Window, BoundTwiceOnlyAfterInvalidation) {
  ASSERT_TRUE(BindWindow(b.qp, Good()));
  EXPECT_EQ(FindKey(1, b.key)->windows, 1u);
  Bind again = Good(0x8000142);
  EXPECT_FALSE(BindWindow(b.qp, again));
  EXPECT_TRUE(Invalidate(b.qp, 0x8000142));
  EXPECT_EQ(FindKey(1, b.key)->windows, 0u);
  EXPECT_EQ(Try(Write(0x8000142, 1000, 8)), Status::kRemoteAccess);
  EXPECT_TRUE(BindWindow(b.qp, again));
  // Type 1 may be bound again as it stands, and unbound by length 0.
  ASSERT_TRUE(BindWindow(b.qp, Good(0x8000200)));
  ASSERT_TRUE(BindWindow(b.qp, Good(0x8000242)));
  EXPECT_EQ(FindKey(1, b.key)->windows, 2u);
  Bind none = Good(0x8000242);
  none.length = 0;
  EXPECT_TRUE(BindWindow(b.qp, none));
  EXPECT_EQ(FindKey(1, b.key)->windows, 1u);
  EXPECT_EQ(Try(Write(0x8000242, 1000, 8)), Status::kRemoteAccess);
}

TEST_F(Window, SendInvalidateTakesItAway) {
  ASSERT_TRUE(BindWindow(b.qp, Good()));
  b.qp.Receive(1, {});
  SendRequest request = Request(Opcode::kSendInvalidate, {});
  request.invalidate_rkey = 0x8000142;
  EXPECT_EQ(Try(request), Status::kSuccess);
  const Completion& got = b.qp.completed.at(0).completion;
  EXPECT_TRUE(got.has_invalidate);
  EXPECT_EQ(got.immediate, 0x8000142u);
  EXPECT_EQ(Try(Write(0x8000142, 1000, 8)), Status::kRemoteAccess);
}

TEST_F(Window, SendInvalidateOfARegionIsClassJ) {
  b.qp.Receive(1, {});
  SendRequest request = Request(Opcode::kSendInvalidate, {});
  request.invalidate_rkey = b.key;
  EXPECT_EQ(Try(request), Status::kSuccess) << "acknowledged";
  EXPECT_EQ(b.qp.completed.at(0).completion.status, Status::kRemoteInvalidRequest);
  EXPECT_EQ(b.qp.state, EndpointState::kErr);
  EXPECT_EQ(b.qp.errors, 1);
}

TEST_F(Window, ADriverMayInvalidateRegions) {
  // rxe_req.c up to 5.12, rxe_mr.c:rxe_invalidate_mr of 5.14: the type is not looked at, but there
  // the region needs an rkey and may have no window.
  FindKey(1, b.key)->access |= kAccessRemoteWrite;
  EXPECT_EQ(Try(Write(b.key, 0, 8)), Status::kSuccess);
  EXPECT_FALSE(Invalidate(b.qp, b.key));
  b.qp.test_wording.regions_invalidate = Wording::Regions::kBoth;
  EXPECT_FALSE(Invalidate(b.qp, b.key + 1)) << "another key of the same index";
  ASSERT_TRUE(BindWindow(b.qp, Good()));
  EXPECT_FALSE(Invalidate(b.qp, b.key));
  ForgetWindow(1, 0x8000142);
  EXPECT_TRUE(Invalidate(b.qp, b.key));
  EXPECT_EQ(Try(Write(b.key, 0, 8)), Status::kRemoteAccess);
  FindKey(1, b.key)->invalidated = false;
  FindKey(1, b.key)->access &= kAccessLocalWrite;
  EXPECT_FALSE(Invalidate(b.qp, b.key)) << "no rkey";
  b.qp.test_wording.regions_invalidate = Wording::Regions::kLocal;
  EXPECT_TRUE(Invalidate(b.qp, b.key ^ 1));
  EXPECT_EQ(Try(Write(b.key, 0, 8)), Status::kRemoteAccess);
}

TEST_F(Window, ForgettingLetsTheRegionGo) {
  ASSERT_TRUE(BindWindow(b.qp, Good()));
  ForgetWindow(1, 0x8000142);
  EXPECT_EQ(FindKey(1, b.key)->windows, 0u);
  EXPECT_EQ(FindKey(1, 0x8000142), nullptr);
}

}  // namespace
}  // namespace vabi::fabric
