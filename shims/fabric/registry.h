// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_REGISTRY_H_
#define VABI_SHIMS_FABRIC_REGISTRY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

// An open-addressing table from (device, number) to a pointer: looked at several times for every
// message, so no node-based map. Never destroyed: the NIC's thread may outlive static destructors.

namespace vabi::fabric {

template <typename T>
class Registry {
 public:
  T* Find(uint32_t device, uint32_t number) const {
    if (capacity_ == 0) return nullptr;
    const uint64_t wanted = Name(device, number);
    for (size_t at = Hash(wanted);; ++at) {
      const Slot& slot = slots_[at & (capacity_ - 1)];
      if (slot.name == wanted && slot.value != nullptr) return slot.value;
      if (slot.value == nullptr && slot.name == kNever) return nullptr;
    }
  }

  // Replaces what was there; returns that.
  T* Insert(uint32_t device, uint32_t number, T* value) {
    T* old = Erase(device, number);
    if (2 * (used_ + 1) > capacity_) Grow();
    Place(Name(device, number), value);
    return old;
  }

  T* Erase(uint32_t device, uint32_t number) {
    if (capacity_ == 0) return nullptr;
    const uint64_t wanted = Name(device, number);
    for (size_t at = Hash(wanted);; ++at) {
      Slot& slot = slots_[at & (capacity_ - 1)];
      if (slot.value == nullptr && slot.name == kNever) return nullptr;
      if (slot.name != wanted || slot.value == nullptr) continue;
      T* old = slot.value;
      slot.value = nullptr;  // the name stays as a tombstone
      --count_;
      return old;
    }
  }

  template <typename Visit>
  void ForEach(Visit visit) const {
    for (size_t at = 0; at < capacity_; ++at) {
      if (slots_[at].value != nullptr) visit(slots_[at].value);
    }
  }

  void Clear() {
    slots_.reset();
    capacity_ = used_ = count_ = 0;
  }

 private:
  static constexpr uint64_t kNever = ~0ULL;
  struct Slot {
    uint64_t name = kNever;
    T* value = nullptr;
  };

  static uint64_t Name(uint32_t device, uint32_t number) {
    return static_cast<uint64_t>(device) << 32 | number;
  }
  static size_t Hash(uint64_t name) {
    return static_cast<size_t>((name * 0x9e3779b97f4a7c15ULL) >> 20);
  }

  void Place(uint64_t name, T* value) {
    size_t at = Hash(name);
    while (slots_[at & (capacity_ - 1)].name != kNever) ++at;
    slots_[at & (capacity_ - 1)] = {name, value};
    ++used_;
    ++count_;
  }

  void Grow() {
    const size_t old_capacity = capacity_;
    std::unique_ptr<Slot[]> old = std::move(slots_);
    capacity_ = 64;
    while (capacity_ < 4 * (count_ + 1)) capacity_ *= 2;
    slots_ = std::make_unique<Slot[]>(capacity_);
    used_ = count_ = 0;
    for (size_t at = 0; at < old_capacity; ++at) {
      if (old[at].value != nullptr) Place(old[at].name, old[at].value);
    }
  }

  std::unique_ptr<Slot[]> slots_;
  size_t capacity_ = 0;
  size_t used_ = 0;   // slots with a name, tombstones too
  size_t count_ = 0;  // slots with a value
};

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_REGISTRY_H_
