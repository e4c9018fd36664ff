// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_VMA_H_
#define VABI_SHIMS_VMA_H_

#include <cstdint>

// The seam between fake kernels and libc interposition for mappings: what a kernel's mm knows of a
// mapping of a device and the ordinary memory that stands for it has not.

namespace vabi {

struct DeviceVma {
  // How the driver put the pages in, which decides on the flags of the vm_area_struct.
  enum class Pages : uint8_t {
    kIo,        // mm/memory.c:remap_pfn_range: VM_IO | VM_PFNMAP | VM_DONTEXPAND
    kInserted,  // mm/memory.c:vm_insert_page: VM_MIXEDMAP
    kVmalloc,   // mm/vmalloc.c:remap_vmalloc_range: VM_DONTEXPAND, and as vm_insert_page
  };

  uintptr_t begin = 0, end = 0;
  Pages pages = Pages::kIo;
  bool may_write = true;  // VM_MAYWRITE
  bool shared = true;     // VM_SHARED
};

// Implemented by libc/, and by a stub in unit tests.
struct VmaTable {
  // The process has it mapped from now on.
  static void Add(const DeviceVma& vma);
};

}  // namespace vabi

#endif  // VABI_SHIMS_VMA_H_
