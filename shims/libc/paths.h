// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_LIBC_PATHS_H_
#define VABI_SHIMS_LIBC_PATHS_H_

#include <fcntl.h>

#include <cstddef>

#include "harness/world/image.h"
#include "shims/libc/readable.h"
#include "shims/libc/state.h"

// From the paths that the process knows to the places where things stand, and back.

namespace vabi::libc {

inline constexpr size_t kMaxPath = 4096;

struct Located {
  enum class Kind : uint8_t {
    kNative,      // not ours: make the call as the program gave it
    kRedirected,  // `real` stands for it
    kNode,        // a device node of the world; `real` is the empty file that holds its place
  };
  Kind kind = Kind::kNative;
  bool sysfs = false;  // below a redirected /sys
  bool dev = false;    // below a redirected /dev
  bool near = false;   // native, and a folder above a redirected path
  const NodeView* node = nullptr;
  int read_error = 0;  // positive errno with which this world's file fails when read
  char seen[kMaxPath];
  char real[kMaxPath];
};

struct PathFilter {
  bool second_char[256];  // '/' and then this: may be one of ours
  bool relative;          // the current folder is above or inside a redirected path
};
extern PathFilter g_filter;

// Cheap first question; false for nearly every path of a program, and for what leads nowhere: the
// machine answers EFAULT.
inline bool MayConcern(const char* path) {
  if (!Active() || path == nullptr || !CanReadStart(path)) return false;
  const bool may = path[0] == '/' ? g_filter.second_char[static_cast<unsigned char>(path[1])]
                                  : g_filter.relative || (path[0] == '.' && path[1] == '.');
  return __builtin_expect(may, 0) && CanReadText(path);
}
inline bool MayConcern(int dirfd, const char* path) {
  if (dirfd == AT_FDCWD) return MayConcern(path);
  if (!Active() || path == nullptr || !CanReadStart(path)) return false;
  if (path[0] == '/') return MayConcern(path);
  return ((BitsOf(dirfd) & kDirectory) != 0 || (path[0] == '.' && path[1] == '.')) &&
         CanReadText(path);
}

// Where the path leads. `follow`: a last component that is a link is followed (decides for
// /dev/char/M:m).
void Locate(int dirfd, const char* path, Located* out, bool follow = true);

// "/proc/self/fd/N" and its spellings for this process: N, or -1.
int DescriptorLink(const char* path);

// A link outside of the world that leads into it, which the machine itself does not follow: writes
// where it leads. Only the last component is looked at.
bool LeadsIntoWorld(int dirfd, const char* path, char* target);

// From now on /proc/self/fd may lead to a file of the world.
void NoteFakeDescriptor();

// What the process calls the real path: written to `seen`, or false when it is not one of ours.
bool MapBack(const char* real, size_t length, char* seen, size_t room);
// The same, in place: new length; unchanged when it is not ours or does not fit.
size_t MapBackInPlace(char* path, size_t length, size_t room);

// The final path behind a real one, links resolved, as the process would see it: 0 or -errno.
int CanonicalSeen(const char* real, char* seen);

// After the current folder changed.
void NoteCurrentFolder();

// Called once at the start. `from=to:from=to` comes from VERBS_ABI_REDIRECT; may be null.
void SetUpPaths(const WorldImage* image, const char* redirects);

}  // namespace vabi::libc

#endif  // VABI_SHIMS_LIBC_PATHS_H_
