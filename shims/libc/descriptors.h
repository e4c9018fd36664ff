// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_LIBC_DESCRIPTORS_H_
#define VABI_SHIMS_LIBC_DESCRIPTORS_H_

#include <memory>

#include "shims/file.h"
#include "shims/libc/state.h"
#include "shims/socket_file.h"

// The process' descriptor table beside the kernel's: which descriptors stand for fake file
// descriptions, and what else the shim remembers of a descriptor. Implements FdTable of
// shims/file.h.

namespace vabi::libc {

void SetUpDescriptors();
// Is this a child of vfork? It has its parent's memory and descriptors of its own.
bool InOthersMemory();

// `to` was made from `from` by dup and its like, and whatever `to` was before is closed.
void Duplicated(int from, int to);
// The program closed it; also forgets the bits.
void Closed(int fd);
// All from first to last.
void ClosedRange(unsigned first, unsigned last);
// Descriptors that stand for files and are open beyond exec are lost there; says so in the trace.
void NoteExec();

inline std::shared_ptr<SocketFile> GetSocket(int fd) {
  if ((BitsOf(fd) & (kFake | kSocket)) != (kFake | kSocket)) return nullptr;
  return std::static_pointer_cast<SocketFile>(FdTable::Get(fd));
}

// A set*id call succeeded.
void NoteCredentials();

// The program did something with the file that the fake kernel answered. In a process that
// inherited the file by fork it changed only this process' copy of the kernel's state: says so in
// the trace, once.
void NoteUse(int fd);

// mmap of a descriptor that is fake; apart from the wrapper, whose first bytes a program that
// watches mappings may have replaced by a jump to its own.
[[gnu::noinline]] void* MmapFake(void* address, size_t size, int protection, int flags, int fd,
                                 int64_t offset);

}  // namespace vabi::libc

#endif  // VABI_SHIMS_LIBC_DESCRIPTORS_H_
