// SPDX-License-Identifier: BSD-2-Clause
// Listing folders and walking trees.
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>

#include <cstdlib>
#include <cstring>

#include "shims/libc/attributes.h"
#include "shims/libc/descriptors.h"
#include "shims/libc/originals.h"
#include "shims/libc/paths.h"

namespace vabi::libc {
namespace {

// Paths that libc hands to a visitor function, which has no argument of its own to carry ours.
template <typename Stat>
struct Walk {
  int (*visit)(const char*, const Stat*, int);
  int (*visit_more)(const char*, const Stat*, int, struct ::FTW*);
};
template <typename Stat>
thread_local Walk<Stat> t_walk;

template <typename Stat>
int VisitSeen(const char* path, const Stat* st, int type) {
  char seen[kMaxPath];
  return t_walk<Stat>.visit(MapBack(path, std::strlen(path), seen, sizeof seen) ? seen : path, st,
                            type);
}

template <typename Stat>
int VisitSeenMore(const char* path, const Stat* st, int type, struct ::FTW* more) {
  char seen[kMaxPath];
  if (!MapBack(path, std::strlen(path), seen, sizeof seen)) {
    return t_walk<Stat>.visit_more(path, st, type, more);
  }
  const char* slash = std::strrchr(seen, '/');
  struct ::FTW changed = *more;
  changed.base = slash == nullptr ? 0 : static_cast<int>(slash - seen) + 1;
  return t_walk<Stat>.visit_more(seen, st, type, &changed);
}

template <typename Stat>
int WalkConcerned(const char* path, int (*visit)(const char*, const Stat*, int), int depth,
                  int (*native)(const char*, int (*)(const char*, const Stat*, int), int)) {
  Located where;
  Locate(AT_FDCWD, path, &where);
  if (where.kind != Located::Kind::kRedirected) return native(path, visit, depth);
  const Walk<Stat> outer = t_walk<Stat>;
  t_walk<Stat>.visit = visit;
  const int result = native(where.real, VisitSeen<Stat>, depth);
  t_walk<Stat> = outer;
  return result;
}

template <typename Stat>
int WalkMoreConcerned(const char* path, int (*visit)(const char*, const Stat*, int, struct ::FTW*),
                      int depth, int flags,
                      int (*native)(const char*,
                                    int (*)(const char*, const Stat*, int, struct ::FTW*), int,
                                    int)) {
  Located where;
  Locate(AT_FDCWD, path, &where);
  if (where.kind != Located::Kind::kRedirected) return native(path, visit, depth, flags);
  const Walk<Stat> outer = t_walk<Stat>;
  t_walk<Stat>.visit_more = visit;
  const int result = native(where.real, VisitSeenMore<Stat>, depth, flags);
  t_walk<Stat> = outer;
  return result;
}

// The part of a pattern before its first special character decides where it looks.
template <typename Glob>
int GlobConcerned(const char* pattern, int flags, int (*error)(const char*, int), Glob* out,
                  int (*native)(const char*, int, int (*)(const char*, int), Glob*)) {
  const size_t plain = std::strcspn(pattern, "*?[\\{");
  char folder[kMaxPath];
  size_t length = plain;
  while (length > 0 && pattern[length - 1] != '/') --length;
  if (length >= sizeof folder) return native(pattern, flags, error, out);
  std::memcpy(folder, pattern, length);
  folder[length] = '\0';
  Located where;
  Locate(AT_FDCWD, length == 0 ? "." : folder, &where);
  const size_t real_length = std::strlen(where.real);
  if (where.kind != Located::Kind::kRedirected ||
      real_length + std::strlen(pattern + length) + 1 > sizeof where.real) {
    return native(pattern, flags, error, out);
  }
  std::strcat(where.real, pattern + length);
  const size_t before = (flags & GLOB_APPEND) ? out->gl_pathc : 0;
  const int result = native(where.real, flags, error, out);
  if (result != 0) return result;
  const size_t offset = (flags & GLOB_DOOFFS) ? out->gl_offs : 0;
  for (size_t i = before; i < out->gl_pathc; ++i) {
    char*& path = out->gl_pathv[offset + i];
    // The folder is given back as the program wrote it.
    const size_t size = std::strlen(path);
    if (size < real_length || std::memcmp(path, where.real, real_length) != 0) continue;
    char* seen = static_cast<char*>(std::malloc(length + (size - real_length) + 1));
    if (seen == nullptr) continue;
    std::memcpy(seen, pattern, length);
    std::memcpy(seen + length, path + real_length, size - real_length + 1);
    std::free(path);
    path = seen;
  }
  return result;
}

// Files that stand for device nodes are ordinary ones in the tree.
template <typename Entry>
Entry* AsNode(DIR* dir, Entry* entry) {
  if (entry == nullptr || entry->d_type != DT_REG) return entry;
  if (BitsOf(dirfd(dir)) & kDevFolder) entry->d_type = DT_CHR;
  return entry;
}

}  // namespace
}  // namespace vabi::libc

using namespace vabi::libc;  // NOLINT: this file defines libc's names

