// SPDX-License-Identifier: BSD-2-Clause
// Programs that the program starts stay in the world: the environment keeps the shim, and where the
// userland brings its own C library (VERBS_ABI_LOADER), they run through that library's loader.
// Everything here also runs between vfork and exec: no allocation, no locks.
#include <alloca.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "shims/libc/descriptors.h"
#include "shims/libc/interceptable.h"
#include "shims/libc/originals.h"
#include "shims/libc/paths.h"

namespace vabi::libc {
namespace {

// The environment by which a child becomes part of the world.
constexpr const char* kKept[] = {"LD_PRELOAD",         "LD_LIBRARY_PATH",  "VERBS_ABI_WORLD",
                                 "VERBS_ABI_REDIRECT", "VERBS_ABI_LOADER", "VERBS_ABI_LIBRARY_PATH",
                                 "VERBS_ABI_MAPPED",   "VERBS_ABI_MEMLOCK"};
constexpr size_t kKeptCount = sizeof kKept / sizeof kKept[0];

size_t Count(char* const list[]) {
  size_t count = 0;
  while (list != nullptr && list[count] != nullptr) ++count;
  return count;
}

const char* Find(char* const envp[], const char* name) {
  const size_t length = std::strlen(name);
  for (size_t i = 0; envp != nullptr && envp[i] != nullptr; ++i) {
    if (std::strncmp(envp[i], name, length) == 0 && envp[i][length] == '=') return envp[i];
  }
  return nullptr;
}

// Where this shim was loaded from.
const char* ShimPath() {
  static char path[kMaxPath];
  if (path[0] == '\0') {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&ShimPath), &info) && info.dli_fname != nullptr &&
        std::strlen(info.dli_fname) < sizeof path) {
      std::strcpy(path, info.dli_fname);
    }
  }
  return path;
}

// How LD_PRELOAD and --preload name it. Their lists are split at colons and spaces, so a path that
// has any is named by its file name, and the library path, which the launcher then sets, leads to
// it.
const char* PreloadName() {
  const char* path = ShimPath();
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr || std::strpbrk(path, " :;") == nullptr ? path : slash + 1;
}

// The values of kKept at the start: a program may clear its environment before it starts another
// (env -i).
const char* g_kept_values[kKeptCount];

// Once, before the program runs.
__attribute__((constructor)) void Remember() {
  ShimPath();
  for (size_t k = 0; k < kKeptCount; ++k) {
    const char* value = std::getenv(kKept[k]);
    if (value == nullptr) continue;
    const size_t size = std::strlen(kKept[k]) + 1 + std::strlen(value) + 1;
    char* entry = static_cast<char*>(std::malloc(size));
    if (entry == nullptr) continue;
    std::snprintf(entry, size, "%s=%s", kKept[k], value);
    g_kept_values[k] = entry + std::strlen(kKept[k]) + 1;
  }
}

// The value of kKept[k] for a child; what stands before it is its name and '='. May be null.
const char* KeptValue(size_t k) {
  const char* value = std::getenv(kKept[k]);
  return value != nullptr ? value : g_kept_values[k];
}
const char* KeptValue(const char* name) {
  for (size_t k = 0; k < kKeptCount; ++k) {
    if (std::strcmp(kKept[k], name) == 0) return KeptValue(k);
  }
  return nullptr;
}

// What one exec is turned into; the arrays live on the caller's stack.
struct Plan {
  const char* path;
  char* const* argv;
  char* const* envp;
};

// Adds what `envp` lacks. `into` has room for Count(envp) + kKeptCount + 1, `preload` for the
// preload line.
void KeepWorld(char* const envp[], char** into, char* preload, size_t room) {
  size_t count = 0;
  for (size_t i = 0; envp != nullptr && envp[i] != nullptr; ++i) into[count++] = envp[i];
  for (size_t k = 0; k < kKeptCount; ++k) {
    const char* value = KeptValue(k);
    if (k == 0) {
      // LD_PRELOAD must name the shim; a list that the program gave stays behind it.
      const char* given = Find(envp, kKept[0]);
      if (ShimPath()[0] == '\0') continue;
      if (given != nullptr && std::strstr(given, PreloadName()) != nullptr) continue;
      std::snprintf(preload, room, "LD_PRELOAD=%s%s%s", PreloadName(), given ? ":" : "",
                    given ? std::strchr(given, '=') + 1 : "");
      size_t at = count;
      for (size_t i = 0; i < count; ++i) {
        if (into[i] == given) at = i;
      }
      if (at == count) ++count;
      into[at] = preload;
    } else if (value != nullptr && Find(envp, kKept[k]) == nullptr) {
      // The process' own entry, name and all, stands right before its value.
      into[count++] = const_cast<char*>(value - std::strlen(kKept[k]) - 1);
    }
  }
  into[count] = nullptr;
}

