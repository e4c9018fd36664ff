// SPDX-License-Identifier: BSD-2-Clause
#include "shims/libc/interceptable.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "shims/sys/sys.h"

namespace vabi::libc {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__i386__)
constexpr uint16_t kMachine = EM_386;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#endif
constexpr unsigned char kClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;

void Copy(const char* text, char* to, size_t room) {
  if (room == 0) return;
  const size_t length = std::min(std::strlen(text), room - 1);
  std::memcpy(to, text, length);
  to[length] = '\0';
}

Interceptable JudgeScript(const char* line, char* detail, size_t room) {
  const char* start = line + 2 + std::strspn(line + 2, " \t");
  char interpreter[256];
  Copy(start, interpreter, sizeof interpreter);
  interpreter[std::strcspn(interpreter, " \t\r\n")] = '\0';
  Copy(interpreter, detail, room);
  return Interceptable::kScript;
}

Interceptable JudgeElf(int fd, const ElfW(Ehdr) & header, char* detail, size_t room) {
  if (header.e_ident[EI_CLASS] != kClass || header.e_machine != kMachine) {
    return Interceptable::kOtherClass;
  }
  // Bounded: a real program has a dozen.
  for (unsigned i = 0; i < header.e_phnum && i < 256; ++i) {
    ElfW(Phdr) part;
    if (sys::ReadAt(fd, &part, sizeof part, header.e_phoff + i * sizeof part) != sizeof part) break;
    if (part.p_type != PT_INTERP) continue;
    char loader[256] = {};
    const size_t size = std::min<size_t>(part.p_filesz, sizeof loader - 1);
    if (sys::ReadAt(fd, loader, size, part.p_offset) < 0) break;
    Copy(loader, detail, room);
    const char* name = std::strrchr(loader, '/');
    const bool glibc = std::strncmp(name ? name + 1 : loader, "ld-linux", 8) == 0;
    return glibc ? Interceptable::kYes : Interceptable::kOtherLibc;
  }
  return Interceptable::kStatic;
}

}  // namespace

Interceptable Judge(const char* path, char* detail, size_t room) {
  if (room > 0) detail[0] = '\0';
  const int fd = sys::Open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Interceptable::kUnreadable;
  union {
    char text[256];
    ElfW(Ehdr) header;
  } start = {};
  const long size = sys::ReadAt(fd, &start, sizeof start - 1, 0);
  Interceptable verdict = Interceptable::kNotElf;
  if (size < 0) {
    verdict = Interceptable::kUnreadable;
  } else if (size > 2 && start.text[0] == '#' && start.text[1] == '!') {
    start.text[sizeof start.text - 1] = '\0';
    verdict = JudgeScript(start.text, detail, room);
  } else if (size >= static_cast<long>(sizeof(ElfW(Ehdr))) &&
             std::memcmp(start.header.e_ident, ELFMAG, SELFMAG) == 0) {
    verdict = JudgeElf(fd, start.header, detail, room);
  }
  struct stat64 st;
  if (verdict == Interceptable::kYes && sys::Fstat(fd, &st) == 0 &&
      (st.st_mode & (S_ISUID | S_ISGID))) {
    verdict = Interceptable::kSetId;
  }
  sys::Close(fd);
  return verdict;
}

const char* Describe(Interceptable verdict) {
  switch (verdict) {
    case Interceptable::kYes:
      return "yes";
    case Interceptable::kScript:
      return "a script: its interpreter decides";
    case Interceptable::kUnreadable:
      return "cannot be read";
    case Interceptable::kNotElf:
      return "neither an ELF program nor a script";
    case Interceptable::kOtherClass:
      return "built for another machine or word size than the shim";
    case Interceptable::kStatic:
      return "statically linked: it has no loader that could preload the shim";
    case Interceptable::kOtherLibc:
      return "uses another C library than glibc";
    case Interceptable::kSetId:
      return "set-user-id or set-group-id: its loader ignores preloaded libraries";
  }
  return "";
}

}  // namespace vabi::libc
