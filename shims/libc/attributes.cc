// SPDX-License-Identifier: BSD-2-Clause
#include "shims/libc/attributes.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "shims/libc/descriptors.h"
#include "shims/sys/sys.h"

namespace vabi::libc {
namespace {

int RawStatx(int dirfd, const char* path, int flags, unsigned mask, struct ::statx* out) {
  return static_cast<int>(sys::Syscall(SYS_statx, dirfd, reinterpret_cast<long>(path), flags,
                                       static_cast<long>(mask), reinterpret_cast<long>(out)));
}

// The attributes in which the world's files differ from the ones that hold their place, for both
// calls.
struct Look {
  bool change = false;
  bool node = false;
  bool held = false;  // its times say something else
  uint32_t mode = 0, uid = 0, gid = 0, major = 0, minor = 0;
  uint64_t size = 0;
};

// fs/kernfs, fs/sysfs: files of a page, folders and links of size 0, all owned by root. `mode` and
// `size` are those of the file that holds the place.
Look SysfsLook(uint32_t mode, uint64_t size) {
  Look look;
  look.change = true;
  look.mode = mode;
  look.size = size;
  if (S_ISREG(mode)) {
    look.mode = mode & ~static_cast<uint32_t>(S_ISVTX);
    look.held = (mode & S_ISVTX) != 0;
    look.size = 4096;
  } else {
    look.size = 0;
  }
  return look;
}

Look NodeLook(const NodeView& node) {
  Look look;
  look.change = true;
  look.node = true;
  look.mode = (node.kind == 0 ? S_IFCHR : S_IFREG) | (node.mode & 07777);
  look.uid = node.uid;
  look.gid = node.gid;
  if (node.kind == 0) {
    look.major = node.major;
    look.minor = node.minor;
  }
  return look;
}

// devtmpfs: folders and links of root.
Look DevLook(uint32_t mode, uint64_t size) {
  Look look;
  look.change = true;
  look.mode = mode;
  look.size = size;
  return look;
}

Look LookOf(const Located& where, uint32_t mode, uint64_t size) {
  if (where.kind == Located::Kind::kNode) return NodeLook(*where.node);
  if (where.sysfs) return SysfsLook(mode, size);
  if (where.dev) return DevLook(mode, size);
  return {};
}

void Apply(const Look& look, struct ::stat64* out) {
  if (!look.change) return;
  out->st_mode = look.mode;
  out->st_uid = look.uid;
  out->st_gid = look.gid;
  out->st_size = static_cast<off64_t>(look.size);
  out->st_blocks = 0;
  if (look.held) out->st_mtim = out->st_atim = out->st_ctim;
  out->st_nlink = S_ISDIR(look.mode) ? out->st_nlink : 1;
  if (look.node) out->st_rdev = makedev(look.major, look.minor);
}

void Apply(const Look& look, struct ::statx* out) {
  if (!look.change) return;
  out->stx_mode = static_cast<uint16_t>(look.mode);
  out->stx_uid = look.uid;
  out->stx_gid = look.gid;
  out->stx_size = look.size;
  out->stx_blocks = 0;
  if (look.held) out->stx_mtime = out->stx_atime = out->stx_ctime;
  out->stx_nlink = S_ISDIR(look.mode) ? out->stx_nlink : 1;
  if (look.node) {
    out->stx_rdev_major = look.major;
    out->stx_rdev_minor = look.minor;
  }
}

Look DescriptorLook(int fd, uint32_t mode, uint64_t size) {
  const uint8_t bits = BitsOf(fd);
  if (bits & kFake) {
    const std::shared_ptr<File> file = FdTable::Get(fd);
    unsigned file_mode = 0;
    uint64_t rdev = 0;
    if (file == nullptr || !file->StatAs(&file_mode, &rdev)) return {};
    Look look;
    look.change = true;
    look.mode = file_mode;
    look.size = S_ISREG(file_mode) ? 4096 : 0;
    if (S_ISCHR(file_mode)) {
      look.node = true;
      look.major = major(rdev);
      look.minor = minor(rdev);
    }
    return look;
  }
  if (bits & kSysfs) return SysfsLook(mode, size);
  return {};
}

// An open node looks as its path does, in device and inode number, owner and times, too: who copies
// or compares files asks both.
bool IsOpenNode(int fd, Located* where) {
  if (!(BitsOf(fd) & kFake)) return false;
  const std::shared_ptr<File> file = FdTable::Get(fd);
  if (file == nullptr || !file->IsNode()) return false;
  Locate(AT_FDCWD, file->Name(), where);
  return where->kind == Located::Kind::kNode;
}

}  // namespace

void NoteUnreachable(const Located& where, int error) {
  static std::atomic<bool> told{false};
  if (error != EACCES || !(where.sysfs || where.dev) || told.exchange(true)) return;
  TraceEvent("unmodelled", "the process became a user who cannot reach the world's files");
}

int StatLocated(const Located& where, int flags, struct ::stat64* out) {
  const int result = sys::StatAt(AT_FDCWD, where.real, out, flags);
  NoteUnreachable(where, -result);
  if (result == 0) Apply(LookOf(where, out->st_mode, static_cast<uint64_t>(out->st_size)), out);
  return result;
}

int StatxLocated(const Located& where, int flags, unsigned mask, struct ::statx* out) {
  const int result = RawStatx(AT_FDCWD, where.real, flags, mask, out);
  NoteUnreachable(where, -result);
  if (result == 0) Apply(LookOf(where, out->stx_mode, out->stx_size), out);
  return result;
}

int StatDescriptor(int fd, struct ::stat64* out) {
  Located node;
  if (IsOpenNode(fd, &node) && StatLocated(node, 0, out) == 0) return 0;
  const int result = sys::Fstat(fd, out);
  if (result == 0) {
    Apply(DescriptorLook(fd, out->st_mode, static_cast<uint64_t>(out->st_size)), out);
  }
  return result;
}

int StatxDescriptor(int fd, int flags, unsigned mask, struct ::statx* out) {
  Located node;
  if (IsOpenNode(fd, &node) && StatxLocated(node, flags & ~AT_EMPTY_PATH, mask, out) == 0) return 0;
  const int result = RawStatx(fd, "", flags | AT_EMPTY_PATH, mask, out);
  if (result == 0) Apply(DescriptorLook(fd, out->stx_mode, out->stx_size), out);
  return result;
}

int CheckAccess(uint32_t mode, uint32_t uid, uint32_t gid, int want) {
  const WorldImage* image = Image();
  const bool root = image == nullptr || !image->check_permissions || image->uid == 0;
  // CAP_DAC_OVERRIDE: everything, but running what nobody may run.
  if (root) return (want & X_OK) && !S_ISDIR(mode) && !(mode & 0111) ? -EACCES : 0;
  const int shift = image->uid == uid ? 6 : image->gid == gid ? 3 : 0;
  const int granted = static_cast<int>(mode >> shift) & 7;
  return (want & granted) == want ? 0 : -EACCES;
}

int AccessLocated(const Located& where, int want, int flags) {
  struct ::stat64 st;
  const int result = StatLocated(where, flags & AT_SYMLINK_NOFOLLOW, &st);
  if (result < 0 || want == F_OK) return result;
  if (!where.sysfs && !where.dev) {
    return static_cast<int>(
        sys::Syscall(SYS_faccessat, AT_FDCWD, reinterpret_cast<long>(where.real), want));
  }
  return CheckAccess(st.st_mode, st.st_uid, st.st_gid, want);
}

}  // namespace vabi::libc
