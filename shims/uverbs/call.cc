// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/call.h"

#include <cerrno>
#include <cstring>

#include "shims/sys/sys.h"
#include "shims/trace/trace.h"

namespace vabi {
namespace {

constexpr size_t kChunk = 256;

}  // namespace

int UdataIn::CopyAt(size_t offset, void* to, size_t size) const {
  const size_t there = offset < length_ ? length_ - offset : 0;
  const size_t copied = there < size ? there : size;
  if (copied > 0) {
    if (inline_) {
      std::memcpy(to, reinterpret_cast<const uint8_t*>(&address_) + offset, copied);
    } else if (sys::CopyFromUser(to, address_ + offset, copied) != 0) {
      return -EFAULT;
    }
  }
  if (size > copied) std::memset(static_cast<uint8_t*>(to) + copied, 0, size - copied);
  return 0;
}

int UdataIn::TailIsZero(size_t offset) const {
  uint8_t chunk[kChunk];
  while (offset < length_) {
    const size_t size = length_ - offset < kChunk ? length_ - offset : kChunk;
    if (CopyAt(offset, chunk, size) != 0) return -EFAULT;
    for (size_t i = 0; i < size; ++i) {
      if (chunk[i] != 0) return 0;
    }
    offset += size;
  }
  return 1;
}

int UdataOut::CopyAt(size_t offset, const void* from, size_t size) const {
  const size_t room = offset < length_ ? length_ - offset : 0;
  return trace::Reply(address_ + offset, from, room < size ? room : size);
}

int UdataOut::ClearFrom(size_t offset) const {
  static constexpr uint8_t kZero[kChunk] = {};
  while (offset < length_) {
    const size_t size = length_ - offset < kChunk ? length_ - offset : kChunk;
    if (trace::Reply(address_ + offset, kZero, size) != 0) return -EFAULT;
    offset += size;
  }
  return 0;
}

int Call::Refuse(RuleId rule) {
  record.rule = static_cast<int>(rule);
  const RuleEntry& entry = world.Rule(rule);
  return entry.relaxed ? -EXFULL : -entry.error;
}

int Call::Unmodelled(const char* what) {
  if (record.unmodelled == nullptr) record.unmodelled = what;
  return -EOPNOTSUPP;
}

}  // namespace vabi
