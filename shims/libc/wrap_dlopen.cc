// SPDX-License-Identifier: BSD-2-Clause
// dlopen takes the namespace, $ORIGIN and the rest of its caller's surroundings from its return
// address: we must not stand between. So these rewrite the path and jump into the original.
#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "shims/libc/originals.h"
#include "shims/libc/paths.h"

namespace vabi::libc {
namespace {

// Rewritten paths are kept: the original runs after we are gone. There are few.
struct Kept {
  Kept* next;
  char path[kMaxPath];
};
Kept* g_kept;
std::mutex g_kept_mutex;

const char* Keep(const char* path) {
  const std::lock_guard<std::mutex> lock(g_kept_mutex);
  for (Kept* kept = g_kept; kept != nullptr; kept = kept->next) {
    if (std::strcmp(kept->path, path) == 0) return kept->path;
  }
  auto* kept = static_cast<Kept*>(std::malloc(offsetof(Kept, path) + std::strlen(path) + 1));
  if (kept == nullptr) return nullptr;
  std::strcpy(kept->path, path);
  kept->next = g_kept;
  g_kept = kept;
  return kept->path;
}

}  // namespace
}  // namespace vabi::libc

extern "C" {

// Where the jumps go.
__attribute__((visibility("hidden"))) void* vabi_dlopen_target;
__attribute__((visibility("hidden"))) void* vabi_dlmopen_target;

__attribute__((visibility("hidden"), used)) const char* vabi_dlopen_path(const char* file) {
  using namespace vabi::libc;  // NOLINT: this file defines libc's names
  __atomic_store_n(&vabi_dlopen_target, reinterpret_cast<void*>(original::dlopen()),
                   __ATOMIC_RELAXED);
  __atomic_store_n(&vabi_dlmopen_target, reinterpret_cast<void*>(original::dlmopen()),
                   __ATOMIC_RELAXED);
  // A bare name is searched for by the loader, with the library path of the userland.
  if (file == nullptr || std::strchr(file, '/') == nullptr || !MayConcern(file)) return file;
  const KeepErrno keep;
  Located where;
  Locate(AT_FDCWD, file, &where);
  if (where.kind != Located::Kind::kRedirected) return file;
  const char* real = Keep(where.real);
  return real != nullptr ? real : file;
}

}  // extern "C"

#if defined(__x86_64__)
__attribute__((naked)) void* wrap_dlopen(const char*, int) {
  __asm__(
      "push %rdi\n\t"
      "push %rsi\n\t"
      "sub $8, %rsp\n\t"
      "call vabi_dlopen_path\n\t"
      "add $8, %rsp\n\t"
      "pop %rsi\n\t"
      "pop %rdi\n\t"
      "mov %rax, %rdi\n\t"
      "jmp *vabi_dlopen_target(%rip)");
}
__attribute__((naked)) void* wrap_dlmopen(long, const char*, int) {
  __asm__(
      "push %rdi\n\t"
      "push %rdx\n\t"
      "sub $8, %rsp\n\t"
      "mov %rsi, %rdi\n\t"
      "call vabi_dlopen_path\n\t"
      "add $8, %rsp\n\t"
      "pop %rdx\n\t"
      "pop %rdi\n\t"
      "mov %rax, %rsi\n\t"
      "jmp *vabi_dlmopen_target(%rip)");
}
#elif defined(__i386__)
// The arguments stand on the stack, where the path is replaced.
__attribute__((naked)) void* wrap_dlopen(const char*, int) {
  __asm__(
      "sub $8, %esp\n\t"
      "push 12(%esp)\n\t"
      "call vabi_dlopen_path\n\t"
      "add $12, %esp\n\t"
      "mov %eax, 4(%esp)\n\t"
      "call 1f\n"
      "1:\tpop %eax\n\t"
      "add $_GLOBAL_OFFSET_TABLE_+(.-1b), %eax\n\t"
      "jmp *vabi_dlopen_target@GOTOFF(%eax)");
}
__attribute__((naked)) void* wrap_dlmopen(long, const char*, int) {
  __asm__(
      "sub $8, %esp\n\t"
      "push 16(%esp)\n\t"
      "call vabi_dlopen_path\n\t"
      "add $12, %esp\n\t"
      "mov %eax, 8(%esp)\n\t"
      "call 1f\n"
      "1:\tpop %eax\n\t"
      "add $_GLOBAL_OFFSET_TABLE_+(.-1b), %eax\n\t"
      "jmp *vabi_dlmopen_target@GOTOFF(%eax)");
}
#else
// Sibling calls: the compiler turns them into jumps when it optimises.
void* wrap_dlopen(const char* file, int mode) {
  file = vabi_dlopen_path(file);
  return vabi::libc::original::dlopen()(file, mode);
}
void* wrap_dlmopen(long space, const char* file, int mode) {
  file = vabi_dlopen_path(file);
  return vabi::libc::original::dlmopen()(space, file, mode);
}
#endif
