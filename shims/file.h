// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FILE_H_
#define VABI_SHIMS_FILE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

// The seam between libc interposition and any fake kernel: open file descriptions and what opens
// them. All calls return a result >= 0, or -errno, as the kernel does.

namespace vabi {

class File {
 public:
  virtual ~File() = default;

  // The real descriptor behind this file description (a timerfd, a memfd): poll, epoll, fcntl and
  // dup work natively on it. Owned by the process' descriptor table, not by this object; -1 once
  // the last one was closed.
  int backing_fd() const { return backing_fd_; }
  virtual void set_backing_fd(int fd) { backing_fd_ = fd; }

  // `nonblock` is the descriptor's O_NONBLOCK at this moment. A blocking read holds no lock while
  // it waits.
  virtual ssize_t Read(void* user, size_t size, bool nonblock);
  virtual ssize_t Write(const void* user, size_t size);
  // What read and write refuse before they look at anything else (fs/read_write.c: FMODE_READ,
  // FMODE_CAN_READ and their like): 0, or -errno.
  virtual int CheckRead() const { return 0; }
  virtual int CheckWrite() const { return 0; }
  // Opened with O_PATH: it can be stat'ed, and opened through /proc/self/fd.
  virtual bool PathOnly() const { return false; }
  virtual long Ioctl(unsigned long request, void* argument);
  // A real address, or -errno.
  virtual long Mmap(void* address, size_t length, int protection, int flags, int64_t offset);
  // What fstat says of it: S_IFCHR | permissions, and st_rdev; false: leave the backing file's own
  // answer.
  virtual bool StatAs(unsigned int* mode, uint64_t* rdev) const;
  // By StatAs, a device node.
  bool IsNode() const;
  // Opened for reading only, whatever the backing descriptor is: F_GETFL says O_RDONLY, and poll
  // never says that it can be written to.
  virtual bool ReadOnly() const { return false; }
  // Of a read-only file: what poll says of it. `readable`: what the backing descriptor says.
  virtual short PollAs(bool readable) const;
  // The last descriptor of this description, in any process that shares it, was closed, and the
  // last call on it has ended (fs/file_table.c:fput).
  virtual void Release() {}
  // Sockets only (RDMA netlink).
  virtual ssize_t Send(const void* user, size_t size);
  // How the kernel names it in /proc/self/fd: "/dev/infiniband/uverbs0",
  // "anon_inode:[infinibandevent]".
  virtual const char* Name() const = 0;

 private:
  int backing_fd_ = -1;
};

// A fake file description together with the new real descriptor that stands for it.
struct Opened {
  int fd = -1;
  std::shared_ptr<File> file;
};

// Which fake kernel a path or a socket belongs to. Implemented by the fake kernels, called by
// libc/.
struct FakeKernel {
  // Opens a character device node of the world: 0 and *out, -errno, or 1: not a node of this world.
  static int OpenNode(const char* path, int flags, Opened* out);
  // A netlink socket of a fake family: 0 and *out, -errno, or 1: not ours.
  static int OpenNetlink(int type, int protocol, Opened* out);
};

// Files made by a command (completion channel, async event file) enter the process' descriptor
// table here; implemented by libc/, and by a stub in unit tests.
struct FdTable {
  // Makes `fd` (a real descriptor, already open) stand for `file`.
  static void Install(int fd, std::shared_ptr<File> file);
  // The file that `fd` stands for, or null: an ordinary descriptor. Whoever holds the answer is a
  // call on the file: it must not be kept beyond that.
  static std::shared_ptr<File> Get(int fd);
  // Forgets `fd`; Release follows when it was the last one of the description.
  static void Remove(int fd);
  // Bumped by every successful set*id call: write() compares credentials by identity.
  static uint64_t CredentialGeneration();
};

}  // namespace vabi

#endif  // VABI_SHIMS_FILE_H_
