// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/destroy.h"

#include "shims/uverbs/device.h"
#include "shims/uverbs/events.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace {

template <typename T>
void ForgetEvents(T& object) {
  if (object.events) object.events->ForgetObject(&object);
}

void Drop(Object* object) {
  if (object != nullptr) --object->users;
}

// ib_uverbs_dealloc_xrcd, with the device's xrcd_tree_mutex
int DropDomain(Call& call, Device& device, XrcDomain& domain) {
  std::lock_guard lock(device.shared_mutex());
  if (domain.inode != 0 && --domain.handles > 0) return 0;
  if (domain.users > 0) {
    if (domain.inode != 0) ++domain.handles;
    return call.Refuse(RuleId::xrcd_in_use);
  }
  device.driver().DeallocXrcd(domain);
  if (domain.inode != 0) device.xrc_domains.erase({domain.inode_device, domain.inode});
  return 0;
}

int DestroyQp(Call& call, Qp& qp, RemoveReason why) {
  Driver& driver = qp.device->driver();
  // uverbs_std_types_qp.c:uverbs_free_qp
  if (why == RemoveReason::kDestroy) {
    if (!qp.mcast.empty()) {
      return call.Refuse(RuleId::qp_mcast_attached);
    }
  } else if (!qp.real) {
    for (const Qp::McastEntry& entry : qp.mcast) {
      if (driver.AttachMcast(call, qp, entry.gid, entry.lid, false) == 0) --qp.users;
    }
    qp.mcast.clear();
  }
  if (qp.users > 0) return call.Refuse(RuleId::qp_in_use);
  if (qp.real) {
    // verbs.c:__ib_destroy_shared_qp: the last handle takes the queue pair with it
    std::lock_guard lock(qp.device->shared_mutex());
    if (--qp.real->open_handles == 0) {
      qp.device->xrc_targets.erase({qp.real->xrcd, qp.real->qp_num});
      if (driver.DestroyQp(call, *qp.real) == 0) --qp.real->xrcd->users;
    }
  } else {
    if (const int error = driver.DestroyQp(call, qp)) return error;
    Drop(qp.ind_table);
    Drop(qp.srq);
    Drop(qp.recv_cq);
    Drop(qp.send_cq);
    Drop(qp.pd);
  }
  Drop(qp.xrcd_handle);
  ForgetEvents(qp);
  return 0;
}

int DestroyTyped(Call& call, Object& object, RemoveReason why) {
  Driver& driver = object.device->driver();
  switch (object.type) {
    case ObjectType::kPd:
      if (object.users > 0) return call.Refuse(RuleId::pd_in_use);
      driver.DeallocPd(static_cast<Pd&>(object));
      return 0;
    case ObjectType::kMr: {
      auto& mr = static_cast<Mr&>(object);
      if (const int error = driver.DeregMr(call, mr)) return error;
      Drop(mr.pd);
      Drop(mr.dm);
      return 0;
    }
    case ObjectType::kMw: {
      auto& mw = static_cast<Mw&>(object);
      driver.DeallocMw(mw);
      Drop(mw.pd);
      return 0;
    }
    case ObjectType::kCq: {
      auto& cq = static_cast<Cq&>(object);
      if (cq.users > 0) return call.Refuse(RuleId::cq_in_use);
      driver.DestroyCq(cq);
      if (cq.channel) cq.channel->ForgetCq(cq);
      ForgetEvents(cq);
      return 0;
    }
    case ObjectType::kQp:
      return DestroyQp(call, static_cast<Qp&>(object), why);
    case ObjectType::kSrq: {
      auto& srq = static_cast<Srq&>(object);
      if (srq.users > 0) return call.Refuse(RuleId::srq_in_use);
      driver.DestroySrq(srq);
      Drop(srq.pd);
      Drop(srq.cq);
      if (srq.xrcd != nullptr) {
        std::lock_guard lock(object.device->shared_mutex());
        --srq.xrcd->domain->users;
        --srq.xrcd->users;
      }
      ForgetEvents(srq);
      return 0;
    }
    case ObjectType::kAh:
      driver.DestroyAh(static_cast<Ah&>(object));
      Drop(static_cast<Ah&>(object).pd);
      return 0;
    case ObjectType::kXrcd:
      if (object.users > 0) {
        return call.Refuse(RuleId::xrcd_handle_in_use);
      }
      return DropDomain(call, *object.device, *static_cast<Xrcd&>(object).domain);
    case ObjectType::kWq: {
      auto& wq = static_cast<Wq&>(object);
      if (wq.users > 0) return call.Refuse(RuleId::wq_in_use);
      driver.DestroyWq(wq);
      Drop(wq.pd);
      Drop(wq.cq);
      ForgetEvents(wq);
      return 0;
    }
    case ObjectType::kRwqIndTable: {
      auto& table = static_cast<RwqIndTable&>(object);
      if (table.users > 0) {
        return call.Refuse(RuleId::ind_table_in_use);
      }
      driver.DestroyRwqIndTable(table);
      for (Wq* wq : table.wqs) --wq->users;
      return 0;
    }
    case ObjectType::kFlow: {
      auto& flow = static_cast<Flow&>(object);
      driver.DestroyFlow(flow);
      Drop(flow.qp);
      for (Object* resource : flow.resources) --resource->users;
      return 0;
    }
    case ObjectType::kFlowAction:
      if (object.users > 0) {
        return call.Refuse(RuleId::flow_action_in_use);
      }
      return 0;
    case ObjectType::kCounters:
      if (object.users > 0) {
        return call.Refuse(RuleId::counters_in_use);
      }
      driver.DestroyCounters(static_cast<Counters&>(object));
      return 0;
    case ObjectType::kDm:
      if (object.users > 0) return call.Refuse(RuleId::dm_in_use);
      driver.FreeDm(static_cast<Dm&>(object));
      return 0;
    case ObjectType::kPrivate:
      return driver.DestroyPrivate(call, object);
    default:
      return 0;
  }
}

}  // namespace

int DestroyObject(Call& call, Object& object, RemoveReason why) {
  // Failing commands keep the rule that made them fail.
  const int rule = call.record.rule;
  const int result = DestroyTyped(call, object, why);
  if (why != RemoveReason::kDestroy) call.record.rule = rule;
  if (result == 0) object.pins = {};
  return result;
}

}  // namespace vabi
