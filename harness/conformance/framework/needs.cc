// SPDX-License-Identifier: BSD-2-Clause
#include "harness/conformance/framework/needs.h"

#include <fnmatch.h>

namespace vabi::conformance {
namespace {

// Overlays that take a way away for which libibverbs has another: what a program gets stays the
// same (libibverbs/cmd_fallback.c, init.c). DEVICE.GET_CONTEXT may go because the written command
// brings the async fd too; ASYNC_EVENT.ALLOC may not, and neither may mlx5's UAR methods.
constexpr const char* kRoutes[] = {
    "no-ioctl",
    "no-invoke-write",
    "no-netlink",
    "no-netlink-chardev",
    "missing-method=DEVICE.INVOKE_WRITE",
    "missing-method=DEVICE.GET_CONTEXT",
    "missing-method=DEVICE.QUERY_PORT",
    "missing-method=DEVICE.QUERY_GID_TABLE",
    "missing-method=DEVICE.QUERY_GID_ENTRY",
    "missing-method=PD.DESTROY",
    "missing-method=MR.MR_DESTROY",
    "missing-method=MW.DESTROY",
    "missing-method=CQ.CREATE",
    "missing-method=CQ.DESTROY",
    "missing-method=QP.CREATE",
    "missing-method=QP.DESTROY",
    "missing-method=SRQ.CREATE",
    "missing-method=SRQ.DESTROY",
    "missing-method=AH.DESTROY",
    "missing-method=XRCD.DESTROY",
    "missing-method=WQ.CREATE",
    "missing-method=WQ.DESTROY",
    "missing-method=FLOW.DESTROY",
    "missing-method=RWQ_IND_TBL.DESTROY",
    "missing-attribute=UVERBS_ATTR_CREATE_CQ_EVENT_FD",
};

bool Matches(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), FNM_EXTMATCH) == 0;
}

bool IsRoute(const std::string& overlay) {
  for (const char* route : kRoutes) {
    if (overlay == route) return true;
  }
  return false;
}

const char* Text(Discovery discovery) {
  switch (discovery) {
    case Discovery::kAny:
      return "any";
    case Discovery::kNetlink:
      return "netlink";
    case Discovery::kNetlinkAndSysfs:
      return "netlink and sysfs";
    case Discovery::kSysfs:
      return "sysfs";
  }
  return "?";
}

Discovery DiscoveryOf(const Cell& cell) {
  if (cell.Knob("netlink.level") == 0 || cell.Knob("netlink.nldev") == 0) return Discovery::kSysfs;
  return cell.Knob("netlink.level") == 1 ? Discovery::kNetlinkAndSysfs : Discovery::kNetlink;
}

// providers/mlx5/mlx5.c: a kernel that hands out no UARs with the context (it knows
// MLX5_LIB_CAP_DYN_UAR) wants them to be asked for through an ioctl of its own.
bool HasQueuePairs(const Cell& cell) {
  for (const char* other : {"siw", "erdma", "efa"}) {
    if (cell.device().driver == other) return false;
  }
  return cell.device().driver != "mlx5" || cell.Knob("mlx5.dyn_uar") == 0 ||
         cell.Serves("UAR.OBJ_ALLOC");
}

// libibverbs/ibdev_nl.c:find_uverbs_sysfs looks for the node below the device's parent. rxe has one
// up to 5.9.
bool CanBeFound(const Cell& cell) {
  return DiscoveryOf(cell) != Discovery::kNetlinkAndSysfs || cell.device().driver != "rxe" ||
         cell.Knob("rxe.parent") != 0;
}

