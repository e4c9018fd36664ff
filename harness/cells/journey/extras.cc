// SPDX-License-Identifier: BSD-2-Clause
#include "extras.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "step.h"

namespace journey {
namespace {

void TrySrq(Pair* pair) {
  ibv_srq_init_attr init = {};
  init.attr.max_wr = 8;
  init.attr.max_sge = 1;
  ibv_srq* srq = ibv_create_srq(pair->pd, &init);
  if (!May("srq", srq != nullptr, errno)) return;
  ibv_srq_attr attr = {};
  int result = ibv_query_srq(srq, &attr);
  May("query_srq", result == 0 && attr.max_wr >= 8, result);
  result = ibv_destroy_srq(srq);
  Must("destroy_srq", result == 0, result);
}

// On a PD of its own: a library that loses a handle of the kernel's on the way keeps that PD busy, and no other.
void TryAh(Pair* pair) {
  ibv_pd* pd = ibv_alloc_pd(pair->context);
  if (!Must("alloc_pd:ah", pd != nullptr, errno)) return;
  ibv_ah_attr attr = {};
  attr.port_num = 1;
  attr.dlid = pair->port.lid;
  if (pair->port.link_layer == IBV_LINK_LAYER_ETHERNET) {
    attr.is_global = 1;
    attr.grh.dgid = pair->gid;
    attr.grh.sgid_index = static_cast<uint8_t>(pair->gid_index);
  }
  errno = 0;
  ibv_ah* ah = ibv_create_ah(pd, &attr);
  if (May("ah", ah != nullptr, errno)) {
    const int result = ibv_destroy_ah(ah);
    Must("destroy_ah", result == 0, result);
  }
  const int result = ibv_dealloc_pd(pd);
  May("dealloc_pd:ah", result == 0, result, ah == nullptr ? "after a handle that could not be had" : "");
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

void TryMw(Pair* pair) {
  ibv_mw* mw = ibv_alloc_mw(pair->pd, IBV_MW_TYPE_2);
  if (!May("mw", mw != nullptr, errno)) return;
  const int result = ibv_dealloc_mw(mw);
  Must("dealloc_mw", result == 0, result);
}

void TryXrcd(Pair* pair) {
  ibv_xrcd_init_attr init = {};
  init.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  init.fd = -1;
  init.oflags = O_CREAT;
  ibv_xrcd* xrcd = ibv_open_xrcd(pair->context, &init);
  if (!May("xrcd", xrcd != nullptr, errno)) return;
  const int result = ibv_close_xrcd(xrcd);
  Must("close_xrcd", result == 0, result);
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
  TrySrq(pair);
  TryAh(pair);
  TryCqEx(pair);
  TryResize(pair);
  TryMw(pair);
  TryXrcd(pair);
  TryDm(pair);
  TryReregister(pair);
}

}  // namespace journey
