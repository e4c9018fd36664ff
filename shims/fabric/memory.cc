// SPDX-License-Identifier: BSD-2-Clause
#include "shims/fabric/memory.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include <atomic>

#include "shims/sys/sys.h"

#if defined(__x86_64__)
// The guarded loops. Each is a leaf that touches no stack, so the fixups may just return. A copy
// answers how many bytes it did not get to; the swap answers 0, or 1 after a fault.
asm(R"(
        .pushsection .text
        .p2align 4
        .hidden vabi_guard_begin, vabi_guard_end, vabi_guard_copy, vabi_guard_copy_back
        .hidden vabi_guard_swap, vabi_guard_copy_fault, vabi_guard_swap_fault
        .hidden vabi_guard_load, vabi_guard_store
        .globl vabi_guard_begin, vabi_guard_end, vabi_guard_copy, vabi_guard_copy_back
        .globl vabi_guard_swap, vabi_guard_copy_fault, vabi_guard_swap_fault
        .globl vabi_guard_load, vabi_guard_store
vabi_guard_begin:
        .type vabi_guard_copy, @function
vabi_guard_copy:
        .cfi_startproc
        mov %rdx, %rcx
        rep movsb
        mov %rcx, %rax
        ret
        .cfi_endproc
        .size vabi_guard_copy, .-vabi_guard_copy
        .type vabi_guard_copy_back, @function
vabi_guard_copy_back:
        .cfi_startproc
        lea -1(%rdi,%rdx), %rdi
        lea -1(%rsi,%rdx), %rsi
        mov %rdx, %rcx
        std
        rep movsb
        cld
        mov %rcx, %rax
        ret
        .cfi_endproc
        .size vabi_guard_copy_back, .-vabi_guard_copy_back
        .type vabi_guard_swap, @function
vabi_guard_swap:
        .cfi_startproc
        mov %rsi, %rax
        lock cmpxchg %rdx, (%rdi)
        mov %rax, (%rcx)
        xor %eax, %eax
        ret
        .cfi_endproc
        .size vabi_guard_swap, .-vabi_guard_swap
        .type vabi_guard_load, @function
vabi_guard_load:
        .cfi_startproc
        mov (%rdi), %eax
        mov %eax, (%rsi)
        xor %eax, %eax
        ret
        .cfi_endproc
        .size vabi_guard_load, .-vabi_guard_load
        .type vabi_guard_store, @function
vabi_guard_store:
        .cfi_startproc
        movb %sil, (%rdi)
        xor %eax, %eax
        ret
        .cfi_endproc
        .size vabi_guard_store, .-vabi_guard_store
vabi_guard_end:
vabi_guard_copy_fault:
        cld
        mov %rcx, %rax
        ret
vabi_guard_swap_fault:
        mov $1, %eax
        ret
        .popsection
)");
extern "C" {
extern const char vabi_guard_begin[], vabi_guard_end[];
extern const char vabi_guard_copy_fault[], vabi_guard_swap_fault[];
uint64_t vabi_guard_copy(void* to, const void* from, size_t size);
uint64_t vabi_guard_copy_back(void* to, const void* from, size_t size);
int vabi_guard_swap(uint64_t at, uint64_t expected, uint64_t desired, uint64_t* seen);
int vabi_guard_load(uint64_t at, uint32_t* value);
int vabi_guard_store(uint64_t at, uint8_t value);
}
#endif

