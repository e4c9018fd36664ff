// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_CALL_H_
#define VABI_SHIMS_UVERBS_CALL_H_

#include <cstddef>
#include <cstdint>

#include "harness/world/world.h"
#include "shims/trace/trace.h"
#include "shims/uverbs/pinned_memory.h"

namespace vabi {

class Device;
class UverbsFile;
struct Context;

// The driver's private request (UHW in), exactly as the caller sent it; the core has checked
// nothing.
class UdataIn {
 public:
  UdataIn() = default;
  // `inline_data`: the bytes are in `address` itself (ioctl attributes of up to 8 bytes).
  UdataIn(uint64_t address, size_t length, bool inline_data = false)
      : address_(address), length_(length), inline_(inline_data) {}

  size_t length() const { return length_; }
  // ib_copy_from_udata(to, min(size, length)); the rest of `to` is zeroed. 0 or -EFAULT.
  int Copy(void* to, size_t size) const { return CopyAt(0, to, size); }
  // The same from `offset` on.
  int CopyAt(size_t offset, void* to, size_t size) const;
  // ib_is_udata_cleared(offset, length() - offset): 1 when all zero, 0 when not, -EFAULT.
  int TailIsZero(size_t offset) const;

 private:
  uint64_t address_ = 0;
  size_t length_ = 0;
  bool inline_ = false;
};

// The driver's private reply (UHW out): all that the caller's buffer can take.
class UdataOut {
 public:
  UdataOut() = default;
  UdataOut(uint64_t address, size_t length) : address_(address), length_(length) {}

  size_t length() const { return length_; }
  uint64_t address() const { return address_; }
  // ib_copy_to_udata(from, min(size, length)): never past the caller's buffer. 0 or -EFAULT.
  int Copy(const void* from, size_t size) const { return CopyAt(0, from, size); }
  int CopyAt(size_t offset, const void* from, size_t size) const;
  // clear_user from `offset` to the end of the buffer. 0 or -EFAULT.
  int ClearFrom(size_t offset) const;

 private:
  uint64_t address_ = 0;
  size_t length_ = 0;
};

// One command on its way through the fake kernel: which world's rules hold, who asks, and the trace
// record that will say how it went. Handlers return 0 or -errno; they refuse through Refuse, so
// that every refusal has a rule's name.
class Call {
 public:
  Call(const World& world, UverbsFile& file) : world(world), file(file) {}

  // Does this kernel have the rule, and has nobody relaxed it? Ask before refusing by a `check`
  // rule:
  //   if (call.On(RuleId::pd_in_use) && pd.users) return call.Refuse(RuleId::pd_in_use);
  // or shorter: if (call.Violates(RuleId::pd_in_use, pd.users)) return
  // call.Refuse(RuleId::pd_in_use);
  bool On(RuleId rule) const {
    const RuleEntry& entry = world.Rule(rule);
    return entry.on && !entry.relaxed;
  }
  bool Violates(RuleId rule, bool condition) const { return condition && On(rule); }
  // -errno of the rule in this kernel; recorded. A relaxed structural rule answers -EXFULL, which
  // uverbs never uses.
  int Refuse(RuleId rule);
  // The fake kernel does not model this: -EOPNOTSUPP, and the cell is reported as unmodelled.
  // `what` must be a string with static storage.
  int Unmodelled(const char* what);

  const World& world;
  UverbsFile& file;
  UdataIn in;    // UHW in
  UdataOut out;  // UHW out
  trace::Record record;
  Pins pins;  // what the driver pinned for it; goes to the object that it makes or changes
};

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_CALL_H_
