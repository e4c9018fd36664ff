// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CONFORMANCE_FRAMEWORK_FALLBACK_TABLE_H_
#define VABI_HARNESS_CONFORMANCE_FRAMEWORK_FALLBACK_TABLE_H_

#include <string_view>

#include "harness/conformance/framework/cell.h"

// Which ioctl methods libibverbs tries by execute_ioctl_fallback (libibverbs/cmd_write.h), the bit
// of the context's bitmap (a member of struct verbs_context_ops) that remembers a refusal, and the
// command that is written instead. Read in the files named, in 33.2, 44.0, 56.1 and 65.0: the same
// in all but the last row.

namespace vabi::conformance {

enum class Form {
  kNone,      // nothing is written: sysfs answers
  kLegacy,    // one command, legacy
  kExtended,  // one command, extended
  kEither,    // legacy, or extended where the arguments need it
  kShared,    // the command is also what other verbs write without any ioctl
};

struct FallbackRow {
  std::string_view method;  // as the trace names it
  std::string_view bit;
  std::string_view command;
  Form form;
  std::string_view file;  // below libibverbs/
  Release since;
};

inline constexpr FallbackRow kFallbacks[] = {
    {"DEVICE.GET_CONTEXT", "free_context", "GET_CONTEXT", Form::kLegacy, "cmd_device.c", {22, 0}},
    {"DEVICE.QUERY_PORT", "query_port", "QUERY_PORT", Form::kLegacy, "cmd_device.c", {22, 0}},
    {"DEVICE.QUERY_GID_ENTRY", "async_event", "", Form::kNone, "cmd_device.c", {32, 0}},
    {"DEVICE.QUERY_GID_TABLE", "async_event", "", Form::kNone, "cmd_device.c", {32, 0}},
    {"PD.DESTROY", "dealloc_pd", "DEALLOC_PD", Form::kLegacy, "cmd_pd.c", {22, 0}},
    {"MR.MR_DESTROY", "dereg_mr", "DEREG_MR", Form::kLegacy, "cmd_mr.c", {22, 0}},
    {"MW.DESTROY", "dealloc_mw", "DEALLOC_MW", Form::kLegacy, "cmd_mw.c", {22, 0}},
    {"CQ.CREATE", "create_cq", "CREATE_CQ", Form::kEither, "cmd_cq.c", {22, 0}},
    {"CQ.DESTROY", "destroy_cq", "DESTROY_CQ", Form::kLegacy, "cmd_cq.c", {22, 0}},
    {"QP.CREATE", "create_qp", "CREATE_QP", Form::kEither, "cmd_qp.c", {31, 0}},
    {"QP.DESTROY", "destroy_qp", "DESTROY_QP", Form::kLegacy, "cmd_qp.c", {31, 0}},
    {"SRQ.CREATE", "create_srq", "CREATE_SRQ", Form::kLegacy, "cmd_srq.c", {31, 0}},
    {"SRQ.DESTROY", "destroy_srq", "DESTROY_SRQ", Form::kLegacy, "cmd_srq.c", {31, 0}},
    {"WQ.CREATE", "create_wq", "CREATE_WQ", Form::kExtended, "cmd_wq.c", {31, 0}},
    {"WQ.DESTROY", "destroy_wq", "DESTROY_WQ", Form::kExtended, "cmd_wq.c", {31, 0}},
    {"XRCD.DESTROY", "close_xrcd", "CLOSE_XRCD", Form::kLegacy, "cmd_xrcd.c", {22, 0}},
    // Three that share one bit.
    {"AH.DESTROY", "destroy_ah", "DESTROY_AH", Form::kLegacy, "cmd_ah.c", {22, 0}},
    {"FLOW.DESTROY", "destroy_ah", "DESTROY_FLOW", Form::kExtended, "cmd_flow.c", {22, 0}},
    {"RWQ_IND_TBL.DESTROY",
     "destroy_ah",
     "DESTROY_RWQ_IND_TBL",
     Form::kExtended,
     "cmd_rwq_ind.c",
     {22, 0}},
    // ibv_reg_mr itself writes REG_MR at once.
    {"MR.REG_MR", "reg_mr_ex", "REG_MR", Form::kShared, "cmd_mr.c", {64, 0}},
};

// The row of a method in this release; null for methods that do not look at the bitmap.
const FallbackRow* FallbackOfMethod(std::string_view method, Release release);
// The row whose written form this command is, in its form; null where a command is written without
// a try.
const FallbackRow* FallbackOfCommand(std::string_view command, bool extended);

}  // namespace vabi::conformance

#endif  // VABI_HARNESS_CONFORMANCE_FRAMEWORK_FALLBACK_TABLE_H_
