// SPDX-License-Identifier: BSD-2-Clause
#include "shims/rdma_cm/cm_file.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstring>

#include "shims/rdma_cm/commands.h"
#include "shims/rdma_cm/manager.h"
#include "shims/sys/sys.h"

namespace vabi::rdma_cm {
namespace {

// Its address tells this kind of file apart.
char const kName[] = "/dev/infiniband/rdma_cm";

// A process that ends without closing its files: the kernel closes them.
[[gnu::destructor]] void CloseAtTheEnd() {
  if (!Manager::InUse()) return;
  Manager& manager = Manager::Get();
  const auto lock = manager.Lock();
  manager.DestroyEverything();
  manager.Drain();
}

}  // namespace

CmFile::CmFile(const World& world, const NodeView* node)
    : world_(world),
      node_(node),
      opener_(sys::GetPid()),
      opener_credentials_(FdTable::CredentialGeneration()) {}

const char* CmFile::Name() const { return kName; }

std::shared_ptr<CmFile> CmFile::From(const std::shared_ptr<File>& file) {
  if (!file || file->Name() != kName) return nullptr;
  return std::static_pointer_cast<CmFile>(file);
}

bool CmFile::StatAs(unsigned int* mode, uint64_t* rdev) const {
  if (node_ == nullptr) return false;
  *mode = S_IFCHR | node_->mode;
  *rdev = makedev(node_->major, node_->minor);
  return true;
}

// ucma_close
void CmFile::Release() {
  Manager& manager = Manager::Get();
  const auto lock = manager.Lock();
  manager.DestroyAll(this);
  manager.Drain();
  events_.clear();
}

void CmFile::Signal() {
  const bool wanted = !events_.empty();
  if (wanted) turns_.Next();
  if (wanted == signalled_ || backing_fd() < 0) return;
  uint64_t count = 1;
  if (wanted) {
    sys::Write(backing_fd(), &count, sizeof(count));
  } else if (sys::Poll(backing_fd(), POLLIN, 0) == 1) {
    sys::Read(backing_fd(), &count, sizeof(count));
  }
  signalled_ = wanted;
}

ssize_t CmFile::Read(void*, size_t, bool) { return CheckRead(); }

// ucma_write
ssize_t CmFile::Write(const void* user, size_t size) {
  if (const int error = CheckWrite()) return error;
  Decision call(world_, trace::FrontEnd::kWrite, "", "rdma_cm:write");
  const auto finish = [&](long result) { return static_cast<ssize_t>(call.Finish(result)); };
  const bool same =
      opener_ == sys::GetPid() && opener_credentials_ == FdTable::CredentialGeneration();
  if (call.Violates(RuleId::rdma_cm_credentials, !same))
    return finish(call.Refuse(RuleId::rdma_cm_credentials));
  struct {
    uint32_t command;
    uint16_t in, out;
  } header;
  if (size < sizeof(header)) return finish(call.Refuse(RuleId::rdma_cm_header_short));
  const uint64_t at = reinterpret_cast<uintptr_t>(user);
  if (sys::CopyFromUser(&header, at, sizeof(header)) != 0)
    return finish(call.Refuse(RuleId::rdma_cm_header_fault));
  call.record.command = static_cast<int32_t>(header.command);
  call.record.core_in = header.in;
  call.record.core_out = header.out;
  if (header.command >= static_cast<uint64_t>(world_.Knob(KnobId::rdma_cm_commands)))
    return finish(call.Refuse(RuleId::rdma_cm_command_range));
  if (call.Violates(RuleId::rdma_cm_length, header.in + sizeof(header) > size))
    return finish(call.Refuse(RuleId::rdma_cm_length));
  const long result =
      RunCommand(call, *this, header.command, at + sizeof(header), header.in, header.out);
  return finish(result == 0 ? static_cast<long>(size) : result);
}

}  // namespace vabi::rdma_cm
