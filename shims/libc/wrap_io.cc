// SPDX-License-Identifier: BSD-2-Clause
// Reading, writing, ioctl and mmap of a descriptor.
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstdarg>
#include <memory>
#include <new>
#include <vector>

#include "harness/world/world.h"
#include "shims/libc/descriptors.h"
#include "shims/libc/mappings.h"
#include "shims/libc/originals.h"
#include "shims/sys/blocking.h"
#include "shims/sys/sys.h"

extern "C" [[noreturn]] void __chk_fail();

namespace vabi::libc {
namespace {

// A value that only its owner destroys: what unwinds past it leaves it alone.
template <typename Type>
union Unguarded {
  Unguarded() {}
  ~Unguarded() {}
  Type value;
};

// A thread may be cancelled while it reads (shims/sys/waiting.h); then its hold on the file stays.
[[gnu::noinline]] ssize_t ReadFake(int fd, void* buffer, size_t size) {
  Unguarded<std::shared_ptr<File>> file;
  new (&file.value) std::shared_ptr<File>(FdTable::Get(fd));
  const int saved = errno;
  ssize_t result;
  if (file.value == nullptr) {
    result = sys::Read(fd, buffer, size);
  } else {
    NoteUse(fd);  // before: events of the parent's never arrive here
    result = file.value->Read(buffer, size, sys::IsNonBlocking(fd));
  }
  file.value.~shared_ptr();
  errno = saved;
  return result;
}

// The same: rdma_cm's events are asked for by writing.
[[gnu::noinline]] ssize_t WriteFake(int fd, const void* buffer, size_t size) {
  Unguarded<std::shared_ptr<File>> file;
  new (&file.value) std::shared_ptr<File>(FdTable::Get(fd));
  const int saved = errno;
  ssize_t result;
  if (file.value == nullptr) {
    result = sys::Write(fd, buffer, size);
  } else {
    result = file.value->Write(buffer, size);
    if (result >= 0) NoteUse(fd);
  }
  file.value.~shared_ptr();
  errno = saved;
  return result;
}

template <typename Transfer>
ssize_t EachOf(std::vector<struct ::iovec>& parts, const struct ::iovec* user, int flags, int mode,
               Transfer transfer) {
  const size_t bytes = parts.size() * sizeof(struct ::iovec);
  if (sys::CopyFromUser(parts.data(), reinterpret_cast<uintptr_t>(user), bytes) != 0)
    return -EFAULT;
  size_t room = 0x7ffff000;  // MAX_RW_COUNT: the rest is cut off
  for (struct ::iovec& part : parts) {
    if (static_cast<ssize_t>(part.iov_len) < 0) return -EINVAL;
    part.iov_len = std::min(part.iov_len, room);
    room -= part.iov_len;
  }
  if (mode != 0) return mode;
  if (room == 0x7ffff000) return 0;
  if (flags & ~RWF_HIPRI) return -EOPNOTSUPP;
  ssize_t total = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && parts[i].iov_len == 0) continue;  // iov_iter_advance goes past these
    const ssize_t done = transfer(parts[i].iov_base, parts[i].iov_len);
    if (done < 0) return total > 0 ? total : done;
    total += done;
    if (static_cast<size_t>(done) != parts[i].iov_len) break;
  }
  return total;
}

// fs/read_write.c: vfs_readv, vfs_writev: lib/iov_iter.c:__import_iovec, then do_loop_readv_writev:
// one call for each part, until one is short or fails. `mode`: what the file's mode makes of it, 0
// or -errno, which comes before the list or behind it. Threads may be cancelled in there, too.
template <typename Transfer>
ssize_t EachPart(const struct ::iovec* user, int count, int flags, int mode, Transfer transfer) {
  constexpr int kMaxParts = 1024;  // UIO_MAXIOV
  const WorldImage* image = Image();
  const bool mode_first = image == nullptr || World(image).Knob(KnobId::vectors_mode_first) != 0;
  if (mode != 0 && mode_first) return mode;
  if (count < 0 || count > kMaxParts) return -EINVAL;
  Unguarded<std::vector<struct ::iovec>> held;
  new (&held.value) std::vector<struct ::iovec>(static_cast<size_t>(count));
  const ssize_t result = EachOf(held.value, user, flags, mode, transfer);
  held.value.~vector();
  return result;
}

// False: not open, or for its path only.
[[gnu::noinline]] bool ModeOf(int fd, int (File::*check)() const, int* mode) {
  const std::shared_ptr<File> file = FdTable::Get(fd);
  if (file == nullptr || file->PathOnly()) return false;
  *mode = (file.get()->*check)();
  return true;
}

