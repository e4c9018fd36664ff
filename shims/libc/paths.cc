// SPDX-License-Identifier: BSD-2-Clause
#include "shims/libc/paths.h"

#include <sys/syscall.h>

#include <cstdio>
#include <cstring>

#include "shims/libc/descriptors.h"
#include "shims/sys/sys.h"

namespace vabi::libc {

PathFilter g_filter;

namespace {

struct Prefix {
  const char* from;
  const char* to;
  size_t from_length;
  size_t to_length;
  bool world;  // comes from the world: below it, files look like those of a real /sys or /dev
};

constexpr size_t kMaxPrefixes = 48;
constexpr size_t kMaxRedirectText = 8192;

Prefix g_prefixes[kMaxPrefixes];  // longest `from` first
size_t g_prefix_count;
const WorldImage* g_image;
char g_redirect_text[kMaxRedirectText];
// The folder that holds all of the world's trees: `to` without `from` at its end.
const char* g_root;
size_t g_root_length;
// Of a world with a script the root is a link, to one of several trees that stand in this folder.
char g_trees[kMaxPath];
size_t g_trees_length;

bool Inside(const char* path, size_t length, const char* prefix, size_t prefix_length) {
  return length >= prefix_length && std::memcmp(path, prefix, prefix_length) == 0 &&
         (length == prefix_length || path[prefix_length] == '/');
}

const Prefix* FindPrefix(const char* path, size_t length) {
  for (size_t i = 0; i < g_prefix_count; ++i) {
    const Prefix& prefix = g_prefixes[i];
    if (Inside(path, length, prefix.from, prefix.from_length)) return &prefix;
  }
  return nullptr;
}

// Is the folder above a redirected path?
bool IsNear(const char* path, size_t length) {
  if (length <= 1) return g_prefix_count != 0;
  for (size_t i = 0; i < g_prefix_count; ++i) {
    const Prefix& prefix = g_prefixes[i];
    if (Inside(prefix.from, prefix.from_length, path, length)) return true;
  }
  return false;
}

void AddPrefix(const char* from, const char* to, bool world) {
  const size_t from_length = std::strlen(from), to_length = std::strlen(to);
  if (g_prefix_count == kMaxPrefixes || from_length < 2 || from[0] != '/' || to_length == 0) return;
  size_t at = g_prefix_count++;
  for (; at > 0 && g_prefixes[at - 1].from_length < from_length; --at)
    g_prefixes[at] = g_prefixes[at - 1];
  g_prefixes[at] = {from, to, from_length, to_length, world};
  g_filter.second_char[static_cast<unsigned char>(from[1])] = true;
  if (world && to_length > from_length &&
      std::memcmp(to + to_length - from_length, from, from_length) == 0) {
    g_root = to;
    g_root_length = to_length - from_length;
  }
}

void AddRedirectText(const char* text) {
  if (text == nullptr) return;
  const size_t length = std::strlen(text);
  if (length >= sizeof g_redirect_text) return;
  std::memcpy(g_redirect_text, text, length + 1);
  for (char* pair = g_redirect_text; pair != nullptr && *pair != '\0';) {
    char* next = std::strchr(pair, ':');
    if (next != nullptr) *next++ = '\0';
    char* equals = std::strchr(pair, '=');
    if (equals != nullptr) {
      *equals = '\0';
      AddPrefix(pair, equals + 1, false);
    }
    pair = next;
  }
}

// Where the kernel says that a descriptor leads: length, or 0.
size_t ReadFdLink(int fd, char* out, size_t room) {
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long length = sys::Syscall(SYS_readlinkat, AT_FDCWD, reinterpret_cast<long>(link),
                                   reinterpret_cast<long>(out), static_cast<long>(room - 1));
  if (length <= 0 || out[0] != '/') return 0;
  out[length] = '\0';
  return static_cast<size_t>(length);
}

// The absolute seen path of the folder that relative paths start from: length, or 0.
size_t BaseFolder(int dirfd, char* out) {
  size_t length = 0;
  if (dirfd == AT_FDCWD) {
    const long result = sys::Syscall(SYS_getcwd, reinterpret_cast<long>(out), kMaxPath);
    if (result <= 1 || out[0] != '/') return 0;
    length = static_cast<size_t>(result) - 1;
  } else {
    length = ReadFdLink(dirfd, out, kMaxPath);
    if (length == 0) return 0;
  }
  return MapBackInPlace(out, length, kMaxPath);
}

// A path under construction, without trailing slash; "" is the root.
struct Builder {
  char* text;
  size_t length = 0;
  bool Append(const char* part, size_t size) {
    if (length + 1 + size + 1 > kMaxPath) return false;
    text[length++] = '/';
    std::memcpy(text + length, part, size);
    length += size;
    text[length] = '\0';
    return true;
  }
  void Pop() {
    while (length > 0 && text[length - 1] != '/') --length;
    if (length > 0) --length;
    text[length] = '\0';
  }
};

bool ToReal(const char* seen, size_t length, const Prefix& prefix, char* real) {
  const size_t rest = length - prefix.from_length;
  if (prefix.to_length + rest + 2 > kMaxPath) return false;
  std::memcpy(real, prefix.to, prefix.to_length);
  std::memcpy(real + prefix.to_length, seen + prefix.from_length, rest);
  real[prefix.to_length + rest] = '\0';
  return true;
}

// "..": leaves the folder that the path built so far leads to, which need not be its own parent,
// since the path may end in a link. Without such a folder the call will fail anyway, so then the
// text is enough. True: the folder left is a redirected one.
bool LeaveFolder(Builder* seen, char* scratch) {
  const Prefix* prefix = FindPrefix(seen->text, seen->length);
  const char* real = seen->text;
  if (prefix != nullptr && ToReal(seen->text, seen->length, *prefix, scratch)) real = scratch;
  const int fd = sys::Open(seen->length == 0 ? "/" : real, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    const size_t length = ReadFdLink(fd, scratch, kMaxPath);
    sys::Close(fd);
    if (length != 0) {
      seen->length = MapBackInPlace(scratch, length, kMaxPath);
      if (seen->length == 1) seen->length = 0;  // "/"
      std::memcpy(seen->text, scratch, seen->length);
      seen->text[seen->length] = '\0';
    }
  }
  seen->Pop();
  return prefix != nullptr;
}

// What the components of a path came to, beside the path itself.
struct Way {
  bool left = false;    // through a redirected folder and out of it by ".."
  bool folder = false;  // ends in "/" or ".": its last component is followed, and must be a folder
};

bool AppendAll(const char* path, Builder* seen, char* scratch, Way* way) {
  while (*path != '\0') {
    while (*path == '/') ++path;
    size_t size = 0;
    while (path[size] != '\0' && path[size] != '/') ++size;
    if (size == 0) {
      way->folder = true;
      break;
    }
    way->folder = false;
    if (size == 1 && path[0] == '.') {
      way->folder = true;
    } else if (size == 2 && path[0] == '.' && path[1] == '.') {
      way->left |= LeaveFolder(seen, scratch);
    } else if (!seen->Append(path, size)) {
      return false;
    }
    path += size;
  }
  return true;
}

void FindTrees() {
  g_trees_length = 0;
  if (g_image == nullptr || g_image->script_count == 0 || g_root_length == 0) return;
  char root[kMaxPath];
  if (g_root_length >= sizeof root) return;
  std::memcpy(root, g_root, g_root_length);
  root[g_root_length] = '\0';
  const int fd = sys::Open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  size_t length = ReadFdLink(fd, g_trees, sizeof g_trees);
  sys::Close(fd);
  while (length > 0 && g_trees[length - 1] != '/') --length;
  g_trees_length = length;  // with the slash
}

// How much of a real path is the place of a tree: 0, none.
size_t TreeLength(const char* real, size_t length) {
  if (g_trees_length == 0 || length <= g_trees_length ||
      std::memcmp(real, g_trees, g_trees_length) != 0) {
    return 0;
  }
  size_t end = g_trees_length;
  while (end < length && real[end] != '/') ++end;
  return end == length ? 0 : end;
}

const NodeView* FindNode(const char* seen, bool follow) {
  if (g_image == nullptr) return nullptr;
  unsigned major_number = 0, minor_number = 0;
  const bool by_number =
      follow && std::sscanf(seen, "/dev/char/%u:%u", &major_number, &minor_number) == 2;
  for (uint32_t i = 0; i < g_image->node_count; ++i) {
    const NodeView& node = g_image->node[i];
    // One that is not there is ours too: the fake kernel says so, and why.
    if (std::strcmp(node.path, seen) == 0) return &node;
    if (by_number && node.present && node.kind == 0 && node.major == major_number &&
        node.minor == minor_number) {
      return &node;
    }
  }
  return nullptr;
}

// The path of the world that a descriptor was opened by, when `path` is its link in /proc: opening
// such a link opens the file anew. What has no path (sockets, events) the machine refuses as the
// kernel does.
bool DescriptorPath(const char* path, char* out) {
  const int fd = DescriptorLink(path);
  if (fd < 0 || (BitsOf(fd) & (kFake | kSysfs)) == 0) return false;
  const std::shared_ptr<File> file = FdTable::Get(fd);
  if (file != nullptr && file->Name()[0] == '/') {
    std::strcpy(out, file->Name());
    return true;
  }
  const size_t length = ReadFdLink(fd, out, kMaxPath);
  return length != 0 && MapBack(out, length, out, kMaxPath);
}

int FindReadError(const char* seen) {
  if (g_image == nullptr) return 0;
  for (uint32_t i = 0; i < g_image->read_error_count; ++i) {
    if (std::strcmp(g_image->read_error[i].path, seen) == 0) return g_image->read_error[i].error;
  }
  return 0;
}

}  // namespace

void SetUpPaths(const WorldImage* image, const char* redirects) {
  g_prefix_count = 0;
  g_root_length = 0;
  g_filter = {};
  g_image = image;
  if (image != nullptr) {
    for (uint32_t i = 0; i < image->redirect_count; ++i) {
      AddPrefix(image->redirect[i].from, image->redirect[i].to, true);
    }
    for (uint32_t i = 0; i < image->node_count; ++i) {
      g_filter.second_char[static_cast<unsigned char>(image->node[i].path[1])] = true;
    }
  }
  FindTrees();
  AddRedirectText(redirects);
  g_filter.second_char[static_cast<unsigned char>('/')] = g_prefix_count != 0;
  g_filter.second_char[static_cast<unsigned char>('.')] = g_prefix_count != 0;
  NoteCurrentFolder();
}

void NoteCurrentFolder() {
  char folder[kMaxPath];
  const size_t length = BaseFolder(AT_FDCWD, folder);
  g_filter.relative =
      length != 0 && (IsNear(folder, length) || FindPrefix(folder, length) != nullptr);
}

void Locate(int dirfd, const char* path, Located* out, bool follow) {
  out->kind = Located::Kind::kNative;
  out->node = nullptr;
  out->sysfs = out->dev = out->near = false;
  out->read_error = 0;
  Builder seen{out->seen};
  char alias[kMaxPath];
  if (follow && DescriptorPath(path, alias)) path = alias;
  out->seen[0] = '\0';
  if (path[0] != '/') {
    seen.length = BaseFolder(dirfd, out->seen);
    if (seen.length == 0) return;
    if (seen.length == 1) seen.length = 0;
    out->seen[seen.length] = '\0';
  }
  Way way;
  if (!AppendAll(path, &seen, out->real, &way)) return;
  if (seen.length == 0) std::strcpy(out->seen, "/");
  const Prefix* prefix = FindPrefix(out->seen, seen.length);
  if (prefix == nullptr || !ToReal(out->seen, seen.length, *prefix, out->real)) {
    out->near = IsNear(out->seen, seen.length);
    if (way.left) {
      // The kernel would not find the way through a folder that is not there.
      out->kind = Located::Kind::kRedirected;
      std::strcpy(out->real, out->seen);
    }
    return;
  }
  out->kind = Located::Kind::kRedirected;
  out->sysfs = prefix->world && std::memcmp(out->seen, "/sys/", 5) == 0;
  out->dev = prefix->world && std::memcmp(out->seen, "/dev/", 5) == 0;
  if (out->dev && !way.folder) {
    out->node = FindNode(out->seen, follow);
    if (out->node != nullptr) {
      out->kind = Located::Kind::kNode;
      // Reached by its number: what holds its place is the link's target.
      const Prefix* home = FindPrefix(out->node->path, std::strlen(out->node->path));
      if (home != nullptr) ToReal(out->node->path, std::strlen(out->node->path), *home, out->real);
    }
  }
  if (way.folder) std::strcat(out->real, "/");
  out->read_error = FindReadError(out->seen);
}

void NoteFakeDescriptor() { g_filter.second_char[static_cast<unsigned char>('p')] = true; }

int DescriptorLink(const char* path) {
  // Most paths that come here are none.
  if (std::strncmp(path, "/proc/", 6) != 0 && std::strncmp(path, "/dev/fd/", 8) != 0) return -1;
  int fd = -1, pid = 0, end = 0;
  if (std::sscanf(path, "/proc/self/fd/%d%n", &fd, &end) == 1 && path[end] == '\0') return fd;
  if (std::sscanf(path, "/proc/thread-self/fd/%d%n", &fd, &end) == 1 && path[end] == '\0') {
    return fd;
  }
  if (std::sscanf(path, "/dev/fd/%d%n", &fd, &end) == 1 && path[end] == '\0') return fd;
  if (std::sscanf(path, "/proc/%d/fd/%d%n", &pid, &fd, &end) == 2 && path[end] == '\0' &&
      pid == sys::GetPid()) {
    return fd;
  }
  return -1;
}

bool LeadsIntoWorld(int dirfd, const char* path, char* target) {
  constexpr int kMostLinks = 40;  // include/linux/namei.h:MAXSYMLINKS
  char link[kMaxPath];
  const char* at = path;
  for (int i = 0; i < kMostLinks; ++i) {
    const long length =
        sys::Syscall(SYS_readlinkat, dirfd, reinterpret_cast<long>(at),
                     reinterpret_cast<long>(link), static_cast<long>(sizeof link - 1));
    if (length <= 0) return false;
    link[length] = '\0';
    size_t folder = 0;  // a relative link starts at the folder that it stands in
    if (link[0] != '/') {
      const char* slash = std::strrchr(at, '/');
      folder = slash == nullptr ? 0 : static_cast<size_t>(slash - at) + 1;
    }
    if (folder + static_cast<size_t>(length) >= kMaxPath) return false;
    if (at != target) std::memcpy(target, at, folder);
    std::memcpy(target + folder, link, static_cast<size_t>(length) + 1);
    at = target;
    if (!MayConcern(dirfd, target)) continue;
    Located where;
    Locate(dirfd, target, &where);
    if (where.kind != Located::Kind::kNative) return true;
  }
  return false;
}

bool MapBack(const char* real, size_t length, char* seen, size_t room) {
  const Prefix* best = nullptr;
  for (size_t i = 0; i < g_prefix_count; ++i) {
    const Prefix& prefix = g_prefixes[i];
    if (Inside(real, length, prefix.to, prefix.to_length) &&
        (best == nullptr || prefix.to_length > best->to_length)) {
      best = &prefix;
    }
  }
  const char* from = best != nullptr ? best->from : "";
  const size_t from_length = best != nullptr ? best->from_length : 0;
  size_t cut = best != nullptr ? best->to_length : TreeLength(real, length);
  if (cut == 0) {
    if (g_root_length == 0 || length <= g_root_length ||
        !Inside(real, length, g_root, g_root_length)) {
      return false;
    }
    cut = g_root_length;
  }
  if (from_length + (length - cut) + 1 > room) return false;
  std::memmove(seen + from_length, real + cut, length - cut);
  std::memcpy(seen, from, from_length);
  seen[from_length + length - cut] = '\0';
  return true;
}

size_t MapBackInPlace(char* path, size_t length, size_t room) {
  char copy[kMaxPath];
  if (length >= sizeof copy || !MapBack(path, length, copy, sizeof copy)) return length;
  const size_t mapped = std::strlen(copy);
  if (mapped > room) return length;
  std::memcpy(path, copy, mapped);
  if (mapped < room) path[mapped] = '\0';
  return mapped;
}

int CanonicalSeen(const char* real, char* seen) {
  const int fd = sys::Open(real, O_PATH | O_CLOEXEC);
  if (fd < 0) return fd;
  const size_t length = ReadFdLink(fd, seen, kMaxPath);
  sys::Close(fd);
  if (length == 0) return -ENOENT;
  MapBackInPlace(seen, length, kMaxPath);
  return 0;
}

}  // namespace vabi::libc