// Does a word of a list that is split at colons and spaces name the shim?
bool IsShim(const char* word, size_t length) {
  const char* name = PreloadName();
  return length == std::strlen(name) && std::memcmp(word, name, length) == 0;
}

// Takes the shim out of an environment that KeepWorld made, for a program whose loader would only
// complain of it, as would the loader of each program that this one starts. `preload` has room for
// the line that is left.
void ForgetShim(char** envp, char* preload) {
  for (size_t i = 0; envp[i] != nullptr; ++i) {
    if (std::strncmp(envp[i], "LD_PRELOAD=", 11) != 0) continue;
    const char* at = envp[i] + 11;
    char* end = preload;
    for (const char* text = "LD_PRELOAD="; *text != '\0'; ++text) *end++ = *text;
    const char* const start = end;
    while (*at != '\0') {
      const size_t length = std::strcspn(at, ": ");
      if (length > 0 && !IsShim(at, length)) {
        if (end != start) *end++ = ':';
        std::memmove(end, at, length);
        end += length;
      }
      at += length;
      if (*at != '\0') ++at;
    }
    *end = '\0';
    envp[i] = preload;
  }
}

// Also where the file says so and the kernel does not: a set-user-id program of one's own.
bool ChangesUser(const char* path) {
  struct stat st;
  if (original::stat()(path, &st) != 0) return true;
  return ((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
         ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getegid());
}

// Will exec() take the rights away by which this process opens any file? access() asks without them
// (fs/open.c:access_override_creds), but for the real user.
bool LosesRightsAtExec() {
  const uid_t user = getuid();
  if (user == 0 || user != geteuid()) return false;
  return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_DAC_OVERRIDE, 0, 0) != 1 &&
         prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_DAC_READ_SEARCH, 0, 0) != 1;
}

