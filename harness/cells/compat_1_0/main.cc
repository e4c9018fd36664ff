// SPDX-License-Identifier: BSD-2-Clause
//
// An application of 2006: linked to libibverbs' node IBVERBS_1.0 and to nothing newer. It finds and
// opens a device, moves data whose every byte is checked, and takes asynchronous events; every
// pointer that the library hands back must be one of the application's own objects. Its report is
// the journey's.
//
//   compat_1_0             all of it
//   compat_1_0 query_qp    asks for the attributes of a queue pair without a shared receive queue
//   compat_1_0 query_port  asks for a port's attributes, with something of its own behind them
//
// Completion channels are left out: ibv_create_comp_channel has no form of its own in that node, so
// that an application of 1.0 hands its own context to today's function, which reads beyond it.

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>

#include "harness/cells/compat_1_0/abi.h"
#include "harness/cells/journey/mapped.h"
#include "harness/cells/journey/step.h"

namespace compat {
namespace {

using journey::Must;
using journey::Value;

constexpr int kDepth = 16;
constexpr uint32_t kRegion = 16384;
constexpr uint32_t kLength = 3000;
constexpr double kSeconds = 6.0;
constexpr int kMostEvents = 32;

struct Side {
  Qp* qp = nullptr;
  Mr* mr = nullptr;
  uint8_t* bytes = nullptr;
};

struct App {
  Context* context = nullptr;
  Device** list = nullptr;
  Device* device = nullptr;
  PortAttr port = {};
  Gid gid = {};
  int gid_index = 0;
  Pd* pd = nullptr;
  Cq* cq = nullptr;
  Cq* small = nullptr;  // to be overrun
  Srq* srq = nullptr;
  Side left, right;     // right receives from the shared queue
  Side crowded, quiet;  // crowded completes to `small`
};

uint8_t Pattern(uint32_t seed, uint32_t at) { return static_cast<uint8_t>(seed * 37 + at * 11); }

void Fill(uint8_t* bytes, uint32_t length, uint32_t seed) {
  for (uint32_t i = 0; i < length; ++i) bytes[i] = Pattern(seed, i);
}

bool Same(const uint8_t* bytes, uint32_t length, uint32_t seed) {
  for (uint32_t i = 0; i < length; ++i) {
    if (bytes[i] != Pattern(seed, i)) return false;
  }
  return true;
}

double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

bool Complete(Cq* cq, Wc* wc) {
  const double end = Now() + kSeconds;
  while (Now() < end) {
    const int polled = cq->context->ops.poll_cq(cq, 1, wc);
    if (polled != 0) return polled == 1;
  }
  return false;
}

bool Open(App* app) {
  int count = 0;
  app->list = ibv_get_device_list(&count);
  if (!Must("device_list", app->list != nullptr, errno)) return false;
  Value("devices", static_cast<uint64_t>(count));
  if (!Must("find_device", count > 0 && app->list[count] == nullptr, ENODEV)) return false;
  app->device = app->list[0];
  const char* name = ibv_get_device_name(app->device);
  Must("device_guid", ibv_get_device_guid(app->device) != 0);
  errno = 0;
  app->context = ibv_open_device(app->device);
  const bool ok = Must("open_device", app->context != nullptr, errno, name);
  if (ok) Must("context:own", app->context->device == app->device);
  return ok;
}

// 1.0's structure ends after 48 bytes; what stands behind it is the application's.
bool QueryPort(App* app, bool strict) {
  struct {
    PortAttr attr;
    uint8_t behind[64];
  } room;
  memset(&room, 0xa5, sizeof room);
  const int result = ibv_query_port(app->context, 1, &room.attr);
  if (!Must("query_port", result == 0, result)) return false;
  uint64_t beyond = 0;
  for (uint64_t i = 0; i < sizeof room.behind; ++i) {
    if (room.behind[i] != 0xa5) beyond = i + 1;
  }
  Value("query_port_beyond", beyond);
  if (strict) Must("query_port:within", beyond == 0, 0, "wrote beyond the 48 bytes of 1.0");
  app->port = room.attr;
  return Must("port_active", app->port.state == kPortActive);
}

bool FindGid(App* app) {
  const int entries = app->port.gid_tbl_len < 8 ? app->port.gid_tbl_len : 8;
  bool found = false;
  for (int i = 0; i < entries; ++i) {
    Gid gid = {};
    if (ibv_query_gid(app->context, 1, i, &gid) != 0) continue;
    uint64_t interface = 0;
    memcpy(&interface, gid.raw + 8, sizeof interface);
    if (interface == 0) continue;
    app->gid = gid;
    app->gid_index = i;
    found = true;
  }
  uint16_t pkey = 0;
  const int result = ibv_query_pkey(app->context, 1, 0, &pkey);
  Must("query_pkey", result == 0 && pkey == 0xffff, errno);
  return Must("query_gid", found);
}

bool MakeSide(App* app, Side* side, Cq* send_cq, Srq* srq) {
  side->bytes = static_cast<uint8_t*>(aligned_alloc(4096, kRegion));
  if (side->bytes == nullptr) return Must("memory", false, ENOMEM);
  memset(side->bytes, 0, kRegion);
  side->mr = ibv_reg_mr(app->pd, side->bytes, kRegion, kLocalWrite | kRemoteWrite | kRemoteRead);
  if (!Must("reg_mr", side->mr != nullptr, errno)) return false;
  Must("mr:own", side->mr->context == app->context && side->mr->pd == app->pd);
  QpInitAttr init = {};
  init.qp_context = side;
  init.send_cq = send_cq;
  init.recv_cq = app->cq;
  init.srq = srq;
  init.qp_type = kRc;
  init.cap = {kDepth, srq != nullptr ? 0u : kDepth, 2, 2, 0};
  side->qp = ibv_create_qp(app->pd, &init);
  if (!Must("create_qp", side->qp != nullptr, errno)) return false;
  const Qp& qp = *side->qp;
  return Must("qp:own", qp.context == app->context && qp.qp_context == side && qp.pd == app->pd &&
                            qp.send_cq == send_cq && qp.recv_cq == app->cq && qp.srq == srq &&
                            qp.qp_type == kRc && qp.qp_num != 0);
}

bool Connect(App* app, Qp* qp, uint32_t peer) {
  QpAttr init = {};
  init.qp_state = kInit;
  init.port_num = 1;
  init.qp_access_flags = kRemoteWrite | kRemoteRead;
  int result = ibv_modify_qp(qp, &init, kQpState | kQpPkey | kQpPort | kQpAccess);
  if (!Must("modify_qp:INIT", result == 0, result)) return false;
  QpAttr ready = {};
  ready.qp_state = kRtr;
  ready.path_mtu = app->port.active_mtu;
  ready.dest_qp_num = peer;
  ready.rq_psn = 7;
  ready.max_dest_rd_atomic = 1;
  ready.min_rnr_timer = 12;
  ready.ah_attr.port_num = 1;
  ready.ah_attr.dlid = app->port.lid;
  if (app->port.link_layer == kEthernet) {
    ready.ah_attr.is_global = 1;
    ready.ah_attr.dgid = app->gid;
    ready.ah_attr.sgid_index = static_cast<uint8_t>(app->gid_index);
    ready.ah_attr.hop_limit = 64;
  }
  result = ibv_modify_qp(
      qp, &ready,
      kQpState | kQpAv | kQpMtu | kQpDestQpn | kQpRqPsn | kQpDestRdAtomic | kQpRnrTimer);
  if (!Must("modify_qp:RTR", result == 0, result)) return false;
  QpAttr send = {};
  send.qp_state = kRts;
  send.timeout = 14;
  send.retry_cnt = 3;
  send.rnr_retry = 1;
  send.sq_psn = 7;
  send.max_rd_atomic = 1;
  result = ibv_modify_qp(qp, &send,
                         kQpState | kQpTimeout | kQpRetry | kQpRnrRetry | kQpSqPsn | kQpRdAtomic);
  return Must("modify_qp:RTS", result == 0, result);
}

bool ConnectBoth(App* app, const Side& one, const Side& other) {
  return Connect(app, one.qp, other.qp->qp_num) && Connect(app, other.qp, one.qp->qp_num);
}

bool MakeQueues(App* app) {
  app->pd = ibv_alloc_pd(app->context);
  if (!Must("alloc_pd", app->pd != nullptr, errno)) return false;
  Must("pd:own", app->pd->context == app->context);
  app->cq = ibv_create_cq(app->context, 4 * kDepth, app, nullptr, 0);
  if (!Must("create_cq", app->cq != nullptr, errno)) return false;
  return Must("cq:own", app->cq->context == app->context && app->cq->cq_context == app);
}

bool SetUp(App* app) {
  if (!MakeQueues(app)) return false;
  app->small = ibv_create_cq(app->context, 3, app, nullptr, 0);
  if (!Must("create_cq", app->small != nullptr, errno)) return false;
  SrqInitAttr shared = {};
  shared.srq_context = app;
  shared.attr = {kDepth, 1, 0};
  app->srq = ibv_create_srq(app->pd, &shared);
  if (!Must("create_srq", app->srq != nullptr, errno)) return false;
  Must("srq:own", app->srq->context == app->context && app->srq->srq_context == app &&
                      app->srq->pd == app->pd);
  return MakeSide(app, &app->left, app->cq, nullptr) &&
         MakeSide(app, &app->right, app->cq, app->srq) &&
         MakeSide(app, &app->crowded, app->small, nullptr) &&
         MakeSide(app, &app->quiet, app->cq, nullptr) && ConnectBoth(app, app->left, app->right) &&
         ConnectBoth(app, app->crowded, app->quiet);
}

// The attributes name the application's own objects again, and end where 1.0's structure does.
void QueryQp(App* app) {
  struct {
    QpAttr attr;
    uint8_t behind[32];
  } room;
  memset(&room, 0xa5, sizeof room);
  QpInitAttr init = {};
  const int result = ibv_query_qp(app->right.qp, &room.attr, kQpState, &init);
  Must("query_qp", result == 0 && room.attr.qp_state == kRts, result);
  bool whole = true;
  for (const uint8_t byte : room.behind) whole = whole && byte == 0xa5;
  Must("query_qp:within", whole);
  Must("query_qp:own", init.qp_context == &app->right && init.send_cq == app->cq &&
                           init.recv_cq == app->cq && init.srq == app->srq);
}

int PostShared(App* app, uint32_t offset, uint64_t id) {
  Sge sge = {reinterpret_cast<uintptr_t>(app->right.bytes + offset), kLength, app->right.mr->lkey};
  RecvWr wr = {nullptr, id, &sge, 1};
  RecvWr* bad = nullptr;
  return app->context->ops.post_srq_recv(app->srq, &wr, &bad);
}

// One work request towards `to`; the completion is taken unless `wc` is null.
bool Move(const Side& from, const Side& to, uint32_t opcode, uint32_t offset, uint32_t rkey,
          uint64_t id, Wc* wc) {
  Sge sge = {reinterpret_cast<uintptr_t>(from.bytes + offset), kLength, from.mr->lkey};
  SendWr wr = {};
  wr.wr_id = id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.send_flags = kSignaled;
  wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(to.bytes + offset);
  wr.wr.rdma.rkey = rkey;
  SendWr* bad = nullptr;
  if (from.qp->context->ops.post_send(from.qp, &wr, &bad) != 0) return false;
  return wc == nullptr || Complete(from.qp->send_cq, wc);
}

void MoveData(App* app) {
  Wc wc[2] = {};
  Fill(app->left.bytes, kLength, 1);
  bool ok = PostShared(app, 4096, 0x51) == 0 &&
            Move(app->left, app->right, kSend, 0, 0, 0x50, &wc[0]) && Complete(app->cq, &wc[1]);
  const Wc& sent = wc[0].wr_id == 0x50 ? wc[0] : wc[1];
  const Wc& received = wc[0].wr_id == 0x50 ? wc[1] : wc[0];
  ok = ok && sent.wr_id == 0x50 && sent.status == kSuccess && received.wr_id == 0x51 &&
       received.status == kSuccess && received.byte_len == kLength &&
       received.qp_num == app->right.qp->qp_num && Same(app->right.bytes + 4096, kLength, 1);
  Must("data:send", ok);

  Fill(app->left.bytes + 8192, kLength, 2);
  ok = Move(app->left, app->right, kWrite, 8192, app->right.mr->rkey, 0x52, &wc[0]);
  Must("data:write", ok && wc[0].wr_id == 0x52 && wc[0].status == kSuccess &&
                         Same(app->right.bytes + 8192, kLength, 2));
  Fill(app->right.bytes + 12288, kLength, 3);
  ok = Move(app->left, app->right, kRead, 12288, app->right.mr->rkey, 0x53, &wc[0]);
  Must("data:read", ok && wc[0].wr_id == 0x53 && wc[0].status == kSuccess &&
                        Same(app->left.bytes + 12288, kLength, 3));
}

// Of a list that cannot be posted whole, the library names the application's own request.
void PostBad(App* app) {
  Sge sges[40] = {};
  for (Sge& sge : sges) {
    sge = {reinterpret_cast<uintptr_t>(app->left.bytes), 8, app->left.mr->lkey};
  }
  SendWr list[2] = {};
  for (SendWr& wr : list) {
    wr.wr_id = 0x54;
    wr.sg_list = sges;
    wr.num_sge = 1;
    wr.opcode = kWrite;
    wr.send_flags = kSignaled;
    wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(app->right.bytes);
    wr.wr.rdma.rkey = app->right.mr->rkey;
  }
  list[0].next = &list[1];
  list[1].num_sge = 40;  // the queue takes two
  SendWr* bad = nullptr;
  const int result = app->context->ops.post_send(app->left.qp, list, &bad);
  Wc wc = {};
  Must("post_send:bad_wr",
       result != 0 && bad == &list[1] && Complete(app->cq, &wc) && wc.status == kSuccess);
}

// Each raises an event of one object.
bool Provoke(App* app) {
  Wc wc = {};
  // The shared queue falls below its limit.
  for (uint64_t i = 0; i < 3; ++i) {
    if (PostShared(app, 4096, 0x60 + i) != 0) return Must("post_srq_recv", false);
  }
  SrqAttr limit = {};
  limit.srq_limit = 2;
  const int result = ibv_modify_srq(app->srq, &limit, kSrqLimit);
  if (!Must("modify_srq", result == 0, result)) return false;
  for (uint64_t i = 0; i < 2; ++i) {
    Move(app->left, app->right, kSend, 0, 0, 0x70, &wc);
    Complete(app->cq, &wc);
  }
  // A queue that is drained, on a thread of the driver, and a key that the peer does not know: rxe
  // tells of the second since 7.2 only (sw/rxe/rxe_resp.c).
  QpAttr drain = {};
  drain.qp_state = kSqd;
  drain.en_sqd_async_notify = 1;
  ibv_modify_qp(app->quiet.qp, &drain, kQpState | kQpSqdNotify);
  Move(app->left, app->right, kWrite, 0, app->right.mr->rkey ^ 0x5500, 0x71, &wc);
  // More completions than `small` has room for.
  for (uint64_t i = 0; i < kDepth; ++i) {
    Move(app->crowded, app->quiet, kWrite, 0, app->quiet.mr->rkey, 0x80 + i, nullptr);
  }
  return true;
}

bool OwnQp(const App& app, const Qp* qp) {
  for (const Side* side : {&app.left, &app.right, &app.crowded, &app.quiet}) {
    if (side->qp == qp) return true;
  }
  return false;
}

// Reads events until each kind has come; where one does not, the cell's time ends.
void TakeEvents(App* app) {
  int cq = 0, qp = 0, srq = 0, port = 0, strange = 0;
  for (int i = 0; i < kMostEvents && (cq == 0 || qp == 0 || srq == 0); ++i) {
    AsyncEvent event = {};
    const int result = ibv_get_async_event(app->context, &event);
    if (!Must("get_async_event", result == 0, errno)) return;
    const uint32_t type = event.event_type;
    if (type == kEventCqError) {
      event.element.cq == app->small ? ++cq : ++strange;
    } else if ((type >= kEventQpFirst && type <= kEventQpLast) || type == kEventLastWqe) {
      OwnQp(*app, event.element.qp) ? ++qp : ++strange;
    } else if (type == kEventSrqError || type == kEventSrqLimit) {
      event.element.srq == app->srq ? ++srq : ++strange;
    } else if (type != kEventDeviceFatal) {
      event.element.port_num == 1 ? ++port : ++strange;
    }
    if (strange != 0) break;  // acknowledging what is not ours would crash
    ibv_ack_async_event(&event);
  }
  Must("event:own", strange == 0);
  Must("event:cq", cq > 0);
  Must("event:qp", qp > 0);
  Must("event:srq", srq == 1);
  if (port != 0) Must("event:port", true);
}

void TearDown(App* app) {
  for (Side* side : {&app->left, &app->right, &app->crowded, &app->quiet}) {
    // Returns only when all events of the queue pair have been acknowledged.
    if (side->qp != nullptr) Must("destroy_qp", ibv_destroy_qp(side->qp) == 0);
    if (side->mr != nullptr) Must("dereg_mr", ibv_dereg_mr(side->mr) == 0);
    free(side->bytes);
  }
  if (app->srq != nullptr) Must("destroy_srq", ibv_destroy_srq(app->srq) == 0);
  for (Cq* cq : {app->cq, app->small}) {
    if (cq != nullptr) Must("destroy_cq", ibv_destroy_cq(cq) == 0);
  }
  if (app->pd != nullptr) Must("dealloc_pd", ibv_dealloc_pd(app->pd) == 0);
  Must("close_device", ibv_close_device(app->context) == 0);
  // Last: a context of 1.0 holds on to the list's own device.
  ibv_free_device_list(app->list);
}

void Run(App* app) {
  if (!SetUp(app)) return;
  QueryQp(app);
  MoveData(app);
  PostBad(app);
  if (Provoke(app)) TakeEvents(app);
}

void QueryQpWithoutSrq(App* app) {
  if (!MakeQueues(app) || !MakeSide(app, &app->left, app->cq, nullptr)) return;
  QpAttr attr = {};
  QpInitAttr init = {};
  const int result = ibv_query_qp(app->left.qp, &attr, kQpState, &init);
  Must("query_qp", result == 0 && attr.qp_state == 0 && init.srq == nullptr, result);
}

}  // namespace
}  // namespace compat

int main(int argc, char** argv) {
  compat::App app;
  const bool opened = compat::Open(&app);
  journey::TellMapped();
  if (!opened) return 3;
  const char* only = argc > 1 ? argv[1] : "";
  if (compat::QueryPort(&app, strcmp(only, "query_port") == 0) && compat::FindGid(&app)) {
    if (strcmp(only, "query_qp") == 0) {
      compat::QueryQpWithoutSrq(&app);
    } else if (*only == '\0') {
      compat::Run(&app);
    }
  }
  compat::TearDown(&app);
  return journey::Failures() == 0 ? 0 : 1;
}