ssize_t ReadParts(int fd, const struct ::iovec* parts, int count, int flags) {
  int mode;
  if (!ModeOf(fd, &File::CheckRead, &mode)) return -EBADF;
  return EachPart(parts, count, flags, mode,
                  [fd](void* part, size_t size) { return ReadFake(fd, part, size); });
}
ssize_t WriteParts(int fd, const struct ::iovec* parts, int count, int flags) {
  int mode;
  if (!ModeOf(fd, &File::CheckWrite, &mode)) return -EBADF;
  return EachPart(parts, count, flags, mode,
                  [fd](void* part, size_t size) { return WriteFake(fd, part, size); });
}

[[gnu::noinline]] long IoctlFake(int fd, unsigned long request, void* argument) {
  switch (request) {
    // fs/ioctl.c:do_vfs_ioctl answers these before the device sees them.
    case FIOCLEX:
    case FIONCLEX:
    case FIONBIO:
    case FIOASYNC:
      return sys::Syscall(SYS_ioctl, fd, static_cast<long>(request),
                          reinterpret_cast<long>(argument));
    default:
      break;
  }
  const std::shared_ptr<File> file = FdTable::Get(fd);
  if (file == nullptr) return -EBADF;
  const KeepErrno keep;
  const long result = file->Ioctl(request, argument);
  if (result >= 0) NoteUse(fd);
  return result;
}

// Is there a position in it (FMODE_PREAD, FMODE_PWRITE)? The devices (stream_open) and event files
// have none, attribute files do. 0, or -errno.
int CheckPosition(int fd, off64_t offset) {
  if (offset < 0) return -EINVAL;
  const std::shared_ptr<File> file = FdTable::Get(fd);
  if (file == nullptr || file->PathOnly()) return -EBADF;
  unsigned mode = 0;
  uint64_t rdev = 0;
  return file->StatAs(&mode, &rdev) && S_ISREG(mode) ? 0 : -ESPIPE;
}

ssize_t ReadAt(int fd, void* buffer, size_t size, off64_t offset) {
  const int error = CheckPosition(fd, offset);
  return error != 0 ? error : ReadFake(fd, buffer, size);
}
ssize_t WriteAt(int fd, const void* buffer, size_t size, off64_t offset) {
  const int error = CheckPosition(fd, offset);
  return error != 0 ? error : WriteFake(fd, buffer, size);
}

using Parts = ssize_t (*)(int fd, const struct ::iovec* parts, int count, int flags);

ssize_t PartsAt(Parts run, int fd, const struct ::iovec* parts, int count, off64_t offset,
                int flags = 0) {
  const int error = CheckPosition(fd, offset);
  return error != 0 ? error : run(fd, parts, count, flags);
}
// preadv2, pwritev2: -1 is the file's own position.
ssize_t PartsHere(Parts run, int fd, const struct ::iovec* parts, int count, off64_t offset,
                  int flags) {
  return offset == -1 ? run(fd, parts, count, flags)
                      : PartsAt(run, fd, parts, count, offset, flags);
}

bool IsFake(int fd) { return VABI_UNLIKELY((BitsOf(fd) & kFake) != 0); }

