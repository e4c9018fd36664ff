// SPDX-License-Identifier: BSD-2-Clause
// bnxt_re's ioctl methods: hw/bnxt_re/uapi.c (up to 6.18 ib_verbs.c) of the kernels named. The card
// has no doorbell push, no pacing and no toggle pages.
#include "shims/providers/bnxt_re/test_bnxt_re.h"

namespace vabi::bnxt_re {
namespace {

class Methods : public TestBnxtRe {
 public:
  explicit Methods(const char* kernel) : TestBnxtRe(kernel) {}

  uint16_t Id(ConstId id) const { return static_cast<uint16_t>(world().Flag(id)); }
  Request New(ConstId object, ConstId method) {
    return {Id(object), Id(method), world().image().device[0].driver_id};
  }
  long Send(Request& request) { return SendIoctl(file(), request); }

  long Notify() {
    Request call = New(constant::BNXT_RE_OBJECT_NOTIFY_DRV, constant::BNXT_RE_METHOD_NOTIFY_DRV);
    return Send(call);
  }
  long Page(uint64_t type) {
    Request call = New(constant::BNXT_RE_OBJECT_ALLOC_PAGE, constant::BNXT_RE_METHOD_ALLOC_PAGE);
    Bytes offset(8), length(4), dpi(4);
    call.AddHandle(Id(constant::BNXT_RE_ALLOC_PAGE_HANDLE));
    call.AddConst(Id(constant::BNXT_RE_ALLOC_PAGE_TYPE), type);
    call.AddOut(Id(constant::BNXT_RE_ALLOC_PAGE_MMAP_OFFSET), offset);
    call.AddOut(Id(constant::BNXT_RE_ALLOC_PAGE_MMAP_LENGTH), length);
    call.AddOut(Id(constant::BNXT_RE_ALLOC_PAGE_DPI), dpi);
    return Send(call);
  }
  // `type` -1: neither type nor number; `cq`: by its handle.
  long Toggle(int type, const uint32_t* cq = nullptr) {
    Request call =
        New(constant::BNXT_RE_OBJECT_GET_TOGGLE_MEM, constant::BNXT_RE_METHOD_GET_TOGGLE_MEM);
    Bytes page(8), offset(4), length(4);
    call.AddHandle(Id(constant::BNXT_RE_TOGGLE_MEM_HANDLE));
    if (type >= 0) {
      call.AddConst(Id(constant::BNXT_RE_TOGGLE_MEM_TYPE), static_cast<uint64_t>(type));
      call.Add(Id(constant::BNXT_RE_TOGGLE_MEM_RES_ID), 4, 1);
    }
    if (cq != nullptr) call.AddHandle(Id(constant::BNXT_RE_TOGGLE_MEM_CQ_HANDLE), *cq);
    call.AddOut(Id(constant::BNXT_RE_TOGGLE_MEM_MMAP_PAGE), page);
    call.AddOut(Id(constant::BNXT_RE_TOGGLE_MEM_MMAP_OFFSET), offset);
    call.AddOut(Id(constant::BNXT_RE_TOGGLE_MEM_MMAP_LENGTH), length);
    return Send(call);
  }
  struct Region {
    uint32_t handle = 0, dpi = 0;
    uint64_t offset = 0;
  };
  long MakeRegion(Region* region) {
    Request call = New(constant::BNXT_RE_OBJECT_DBR, constant::BNXT_RE_METHOD_DBR_ALLOC);
    Bytes told(16), offset(8);
    call.AddHandle(Id(constant::BNXT_RE_ALLOC_DBR_HANDLE));
    call.AddOut(Id(constant::BNXT_RE_ALLOC_DBR_ATTR), told);
    call.AddOut(Id(constant::BNXT_RE_ALLOC_DBR_OFFSET), offset);
    const long result = Send(call);
    region->handle = static_cast<uint32_t>(call.Find(Id(constant::BNXT_RE_ALLOC_DBR_HANDLE))->data);
    region->dpi = In(told).U32(VABI_PF(bnxt_re_db_region, dpi));
    std::memcpy(&region->offset, offset.data(), sizeof(region->offset));
    return result;
  }
  long FreeRegion(uint32_t handle) {
    Request call = New(constant::BNXT_RE_OBJECT_DBR, constant::BNXT_RE_METHOD_DBR_FREE);
    call.AddHandle(Id(constant::BNXT_RE_FREE_DBR_HANDLE), handle);
    return Send(call);
  }
  long DefaultRegion(uint32_t* dpi) {
    Request call =
        New(constant::BNXT_RE_OBJECT_DEFAULT_DBR, constant::BNXT_RE_METHOD_GET_DEFAULT_DBR);
    Bytes told(16);
    call.AddOut(Id(constant::BNXT_RE_DEFAULT_DBR_ATTR), told);
    const long result = Send(call);
    *dpi = In(told).U32(VABI_PF(bnxt_re_db_region, dpi));
    return result;
  }
  // QP.CREATE that rings at a region of its own.
  long QpAt(uint32_t region, uint32_t* handle) {
    const uint32_t cq = MakeCq().handle;
    Request call = New(VABI_C(UVERBS_OBJECT_QP), VABI_C(UVERBS_METHOD_QP_CREATE));
    Bytes number(4), caps(world().Size(VABI_S(ib_uverbs_qp_cap))), told(32);
    const Bytes request = Qp();
    const Body wanted = In(caps);
    for (const FieldId field :
         {VABI_F(ib_uverbs_qp_cap, max_send_wr), VABI_F(ib_uverbs_qp_cap, max_recv_wr),
          VABI_F(ib_uverbs_qp_cap, max_send_sge), VABI_F(ib_uverbs_qp_cap, max_recv_sge)}) {
      wanted.Set(field, 1);
    }
    call.AddHandle(Id(VABI_C(UVERBS_ATTR_CREATE_QP_HANDLE)));
    call.AddHandle(Id(VABI_C(UVERBS_ATTR_CREATE_QP_PD_HANDLE)), pd);
    call.AddHandle(Id(VABI_C(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE)), cq);
    call.AddHandle(Id(VABI_C(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE)), cq);
    call.Add(Id(VABI_C(UVERBS_ATTR_CREATE_QP_USER_HANDLE)), 8, 0x90);
    call.AddIn(Id(VABI_C(UVERBS_ATTR_CREATE_QP_CAP)), caps);
    call.AddConst(Id(VABI_C(UVERBS_ATTR_CREATE_QP_TYPE)), kRc);
    call.AddOut(Id(VABI_C(UVERBS_ATTR_CREATE_QP_RESP_CAP)), caps);
    call.AddOut(Id(VABI_C(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM)), number);
    call.AddIn(Id(VABI_C(UVERBS_ATTR_UHW_IN)), request);
    call.AddOut(Id(VABI_C(UVERBS_ATTR_UHW_OUT)), told);
    call.AddHandle(Id(constant::BNXT_RE_CREATE_QP_ATTR_DBR_HANDLE), region);
    const long result = Send(call);
    *handle = static_cast<uint32_t>(call.Find(Id(VABI_C(UVERBS_ATTR_CREATE_QP_HANDLE)))->data);
    return result;
  }
};

TEST(BnxtReMethods, NotifyingACardThatDoesNotPaceDoesNothing) {
  for (const char* kernel : {"linux-6.6", "debian-7.3.4"}) {
    Methods hca(kernel);
    EXPECT_EQ(-EINVAL, hca.Notify()) << "no context yet";
    EXPECT_EQ("bnxt_re.no_context", hca.LastRule());
    hca.Start();
    EXPECT_EQ(0, hca.Notify()) << kernel << hca.LastRule();
  }
}

TEST(BnxtReMethods, PagesThatTheCardHasNot) {
  Methods hca("debian-7.2.13");
  hca.Start();
  EXPECT_EQ(-EINVAL, hca.Page(0));
  EXPECT_EQ("bnxt_re.page.push", hca.LastRule());
  EXPECT_EQ(-EOPNOTSUPP, hca.Page(1));
  EXPECT_EQ("bnxt_re.page.pacing", hca.LastRule());
  EXPECT_EQ(-EOPNOTSUPP, hca.Page(3));
  EXPECT_EQ("bnxt_re.page.type", hca.LastRule());
}

// Up to 6.18 nobody asked whether the card paces: the page that is given out there is not.
TEST(BnxtReMethods, PagesOfPacingUpTo618) {
  Methods hca("debian-6.12.117");
  hca.Start();
  EXPECT_EQ(-EINVAL, hca.Page(0));
  EXPECT_LT(hca.Page(2), 0);
  EXPECT_NE("", hca.LastUnmodelled());
  EXPECT_EQ(-EOPNOTSUPP, hca.Page(3));
}

TEST(BnxtReMethods, QueuesHaveNoToggleMemory) {
  for (const auto& [kernel, none, missing] : {std::tuple{"debian-6.12.117", EINVAL, EINVAL},
                                              {"debian-7.2.13", EINVAL, EINVAL},
                                              {"debian-7.3.4", EOPNOTSUPP, ENOENT}}) {
    Methods hca(kernel);
    hca.Start();
    EXPECT_EQ(-none, hca.Toggle(0)) << kernel;
    EXPECT_EQ(-none, hca.Toggle(1)) << kernel;
    EXPECT_EQ(-EOPNOTSUPP, hca.Toggle(2)) << kernel;
    EXPECT_EQ("bnxt_re.toggle.type", hca.LastRule());
    EXPECT_EQ(-missing, hca.Toggle(-1)) << kernel;
  }
  Methods hca("debian-7.3.4");
  hca.Start();
  const uint32_t cq = hca.MakeCq().handle;
  EXPECT_EQ(-EOPNOTSUPP, hca.Toggle(-1, &cq));
  EXPECT_EQ("bnxt_re.toggle.none", hca.LastRule());
}

TEST(BnxtReMethods, RegionsOfDoorbellsSince72) {
  for (const char* kernel : {"debian-7.2.13", "debian-7.3.4"}) {
    Methods hca(kernel);
    ASSERT_GT(hca.Open(Bytes(8), TestBnxtRe::kContextRoom), 0) << hca.LastRule();
    uint32_t dpi = 7;
    EXPECT_EQ(0, hca.DefaultRegion(&dpi)) << hca.LastRule();
    EXPECT_EQ(0u, dpi) << "bnxt_re_alloc_pd takes it";
    ASSERT_GT(hca.AllocPd(&hca.pd, {}, 16), 0);
    const uint64_t of_domain = hca.Told(VABI_PF(bnxt_re_pd_resp, dpi));
    EXPECT_EQ(0, hca.DefaultRegion(&dpi));
    EXPECT_EQ(of_domain, dpi);
    Methods::Region first, second;
    ASSERT_EQ(0, hca.MakeRegion(&first)) << kernel << hca.LastRule();
    ASSERT_EQ(0, hca.MakeRegion(&second)) << hca.LastRule();
    EXPECT_NE(dpi, first.dpi);
    EXPECT_NE(first.dpi, second.dpi);
    EXPECT_EQ(1, hca.Map(first.offset, 4096)) << hca.LastRule();
    uint32_t qp = 0;
    ASSERT_EQ(0, hca.QpAt(first.handle, &qp)) << hca.LastRule();
    EXPECT_EQ(-EBUSY, hca.FreeRegion(first.handle));
    EXPECT_EQ("bnxt_re.region.busy", hca.LastRule());
    ASSERT_GT(hca.DestroyQp(qp), 0) << hca.LastRule();
    EXPECT_EQ(0, hca.FreeRegion(first.handle)) << hca.LastRule();
    EXPECT_EQ(-EINVAL, hca.Map(first.offset, 4096));
    EXPECT_EQ(1, hca.Map(second.offset, 4096)) << hca.LastRule();
  }
}

}  // namespace
}  // namespace vabi::bnxt_re