DIR* wrap_opendir(const char* path) {
  if (VABI_LIKELY(!MayConcern(path))) return original::opendir()(path);
  Located where;
  {
    const KeepErrno keep;
    Locate(AT_FDCWD, path, &where);
  }
  const bool native = where.kind == Located::Kind::kNative;
  DIR* dir = original::opendir()(native ? path : where.real);
  if (dir == nullptr) {
    if (!native) NoteUnreachable(where, errno);
    return nullptr;
  }
  if (!native) {
    SetBits(dirfd(dir), static_cast<uint8_t>(kDirectory | (where.sysfs ? kSysfs : 0) |
                                             (where.dev ? kDevFolder : 0)));
  } else if (where.near) {
    SetBits(dirfd(dir), kDirectory);
  }
  return dir;
}

int wrap_closedir(DIR* dir) {
  if (dir != nullptr) {
    const int fd = dirfd(dir);
    if (VABI_UNLIKELY(BitsOf(fd) != 0)) Closed(fd);
  }
  return original::closedir()(dir);
}

struct ::dirent* wrap_readdir(DIR* dir) {
  return AsNode(dir, original::readdir()(dir));
}
struct ::dirent64* wrap_readdir64(DIR* dir) {
  return AsNode(dir, original::readdir64()(dir));
}

int wrap_readdir_r(DIR* dir, struct ::dirent* entry, struct ::dirent** result) {
  const int error = original::readdir_r()(dir, entry, result);
  if (error == 0) AsNode(dir, *result);
  return error;
}
int wrap_readdir64_r(DIR* dir, struct ::dirent64* entry, struct ::dirent64** result) {
  const int error = original::readdir64_r()(dir, entry, result);
  if (error == 0) AsNode(dir, *result);
  return error;
}

int wrap_scandir(const char* path, struct ::dirent*** list, int (*filter)(const struct ::dirent*),
                 int (*compare)(const struct ::dirent**, const struct ::dirent**)) {
  if (VABI_LIKELY(!MayConcern(path))) return original::scandir()(path, list, filter, compare);
  Located where;
  Locate(AT_FDCWD, path, &where);
  const char* real = where.kind == Located::Kind::kNative ? path : where.real;
  return original::scandir()(real, list, filter, compare);
}

int wrap_scandir64(const char* path, struct ::dirent64*** list,
                   int (*filter)(const struct ::dirent64*),
                   int (*compare)(const struct ::dirent64**, const struct ::dirent64**)) {
  if (VABI_LIKELY(!MayConcern(path))) return original::scandir64()(path, list, filter, compare);
  Located where;
  Locate(AT_FDCWD, path, &where);
  const char* real = where.kind == Located::Kind::kNative ? path : where.real;
  return original::scandir64()(real, list, filter, compare);
}

int wrap_scandirat(int dirfd, const char* path, struct ::dirent*** list,
                   int (*filter)(const struct ::dirent*),
                   int (*compare)(const struct ::dirent**, const struct ::dirent**)) {
  if (VABI_LIKELY(!MayConcern(dirfd, path))) {
    return original::scandirat()(dirfd, path, list, filter, compare);
  }
  Located where;
  Locate(dirfd, path, &where);
  if (where.kind == Located::Kind::kNative) {
    return original::scandirat()(dirfd, path, list, filter, compare);
  }
  return original::scandirat()(AT_FDCWD, where.real, list, filter, compare);
}

int wrap_glob(const char* pattern, int flags, int (*error)(const char*, int), glob_t* out) {
  if (VABI_LIKELY(!MayConcern(pattern))) return original::glob()(pattern, flags, error, out);
  return GlobConcerned(pattern, flags, error, out, original::glob());
}
int wrap_glob64(const char* pattern, int flags, int (*error)(const char*, int), glob64_t* out) {
  if (VABI_LIKELY(!MayConcern(pattern))) return original::glob64()(pattern, flags, error, out);
  return GlobConcerned(pattern, flags, error, out, original::glob64());
}

int wrap_nftw(const char* path, int (*visit)(const char*, const struct ::stat*, int, struct ::FTW*),
              int depth, int flags) {
  if (VABI_LIKELY(!MayConcern(path))) return original::nftw()(path, visit, depth, flags);
  return WalkMoreConcerned(path, visit, depth, flags, original::nftw());
}
int wrap_nftw64(const char* path,
                int (*visit)(const char*, const struct ::stat64*, int, struct ::FTW*), int depth,
                int flags) {
  if (VABI_LIKELY(!MayConcern(path))) return original::nftw64()(path, visit, depth, flags);
  return WalkMoreConcerned(path, visit, depth, flags, original::nftw64());
}
int wrap_ftw(const char* path, int (*visit)(const char*, const struct ::stat*, int), int depth) {
  if (VABI_LIKELY(!MayConcern(path))) return original::ftw()(path, visit, depth);
  return WalkConcerned(path, visit, depth, original::ftw());
}
int wrap_ftw64(const char* path, int (*visit)(const char*, const struct ::stat64*, int),
               int depth) {
  if (VABI_LIKELY(!MayConcern(path))) return original::ftw64()(path, visit, depth);
  return WalkConcerned(path, visit, depth, original::ftw64());
}
