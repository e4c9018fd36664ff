// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_TRACE_DECISION_H_
#define VABI_SHIMS_TRACE_DECISION_H_

#include <cerrno>
#include <cstdio>

#include "harness/world/world.h"
#include "shims/sys/sys.h"
#include "shims/trace/trace.h"

namespace vabi {

// One call on its way through a part of the fake kernel that is not uverbs (there: Call): refusals
// by the name of a rule, and one line of the trace.
class Decision {
 public:
  // `device`: static storage, or the world's.
  Decision(const World& world, trace::FrontEnd via, const char* device, const char* name)
      : world(world) {
    record.front_end = via;
    record.device = device;
    std::snprintf(record.name, sizeof(record.name), "%s", name);
    record.start_ns = trace::Enabled() ? sys::MonotonicNs() : 0;
  }

  // Does this kernel have the rule, and has nobody relaxed it? To be asked before a rule of the
  // kind "check" refuses.
  bool Violates(RuleId rule, bool condition) const {
    if (!condition) return false;
    const RuleEntry& entry = world.Rule(rule);
    return entry.on && !entry.relaxed;
  }
  // -errno of the rule in this kernel. A relaxed structural rule answers -EXFULL.
  int Refuse(RuleId rule) {
    record.rule = static_cast<int>(rule);
    const RuleEntry& entry = world.Rule(rule);
    return entry.relaxed ? -EXFULL : -entry.error;
  }
  // `what` must have static storage.
  int Unmodelled(const char* what) {
    if (record.unmodelled == nullptr) record.unmodelled = what;
    return -EOPNOTSUPP;
  }
  // Writes the line and gives the result back.
  long Finish(long result) {
    if (trace::Enabled()) {
      record.result = result;
      trace::Write(record);
    }
    return result;
  }

  const World& world;
  trace::Record record;
};

}  // namespace vabi

#endif  // VABI_SHIMS_TRACE_DECISION_H_
