// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_RDMA_CM_PATH_H_
#define VABI_SHIMS_RDMA_CM_PATH_H_

#include "shims/rdma_cm/identifier.h"

// Where the path of a connection comes from: on RoCE the kernel makes it, on InfiniBand the subnet
// administrator answers for it. A world's subnet is one that opensm keeps with its defaults: every
// port is reached directly, LIDs as the world says, one P_Key for all.

namespace vabi::rdma_cm {

// cma.c:cma_resolve_iboe_route
Path RocePath(const Identifier& id);

// The answer to cma.c:cma_query_ib_route (opensm/osm_sa_path_record.c:pr_rcv_build_pr). False: the
// subnet has no such port, or the two share no such P_Key; the kernel then reports -EINVAL
// (sa_query.c:recv_handler).
bool SubnetPath(const World& world, const Identifier& id, Path* path);

// As the other end sees it (cm.c:cm_format_paths_from_req); service id and timeout are the
// request's.
Path Reversed(const Path& path, uint64_t service, uint8_t timeout);

// What the subnet administrator answers to a port that joins a group: the LID and the rate that it
// gives it. A LID is made of the MGID, so that all processes have the same.
struct Group {
  uint16_t lid = 0;
  uint8_t rate = 0;
};
Group JoinedGroup(const PortImage& port, const uint8_t mgid[16]);

}  // namespace vabi::rdma_cm

#endif  // VABI_SHIMS_RDMA_CM_PATH_H_