bool Reaches(const char* path) {
  const int fd = original::open()(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  original::close()(fd);
  return !LosesRightsAtExec() || original::access()(path, R_OK) == 0;
}

// What a child of this process needs and cannot open, or null: the shim, the world. So it is after
// the process became another user or went into another root folder.
const char* OutOfReach() {
  if (!Reaches(ShimPath())) return ShimPath();
  const char* world = KeptValue("VERBS_ABI_WORLD");
  return world == nullptr || world[0] == '\0' || Reaches(world) ? nullptr : world;
}

size_t PreloadRoom(char* const envp[]) {
  const char* given = Find(envp, "LD_PRELOAD");
  return std::strlen(ShimPath()) + (given ? std::strlen(given) : 0) + 16;
}

// LOADER --preload SHIM --library-path DIRS [--argv0 NAME] PROGRAM ARGUMENTS…
constexpr size_t kLoaderWords = 8;

void ThroughLoader(const char* loader, const char* program, char* const argv[], char** into) {
  const char* dirs = KeptValue("VERBS_ABI_LIBRARY_PATH");
  size_t count = 0;
  auto word = [&](const char* text) { into[count++] = const_cast<char*>(text); };
  word(loader);
  word("--preload");
  word(PreloadName());
  if (dirs != nullptr && dirs[0] != '\0') {
    word("--library-path");
    word(dirs);
  }
  if (argv != nullptr && argv[0] != nullptr) {
    word("--argv0");
    word(argv[0]);
  }
  word(program);
  for (size_t i = 1; i < Count(argv); ++i) into[count++] = argv[i];
  into[count] = nullptr;
}

// "#! interpreter [argument]" as the kernel reads it (fs/binfmt_script.c): the argument or nullptr.
char* ScriptArgument(const char* path, char* line, size_t room) {
  const int fd = original::open()(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  const ssize_t size = original::read()(fd, line, room - 1);
  original::close()(fd);
  if (size < 2) return nullptr;
  line[size] = '\0';
  line[std::strcspn(line, "\n")] = '\0';
  char* at = line + 2 + std::strspn(line + 2, " \t");
  at += std::strcspn(at, " \t");
  at += std::strspn(at, " \t");
  size_t length = std::strlen(at);
  while (length > 0 &&
         (at[length - 1] == ' ' || at[length - 1] == '\t' || at[length - 1] == '\r')) {
    at[--length] = '\0';
  }
  return length == 0 ? nullptr : at;
}

// Runs `start` with what the exec comes to.
template <typename Starter>
int WithPlan(const char* path, char* const argv[], char* const envp[], Starter start) {
  if (path == nullptr || !Active() || !CanReadText(path)) return start(Plan{path, argv, envp});
  const int saved = errno;
  NoteExec();
  Located* where = static_cast<Located*>(alloca(sizeof(Located)));
  where->kind = Located::Kind::kNative;
  if (MayConcern(path)) Locate(AT_FDCWD, path, where);
  if (where->kind != Located::Kind::kNative) path = where->real;

  const size_t preload_room = PreloadRoom(envp);
  char* preload = static_cast<char*>(alloca(preload_room));
  char* dropped = static_cast<char*>(alloca(preload_room));
  char** kept = static_cast<char**>(alloca((Count(envp) + kKeptCount + 1) * sizeof(char*)));
  KeepWorld(envp, kept, preload, preload_room);
  Plan plan{path, argv, kept};

  char detail[256];
  const char* loader = KeptValue("VERBS_ABI_LOADER");
  Interceptable verdict = Judge(path, detail, sizeof detail);
  if (verdict == Interceptable::kSetId && !ChangesUser(path)) verdict = Interceptable::kYes;
  const char* lost = OutOfReach();
  char line[256];
  char** words = static_cast<char**>(alloca((Count(argv) + kLoaderWords + 4) * sizeof(char*)));
  char** script = static_cast<char**>(alloca((Count(argv) + 4) * sizeof(char*)));
  if (loader != nullptr && loader[0] != '\0') {
    const char* program = path;
    char* const* arguments = argv;
    if (verdict == Interceptable::kScript) {
      // The kernel would start the interpreter by itself, outside the loader.
      char* argument = ScriptArgument(path, line, sizeof line);
      size_t count = 0;
      script[count++] = detail;
      if (argument != nullptr) script[count++] = argument;
      script[count++] = const_cast<char*>(path);
      for (size_t i = 1; i < Count(argv); ++i) script[count++] = argv[i];
      script[count] = nullptr;
      program = detail;
      arguments = script;
      char ignored[256];
      verdict = Judge(program, ignored, sizeof ignored);
    }
    if (verdict == Interceptable::kYes && lost == nullptr) {
      ThroughLoader(loader, program, arguments, words);
      plan.path = loader;
      plan.argv = words;
    }
  }
  char text[512];
  switch (verdict) {
    case Interceptable::kOtherClass:
    case Interceptable::kStatic:
    case Interceptable::kOtherLibc:
    case Interceptable::kSetId:
      std::snprintf(text, sizeof text, "%.300s: %s", path, Describe(verdict));
      TraceEvent("not_intercepted", text);
      // A static program has no loader to complain, and what it starts finds the shim.
      if (verdict != Interceptable::kStatic) ForgetShim(kept, dropped);
      break;
    case Interceptable::kYes:
    case Interceptable::kScript:
      if (lost == nullptr) break;
      std::snprintf(text, sizeof text,
                    "%.200s, and what it starts: this user or root folder does not reach %.200s",
                    path, lost);
      TraceEvent("not_intercepted", text);
      ForgetShim(kept, dropped);
      break;
    default:
      break;
  }
  errno = saved;
  return start(plan);
}

// execvp's search: calls `start` with each candidate, until one starts or fails for another reason
// than not being there. Only needed where the file found decides how it is started.
template <typename Starter>
int Search(const char* file, Starter start) {
  if (std::strchr(file, '/') != nullptr) return start(file);
  const char* dirs = std::getenv("PATH");
  if (dirs == nullptr) dirs = "/bin:/usr/bin";
  bool denied = false;
  while (true) {
    const size_t length = std::strcspn(dirs, ":");
    char candidate[kMaxPath];
    const int written = std::snprintf(candidate, sizeof candidate, "%.*s%s%s",
                                      static_cast<int>(length), dirs, length ? "/" : "", file);
    if (written > 0 && written < static_cast<int>(sizeof candidate)) {
      if (original::access()(candidate, X_OK) == 0) return start(candidate);
      if (errno == EACCES) denied = true;
    }
    if (dirs[length] == '\0') break;
    dirs += length + 1;
  }
  errno = denied ? EACCES : ENOENT;
  return -1;
}

int Execute(const char* path, char* const argv[], char* const envp[]) {
  return WithPlan(path, argv, envp, [](const Plan& plan) {
    return original::execve()(plan.path, plan.argv, plan.envp);
  });
}

int ExecuteSearched(const char* file, char* const argv[], char* const envp[]) {
  if (!Active()) return original::execvpe()(file, argv, envp);
  return Search(file, [&](const char* path) {
    const int result = Execute(path, argv, envp);
    if (errno != ENOEXEC) return result;
    // execvp runs what the kernel does not know by the shell.
    char** words = static_cast<char**>(alloca((Count(argv) + 3) * sizeof(char*)));
    words[0] = const_cast<char*>("/bin/sh");
    words[1] = const_cast<char*>(path);
    for (size_t i = 1; i <= Count(argv); ++i) words[i + 1] = i < Count(argv) ? argv[i] : nullptr;
    words[Count(argv) + (Count(argv) == 0 ? 2 : 1)] = nullptr;
    return Execute(words[0], words, envp);
  });
}

}  // namespace
}  // namespace vabi::libc

