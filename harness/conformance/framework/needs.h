// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CONFORMANCE_FRAMEWORK_NEEDS_H_
#define VABI_HARNESS_CONFORMANCE_FRAMEWORK_NEEDS_H_

#include <string>
#include <vector>

#include "harness/conformance/framework/cell.h"

// What a test needs of its cell, as data: the runner picks the tests that hold, their bodies ask
// nothing.

namespace vabi::conformance {

enum class Ioctl { kAny, kAbsent, kPresent };
// Of INVOKE_WRITE: kMissing is ioctl without it, so that the probe at open says EPROTONOSUPPORT.
enum class InvokeWrite { kAny, kMissing, kServed };
// How libibverbs finds devices: netlink tells all, of devices but not of their nodes, or nothing.
enum class Discovery { kAny, kNetlink, kNetlinkAndSysfs, kSysfs };

struct KnobNeed {
  std::string name;
  long at_least, at_most;
};

struct Needs {
  Ioctl ioctl = Ioctl::kAny;
  InvokeWrite invoke_write = InvokeWrite::kAny;
  Discovery discovery = Discovery::kAny;
  std::string provider = {};      // a driver; empty: any
  std::string not_provider = {};  // a driver that does it in another way
  std::string link = {};          // "ib", "roce"; empty: any
  int devices = 1;                // exactly so many
  std::vector<std::string> kernels =
      {};  // patterns, one of which the kernel's name matches; none: any
  std::vector<std::string> served = {};       // all of these: Cell::Serves
  std::vector<std::string> missing = {};      // none of these
  std::vector<std::string> any_missing = {};  // at least one of these is not served
  std::vector<std::string> ops = {};          // the device's driver has these operations
  std::vector<std::string> no_ops = {};
  std::vector<std::string> rules = {};  // the kernel has these rules
  std::vector<std::string> no_rules = {};
  std::vector<KnobNeed> knobs = {};
  std::vector<KnobNeed> structs = {};  // bytes of these structures in the kernel
  // Overlays, as patterns (fnmatch with @(a|b)), each of which the cell must have. A cell with an
  // overlay that is neither named here nor only another route (see kRoutes) is left out.
  std::vector<std::string> overlays = {};
  std::vector<std::string> not_overlays = {};
  bool write = true;  // the node can be written to
  bool found =
      true;  // the library can find the device's node on this route (rxe without a parent: not all)
  // Completion queues and reliable queue pairs can be made and taken through their states: mlx5
  // needs a UAR, handed out with the context or asked for; iWARP's and efa's are other ones.
  bool queue_pairs = false;
  bool data_path = false;     // somebody works the device's queues off
  bool atomics = false;       // the device has them (mlx5 of 4.4 tells of none)
  Release from = {0, 0};      // of rdma-core
  Release until = {9999, 0};  // this one not included
};

// True when the test holds in the cell; else `why` says what it lacks.
bool Hold(const Needs& needs, const Cell& cell, std::string* why);

}  // namespace vabi::conformance

#endif  // VABI_HARNESS_CONFORMANCE_FRAMEWORK_NEEDS_H_
