// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>

#include <cerrno>
#include <cstdint>

#include "../journey/step.h"
#include "asks.h"

namespace asks {
namespace {

using journey::Ask;
using journey::Must;

constexpr uint32_t kDepth = journey::kDepth;

struct Flag {
  const char* step;
  uint64_t flag;
};

constexpr Flag kCompletion[] = {
    {"cq_ex:byte_len", IBV_WC_EX_WITH_BYTE_LEN},
    {"cq_ex:imm", IBV_WC_EX_WITH_IMM},
    {"cq_ex:qp_num", IBV_WC_EX_WITH_QP_NUM},
    {"cq_ex:src_qp", IBV_WC_EX_WITH_SRC_QP},
    {"cq_ex:slid", IBV_WC_EX_WITH_SLID},
    {"cq_ex:sl", IBV_WC_EX_WITH_SL},
    {"cq_ex:dlid_path_bits", IBV_WC_EX_WITH_DLID_PATH_BITS},
    {"cq_ex:timestamp", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP},
    {"cq_ex:cvlan", IBV_WC_EX_WITH_CVLAN},
    {"cq_ex:flow_tag", IBV_WC_EX_WITH_FLOW_TAG},
    {"cq_ex:tm_info", IBV_WC_EX_WITH_TM_INFO},
    {"cq_ex:wallclock", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK},
};
constexpr Flag kCreation[] = {
    {"cq_ex:single_threaded", IBV_CREATE_CQ_ATTR_SINGLE_THREADED},
    {"cq_ex:ignore_overrun", IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN},
};

void Finish(const char* step, ibv_cq* cq) {
  if (!Ask(step, cq != nullptr, errno)) return;
  const int result = ibv_destroy_cq(cq);
  Must("destroy_cq:asked", result == 0, result);
}

void AskExtended(ibv_context* context, const Flag& flag, bool creation) {
  ibv_cq_init_attr_ex attr = {};
  attr.cqe = kDepth;
  attr.wc_flags = creation ? uint64_t{IBV_WC_STANDARD_FLAGS} : flag.flag;
  if (creation) {
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    attr.flags = static_cast<uint32_t>(flag.flag);
  }
  errno = 0;
  ibv_cq_ex* cq = ibv_create_cq_ex(context, &attr);
  Finish(flag.step, cq == nullptr ? nullptr : ibv_cq_ex_to_cq(cq));
}

void AskCompletionQueues(ibv_context* context) {
  errno = 0;
  Finish("create_cq:one_entry", ibv_create_cq(context, 1, nullptr, nullptr, 0));
  errno = 0;
  Finish("create_cq:last_vector",
         ibv_create_cq(context, kDepth, nullptr, nullptr, context->num_comp_vectors - 1));
  errno = 0;
  Finish("create_cq:no_such_vector",
         ibv_create_cq(context, kDepth, nullptr, nullptr, context->num_comp_vectors));
  for (const Flag& flag : kCompletion) AskExtended(context, flag, false);
  for (const Flag& flag : kCreation) AskExtended(context, flag, true);
  errno = 0;
  ibv_cq* cq = ibv_create_cq(context, kDepth, nullptr, nullptr, 0);
  if (!Ask("create_cq:to_moderate", cq != nullptr, errno)) return;
  ibv_modify_cq_attr attr = {};
  attr.attr_mask = IBV_CQ_ATTR_MODERATE;
  attr.moderate.cq_count = 4;
  attr.moderate.cq_period = 16;
  int result = ibv_modify_cq(cq, &attr);
  Ask("modify_cq", result == 0, result);
  result = ibv_destroy_cq(cq);
  Must("destroy_cq:asked", result == 0, result);
}

void FinishSrq(const char* step, ibv_srq* srq) {
  if (!Ask(step, srq != nullptr, errno)) return;
  const int result = ibv_destroy_srq(srq);
  Must("destroy_srq:asked", result == 0, result);
}

ibv_srq* MakeSrq(ibv_context* context, ibv_pd* pd, ibv_srq_type type, ibv_xrcd* xrcd, ibv_cq* cq) {
  ibv_srq_init_attr_ex attr = {};
  attr.attr.max_wr = kDepth;
  attr.attr.max_sge = 1;
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  attr.srq_type = type;
  attr.pd = pd;
  if (xrcd != nullptr) {
    attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
    attr.xrcd = xrcd;
  }
  if (cq != nullptr) {
    attr.comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
    attr.cq = cq;
  }
  errno = 0;
  return ibv_create_srq_ex(context, &attr);
}

void AskSharedReceives(ibv_context* context, ibv_pd* pd) {
  FinishSrq("srq:basic", MakeSrq(context, pd, IBV_SRQT_BASIC, nullptr, nullptr));
  ibv_srq_init_attr init = {};
  init.attr.max_wr = kDepth;
  init.attr.max_sge = 1;
  errno = 0;
  ibv_srq* srq = ibv_create_srq(pd, &init);
  if (!Ask("srq:to_change", srq != nullptr, errno)) return;
  ibv_srq_attr attr = {};
  attr.srq_limit = 1U << 30;
  int result = ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
  Ask("modify_srq:limit_above_its_size", result == 0, result);
  attr = {};
  attr.max_wr = 2 * kDepth;
  result = ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
  Ask("modify_srq:size", result == 0, result);
  result = ibv_destroy_srq(srq);
  Must("destroy_srq:asked", result == 0, result);
}

// A domain of this process alone, with a receive queue that needs one.
void AskXrc(ibv_context* context, ibv_pd* pd) {
  ibv_xrcd_init_attr attr = {};
  attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  attr.fd = -1;
  attr.oflags = O_CREAT;
  errno = 0;
  ibv_xrcd* xrcd = ibv_open_xrcd(context, &attr);
  if (!Ask("open_xrcd", xrcd != nullptr, errno)) return;
  errno = 0;
  ibv_cq* cq = ibv_create_cq(context, kDepth, nullptr, nullptr, 0);
  if (Ask("create_cq:xrc", cq != nullptr, errno)) {
    FinishSrq("srq:xrc", MakeSrq(context, pd, IBV_SRQT_XRC, xrcd, cq));
    const int result = ibv_destroy_cq(cq);
    Must("destroy_cq:asked", result == 0, result);
  }
  const int result = ibv_close_xrcd(xrcd);
  Must("close_xrcd:asked", result == 0, result);
}

}  // namespace

void AskQueues(ibv_context* context, ibv_pd* pd) {
  AskCompletionQueues(context);
  AskSharedReceives(context, pd);
  AskXrc(context, pd);
}

}  // namespace asks
