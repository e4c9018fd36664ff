// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sysfs/write_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <system_error>
#include <tuple>

namespace vabi::sysfs {
namespace {

namespace fs = std::filesystem;

std::string Failed(const char* what, const std::string& path, int error) {
  return std::string("cannot ") + what + " " + path + ": " + std::strerror(error);
}

uint64_t Mix(uint64_t digest, const void* data, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < size; ++i) digest = (digest ^ bytes[i]) * 0x100000001b3ULL;
  return digest;
}

// Part of every digest: to be raised when trees are written in another form.
constexpr char kForm[] = "2";

uint64_t Hash(const Tree& tree, uint64_t digest) {
  digest = Mix(digest, kForm, sizeof kForm);
  for (const auto& [path, file] : tree.files()) {
    digest = Mix(digest, path.c_str(), path.size() + 1);
    digest = Mix(digest, file.content.c_str(), file.content.size() + 1);
    digest = Mix(digest, file.link_target.c_str(), file.link_target.size() + 1);
    digest = Mix(digest, &file.mode, sizeof file.mode);
    digest = Mix(digest, &file.read_errno, sizeof file.read_errno);
    digest = Mix(digest, &file.directory, sizeof file.directory);
  }
  return digest;
}

class Writer {
 public:
  explicit Writer(std::string root) : root_(std::move(root)) {}

  std::string Write(const Tree& tree) {
    if (mkdir(root_.c_str(), 0755) != 0) return Failed("make folder", root_, errno);
    for (const auto& [path, file] : tree.files()) {
      std::string error = WriteOne(path, file);
      if (!error.empty()) return error;
    }
    return "";
  }

 private:
  std::string MakeDirectories(const std::string& path) {
    if (path.empty() || made_.count(path)) return "";
    std::string error = MakeDirectories(path.substr(0, path.rfind('/')));
    if (!error.empty()) return error;
    if (mkdir((root_ + path).c_str(), 0755) != 0 && errno != EEXIST) {
      return Failed("make folder", root_ + path, errno);
    }
    made_.insert(path);
    return "";
  }

  std::string WriteOne(const std::string& path, const File& file) {
    if (file.directory) return MakeDirectories(path);
    std::string error = MakeDirectories(path.substr(0, path.rfind('/')));
    if (!error.empty()) return error;
    const std::string to = root_ + path;
    if (!file.link_target.empty()) {
      if (symlink(file.link_target.c_str(), to.c_str()) != 0) return Failed("make link", to, errno);
      return "";
    }
    const std::string& content = file.content;
    // The owner may always read: the shim decides by the world's user, not by the harness'.
    const mode_t mode = (file.mode & 0777) | 0400 | (file.read_errno ? S_ISVTX : 0U);
    const auto key = std::make_tuple(mode, file.read_errno, content);
    const auto same = written_.find(key);
    // A file system that allows no more links to it gets another copy.
    if (same != written_.end() && link(same->second.c_str(), to.c_str()) == 0) return "";
    const int fd = open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return Failed("make", to, errno);
    const struct timespec held[2] = {{file.read_errno, 0}, {file.read_errno, 0}};
    const bool done =
        write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
        fchmod(fd, mode) == 0 && (file.read_errno == 0 || futimens(fd, held) == 0);
    const int failure = errno;
    close(fd);
    if (!done) return Failed("write", to, failure);
    written_[key] = to;
    return "";
  }

  std::string root_;
  std::set<std::string> made_;
  std::map<std::tuple<mode_t, int, std::string>, std::string> written_;
};

// The canonical path, with a link at its end followed, too.
std::string Followed(const Tree& tree, const std::string& path) {
  constexpr char kInside[] = "/x";
  std::string seen = tree.Canonical(path + kInside);
  seen.resize(seen.size() - (sizeof(kInside) - 1));
  return seen;
}

}  // namespace

void ApplyEdits(const std::vector<SysfsEdit>& edits, Tree* tree) {
  for (const SysfsEdit& edit : edits) {
    const std::string path = tree->Canonical(edit.path);
    if (edit.absent) {
      auto& files = tree->files();
      // The path of a folder takes everything in it away, and links to it go as well (device_del).
      const std::string folder = Followed(*tree, path), inside = folder + "/";
      std::vector<std::string> gone = {path, folder};
      for (const auto& [name, file] : files) {
        const std::string to = file.link_target.empty() ? name : Followed(*tree, name);
        if (to == folder || to.compare(0, inside.size(), inside) == 0) gone.push_back(name);
      }
      for (const std::string& name : gone) files.erase(name);
    } else if (edit.read_errno != 0) {
      tree->AddUnreadable(path, edit.read_errno);
    } else {
      tree->Add(path, edit.content);
    }
  }
}

std::string Digest(const Tree& tree) {
  char text[40];
  std::snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, Hash(tree, 0xcbf29ce484222325ULL),
                Hash(tree, 0x9ae16a3b2f90404fULL));
  return text;
}

std::string WriteTree(const Tree& tree, const fs::path& root) {
  return Writer(root.string()).Write(tree);
}

Materialised Materialise(const Tree& tree, const fs::path& cache) {
  const fs::path root = cache / Digest(tree);
  std::error_code error;
  if (fs::is_directory(root, error)) return {root, ""};
  fs::create_directories(cache, error);
  if (error) return {{}, Failed("make folder", cache.string(), error.value())};
  static int count = 0;
  const fs::path draft = cache / (".draft-" + std::to_string(getpid()) + "-" +
                                  std::to_string(__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED)));
  std::string failure = WriteTree(tree, draft);
  if (failure.empty() && rename(draft.c_str(), root.c_str()) != 0 &&
      !fs::is_directory(root, error)) {  // another process was first: its tree is equal
    failure = Failed("rename", draft.string(), errno);
  }
  fs::remove_all(draft, error);
  if (!failure.empty()) return {{}, failure};
  return {root, ""};
}

}  // namespace vabi::sysfs
