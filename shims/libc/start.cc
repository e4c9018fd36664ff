// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "harness/world/world.h"
#include "shims/libc/descriptors.h"
#include "shims/libc/mapped.h"
#include "shims/libc/paths.h"
#include "shims/libc/state.h"
#include "shims/sys/sys.h"
#include "shims/trace/descriptor.h"
#include "shims/trace/gaps.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/pinned_memory.h"

namespace vabi::libc {

uint8_t g_fd_bits[kMaxFds];
std::atomic<Mode> g_mode{Mode::kNotStarted};

namespace {

const WorldImage* g_world;
std::atomic<int> g_starter{0};  // thread that starts us
std::atomic<bool> g_installed{false};
std::recursive_mutex g_install_mutex;

[[noreturn]] void Refuse(const char* path, const char* reason) {
  char line[768];
  const int length = std::snprintf(line, sizeof line, "verbs-abi: world %s: %s\n", path, reason);
  if (length > 0) {
    sys::Write(2, line, std::min(static_cast<size_t>(length), sizeof line - 1));
  }
  sys::Syscall(SYS_exit_group, 2);
  __builtin_trap();
}

const WorldImage* MapWorld(const char* path) {
  const int fd = sys::Open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) Refuse(path, "cannot be opened; VERBS_ABI_WORLD must name a world file");
  struct stat64 st;
  if (sys::Fstat(fd, &st) < 0 || st.st_size != static_cast<off64_t>(sizeof(WorldImage))) {
    Refuse(path,
           "is of another size than this shim's worlds: write it again with the harness of this "
           "build");
  }
  void* mapped = sys::Mmap(nullptr, sizeof(WorldImage), PROT_READ, MAP_PRIVATE, fd, 0);
  sys::Close(fd);
  if (sys::IsError(mapped)) Refuse(path, "cannot be mapped");
  const auto* image = static_cast<const WorldImage*>(mapped);
  if (std::memcmp(image->magic, kWorldMagic, sizeof kWorldMagic) != 0) {
    Refuse(path, "is not a world file");
  }
  if (image->image_size != sizeof(WorldImage) || image->tables_digest != TablesDigest()) {
    Refuse(
        path,
        "was written for another build of the shim: write it again with the harness of this build");
  }
  return image;
}

// Loaded before the program's own libraries in most cases, but never relied upon: every wrapper
// starts us.
__attribute__((constructor)) void StartEarly() {
  Active();
  TellMapped();
}

}  // namespace

void Start() {
  const KeepErrno keep;
  const int me = sys::GetTid();
  int nobody = 0;
  if (!g_starter.compare_exchange_strong(nobody, me)) {
    // The starting thread itself may come back here through a wrapper: for it there is no world
    // yet.
    while (nobody != me && g_mode.load(std::memory_order_acquire) == Mode::kNotStarted) {
      sys::Syscall(SYS_sched_yield);
    }
    return;
  }
  const char* path = std::getenv("VERBS_ABI_WORLD");
  const char* redirects = std::getenv("VERBS_ABI_REDIRECT");
  const bool has_world = path != nullptr && path[0] != '\0';
  if (!has_world && (redirects == nullptr || redirects[0] == '\0')) {
    g_mode.store(Mode::kPassThrough, std::memory_order_release);
    return;
  }
  if (has_world) {
    g_world = MapWorld(path);
    ApplyMemlockLimit(World(g_world));
  }
  SetUpPaths(g_world, redirects);
  SetUpDescriptors();
  g_mode.store(Mode::kActive, std::memory_order_release);
}

const WorldImage* Image() { return Active() ? g_world : nullptr; }

bool InstallFakeKernels() {
  if (g_installed.load(std::memory_order_acquire)) return true;
  const WorldImage* image = Image();
  if (image == nullptr) return false;
  const std::lock_guard<std::recursive_mutex> lock(g_install_mutex);
  if (!g_installed.load(std::memory_order_relaxed)) {
    if (!InstallWorld(World(image))) {
      trace::Event("unmodelled", "a device of this world has no driver in the shim");
    }
    if (const int fd = trace::Descriptor(); fd >= 0) SetBits(fd, kOwn);
    g_installed.store(true, std::memory_order_release);
  }
  return true;
}

void MoveOwn(int fd) {
  if (fd != trace::Descriptor()) return;
  SetBits(fd, 0);
  if (const int moved = trace::MoveDescriptor(); moved >= 0) SetBits(moved, kOwn);
}

void TraceEvent(const char* name, const char* text) {
  const KeepErrno keep;
  const WorldImage* image = Image();
  if (image == nullptr) return;
  // What a child of vfork opened would count as open in its parent.
  if (!InOthersMemory() && InstallFakeKernels() && trace::Descriptor() >= 0) {
    trace::Event(name, text);
  } else {
    trace::EventTo(image->trace_path, name, text);
  }
}

}  // namespace vabi::libc
