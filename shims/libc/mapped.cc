// SPDX-License-Identifier: BSD-2-Clause
#include "shims/libc/mapped.h"

#include <fcntl.h>
#include <link.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "shims/libc/state.h"
#include "shims/sys/sys.h"

namespace vabi::libc {
namespace {

// Objects that were ever loaded, when it was last told; of this process, or of the one that forked.
std::atomic<unsigned long long> g_told{0};

struct Text {
  char bytes[8192];
  size_t size = 0;
  int fd = -1;
  unsigned long long loaded = 0;

  // Whole lines, so that those of several processes do not mix (O_APPEND).
  void Flush() {
    if (size != 0) sys::Write(fd, bytes, size);
    size = 0;
  }
};

int CountLoaded(dl_phdr_info* info, size_t, void* loaded) {
  *static_cast<unsigned long long*>(loaded) = info->dlpi_adds;
  return 1;
}

int TellOne(dl_phdr_info* info, size_t, void* into) {
  auto* text = static_cast<Text*>(into);
  // The program itself has no name, the vdso no path.
  if (info->dlpi_name == nullptr || info->dlpi_name[0] != '/') return 0;
  const size_t length = std::strlen(info->dlpi_name) + 24;
  if (length > sizeof text->bytes) return 0;
  if (text->size + length > sizeof text->bytes) text->Flush();
  const int written = std::snprintf(text->bytes + text->size, sizeof text->bytes - text->size,
                                    "%d %s\n", sys::GetPid(), info->dlpi_name);
  if (written > 0) text->size += static_cast<size_t>(written);
  return 0;
}

__attribute__((destructor)) void TellAtTheEnd() { TellMapped(); }

}  // namespace

void TellMapped() {
  const char* path = std::getenv("VERBS_ABI_MAPPED");
  if (path == nullptr || path[0] == '\0') return;
  const KeepErrno keep;
  unsigned long long loaded = 0;
  dl_iterate_phdr(CountLoaded, &loaded);
  if (g_told.exchange(loaded, std::memory_order_relaxed) == loaded) return;
  Text text;
  text.fd = sys::Open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (text.fd < 0) return;
  dl_iterate_phdr(TellOne, &text);
  text.Flush();
  sys::Close(text.fd);
}

}  // namespace vabi::libc
