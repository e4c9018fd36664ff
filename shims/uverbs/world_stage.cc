// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/world_stage.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include <cstdio>
#include <cstring>

#include "shims/sys/sys.h"

namespace vabi {
namespace {

constexpr char kTree[] = "tree.";
constexpr size_t kRoom = sizeof(WorldImage::run_dir) + kMaxDevices + 40;

long Pointer(const char* text) { return reinterpret_cast<long>(text); }

}  // namespace

Stage StageNow(const WorldImage& image) {
  Stage stage = Stage::First(image);
  if (image.script_count == 0 || image.run_dir[0] == '\0') return stage;
  char link[kRoom], target[64];
  std::snprintf(link, sizeof(link), "%s/tree", image.run_dir);
  const long length =
      sys::Syscall(SYS_readlink, Pointer(link), reinterpret_cast<long>(target), sizeof(target) - 1);
  constexpr size_t kStart = sizeof(kTree) - 1;
  if (length != static_cast<long>(kStart + image.device_count)) return stage;
  if (std::memcmp(target, kTree, kStart) != 0) return stage;
  std::memcpy(stage.letters, target + kStart, image.device_count);
  return stage;
}

void MoveStage(const WorldImage& image, const ScriptStep& step) {
  if (image.run_dir[0] == '\0') return;
  // One after the other: each begins with what the last one left.
  const int lock = sys::Open(image.run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0) return;
  sys::Syscall(SYS_flock, lock, LOCK_EX);
  Stage stage = StageNow(image);
  char& letter = stage.letters[step.device];
  const char after = LetterAfter(letter, step);
  if (after != letter) {
    letter = after;
    char link[kRoom], draft[kRoom], target[64];
    std::snprintf(link, sizeof(link), "%s/tree", image.run_dir);
    std::snprintf(draft, sizeof(draft), "%s/tree.new", image.run_dir);
    std::snprintf(target, sizeof(target), "%s%s", kTree, stage.letters);
    sys::Syscall(SYS_unlink, Pointer(draft));
    if (sys::Syscall(SYS_symlink, Pointer(target), Pointer(draft)) == 0)
      sys::Syscall(SYS_rename, Pointer(draft), Pointer(link));
  }
  sys::Syscall(SYS_flock, lock, LOCK_UN);
  sys::Close(lock);
}

}  // namespace vabi