using namespace vabi::libc;  // NOLINT: this file defines libc's names

// The arguments of execl and its like, up to the null pointer, as an array.
#define VABI_GATHER(argument, argv)                                                             \
  va_list list;                                                                                 \
  va_start(list, argument);                                                                     \
  size_t words = 1;                                                                             \
  for (const char* word = argument; word != nullptr; word = va_arg(list, const char*)) ++words; \
  va_end(list);                                                                                 \
  char** argv = static_cast<char**>(alloca((words + 1) * sizeof(char*)));                       \
  va_start(list, argument);                                                                     \
  argv[0] = const_cast<char*>(argument);                                                        \
  for (size_t i = 1; i < words; ++i) argv[i] = va_arg(list, char*);

int wrap_execve(const char* path, char* const argv[], char* const envp[]) {
  return Execute(path, argv, envp);
}
int wrap_execv(const char* path, char* const argv[]) { return Execute(path, argv, environ); }
int wrap_execvp(const char* file, char* const argv[]) {
  return ExecuteSearched(file, argv, environ);
}
int wrap_execvpe(const char* file, char* const argv[], char* const envp[]) {
  return ExecuteSearched(file, argv, envp);
}
int wrap_fexecve(int fd, char* const argv[], char* const envp[]) {
  if (!Active()) return original::fexecve()(fd, argv, envp);
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return Execute(path, argv, envp);
}

int wrap_execl(const char* path, const char* argument, ...) {
  VABI_GATHER(argument, argv);
  va_end(list);
  return Execute(path, argv, environ);
}
int wrap_execlp(const char* file, const char* argument, ...) {
  VABI_GATHER(argument, argv);
  va_end(list);
  return ExecuteSearched(file, argv, environ);
}
int wrap_execle(const char* path, const char* argument, ...) {
  VABI_GATHER(argument, argv);
  char* const* envp = argument == nullptr ? nullptr : va_arg(list, char* const*);
  va_end(list);
  return Execute(path, argv, envp);
}

int wrap_posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                     const posix_spawnattr_t* attributes, char* const argv[], char* const envp[]) {
  return WithPlan(path, argv, envp, [&](const Plan& plan) {
    return original::posix_spawn()(pid, plan.path, actions, attributes, plan.argv, plan.envp);
  });
}
int wrap_posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                      const posix_spawnattr_t* attributes, char* const argv[], char* const envp[]) {
  if (!Active() || file == nullptr) {
    return original::posix_spawnp()(pid, file, actions, attributes, argv, envp);
  }
  const int result = Search(file, [&](const char* path) {
    return WithPlan(path, argv, envp, [&](const Plan& plan) {
      return original::posix_spawn()(pid, plan.path, actions, attributes, plan.argv, plan.envp);
    });
  });
  return result < 0 ? errno : result;  // posix_spawn answers the errno itself
}
