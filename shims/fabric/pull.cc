// SPDX-License-Identifier: BSD-2-Clause
#include "shims/fabric/pull.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>

#include "shims/fabric/memory.h"
#include "shims/sys/sys.h"

namespace vabi::fabric {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kAtOnce = 1u << 20;  // bytes of one system call
bool forbidden = false;

long ReadProcess(int process, uint64_t to, uint64_t from, uint64_t size) {
  iovec local = {reinterpret_cast<void*>(static_cast<uintptr_t>(to)), static_cast<size_t>(size)};
  iovec remote = {reinterpret_cast<void*>(static_cast<uintptr_t>(from)), static_cast<size_t>(size)};
  return sys::Syscall(SYS_process_vm_readv, process, reinterpret_cast<long>(&local), 1,
                      reinterpret_cast<long>(&remote), 1, 0);
}

// Page by page: what cannot be read is zero, what cannot be written is lost.
bool PullSlowly(const Spans& source, uint64_t to, uint64_t from, uint64_t size) {
  bool whole = true;
  uint8_t bounce[kPage];
  for (uint64_t done = 0; done < size;) {
    const uint64_t at = from + done;
    const uint64_t part = std::min(size - done, kPage - (at & (kPage - 1)));
    const long got = ReadProcess(source.process, reinterpret_cast<uintptr_t>(bounce), at, part);
    if (got != static_cast<long>(part)) {
      if (got == -ESRCH) {
        source.lost = true;
        return false;
      }
      memset(bounce, 0, part);
      whole = false;
    }
    whole &= WriteMemory(to + done, bounce, part);
    done += part;
  }
  return whole;
}

bool Pull(const Spans& source, uint64_t to, uint64_t from, uint64_t size) {
  bool whole = true;
  for (uint64_t done = 0; done < size && !source.lost;) {
    const uint64_t part = std::min(size - done, kAtOnce);
    const long got = ReadProcess(source.process, to + done, from + done, part);
    if (got == -ESRCH) {
      source.lost = true;
      return false;
    }
    // From the page with the fault on.
    const uint64_t good = got > 0 ? static_cast<uint64_t>(got) : 0;
    if (good != part)
      whole &= PullSlowly(source, to + done + good, from + done + good, part - good);
    done += part;
  }
  return whole;
}

}  // namespace

bool PullSpans(const Spans& to, const Spans& from, uint64_t length) {
  bool whole = true;
  uint32_t t = 0, f = 0;
  uint64_t t_done = 0, f_done = 0;
  while (length != 0 && t < to.count && f < from.count && !from.lost) {
    const uint64_t size = std::min({length, to.at[t].length - t_done, from.at[f].length - f_done});
    whole &= Pull(from, to.at[t].address + t_done, from.at[f].address + f_done, size);
    length -= size;
    if ((t_done += size) == to.at[t].length) ++t, t_done = 0;
    if ((f_done += size) == from.at[f].length) ++f, f_done = 0;
  }
  return whole && !from.lost;
}

bool CanPull(int process, uint64_t address, uint64_t value) {
  uint64_t seen = 0;
  if (forbidden) return false;
  return ReadProcess(process, reinterpret_cast<uintptr_t>(&seen), address, sizeof(seen)) ==
             static_cast<long>(sizeof(seen)) &&
         seen == value;
}

void ForbidPulling(bool on) { forbidden = on; }

}  // namespace vabi::fabric
