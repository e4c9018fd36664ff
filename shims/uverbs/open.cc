// SPDX-License-Identifier: BSD-2-Clause
// FakeKernel::OpenNode: the device nodes that the process may see.
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdio>
#include <cstring>

#include "shims/file.h"
#include "shims/sys/sys.h"
#include "shims/trace/trace.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/faults.h"
#include "shims/uverbs/script.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace {

// A world may put a regular file where the node should be.
class PlainFile : public File {
 public:
  explicit PlainFile(const NodeView& node) : node_(node) {}
  bool StatAs(unsigned int* mode, uint64_t* rdev) const override {
    *mode = S_IFREG | node_.mode;
    *rdev = 0;
    return true;
  }
  const char* Name() const override { return node_.path; }

 private:
  const NodeView& node_;
};

const NodeView* FindNode(const WorldImage& image, const char* path, int* index) {
  for (uint32_t i = 0; i < image.node_count; ++i) {
    if (std::strcmp(image.node[i].path, path) == 0) {
      *index = static_cast<int>(i);
      return &image.node[i];
    }
  }
  return nullptr;
}

// fs/namei.c:acl_permission_check, without ACLs. Root may read and write everything.
bool MayOpen(const WorldImage& image, const NodeView& node, int flags) {
  if (image.check_permissions == 0 || image.uid == 0) return true;
  const int access = flags & O_ACCMODE;
  const uint32_t wanted = (access == O_RDONLY ? 4u : access == O_WRONLY ? 2u : 6u);
  uint32_t bits = node.mode;
  if (image.uid == node.uid) {
    bits >>= 6;
  } else if (image.gid == node.gid) {
    bits >>= 3;
  }
  return (bits & wanted) == wanted;
}

Device* DeviceOf(const WorldImage& image, const NodeView& node) {
  for (uint32_t i = 0; i < image.device_count; ++i) {
    if (image.device[i].major == node.major && image.device[i].minor == node.minor)
      return FindDevice(i);
  }
  return nullptr;
}

}  // namespace

int FakeKernel::OpenNode(const char* path, int flags, Opened* out) {
  const World* world = InstalledWorld();
  if (world == nullptr) return 1;
  const WorldImage& image = world->image();
  int index = -1;
  const NodeView* node = FindNode(image, path, &index);
  if (node == nullptr) return 1;
  trace::Record record;
  record.front_end = trace::FrontEnd::kOpen;
  std::snprintf(record.name, sizeof(record.name), "open");
  Device* device = DeviceOf(image, *node);
  if (device != nullptr) record.device = device->image().name;
  const auto finish = [&](int result, int rule = -1) {
    if (trace::Enabled()) {
      record.result = result;
      record.rule = rule;
      trace::Write(record);
    }
    return result;
  };
  if (const int fault = FaultAt(*world, "open")) {
    record.fault = "errno";
    return finish(-fault);
  }
  const auto refuse = [&](RuleId rule) {
    const RuleEntry& entry = world->Rule(rule);
    return finish(entry.relaxed ? -EXFULL : -entry.error, static_cast<int>(rule));
  };
  if (node->present == 0) return refuse(RuleId::open_no_node);
  if (!MayOpen(image, *node, flags)) return refuse(RuleId::open_permission);
  if (node->kind == 0 && device == nullptr) return refuse(RuleId::open_no_device);
  if (node->kind == 0 && device->node_gone()) return refuse(RuleId::device_gone_open);

  // A memfd stands for it: like the device, it is always ready and refuses epoll.
  const int fd = sys::MemfdCreate("uverbs", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0);
  if (fd < 0) return finish(fd);
  if (node->kind == 0) {
    auto file = std::make_shared<UverbsFile>(*device, index);
    file->set_access_mode(flags);
    ScriptOpened(file);
    out->file = std::move(file);
  } else {
    out->file = std::make_shared<PlainFile>(*node);
  }
  out->file->set_backing_fd(fd);
  out->fd = fd;
  return finish(0);
}

}  // namespace vabi
