// SPDX-License-Identifier: BSD-2-Clause
// The kernel gives a task new credentials with every successful call of these (kernel/sys.c:
// commit_creds), even when the numbers stay, and write() to a uverbs file compares credentials by
// identity.
#include "shims/libc/descriptors.h"
#include "shims/libc/originals.h"

using namespace vabi::libc;  // NOLINT: this file defines libc's names

namespace {

int Changed(int result) {
  if (result == 0) NoteCredentials();
  return result;
}

}  // namespace

int wrap_setuid(uid_t id) { return Changed(original::setuid()(id)); }
int wrap_seteuid(uid_t id) { return Changed(original::seteuid()(id)); }
int wrap_setreuid(uid_t real, uid_t effective) {
  return Changed(original::setreuid()(real, effective));
}
int wrap_setresuid(uid_t real, uid_t effective, uid_t saved) {
  return Changed(original::setresuid()(real, effective, saved));
}
int wrap_setgid(gid_t id) { return Changed(original::setgid()(id)); }
int wrap_setegid(gid_t id) { return Changed(original::setegid()(id)); }
int wrap_setregid(gid_t real, gid_t effective) {
  return Changed(original::setregid()(real, effective));
}
int wrap_setresgid(gid_t real, gid_t effective, gid_t saved) {
  return Changed(original::setresgid()(real, effective, saved));
}
int wrap_setgroups(size_t count, const gid_t* list) {
  return Changed(original::setgroups()(count, list));
}
int wrap_initgroups(const char* user, gid_t group) {
  return Changed(original::initgroups()(user, group));
}

// These two answer the previous id; the kernel keeps the old credentials when nothing changed.
int wrap_setfsuid(uid_t id) {
  const int previous = original::setfsuid()(id);
  if (static_cast<uid_t>(previous) != id) NoteCredentials();
  return previous;
}
int wrap_setfsgid(gid_t id) {
  const int previous = original::setfsgid()(id);
  if (static_cast<gid_t>(previous) != id) NoteCredentials();
  return previous;
}
