// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/common/udata.h"

#include "shims/sys/sys.h"
#include "shims/uverbs/context.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::provider {
namespace {

constexpr uint64_t kPage = 4096;

// May the process pin that many pages more? Takes them for the object of this call.
int TakePages(Call& call, uint64_t pages, const PinRules& rules) {
  const auto limit = HasCapabilities(call.world) ? std::optional<uint64_t>() : MemlockLimit();
  if (call.Violates(rules.memlock, limit && PagesPinned() + pages > *limit / kPage))
    return call.Refuse(rules.memlock);
  call.pins.buffers.Take(pages);
  return 0;
}

}  // namespace

int CopyRequest(Call& call, void* to, size_t size, const RequestRules& rules) {
  if (call.Violates(rules.too_short, call.in.length() < rules.minimum))
    return call.Refuse(rules.too_short);
  if (call.in.length() > size && call.On(rules.tail)) {
    const int clear = call.in.TailIsZero(size);
    if (clear < 0) return call.Refuse(rules.fault);
    if (clear == 0) return call.Refuse(rules.tail);
  }
  if (call.in.Copy(to, size) != 0) return call.Refuse(rules.fault);
  return 0;
}

int Respond(Call& call, const void* from, size_t size, How how, RuleId fault) {
  if (how == How::kWhole) {
    return trace::Reply(call.out.address(), from, size) != 0 ? call.Refuse(fault) : 0;
  }
  if (call.out.length() == 0) return 0;
  if (call.out.Copy(from, size) != 0) return call.Refuse(fault);
  if (how == How::kZeroes && call.out.length() > size && call.out.ClearFrom(size) != 0)
    return call.Refuse(fault);
  return 0;
}

int NoUdataIo(Call& call, RuleId input, RuleId fault) {
  const int zero = call.in.length() == 0 ? 1 : call.in.TailIsZero(0);
  if (zero < 0) return call.Refuse(fault);
  if (call.Violates(input, zero == 0)) return call.Refuse(input);
  if (call.out.length() != 0 && call.out.ClearFrom(0) != 0) return call.Refuse(fault);
  return 0;
}

int CheckMayLock(Call& call, const PinRules& rules) {
  if (call.Violates(rules.no_lock, !HasCapabilities(call.world) && MemlockLimit() == 0U))
    return call.Refuse(rules.no_lock);
  return 0;
}

int PinMemory(Call& call, uint64_t address, uint64_t size, bool writable, const PinRules& rules) {
  const uint64_t end = address + size;
  const uint64_t rounded_end = (end + kPage - 1) & ~(kPage - 1), start = address & ~(kPage - 1);
  if (call.Violates(rules.range, end < address || rounded_end < end)) {
    return call.Refuse(rules.range);
  }
  if (const int error = CheckMayLock(call, rules)) return error;
  const uint64_t pages = (rounded_end - start) / kPage;
  const bool limit_first = call.world.Knob(KnobId::umem_limit_first) != 0;
  if (limit_first) {
    if (const int error = TakePages(call, pages, rules)) return error;
  }
  if (call.Violates(rules.pages, pages == 0 || pages > UINT32_MAX)) return call.Refuse(rules.pages);
  if (!limit_first) {
    if (const int error = TakePages(call, pages, rules)) return error;
  }
  if (!sys::UserRangeMapped(start, rounded_end - start, writable)) return call.Refuse(rules.fault);
  return 0;
}

int PinRecordPage(Call& call, uint64_t address, const PinRules& rules) {
  const uint64_t page = address & ~(kPage - 1);
  std::weak_ptr<PinnedPages>& known = call.file.record_pages[page];
  std::shared_ptr<PinnedPages> record = known.lock();
  if (record == nullptr) {
    if (const int error = PinMemory(call, page, kPage, false, rules)) return error;
    record = std::make_shared<PinnedPages>(call.pins.buffers.Split(1));
    known = record;
  }
  call.pins.records.push_back(std::move(record));
  return 0;
}

bool AccessWrites(uint32_t access) {
  constexpr uint32_t kLocalWrite = 1, kRemoteWrite = 2, kRemoteAtomic = 8, kMwBind = 16;
  return (access & (kLocalWrite | kRemoteWrite | kRemoteAtomic | kMwBind)) != 0;
}

}  // namespace vabi::provider
