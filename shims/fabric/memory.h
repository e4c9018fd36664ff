// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_MEMORY_H_
#define VABI_SHIMS_FABRIC_MEMORY_H_

#include <cstddef>
#include <cstdint>

// The program's memory as the NIC reaches it. A kernel pins registered pages, so a program may
// unmap them and the NIC still finds them; here they are gone. Every access is therefore guarded: a
// fault ends in a result, never in a signal that the program sees.
//
// How: the copy loops stand in a section of their own. A handler of SIGSEGV and SIGBUS knows its
// bounds, and moves a fault there to the loop's exit; any other fault goes to the handler that was
// there before, or takes its default course. It is put in place when the first memory key is made.
// Where a program (or a sanitizer, a JVM) has replaced the handler since, copies go through the
// kernel (process_vm_readv: about ten times as slow for small ones): GuardCheck finds out, once for
// each burst of work.

namespace vabi::fabric {

// Reads or writes `size` bytes of the program's memory. False: not all of it could be reached; what
// could be was copied (reads: the rest is zero). Overlapping ranges are fine.
bool ReadMemory(void* to, uint64_t from, size_t size);
bool WriteMemory(uint64_t to, const void* from, size_t size);
// Both sides are the program's. Bytes that cannot be read count as zero, those that cannot be
// written are lost.
bool CopyMemory(uint64_t to, uint64_t from, size_t size);
// Compare and swap of 8 aligned bytes: false when they cannot be reached; *seen is what was there.
bool SwapMemory(uint64_t at, uint64_t expected, uint64_t desired, uint64_t* seen);
// One load of 4 bytes, never torn where `at` is aligned: doorbell records. False: not reached.
bool LoadMemory32(uint64_t at, uint32_t* value);
// One store of a byte, after everything that was written before it: the owner of a queue element.
bool StoreMemory8(uint64_t at, uint8_t value);

// Puts the handler in place (once for the process).
void GuardInstall();
// Is the handler still ours? Decides how the next copies go. Cheap enough for once a burst (one
// system call).
void GuardCheck();

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_MEMORY_H_
