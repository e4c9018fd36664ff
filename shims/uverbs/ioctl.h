// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_IOCTL_H_
#define VABI_SHIMS_UVERBS_IOCTL_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "shims/file.h"
#include "shims/uverbs/call.h"
#include "shims/uverbs/ioctl_spec.h"

// The ioctl front end as method handlers see it (the kernel's struct uverbs_attr_bundle).

namespace vabi {

// RDMA_VERBS_IOCTL of this world on this file: 0 or -errno (uverbs_ioctl.c:ib_uverbs_ioctl).
long RunIoctl(UverbsFile& file, unsigned long request, void* argument);

class IoctlCall : public Call {
 public:
  using Call::Call;

  bool Has(ConstId attribute) const;
  // Bytes that the caller gave for it; 0 when absent.
  size_t Length(ConstId attribute) const;
  // uverbs_copy_from: min(size, length), rest zeroed. -ENOENT when absent, -EFAULT.
  int CopyIn(ConstId attribute, void* to, size_t size) const;
  // uverbs_get_const: a number of 4 or 8 bytes; -ENOENT when absent.
  int GetConst(ConstId attribute, uint64_t* value) const;
  // uverbs_get_flags32/64: refuses bits outside `allowed` (rule ioctl.flags.unknown); 0 when
  // absent.
  int GetFlags(ConstId attribute, uint64_t allowed, uint64_t* value);
  int EnumId(ConstId attribute) const;
  // uverbs_copy_to: min(size, length), sets VALID_OUTPUT. -ENOENT when absent (not an error by
  // itself).
  int CopyOut(ConstId attribute, const void* from, size_t size);
  // uverbs_copy_to_struct_or_zero: also zeroes the rest of the caller's buffer.
  int CopyOutOrZero(ConstId attribute, const void* from, size_t size);
  // The object of a kIdr or kFd attribute; null when absent. For kNew: what the handler has put
  // there.
  Object* GetObject(ConstId attribute) const;
  template <typename T>
  T* Get(ConstId attribute) const {
    return static_cast<T*>(GetObject(attribute));
  }
  std::span<Object* const> GetObjects(ConstId attribute) const;  // kIdrsArray
  // kNew: the finished object takes the handle that the front end reserved, and lives when the
  // handler (and the copy of its answers) succeeds.
  void Created(ConstId attribute, std::unique_ptr<Object> object);
  // kFd: the file behind it; kNew: puts the finished file there.
  std::shared_ptr<File> GetFile(ConstId attribute) const;
  void CreatedFile(ConstId attribute, std::shared_ptr<File> file);
  // Bytes of an alloc_and_copy attribute, copied when it was processed.
  std::span<const uint8_t> Bytes(ConstId attribute) const;
  // uverbs_output_written: the handler has filled the buffer by itself.
  int MarkWritten(ConstId attribute);
  // Where the caller's buffer of a pointer attribute is; 0 when absent.
  uint64_t UserAddress(ConstId attribute) const;

  struct State;
  State* state = nullptr;
};

// The call as an ioctl method sees it; null in write(), whose commands have no attributes.
inline IoctlCall* AsIoctl(Call& call) {
  return call.record.front_end == trace::FrontEnd::kIoctl ? static_cast<IoctlCall*>(&call)
                                                          : nullptr;
}

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_IOCTL_H_
