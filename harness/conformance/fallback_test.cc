// SPDX-License-Identifier: BSD-2-Clause
//
// How libibverbs chooses between ioctl methods, INVOKE_WRITE and write(): libibverbs/cmd_fallback.c
// (_execute_ioctl_fallback, _check_legacy, _execute_cmd_write), device.c (has_ioctl_write), the
// same in 33.2, 44.0, 56.1 and 65.0. Which method has which bit of the context's bitmap:
// framework/fallback_table.h.

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <unistd.h>

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/conformance/framework/abi_test.h"
#include "harness/conformance/framework/bitmap.h"
#include "harness/conformance/framework/fallback_table.h"
#include "harness/conformance/framework/requests.h"
#include "harness/conformance/framework/verbs.h"

namespace vabi::conformance {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Objects of every kind that any device has, made and destroyed; only such as need no doorbell,
// when there is none.
void UseObjects(const Context& context, bool queue_pairs) {
  context.QueryDevice();
  context.QueryPort();
  ProtectionDomain pd = context.AllocPd();
  alignas(4096) static uint8_t bytes[4096];
  MemoryRegion mr = pd.RegMr(bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE);
  CompletionQueue cq;
  if (queue_pairs) cq = context.CreateCq(16);
  SharedReceiveQueue srq = pd.CreateSrq(16, 1);
  QueuePair qp;
  if (queue_pairs) qp = pd.CreateRc(cq.get());
}

// How a written command travels in this cell: behind INVOKE_WRITE where the probe found it.
Wanted Written(const std::string& name) {
  return cell().Serves("DEVICE.INVOKE_WRITE") ? Invoked(name) : Wrote(name);
}
Wanted WrittenExtended(const std::string& name) {
  return cell().Serves("DEVICE.INVOKE_WRITE") ? InvokedExtended(name) : WroteExtended(name);
}

}  // namespace

// cmd_fallback.c: ENOTTY means that the ioctl framework is entirely absent.
// Seen to fail with a libibverbs whose bitmap_fill was taken out: CQ.CREATE, … are tried as well.
// L3-02, L3-08, L3-14
ABI_TEST(Fallback, EnottyMarksTheWholeContext, Needs{.ioctl = Ioctl::kAbsent, .provider = "rxe"}) {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  CompletionQueue cq = context.CreateCq(16);

  EXPECT_THAT(trace().Ioctls(), ElementsAre(Failed("DEVICE.INVOKE_WRITE", ENOTTY),
                                            Failed("DEVICE.GET_CONTEXT", ENOTTY)));
  EXPECT_THAT(trace().Commands(),
              ElementsAre(Wrote("GET_CONTEXT"), Wrote("ALLOC_PD"), Wrote("CREATE_CQ")));
  EXPECT_THAT(trace().Unchecked(), IsEmpty());
}

ABI_TEST(Fallback, AfterEnottyEveryObjectIsWritten,
         Needs{.ioctl = Ioctl::kAbsent, .provider = "rxe"}) {
  {
    Context context = OpenOnlyDevice();
    trace().Forget();
    UseObjects(context, true);
  }
  EXPECT_THAT(trace().Ioctls(), IsEmpty());
  EXPECT_THAT(trace().Writes(),
              ElementsAre(Wrote("QUERY_DEVICE"), Wrote("QUERY_PORT"), Wrote("ALLOC_PD"),
                          Wrote("REG_MR"), Wrote("CREATE_CQ"), Wrote("CREATE_SRQ"),
                          Wrote("CREATE_QP"), Wrote("DESTROY_QP"), Wrote("DESTROY_SRQ"),
                          Wrote("DESTROY_CQ"), Wrote("DEREG_MR"), Wrote("DEALLOC_PD")));
  EXPECT_THAT(trace().Unchecked(), IsEmpty());
}

// Methods of a driver that have no written form do not look at the bitmap and may still be tried
// (mlx5: DEVX, UAR); whatever has one is not.
ABI_TEST(Fallback, AfterEnottyOnlyMethodsWithoutAWrittenFormAreTried,
         Needs{.ioctl = Ioctl::kAbsent, .provider = "mlx5"}) {
  {
    Context context = OpenOnlyDevice();
    UseObjects(context, false);
  }
  const std::vector<Command> ioctls = trace().Ioctls();
  ASSERT_GE(ioctls.size(), 2u);
  EXPECT_THAT(ioctls[0], Failed("DEVICE.INVOKE_WRITE", ENOTTY));
  EXPECT_THAT(ioctls[1], Failed("DEVICE.GET_CONTEXT", ENOTTY));
  for (size_t i = 2; i < ioctls.size(); ++i) {
    EXPECT_EQ(ioctls[i].result, -ENOTTY) << ioctls[i];
    EXPECT_NE(ioctls[i].name, "DEVICE.INVOKE_WRITE") << traces::Around(ioctls[i]);
    EXPECT_EQ(FallbackOfMethod(ioctls[i].name, cell().release), nullptr)
        << traces::Around(ioctls[i]);
  }
}