// What mmap refuses before the device hears of it, in the kernel's order
// (arch/x86/kernel/sys_x86_64.c:mmap, mm/mmap.c:ksys_mmap_pgoff and do_mmap): 0, or -errno.
int CheckMapping(const File* file, const void* address, size_t size, int protection, int flags,
                 int64_t offset) {
  constexpr uint64_t kPageMask = 4095, kTaskSize = 0x7ffffffff000;
  // Flags that no kernel minds (include/linux/mman.h:LEGACY_MAP_MASK); uverbs_fops names no others
  // in mmap_supported_flags.
  constexpr int kLegacy = MAP_SHARED | MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_DENYWRITE |
                          MAP_EXECUTABLE | MAP_GROWSDOWN | MAP_LOCKED | MAP_NORESERVE |
                          MAP_POPULATE | MAP_NONBLOCK | MAP_STACK | MAP_HUGETLB | MAP_32BIT |
                          21 << 26 | 30 << 26;  // MAP_HUGE_2MB, MAP_HUGE_1GB
  if ((static_cast<uint64_t>(offset) & kPageMask) != 0) return -EINVAL;
  if (file == nullptr || file->PathOnly()) return -EBADF;
  if ((flags & MAP_HUGETLB) != 0) return -EINVAL;
  if (size == 0) return -EINVAL;
  if (size > kTaskSize) return -ENOMEM;
  if ((flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0 &&
      (reinterpret_cast<uintptr_t>(address) & kPageMask) != 0) {
    return -EINVAL;
  }
  const WorldImage* image = Image();
  const int64_t checks = image == nullptr ? 2 : World(image).Knob(KnobId::mmap_checks);
  const uint64_t last_page = (UINT64_MAX - ((size + kPageMask) & ~kPageMask)) >> 12;
  if (checks >= 2 && static_cast<uint64_t>(offset) >> 12 > last_page) return -EOVERFLOW;
  const int type = flags & MAP_TYPE;
  if (type == MAP_SHARED_VALIDATE && checks >= 1) {
    if ((flags & ~kLegacy) != 0) return -EOPNOTSUPP;
  } else if (type != MAP_SHARED && type != MAP_PRIVATE) {
    return -EINVAL;
  }
  if (type != MAP_PRIVATE && (protection & PROT_WRITE) != 0 && file->CheckWrite() == -EBADF)
    return -EACCES;
  if (file->CheckRead() == -EBADF) return -EACCES;
  return file->IsNode() && (flags & MAP_GROWSDOWN) != 0 ? -EINVAL : 0;
}

// Anything else than a device was mapped there, or nothing (MAP_FAILED, which lies nowhere).
void* Mapped(void* address, size_t size) {
  if (VABI_UNLIKELY(MayMapDevice(address, size)))
    ForgetMappings(reinterpret_cast<uintptr_t>(address), size);
  return address;
}

// Is the mapping one of a device or of a sysfs file?
bool MapsOurs(int fd, int flags) {
  return VABI_UNLIKELY((BitsOf(fd) & (kFake | kSysfs)) != 0) && !(flags & MAP_ANONYMOUS);
}

}  // namespace

void* MmapFake(void* address, size_t size, int protection, int flags, int fd, int64_t offset) {
  const std::shared_ptr<File> file = FdTable::Get(fd);
  // fs/kernfs/file.c:kernfs_fop_mmap: attributes cannot be mapped, and folders of no file system
  // can.
  long result = (BitsOf(fd) & (kFake | kSysfs)) == kSysfs
                    ? -ENODEV
                    : CheckMapping(file.get(), address, size, protection, flags, offset);
  if (result == 0) {
    const KeepErrno keep;
    result = file->Mmap(address, size, protection, flags, offset);
    if (result >= 0 || result < -4095) NoteUse(fd);
  }
  if (result < 0 && result >= -4095) {
    errno = static_cast<int>(-result);
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(result);
}

}  // namespace vabi::libc

using namespace vabi::libc;  // NOLINT: this file defines libc's names

ssize_t wrap_read(int fd, void* buffer, size_t size) {
  if (IsFake(fd)) return Answer(ReadFake(fd, buffer, size));
  return original::read()(fd, buffer, size);
}
ssize_t wrap___read_chk(int fd, void* buffer, size_t size, size_t room) {
  if (size > room) __chk_fail();
  return wrap_read(fd, buffer, size);
}
ssize_t wrap_pread(int fd, void* buffer, size_t size, off_t offset) {
  if (IsFake(fd)) return Answer(ReadAt(fd, buffer, size, offset));
  return original::pread()(fd, buffer, size, offset);
}
ssize_t wrap_pread64(int fd, void* buffer, size_t size, off64_t offset) {
  if (IsFake(fd)) return Answer(ReadAt(fd, buffer, size, offset));
  return original::pread64()(fd, buffer, size, offset);
}
ssize_t wrap___pread_chk(int fd, void* buffer, size_t size, off_t offset, size_t room) {
  if (size > room) __chk_fail();
  return wrap_pread(fd, buffer, size, offset);
}
ssize_t wrap___pread64_chk(int fd, void* buffer, size_t size, off64_t offset, size_t room) {
  if (size > room) __chk_fail();
  return wrap_pread64(fd, buffer, size, offset);
}
ssize_t wrap_readv(int fd, const struct ::iovec* parts, int count) {
  if (IsFake(fd)) return Answer(ReadParts(fd, parts, count, 0));
  return original::readv()(fd, parts, count);
}

