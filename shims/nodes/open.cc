// SPDX-License-Identifier: BSD-2-Clause
// FakeKernel::OpenNode: the device nodes that the process may see.
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdio>
#include <cstring>

#include "harness/world/nodes.h"
#include "shims/file.h"
#include "shims/rdma_cm/cm_file.h"
#include "shims/sys/sys.h"
#include "shims/trace/decision.h"
#include "shims/umad/umad_file.h"
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

// The port behind a node of ib_umad.
struct MadPort {
  Device* device = nullptr;
  uint8_t port = 0;
  bool subnet_manager = false;
};
MadPort MadPortOf(const WorldImage& image, const NodeView& node) {
  MadPort found;
  ForEachMadNode(image, [&](const MadNode& mad) {
    if (node.major != kMadMajor || node.minor != mad.minor) return;
    found = {FindDevice(mad.device), mad.port, mad.subnet_manager};
  });
  return found;
}

// A new descriptor with the file behind it: 0, or -errno.
int Give(int fd, std::shared_ptr<File> file, Opened* out) {
  if (fd < 0) return fd;
  file->set_backing_fd(fd);
  *out = {fd, std::move(file)};
  return 0;
}

// core/user_mad.c: ib_umad_open, ib_umad_sm_open
int OpenMad(Decision& call, const MadPort& at, const NodeView& node, int flags, Opened* out) {
  if (at.device->node_gone()) return call.Refuse(RuleId::umad_open_gone);
  std::shared_ptr<File> file;
  if (!at.subnet_manager) {
    auto made = std::make_shared<umad::UmadFile>(*at.device, at.port, &node);
    made->set_access_mode(flags);
    file = std::move(made);
  } else if (const int error = umad::IssmFile::Open(call, *at.device, at.port, &node,
                                                    (flags & O_NONBLOCK) != 0, &file)) {
    return error;
  }
  return Give(sys::EventFd(0, (flags & O_CLOEXEC) != 0 ? EFD_CLOEXEC : 0), std::move(file), out);
}

int OpenUverbs(Decision& call, Device& device, int index, int flags, Opened* out) {
  if (device.node_gone()) return call.Refuse(RuleId::device_gone_open);
  auto file = std::make_shared<UverbsFile>(device, index);
  file->set_access_mode(flags);
  // A memfd stands for it: like the device, it is always ready and refuses epoll.
  const int error =
      Give(sys::MemfdCreate("uverbs", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0), file, out);
  if (error == 0) ScriptOpened(file);
  return error;
}

int Open(Decision& call, const NodeView& node, int index, int flags, Opened* out) {
  const WorldImage& image = call.world.image();
  if (const int fault = FaultAt(call.world, "open")) {
    call.record.fault = "errno";
    return -fault;
  }
  if (node.present == 0) return call.Refuse(RuleId::open_no_node);
  if (!MayOpen(image, node, flags)) return call.Refuse(RuleId::open_permission);
  if (node.kind != 0) {
    return Give(sys::MemfdCreate("node", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0),
                std::make_shared<PlainFile>(node), out);
  }
  if (Device* device = DeviceOf(image, node)) return OpenUverbs(call, *device, index, flags, out);
  if (node.major == kMiscMajor && node.minor == kRdmaCmMinor) {
    auto made = std::make_shared<rdma_cm::CmFile>(call.world, &node);
    made->set_access_mode(flags);
    return Give(sys::EventFd(0, (flags & O_CLOEXEC) != 0 ? EFD_CLOEXEC : 0), std::move(made), out);
  }
  const MadPort mad = MadPortOf(image, node);
  if (mad.device != nullptr) return OpenMad(call, mad, node, flags, out);
  return call.Refuse(RuleId::open_no_device);
}

}  // namespace

int FakeKernel::OpenNode(const char* path, int flags, Opened* out) {
  const World* world = InstalledWorld();
  if (world == nullptr) return 1;
  const WorldImage& image = world->image();
  int index = -1;
  const NodeView* node = FindNode(image, path, &index);
  if (node == nullptr) return 1;
  const Device* device = DeviceOf(image, *node);
  if (device == nullptr) device = MadPortOf(image, *node).device;
  Decision call(*world, trace::FrontEnd::kOpen, device != nullptr ? device->image().name : "",
                "open");
  return static_cast<int>(call.Finish(Open(call, *node, index, flags, out)));
}

}  // namespace vabi