// The same, said of every context on every kernel: each ioctl and each written command is where the
// bitmap puts it. Objects are made twice, so that a method that was refused would be tried again if
// nothing remembered it.
ABI_TEST(Fallback, TheBitmapExplainsEveryCommandOfRxe, Needs{.provider = "rxe"}) {
  {
    Context context = OpenOnlyDevice();
    UseObjects(context, true);
    UseObjects(context, true);
  }
  EXPECT_THAT(Bitmap(cell().release).Follow(trace().All()), IsEmpty());
}

ABI_TEST(Fallback, TheBitmapExplainsEveryCommandOfMlx5,
         Needs{.provider = "mlx5", .queue_pairs = true}) {
  {
    Context context = OpenOnlyDevice();
    UseObjects(context, true);
    UseObjects(context, true);
  }
  EXPECT_THAT(Bitmap(cell().release).Follow(trace().All()), IsEmpty());
}

// EPROTONOSUPPORT: the framework is there, this method is not. It is tried once.
// L3-02, L3-06
ABI_TEST(Fallback, AMissingMethodIsTriedOnce,
         Needs{.ioctl = Ioctl::kPresent, .missing = {"CQ.CREATE"}, .queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  trace().Forget();
  CompletionQueue first = context.CreateCq(16);
  CompletionQueue second = context.CreateCq(16);
  EXPECT_THAT(trace().Of({"CQ.CREATE", "CREATE_CQ"}),
              ElementsAre(Failed("CQ.CREATE", EPROTONOSUPPORT), Written("CREATE_CQ"),
                          Written("CREATE_CQ")));
}

// It marks its own bit and no other.
ABI_TEST(Fallback, AMissingMethodLeavesTheOthersAlone,
         Needs{.ioctl = Ioctl::kPresent,
               .served = {"CQ.DESTROY", "PD.DESTROY"},
               .missing = {"CQ.CREATE"},
               .queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  {
    ProtectionDomain pd = context.AllocPd();
    CompletionQueue cq = context.CreateCq(16);
    trace().Forget();
  }
  EXPECT_THAT(trace().Commands(), ElementsAre(Called("CQ.DESTROY"), Called("PD.DESTROY")));
  EXPECT_THAT(trace().Unchecked(), IsEmpty());
}

// cmd_write.h: the bitmap belongs to the context, not to the process.
// L3-02
ABI_TEST(Fallback, EachContextFindsOutForItself,
         Needs{.ioctl = Ioctl::kPresent, .provider = "rxe", .missing = {"PD.DESTROY"}}) {
  for (int i = 0; i < 2; ++i) {
    Context context = OpenOnlyDevice();
    { ProtectionDomain pd = context.AllocPd(); }
    EXPECT_THAT(trace().Of({"PD.DESTROY", "DEALLOC_PD"}),
                ElementsAre(Failed("PD.DESTROY", EPROTONOSUPPORT), Written("DEALLOC_PD")));
    trace().Forget();
  }
}

// cmd_device.c: GET_CONTEXT goes by free_context's bit; the probe before it marks nothing.
// L3-11
ABI_TEST(Fallback, AMissingGetContextIsWritten,
         Needs{.ioctl = Ioctl::kPresent, .provider = "rxe", .missing = {"DEVICE.GET_CONTEXT"}}) {
  Context context = OpenOnlyDevice();
  EXPECT_THAT(trace().Of({"DEVICE.GET_CONTEXT", "GET_CONTEXT"}),
              ElementsAre(Failed("DEVICE.GET_CONTEXT", EPROTONOSUPPORT), Written("GET_CONTEXT")));
  // Its reply brought the async fd: the event file is no object of its own
  // (device.c:verbs_open_device).
  EXPECT_THAT(trace().Of("ASYNC_EVENT.ALLOC"), IsEmpty());
  EXPECT_GE(context->async_fd, 0);
}

ABI_TEST(Fallback, AContextThroughIoctlAsksForItsEventFile,
         Needs{.served = {"DEVICE.GET_CONTEXT", "ASYNC_EVENT.ALLOC"}}) {
  Context context = OpenOnlyDevice();
  EXPECT_THAT(trace().Of({"DEVICE.GET_CONTEXT", "GET_CONTEXT", "ASYNC_EVENT.ALLOC"}),
              ElementsAre(Called("DEVICE.GET_CONTEXT"), Called("ASYNC_EVENT.ALLOC")));
  EXPECT_GE(context->async_fd, 0);
}

// cmd_device.c: both GID methods go by async_event's bit; what one found out holds for the other.
ABI_TEST(Fallback, TheGidMethodsShareOneBit,
         Needs{.ioctl = Ioctl::kPresent, .missing = {"DEVICE.QUERY_GID_ENTRY"}}) {
  Context context = OpenOnlyDevice();
  trace().Forget();
  ibv_gid gid = {};
  EXPECT_THAT(FromVerb(ibv_query_gid(context.get(), 1, 0, &gid)), Succeeds());
  ibv_gid_entry entries[16] = {};
  EXPECT_GE(ibv_query_gid_table(context.get(), entries, 16, 0), 1);
  EXPECT_THAT(trace().Of({"DEVICE.QUERY_GID_ENTRY", "DEVICE.QUERY_GID_TABLE"}),
              ElementsAre(Failed("DEVICE.QUERY_GID_ENTRY", EPROTONOSUPPORT)));
  EXPECT_EQ(std::memcmp(&gid, &entries[0].gid, sizeof gid), 0);
}

ABI_TEST(Fallback, TheGidTableFindsOutForTheEntryToo,
         Needs{.ioctl = Ioctl::kPresent, .missing = {"DEVICE.QUERY_GID_TABLE"}}) {
  Context context = OpenOnlyDevice();
  trace().Forget();
  ibv_gid_entry entries[16] = {};
  EXPECT_GE(ibv_query_gid_table(context.get(), entries, 16, 0), 1);
  ibv_gid gid = {};
  EXPECT_THAT(FromVerb(ibv_query_gid(context.get(), 1, 0, &gid)), Succeeds());
  EXPECT_THAT(trace().Of({"DEVICE.QUERY_GID_ENTRY", "DEVICE.QUERY_GID_TABLE"}),
              ElementsAre(Failed("DEVICE.QUERY_GID_TABLE", EPROTONOSUPPORT)));
}

// cmd_ah.c, cmd_flow.c, cmd_rwq_ind.c: three methods, one bit. After an address handle's was
// refused, the indirection table's is not tried, although the kernel has it.
ABI_TEST(Fallback, AnAddressHandlesRefusalHoldsForIndirectionTables,
         Needs{.provider = "mlx5",
               .link = "roce",
               .served = {"RWQ_IND_TBL.DESTROY", "EX_DESTROY_RWQ_IND_TBL"},
               .missing = {"AH.DESTROY"},
               .ops = {"create_user_ah", "create_rwq_ind_table"},
               .queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  CompletionQueue cq = context.CreateCq(16);
  ibv_wq_init_attr wq_attr = {};
  wq_attr.wq_type = IBV_WQT_RQ;
  wq_attr.max_wr = 4;
  wq_attr.max_sge = 1;
  wq_attr.pd = pd.get();
  wq_attr.cq = cq.get();
  WorkQueue wq(ibv_create_wq(context.get(), &wq_attr));
  ASSERT_TRUE(wq) << ErrorName(errno);
  ibv_wq* wqs[] = {wq.get()};
  ibv_rwq_ind_table_init_attr table_attr = {};
  table_attr.ind_tbl = wqs;
  IndirectionTable table(ibv_create_rwq_ind_table(context.get(), &table_attr));
  ASSERT_TRUE(table) << ErrorName(errno);
  ibv_ah_attr ah_attr = {};
  ah_attr.port_num = 1;
  ah_attr.is_global = 1;
  Must("ibv_query_gid", FromVerb(ibv_query_gid(context.get(), 1, 0, &ah_attr.grh.dgid)));
  AddressHandle ah(ibv_create_ah(pd.get(), &ah_attr));
  ASSERT_TRUE(ah) << ErrorName(errno);
  trace().Forget();

  EXPECT_THAT(ah.TryDestroy(), Succeeds());
  EXPECT_THAT(table.TryDestroy(), Succeeds());
  EXPECT_THAT(
      trace().Of({"AH.DESTROY", "RWQ_IND_TBL.DESTROY", "DESTROY_AH", "DESTROY_RWQ_IND_TBL"}),
      ElementsAre(Failed("AH.DESTROY", EPROTONOSUPPORT), Written("DESTROY_AH"),
                  WrittenExtended("DESTROY_RWQ_IND_TBL")));
}

// The bit of address handles in its plainest case.
ABI_TEST(Fallback, AMissingDestroyOfAddressHandlesIsTriedOnce,
         Needs{.ioctl = Ioctl::kPresent,
               .provider = "rxe",
               .missing = {"AH.DESTROY"},
               .ops = {"create_user_ah"},
               // rxe.c of 44.0 and later wants the handle's number (5.15); without it it gives up
               // and leaves the kernel's object behind.
               .structs = {{"rxe_create_ah_resp", 1, 64}}}) {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  ibv_ah_attr attr = {};
  attr.port_num = 1;
  attr.is_global = 1;
  Must("ibv_query_gid", FromVerb(ibv_query_gid(context.get(), 1, 0, &attr.grh.dgid)));
  trace().Forget();
  for (int i = 0; i < 2; ++i) {
    AddressHandle ah(ibv_create_ah(pd.get(), &attr));
    ASSERT_TRUE(ah) << ErrorName(errno);
  }
  EXPECT_THAT(trace().Of({"CREATE_AH", "AH.DESTROY", "DESTROY_AH"}),
              ElementsAre(Written("CREATE_AH"), Failed("AH.DESTROY", EPROTONOSUPPORT),
                          Written("DESTROY_AH"), Written("CREATE_AH"), Written("DESTROY_AH")));
}

// Any other errno is the answer: nothing is written instead, and the method is tried again the next
// time.
ABI_TEST(Fallback, OtherErrnosAreFinal,
         Needs{.served = {"CQ.CREATE"},
               .overlays = {"errno@CQ.CREATE=@(EINVAL|ENOSYS|EOPNOTSUPP|EPERM|ENOMEM|ENOSPC)"},
               .queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  trace().Forget();
  for (int i = 0; i < 2; ++i) {
    errno = 0;
    CompletionQueue cq(ibv_create_cq(context.get(), 16, nullptr, nullptr, 0));
    ASSERT_FALSE(cq);
    EXPECT_EQ(ErrorName(errno), *cell().OverlayValue("errno@CQ.CREATE"));
  }
  const std::vector<Command> asked = trace().Of({"CQ.CREATE", "CREATE_CQ"});
  ASSERT_THAT(asked, SizeIs(2));
  for (const Command& command : asked) {
    EXPECT_EQ(command.name, "CQ.CREATE");
    EXPECT_EQ(command.error, *cell().OverlayValue("errno@CQ.CREATE"));
  }
}

// The same errno from the context: the open fails, and nothing is written.
// L2-13 (ENOSPC is one of the overlays)
ABI_TEST(Fallback, OtherErrnosOfGetContextEndTheOpen,
         Needs{.provider = "rxe",
               .served = {"DEVICE.GET_CONTEXT"},
               .overlays = {"errno@DEVICE.GET_CONTEXT=*"},
               .not_overlays = {"*=@(ENOTTY|EPROTONOSUPPORT)"}}) {
  Error error;
  Context context = TryOpen(cell().device().name, &error);
  EXPECT_FALSE(context);
  EXPECT_EQ(ErrorName(error.value), *cell().OverlayValue("errno@DEVICE.GET_CONTEXT"));
  EXPECT_THAT(trace().Of({"DEVICE.GET_CONTEXT", "GET_CONTEXT"}),
              ElementsAre(Failed("DEVICE.GET_CONTEXT", error.value)));
}

// ENOTTY may come late (a file that another program has made useless): from then on all is written.
ABI_TEST(Fallback, ALateEnottyMarksTheWholeContextToo,
         Needs{.served = {"CQ.CREATE", "CQ.DESTROY", "PD.DESTROY"},
               .overlays = {"errno@CQ.CREATE=ENOTTY"},
               .queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  trace().Forget();
  {
    ProtectionDomain pd = context.AllocPd();
    CompletionQueue cq = context.CreateCq(16);
  }
  EXPECT_THAT(trace().Ioctls(), ::testing::Contains(Failed("CQ.CREATE", ENOTTY)));
  EXPECT_THAT(trace().Of({"CQ.DESTROY", "PD.DESTROY"}), IsEmpty());
  EXPECT_THAT(trace().Commands(), ElementsAre(Written("ALLOC_PD"), Written("CREATE_CQ"),
                                              Written("DESTROY_CQ"), Written("DEALLOC_PD")));
}

// device.c:has_ioctl_write: a probe that is too short on purpose. A real kernel says ENOSPC
// (core/uverbs_std_types_device.c, 5.0 on), and written commands travel behind INVOKE_WRITE.
// L3-14
ABI_TEST(Fallback, TheProbeFindsInvokeWrite, Needs{.invoke_write = InvokeWrite::kServed}) {
  Context context = OpenOnlyDevice();
  const std::vector<Command> ioctls = trace().Ioctls();
  ASSERT_GE(ioctls.size(), 1u);
  EXPECT_THAT(ioctls[0], Failed("DEVICE.INVOKE_WRITE", ENOSPC));
  EXPECT_EQ(ioctls[0].inner, "QUERY_DEVICE");
  ASSERT_EQ(ioctls[0].attributes.size(), 1u);
  trace().Forget();
  ProtectionDomain pd = context.AllocPd();
  EXPECT_THAT(trace().Commands(), ElementsAre(Invoked("ALLOC_PD")));
  EXPECT_THAT(trace().Writes(), IsEmpty());
}

// L3-14
ABI_TEST(Fallback, WithoutInvokeWriteCommandsAreWritten,
         Needs{.invoke_write = InvokeWrite::kMissing}) {
  Context context = OpenOnlyDevice();
  const std::vector<Command> ioctls = trace().Ioctls();
  ASSERT_GE(ioctls.size(), 1u);
  EXPECT_THAT(ioctls[0], Failed("DEVICE.INVOKE_WRITE", EPROTONOSUPPORT));
  trace().Forget();
  ProtectionDomain pd = context.AllocPd();
  EXPECT_THAT(trace().Commands(), ElementsAre(Wrote("ALLOC_PD")));
  EXPECT_THAT(trace().Of("DEVICE.INVOKE_WRITE"), IsEmpty());
}

// Any errno but ENOTTY and EPROTONOSUPPORT is taken for "it is there".
ABI_TEST(Fallback, AnyOtherErrnoOfTheProbeMeansThatInvokeWriteIsThere,
         Needs{.invoke_write = InvokeWrite::kServed,
               .overlays = {"errno-once@DEVICE.INVOKE_WRITE=*"},
               .not_overlays = {"*=@(ENOTTY|EPROTONOSUPPORT)"}}) {
  Context context = OpenOnlyDevice();
  EXPECT_EQ(trace().Ioctls()[0].error, *cell().OverlayValue("errno-once@DEVICE.INVOKE_WRITE"));
  trace().Forget();
  ProtectionDomain pd = context.AllocPd();
  EXPECT_THAT(trace().Commands(), ElementsAre(Invoked("ALLOC_PD")));
}

// The probe marks nothing: methods are still called, only what is written is written.
ABI_TEST(Fallback, TheProbeMarksNothing,
         Needs{.invoke_write = InvokeWrite::kServed,
               .served = {"DEVICE.GET_CONTEXT", "CQ.CREATE"},
               .overlays = {"errno-once@DEVICE.INVOKE_WRITE=@(ENOTTY|EPROTONOSUPPORT)"},
               .queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  EXPECT_THAT(trace().Of({"DEVICE.GET_CONTEXT", "GET_CONTEXT"}),
              ElementsAre(Called("DEVICE.GET_CONTEXT")));
  trace().Forget();
  ProtectionDomain pd = context.AllocPd();
  CompletionQueue cq = context.CreateCq(16);
  EXPECT_THAT(trace().Commands(), ElementsAre(Wrote("ALLOC_PD"), Called("CQ.CREATE")));
}

// cmd_fallback.c:_check_legacy: a mandatory attribute that no written command has room for is
// EOPNOTSUPP. cmd_cq.c marks contexts that were imported: their event file can only be named by an
// attribute.
ABI_TEST(Fallback, WhatHasNoWrittenFormIsNotSupported,
         Needs{.provider = "mlx5",
               .served = {"DEVICE.QUERY_CONTEXT", "DEVICE.GET_CONTEXT"},
               .missing = {"CQ.CREATE"},
               .queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  errno = 0;
  Context imported(ibv_import_device(dup(context->cmd_fd)));
  ASSERT_TRUE(imported) << ErrorName(errno);
  trace().Forget();
  errno = 0;
  CompletionQueue cq(ibv_create_cq(imported.get(), 16, nullptr, nullptr, 0));
  EXPECT_FALSE(cq);
  EXPECT_EQ(ErrorName(errno), "EOPNOTSUPP");
  EXPECT_THAT(trace().Of({"CQ.CREATE", "CREATE_CQ"}),
              ElementsAre(Failed("CQ.CREATE", EPROTONOSUPPORT)));
}

// Two errnos for what is not there: EOPNOTSUPP is the library's or the provider's word,
// EPROTONOSUPPORT the kernel's, and libibverbs passes it on where nothing can stand in for the
// method (providers/mlx5/verbs.c:mlx5_alloc_dm). L3-05.
ABI_TEST(Fallback, WhatTheProviderLacksIsNotSupported, Needs{.provider = "rxe"}) {
  Context context = OpenOnlyDevice();
  trace().Forget();
  ibv_alloc_dm_attr attr = {};
  attr.length = 64;
  errno = 0;
  EXPECT_EQ(ibv_alloc_dm(context.get(), &attr), nullptr);
  EXPECT_EQ(ErrorName(errno), "EOPNOTSUPP");
  EXPECT_THAT(trace().All(), ::testing::IsEmpty());
}

// L3-05
ABI_TEST(Fallback, WhatTheKernelLacksIsNoProtocol,
         Needs{.provider = "mlx5", .overlays = {"missing-method=DM.ALLOC"}}) {
  Context context = OpenOnlyDevice();
  trace().Forget();
  ibv_alloc_dm_attr attr = {};
  attr.length = 64;
  errno = 0;
  EXPECT_EQ(ibv_alloc_dm(context.get(), &attr), nullptr);
  EXPECT_EQ(ErrorName(errno), "EPROTONOSUPPORT");
  EXPECT_THAT(trace().Refused(), ElementsAre(Failed("DM.ALLOC", EPROTONOSUPPORT)));
}

// cmd_device.c: flags that sysfs cannot answer are EOPNOTSUPP.
ABI_TEST(Fallback, AGidQueryWithFlagsNeedsTheMethod, Needs{.missing = {"DEVICE.QUERY_GID_ENTRY"}}) {
  Context context = OpenOnlyDevice();
  ibv_gid_entry entry = {};
  EXPECT_THAT(FromVerb(ibv_query_gid_ex(context.get(), 1, 0, &entry, 1)), FailsWith(EOPNOTSUPP));
}

// cmd_cq.c: flags that the legacy command has no room for ask for the extended one.
// L3-06
ABI_TEST(Fallback, CreationFlagsAskForTheExtendedCommand,
         Needs{.provider = "mlx5",
               .served = {"EX_CREATE_CQ"},
               .missing = {"CQ.CREATE"},
               .ops = {"create_cq_ex"},
               .queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  trace().Forget();
  ibv_cq_init_attr_ex attr = {};
  attr.cqe = 16;
  attr.wc_flags = IBV_WC_STANDARD_FLAGS;
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  errno = 0;
  RequestWatch watch;
  ibv_cq_ex* cq = ibv_create_cq_ex(context.get(), &attr);
  ASSERT_NE(cq, nullptr) << ErrorName(errno);
  EXPECT_THAT(trace().Commands(), ::testing::Contains(WrittenExtended("CREATE_CQ")));
  const std::vector<Request> sent = watch.Of(IB_USER_VERBS_CMD_CREATE_CQ);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].extended);
  EXPECT_EQ(sent[0].U32(offsetof(ib_uverbs_ex_create_cq, flags)),
            uint32_t{IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN});
  EXPECT_THAT(FromVerb(ibv_destroy_cq(ibv_cq_ex_to_cq(cq))), Succeeds());
}

// providers/mlx5: a kernel that knows MLX5_LIB_CAP_DYN_UAR (5.7) hands out no UARs, and without the
// method there are none: hw/mlx5/cq.c:create_cq_user wants the number of one.
ABI_TEST(Fallback, WithoutUarsNoCompletionQueueCanBeMade,
         Needs{
             .provider = "mlx5", .missing = {"UAR.OBJ_ALLOC"}, .knobs = {{"mlx5.dyn_uar", 1, 1}}}) {
  Context context = OpenOnlyDevice();
  trace().Forget();
  errno = 0;
  CompletionQueue cq(ibv_create_cq(context.get(), 16, nullptr, nullptr, 0));
  EXPECT_FALSE(cq);
  EXPECT_EQ(ErrorName(errno), "EINVAL");
  EXPECT_THAT(trace().Refused(), ElementsAre(Failed("CREATE_CQ", EINVAL)));
}

}  // namespace vabi::conformance