ssize_t wrap_write(int fd, const void* buffer, size_t size) {
  if (IsFake(fd)) return Answer(WriteFake(fd, buffer, size));
  return original::write()(fd, buffer, size);
}
ssize_t wrap_pwrite(int fd, const void* buffer, size_t size, off_t offset) {
  if (IsFake(fd)) return Answer(WriteAt(fd, buffer, size, offset));
  return original::pwrite()(fd, buffer, size, offset);
}
ssize_t wrap_pwrite64(int fd, const void* buffer, size_t size, off64_t offset) {
  if (IsFake(fd)) return Answer(WriteAt(fd, buffer, size, offset));
  return original::pwrite64()(fd, buffer, size, offset);
}
ssize_t wrap_writev(int fd, const struct ::iovec* parts, int count) {
  if (IsFake(fd)) return Answer(WriteParts(fd, parts, count, 0));
  return original::writev()(fd, parts, count);
}

int wrap_ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  if (IsFake(fd)) return static_cast<int>(Answer(IoctlFake(fd, request, argument)));
  return original::ioctl()(fd, request, argument);
}

void* wrap_mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  if (MapsOurs(fd, flags)) {
#if defined(__i386__)
    // glibc: sysdeps/unix/sysv/linux/mmap.c hands it to mmap2 in pages, without its sign.
    return MmapFake(address, size, protection, flags, fd, static_cast<uint32_t>(offset));
#else
    return MmapFake(address, size, protection, flags, fd, offset);
#endif
  }
  return Mapped(original::mmap()(address, size, protection, flags, fd, offset), size);
}
void* wrap_mmap64(void* address, size_t size, int protection, int flags, int fd, off64_t offset) {
  if (MapsOurs(fd, flags)) {
    return MmapFake(address, size, protection, flags, fd, offset);
  }
  return Mapped(original::mmap64()(address, size, protection, flags, fd, offset), size);
}

#define VABI_PARTS_AT(name, run, Offset)                                               \
  ssize_t wrap_##name(int fd, const struct ::iovec* parts, int count, Offset offset) { \
    if (IsFake(fd)) return Answer(PartsAt(run, fd, parts, count, offset));             \
    return original::name()(fd, parts, count, offset);                                 \
  }
VABI_PARTS_AT(preadv, ReadParts, off_t)
VABI_PARTS_AT(preadv64, ReadParts, off64_t)
VABI_PARTS_AT(pwritev, WriteParts, off_t)
VABI_PARTS_AT(pwritev64, WriteParts, off64_t)

#define VABI_PARTS_HERE(name, run, Offset)                                                        \
  ssize_t wrap_##name(int fd, const struct ::iovec* parts, int count, Offset offset, int flags) { \
    if (IsFake(fd)) return Answer(PartsHere(run, fd, parts, count, offset, flags));               \
    return original::name()(fd, parts, count, offset, flags);                                     \
  }
VABI_PARTS_HERE(preadv2, ReadParts, off_t)
VABI_PARTS_HERE(preadv64v2, ReadParts, off64_t)
VABI_PARTS_HERE(pwritev2, WriteParts, off_t)
VABI_PARTS_HERE(pwritev64v2, WriteParts, off64_t)

// The devices cannot seek (stream_open, no_llseek); attribute files can, and theirs is the real
// position.
off_t wrap_lseek(int fd, off_t offset, int whence) {
  if (IsFake(fd) && CheckPosition(fd, 0) == -ESPIPE) return Answer(static_cast<off_t>(-ESPIPE));
  return original::lseek()(fd, offset, whence);
}
off64_t wrap_lseek64(int fd, off64_t offset, int whence) {
  if (IsFake(fd) && CheckPosition(fd, 0) == -ESPIPE) return Answer(static_cast<off64_t>(-ESPIPE));
  return original::lseek64()(fd, offset, whence);
}

// Copies inside the kernel: neither the devices nor attribute files take part, and programs fall
// back to read.
ssize_t wrap_copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset,
                             size_t size, unsigned flags) {
  if (IsFake(from) || IsFake(to)) return Answer(static_cast<ssize_t>(-EINVAL));
  return original::copy_file_range()(from, from_offset, to, to_offset, size, flags);
}
ssize_t wrap_sendfile(int to, int from, off_t* offset, size_t size) {
  if (IsFake(from) || IsFake(to)) return Answer(static_cast<ssize_t>(-EINVAL));
  return original::sendfile()(to, from, offset, size);
}
ssize_t wrap_sendfile64(int to, int from, off64_t* offset, size_t size) {
  if (IsFake(from) || IsFake(to)) return Answer(static_cast<ssize_t>(-EINVAL));
  return original::sendfile64()(to, from, offset, size);
}
ssize_t wrap_splice(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t size,
                    unsigned flags) {
  if (IsFake(from) || IsFake(to)) return Answer(static_cast<ssize_t>(-EINVAL));
  return original::splice()(from, from_offset, to, to_offset, size, flags);
}
