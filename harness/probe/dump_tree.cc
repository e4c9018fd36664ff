// SPDX-License-Identifier: BSD-2-Clause
// Prints a sysfs folder: modes, contents, errors of reading.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "harness/probe/dump.h"

namespace vabi::probe {
namespace {

constexpr size_t kNumberedFiles = 6;

std::string Escaped(const char* at, size_t size) {
  std::string out;
  for (size_t i = 0; i < size; ++i) {
    char c = at[i];
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\\') {
      out += "\\\\";
    } else if (c < ' ' || c > '~') {
      out += "\\x" + Hex(&c, 1);
    } else {
      out += c;
    }
  }
  return out;
}

bool IsNumber(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

std::vector<std::string> Names(const std::string& folder, std::string* error) {
  std::vector<std::string> names;
  DIR* dir = opendir(folder.c_str());
  if (dir == nullptr) {
    *error = strerrorname_np(errno);
    return names;
  }
  while (dirent* entry = readdir(dir)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(dir);
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    if (IsNumber(a) && IsNumber(b) && a.size() != b.size()) return a.size() < b.size();
    return a < b;
  });
  return names;
}

void DumpFile(const std::string& path, unsigned mode) {
  std::printf("file %s %04o ", path.c_str(), mode & 07777);
  if ((mode & 0444) == 0) {
    std::printf("unread\n");
    return;
  }
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    std::printf("open %s\n", strerrorname_np(errno));
    return;
  }
  char buffer[4097];
  ssize_t size = read(fd, buffer, sizeof(buffer));
  if (size < 0) {
    std::printf("read %s\n", strerrorname_np(errno));
  } else {
    std::printf("\"%s\"\n", Escaped(buffer, static_cast<size_t>(size)).c_str());
  }
  close(fd);
}

void Dump(const std::string& path, int depth) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    std::printf("missing %s %s\n", path.c_str(), strerrorname_np(errno));
    return;
  }
  if (S_ISLNK(info.st_mode) && depth > 0) {
    char target[4096];
    ssize_t size = readlink(path.c_str(), target, sizeof(target));
    std::printf("link %s %s\n", path.c_str(),
                size < 0 ? strerrorname_np(errno) : std::string(target, size).c_str());
    return;
  }
  if (S_ISCHR(info.st_mode)) {
    std::printf("char %s %04o\n", path.c_str(), info.st_mode & 07777);
    return;
  }
  if (S_ISREG(info.st_mode)) {
    DumpFile(path, info.st_mode);
    return;
  }
  std::string error;
  std::vector<std::string> names = Names(path, &error);
  std::printf("folder %s %s\n", path.c_str(), error.c_str());
  size_t numbered = 0;
  for (const std::string& name : names) numbered += IsNumber(name) ? 1 : 0;
  if (numbered > kNumberedFiles) std::printf("numbered %s %zu\n", path.c_str(), numbered);
  for (const std::string& name : names) {
    if (numbered > kNumberedFiles && IsNumber(name) && std::stoul(name) >= kNumberedFiles &&
        std::stoul(name) + 1 != numbered) {
      continue;
    }
    if (depth < 8) Dump(path + "/" + name, depth + 1);
  }
}

}  // namespace

std::string Hex(const char* at, size_t size) {
  static const char kDigits[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < size; ++i) {
    out += kDigits[static_cast<unsigned char>(at[i]) >> 4];
    out += kDigits[at[i] & 15];
  }
  return out;
}

int DumpTree(const std::string& root) {
  Dump(root, 0);
  return 0;
}

}  // namespace vabi::probe
