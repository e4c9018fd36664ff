// SPDX-License-Identifier: BSD-2-Clause
// The shim loads into programs with older C libraries than the one it is built on (architecture: no
// symbol newer than GLIBC_2.28, and none newer than 2.17 where that can be had). What the static
// libstdc++ and libgcc, and the shim itself, want from newer ones is bound to its old version here,
// or written anew. None of it is exported. abi_floor_test holds the finished library against the
// limit. The i386 shim runs beside C libraries of its own userlands alone, none of which is older.
#if !defined(__i386__)
#  include <link.h>
#  include <sys/syscall.h>
#  include <sys/types.h>

#  include <cerrno>
#  include <cstddef>
#  include <cstdint>

#  include "shims/sys/sys.h"

#  if defined(__x86_64__)
#    define VABI_OLDEST "GLIBC_2.2.5"
#  elif defined(__aarch64__)
#    define VABI_OLDEST "GLIBC_2.17"
#  endif

// Defines NAME for this library alone, which calls NAME of the oldest version.
#  define VABI_OLD(ret, name, parameters, arguments)              \
    extern "C" ret vabi_old_##name parameters;                    \
    __asm__(".symver vabi_old_" #name "," #name "@" VABI_OLDEST); \
    extern "C" __attribute__((visibility("hidden")))              \
    ret vabi_new_##name parameters __asm__(#name);                \
    ret vabi_new_##name parameters { return vabi_old_##name arguments; }

// In libdl and libpthread until 2.33, in libc with a new version since 2.34.
using Start = void* (*)(void*);
VABI_OLD(int, dladdr, (const void* address, void* info), (address, info))
VABI_OLD(char*, dlerror, (), ())
VABI_OLD(int, pthread_create, (void* thread, const void* attributes, Start start, void* argument),
         (thread, attributes, start, argument))
VABI_OLD(int, pthread_join, (unsigned long thread, void** result), (thread, result))
VABI_OLD(int, pthread_detach, (unsigned long thread), (thread))
VABI_OLD(int, pthread_once, (int* control, void (*routine)()), (control, routine))
VABI_OLD(int, pthread_key_create, (unsigned* key, void (*destroy)(void*)), (key, destroy))
VABI_OLD(int, __pthread_key_create, (unsigned* key, void (*destroy)(void*)), (key, destroy))
VABI_OLD(int, pthread_key_delete, (unsigned key), (key))
VABI_OLD(void*, pthread_getspecific, (unsigned key), (key))
VABI_OLD(int, pthread_setspecific, (unsigned key, const void* value), (key, value))
VABI_OLD(int, pthread_sigmask, (int how, const void* set, void* old), (how, set, old))
VABI_OLD(int, pthread_mutex_trylock, (void* mutex), (mutex))

extern "C" {

#  define VABI_HIDDEN __attribute__((visibility("hidden")))

// 2.32: false is always a right answer.
VABI_HIDDEN char __libc_single_threaded = 0;

// 2.25
VABI_HIDDEN int vabi_getentropy(void* buffer, size_t size) __asm__("getentropy");
int vabi_getentropy(void* buffer, size_t size) {
  const long result =
      vabi::sys::Syscall(SYS_getrandom, reinterpret_cast<long>(buffer), static_cast<long>(size));
  if (result == static_cast<long>(size)) return 0;
  errno = result < 0 ? static_cast<int>(-result) : EIO;
  return -1;
}

// 2.36
VABI_HIDDEN uint32_t vabi_arc4random() __asm__("arc4random");
uint32_t vabi_arc4random() {
  uint32_t value = 0;
  vabi_getentropy(&value, sizeof value);
  return value;
}

// 2.35: how libgcc finds the unwind table of an address (struct dl_find_object of <dlfcn.h>).
struct VabiFoundObject {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  struct link_map* map;
  void* eh_frame;
  unsigned long long reserved[7];
};

}  // extern "C"

namespace {

struct Search {
  uintptr_t address;
  VabiFoundObject* out;
};

int LookAt(struct dl_phdr_info* object, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  const void* eh_frame = nullptr;
  bool inside = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const uintptr_t start = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && search->address >= start &&
        search->address - start < part.p_memsz) {
      inside = true;
      search->out->map_start = reinterpret_cast<void*>(start);
      search->out->map_end = reinterpret_cast<void*>(start + part.p_memsz);
    }
    if (part.p_type == PT_GNU_EH_FRAME) eh_frame = reinterpret_cast<void*>(start);
  }
  if (!inside || eh_frame == nullptr) return 0;
  search->out->eh_frame = const_cast<void*>(eh_frame);
  return 1;
}

}  // namespace

extern "C" VABI_HIDDEN int vabi_dl_find_object(void* address,
                                               VabiFoundObject* out) __asm__("_dl_find_object");
int vabi_dl_find_object(void* address, VabiFoundObject* out) {
  *out = {};
  Search search{reinterpret_cast<uintptr_t>(address), out};
  return dl_iterate_phdr(LookAt, &search) == 1 ? 0 : -1;
}
#endif
