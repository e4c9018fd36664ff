// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <cstring>

#include "shims/uverbs/command.h"
#include "shims/uverbs/commands.h"
#include "shims/uverbs/qp_state.h"

namespace vabi {
namespace {

constexpr uint16_t kMulticastLidBase = 0xc000;
constexpr uint16_t kPermissiveLid = 0xffff;

// rdma_is_multicast_addr: IPv6, or IPv4 mapped
bool IsMulticast(const uint8_t* gid) {
  static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return gid[0] == 0xff ||
         (std::memcmp(gid, kMapped, sizeof(kMapped)) == 0 && (gid[12] & 0xf0) == 0xe0);
}

// verbs.c:ib_attach_mcast, ib_detach_mcast
int Check(Command& c, const Qp& qp, const uint8_t* gid, uint16_t lid) {
  const bool bad_lid = c.device.image().link == LinkLayer::kInfiniband &&
                       (lid < kMulticastLidBase || lid == kPermissiveLid);
  if (c.Violates(RuleId::mcast_address, !IsMulticast(gid) || qp.qp_type != kQptUd || bad_lid)) {
    return c.Refuse(RuleId::mcast_address);
  }
  return 0;
}

std::vector<Qp::McastEntry>::iterator Find(Qp& qp, const Qp::McastEntry& wanted) {
  return std::find_if(qp.mcast.begin(), qp.mcast.end(), [&](const Qp::McastEntry& entry) {
    return entry.lid == wanted.lid && std::memcmp(entry.gid, wanted.gid, sizeof(entry.gid)) == 0;
  });
}

}  // namespace

int AttachMcast(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_attach_mcast));
  if (const int error = c.Request(request)) return error;
  Qp* qp;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_attach_mcast, qp_handle)), &qp))
    return error;
  Qp::McastEntry entry = {};
  request.GetBytes(VABI_F(ib_uverbs_attach_mcast, gid), entry.gid, sizeof(entry.gid));
  entry.lid = static_cast<uint16_t>(request.Get(VABI_F(ib_uverbs_attach_mcast, mlid)));
  if (Find(*qp, entry) != qp->mcast.end()) return 0;  // twice is once
  if (const int error = Check(c, *qp, entry.gid, entry.lid)) return error;
  if (const int error = c.driver().AttachMcast(c.call, *qp, entry.gid, entry.lid, true))
    return error;
  ++qp->users;
  qp->mcast.push_back(entry);
  return 0;
}

int DetachMcast(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_detach_mcast));
  if (const int error = c.Request(request)) return error;
  Qp* qp;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_detach_mcast, qp_handle)), &qp))
    return error;
  Qp::McastEntry entry = {};
  request.GetBytes(VABI_F(ib_uverbs_detach_mcast, gid), entry.gid, sizeof(entry.gid));
  entry.lid = static_cast<uint16_t>(request.Get(VABI_F(ib_uverbs_detach_mcast, mlid)));
  const auto found = Find(*qp, entry);
  if (found == qp->mcast.end()) return c.Refuse(RuleId::mcast_none);
  qp->mcast.erase(found);
  if (const int error = Check(c, *qp, entry.gid, entry.lid)) return error;
  if (const int error = c.driver().AttachMcast(c.call, *qp, entry.gid, entry.lid, false))
    return error;
  --qp->users;
  return 0;
}

}  // namespace vabi
