// SPDX-License-Identifier: BSD-2-Clause
#include "extras.h"

#include <cerrno>
#include <cstring>

#include "step.h"

namespace journey {
namespace {

// On a PD of its own: a library that loses a handle of the kernel's on the way keeps that PD busy,
// and no other.
void TryAh(Pair* pair) {
  ibv_pd* pd = ibv_alloc_pd(pair->context);
  if (!Must("alloc_pd:ah", pd != nullptr, errno)) return;
  ibv_ah_attr attr = {};
  FillAddress(*pair, &attr);
  errno = 0;
  ibv_ah* ah = ibv_create_ah(pd, &attr);
  if (May("ah", ah != nullptr, errno)) {
    const int result = ibv_destroy_ah(ah);
    Must("destroy_ah", result == 0, result);
  }
  pair->has_ah = ah != nullptr;
  const int result = ibv_dealloc_pd(pd);
  May("dealloc_pd:ah", result == 0, result,
      ah == nullptr ? "after a handle that could not be had" : "");
}

void TryCqEx(Pair* pair) {
  ibv_cq_init_attr_ex init = {};
  init.cqe = 32;
  init.wc_flags = IBV_WC_STANDARD_FLAGS;
  ibv_cq_ex* cq = ibv_create_cq_ex(pair->context, &init);
  if (!May("cq_ex", cq != nullptr, errno)) return;
  const int result = ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
  Must("destroy_cq_ex", result == 0, result);
}

void TryResize(Pair* pair) {
  ibv_cq* cq = ibv_create_cq(pair->context, 10, nullptr, nullptr, 0);
  if (!Must("create_cq:second", cq != nullptr, errno)) return;
  int result = ibv_resize_cq(cq, 100);
  May("resize_cq", result == 0 && cq->cqe >= 100, result);
  result = ibv_destroy_cq(cq);
  Must("destroy_cq:second", result == 0, result);
}

void TryDm(Pair* pair) {
  ibv_device_attr_ex attr = {};
  if (ibv_query_device_ex(pair->context, nullptr, &attr) != 0 || attr.max_dm_size == 0) {
    May("dm", false, 0, "the device has none");
    return;
  }
  ibv_alloc_dm_attr init = {};
  init.length = 64;
  ibv_dm* dm = ibv_alloc_dm(pair->context, &init);
  if (!May("dm", dm != nullptr, errno)) return;
  const int result = ibv_free_dm(dm);
  Must("free_dm", result == 0, result);
}

void TryReregister(Pair* pair) {
  static char bytes[8192];
  ibv_mr* mr = ibv_reg_mr(pair->pd, bytes, 4096, IBV_ACCESS_LOCAL_WRITE);
  if (!Must("reg_mr:second", mr != nullptr, errno)) return;
  const int result = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, bytes, 8192, 0);
  May("rereg_mr", result == 0, errno);
  const int end = ibv_dereg_mr(mr);
  Must("dereg_mr:second", end == 0, end);
}

}  // namespace

void TryExtras(Pair* pair) {
  TryAh(pair);
  TryCqEx(pair);
  TryResize(pair);
  TryDm(pair);
  TryReregister(pair);
}

}  // namespace journey