namespace vabi::fabric {
namespace {

constexpr size_t kPage = 4096;
std::atomic<bool> fast{false};

#if defined(__x86_64__)
struct sigaction previous_segv, previous_bus;

void OnFault(int signal, siginfo_t* info, void* context) {
  auto* machine = &static_cast<ucontext_t*>(context)->uc_mcontext;
  const auto at = static_cast<uintptr_t>(machine->gregs[REG_RIP]);
  if (at >= reinterpret_cast<uintptr_t>(vabi_guard_begin) &&
      at < reinterpret_cast<uintptr_t>(vabi_guard_end) && info->si_code > 0) {
    const bool copy = at < reinterpret_cast<uintptr_t>(vabi_guard_swap);
    machine->gregs[REG_RIP] =
        reinterpret_cast<greg_t>(copy ? vabi_guard_copy_fault : vabi_guard_swap_fault);
    return;
  }
  // Not ours: as if we were not there.
  struct sigaction& previous = signal == SIGBUS ? previous_bus : previous_segv;
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else if (info->si_code > 0 || previous.sa_handler == SIG_DFL) {
    // The instruction runs again and faults with nobody to catch it; a signal that was sent is sent
    // again.
    sigaction(signal, &previous, nullptr);
    if (info->si_code <= 0) raise(signal);
  }
}

bool HandlerIsOurs(int signal) {
  struct sigaction now;
  return sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
         now.sa_sigaction == OnFault;
}

void InstallFor(int signal, struct sigaction* previous) {
  struct sigaction mine = {};
  mine.sa_sigaction = OnFault;
  mine.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  sigemptyset(&mine.sa_mask);
  sigaction(signal, &mine, previous);
}

// Bytes not copied.
size_t GuardedCopy(uint8_t* to, const uint8_t* from, size_t size) {
  if (to <= from || to >= from + size) return vabi_guard_copy(to, from, size);
  return vabi_guard_copy_back(to, from, size);
}
#endif

size_t ToPageEnd(uint64_t address) { return kPage - (address & (kPage - 1)); }

// Page by page, through the kernel: what cannot be read is zero, what cannot be written is lost.
bool SlowCopy(uint64_t to, uint64_t from, size_t size) {
  const bool back = to > from && to < from + size;
  bool whole = true;
  uint8_t bounce[kPage];
  for (size_t done = 0; done < size;) {
    size_t chunk = size - done < kPage ? size - done : kPage;
    uint64_t source, target;
    if (back) {
      // The last bytes first; chunks end where a page begins.
      const uint64_t source_end = from + size - done, target_end = to + size - done;
      const size_t in_source = (source_end - 1) % kPage + 1,
                   in_target = (target_end - 1) % kPage + 1;
      if (in_source < chunk) chunk = in_source;
      if (in_target < chunk) chunk = in_target;
      source = source_end - chunk;
      target = target_end - chunk;
    } else {
      source = from + done;
      target = to + done;
      if (ToPageEnd(source) < chunk) chunk = ToPageEnd(source);
      if (ToPageEnd(target) < chunk) chunk = ToPageEnd(target);
    }
    if (sys::CopyFromUser(bounce, source, chunk) != 0) {
      memset(bounce, 0, chunk);
      whole = false;
    }
    if (sys::CopyToUser(target, bounce, chunk) != 0) whole = false;
    done += chunk;
  }
  return whole;
}

}  // namespace

bool CopyMemory(uint64_t to, uint64_t from, size_t size) {
#if defined(__x86_64__)
  if (fast.load(std::memory_order_relaxed)) [[likely]] {
    auto* target = reinterpret_cast<uint8_t*>(to);
    const auto* source = reinterpret_cast<const uint8_t*>(from);
    const size_t rest = GuardedCopy(target, source, size);
    if (rest == 0) [[likely]]
      return true;
    // From the page with the fault on, bit by bit.
    const bool back = to > from && to < from + size;
    SlowCopy(back ? to : to + (size - rest), back ? from : from + (size - rest), rest);
    return false;
  }
#endif
  return SlowCopy(to, from, size);
}

bool ReadMemory(void* to, uint64_t from, size_t size) {
  return CopyMemory(reinterpret_cast<uintptr_t>(to), from, size);
}

bool WriteMemory(uint64_t to, const void* from, size_t size) {
  return CopyMemory(to, reinterpret_cast<uintptr_t>(from), size);
}

bool SwapMemory(uint64_t at, uint64_t expected, uint64_t desired, uint64_t* seen) {
#if defined(__x86_64__)
  if (fast.load(std::memory_order_relaxed))
    return vabi_guard_swap(at, expected, desired, seen) == 0;
#endif
  // Without the guard: the page is looked at first, then taken to be there. Of all accesses only
  // this one can still fault, when another thread unmaps in between.
  if (sys::CopyFromUser(seen, at, sizeof(*seen)) != 0) return false;
  if (sys::CopyToUser(at, seen, 0) != 0 || !sys::UserRangeMapped(at, sizeof(*seen), true))
    return false;
  auto* word = reinterpret_cast<uint64_t*>(at);
  __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  *seen = expected;
  return true;
}

bool LoadMemory32(uint64_t at, uint32_t* value) {
#if defined(__x86_64__)
  if (fast.load(std::memory_order_relaxed)) return vabi_guard_load(at, value) == 0;
#endif
  return sys::CopyFromUser(value, at, sizeof(*value)) == 0;
}

bool StoreMemory8(uint64_t at, uint8_t value) {
#ifndef __SANITIZE_THREAD__  // which knows no fences
  std::atomic_thread_fence(std::memory_order_release);
#endif
#if defined(__x86_64__)
  if (fast.load(std::memory_order_relaxed)) return vabi_guard_store(at, value) == 0;
#endif
  return sys::CopyToUser(at, &value, sizeof(value)) == 0;
}

void GuardInstall() {
#if defined(__x86_64__)
  static std::atomic<bool> installed{false};
  if (installed.exchange(true)) return;
  InstallFor(SIGSEGV, &previous_segv);
  InstallFor(SIGBUS, &previous_bus);
  GuardCheck();
#endif
}

void GuardCheck() {
#if defined(__x86_64__)
  fast.store(HandlerIsOurs(SIGSEGV) && HandlerIsOurs(SIGBUS), std::memory_order_relaxed);
#endif
}

}  // namespace vabi::fabric