// The first thing that is lacking, or nothing.
std::string Lacking(const Needs& needs, const Cell& cell) {
  const CellDevice& device = cell.device();
  if (static_cast<int>(cell.devices.size()) != needs.devices)
    return std::to_string(needs.devices) + " devices";
  if (!needs.provider.empty() && device.driver != needs.provider)
    return "provider " + needs.provider;
  if (!needs.not_provider.empty() && device.driver == needs.not_provider)
    return "another provider than " + needs.not_provider;
  if (!needs.link.empty() && device.link != needs.link) return "link " + needs.link;
  if (cell.release < needs.from || !(cell.release < needs.until))
    return "another release of rdma-core";
  if (!needs.kernels.empty()) {
    bool found = false;
    for (const std::string& pattern : needs.kernels) found = found || Matches(pattern, cell.kernel);
    if (!found) return "another kernel";
  }
  if (needs.write && cell.Knob("write") == 0) return "write()";
  if (needs.ioctl != Ioctl::kAny && cell.HasIoctl() != (needs.ioctl == Ioctl::kPresent)) {
    return needs.ioctl == Ioctl::kPresent ? "ioctl" : "no ioctl";
  }
  const bool invoke = cell.Serves("DEVICE.INVOKE_WRITE");
  if (needs.invoke_write == InvokeWrite::kServed && !invoke) return "INVOKE_WRITE";
  if (needs.invoke_write == InvokeWrite::kMissing && (invoke || !cell.HasIoctl())) {
    return "ioctl without INVOKE_WRITE";
  }
  if (needs.discovery != Discovery::kAny && needs.discovery != DiscoveryOf(cell)) {
    return std::string("discovery by ") + Text(needs.discovery);
  }
  if (needs.found != CanBeFound(cell))
    return needs.found ? "a device that is found" : "a device that is not found";
  for (const std::string& name : needs.served) {
    if (!cell.Serves(name)) return name;
  }
  for (const std::string& name : needs.missing) {
    if (cell.Serves(name)) return "no " + name;
  }
  if (!needs.any_missing.empty()) {
    bool found = false;
    for (const std::string& name : needs.any_missing) found = found || !cell.Serves(name);
    if (!found) return "one of its methods missing";
  }
  for (const std::string& name : needs.ops) {
    if (!cell.Op(device.driver, name)) return "operation " + name;
  }
  for (const std::string& name : needs.no_ops) {
    if (cell.Op(device.driver, name)) return "no operation " + name;
  }
  for (const std::string& name : needs.rules) {
    if (!cell.Rule(name).on) return "rule " + name;
  }
  for (const std::string& name : needs.no_rules) {
    if (cell.Rule(name).on) return "no rule " + name;
  }
  if (needs.queue_pairs && !HasQueuePairs(cell)) return "queue pairs";
  if (needs.data_path && device.driver != "mlx5" && device.driver != "rxe") return "a data path";
  if (needs.atomics && device.driver == "mlx5" && cell.Knob("mlx5.atomic_cap") == 0)
    return "atomics";
  for (const KnobNeed& knob : needs.knobs) {
    const long value = cell.Knob(knob.name);
    if (value < knob.at_least || value > knob.at_most) return "another " + knob.name;
  }
  for (const KnobNeed& structure : needs.structs) {
    const long size = static_cast<long>(cell.SizeOf(structure.name));
    if (size < structure.at_least || size > structure.at_most)
      return "another size of " + structure.name;
  }
  for (const std::string& pattern : needs.overlays) {
    bool found = false;
    for (const std::string& overlay : cell.overlays) found = found || Matches(pattern, overlay);
    if (!found) return "overlay " + pattern;
  }
  for (const std::string& overlay : cell.overlays) {
    bool named = IsRoute(overlay);
    for (const std::string& pattern : needs.overlays) named = named || Matches(pattern, overlay);
    if (!named) return "no overlay " + overlay;
    for (const std::string& pattern : needs.not_overlays) {
      if (Matches(pattern, overlay)) return "no overlay " + overlay;
    }
  }
  return {};
}

}  // namespace

bool Hold(const Needs& needs, const Cell& cell, std::string* why) {
  *why = Lacking(needs, cell);
  return why->empty();
}

}  // namespace vabi::conformance
