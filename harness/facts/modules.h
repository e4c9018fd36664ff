// SPDX-License-Identifier: BSD-2-Clause
//
// What a kernel was really compiled with, from the BTF of its modules.
#ifndef VABI_HARNESS_FACTS_MODULES_H_
#define VABI_HARNESS_FACTS_MODULES_H_

#include <filesystem>
#include <set>
#include <string>

#include "harness/facts/binary.h"
#include "harness/facts/result.h"

namespace vabi::facts {

struct ModuleTypes {
  BinaryTypes types{};
  std::string release{};  // "6.1.0-57-amd64", from the modules' folder; empty when unknown
  std::string version{};  // of the package, for a .deb
};

// Reads the RDMA modules (lib/modules/RELEASE/…/infiniband/…/*.ko, also compressed) of an unpacked
// kernel or of a kernel package, or the files of /sys/kernel/btf. `base` is the kernel image or its
// raw BTF, which modules refer to; empty: looked for beside the modules and in boot/.
Result<ModuleTypes> ReadModules(const std::filesystem::path& source,
                                const std::filesystem::path& base,
                                const std::set<std::string>& names);

// The BTF section of a kernel image: vmlinuz, vmlinux, or raw BTF itself.
Result<std::string> KernelBtf(const std::filesystem::path& image);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_MODULES_H_
