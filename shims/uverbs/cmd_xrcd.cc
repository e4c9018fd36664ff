// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <sys/stat.h>

#include "shims/sys/sys.h"
#include "shims/uverbs/command.h"
#include "shims/uverbs/commands.h"

namespace vabi {

// ib_uverbs_open_xrcd: domains are shared through an inode of any file system.
int OpenXrcd(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_open_xrcd));
  if (const int error = c.Request(request)) return error;
  const int32_t fd = request.S32(VABI_F(ib_uverbs_open_xrcd, fd));
  const uint32_t flags = request.U32(VABI_F(ib_uverbs_open_xrcd, oflags));
  std::lock_guard lock(c.device.shared_mutex());
  std::shared_ptr<XrcDomain> domain;
  std::pair<uint64_t, uint64_t> key = {};
  if (fd != -1) {
    struct stat64 status;
    if (sys::Fstat(fd, &status) != 0) return c.Refuse(RuleId::xrcd_fd);
    key = {status.st_dev, status.st_ino};
    const auto found = c.device.xrc_domains.find(key);
    if (found != c.device.xrc_domains.end()) domain = found->second;
    if (!domain && c.Violates(RuleId::xrcd_not_there, (flags & O_CREAT) == 0)) {
      return c.Refuse(RuleId::xrcd_not_there);
    }
    if (domain && c.Violates(RuleId::xrcd_exclusive, (flags & O_EXCL) != 0)) {
      return c.Refuse(RuleId::xrcd_exclusive);
    }
  }
  Xrcd* xrcd;
  if (const int error = c.New(&xrcd)) return error;
  if (!domain) {
    domain = std::make_shared<XrcDomain>();
    domain->device = &c.device;
    domain->inode_device = key.first;
    domain->inode = key.second;
    if (const int error = c.driver().AllocXrcd(c.call, *domain)) return error;
    if (fd != -1) c.device.xrc_domains[key] = domain;
  }
  if (fd != -1) ++domain->handles;
  xrcd->domain = domain;
  c.Created();
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_open_xrcd_resp));
  reply.Set(VABI_F(ib_uverbs_open_xrcd_resp, xrcd_handle), xrcd->handle);
  return c.Respond(reply);
}

int CloseXrcd(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_close_xrcd));
  if (const int error = c.Request(request)) return error;
  return c.Destroy<Xrcd>(request.Get(VABI_F(ib_uverbs_close_xrcd, xrcd_handle)));
}

}  // namespace vabi
