// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_WORLD_WORLD_H_
#define VABI_HARNESS_WORLD_WORLD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "harness/world/image.h"

// Reading a world. Everything here is a table look-up; nothing allocates.

namespace vabi {

// Shorthands for table ids: F(ib_uverbs_create_cq, cqe), C(UVERBS_OBJECT_CQ).
#define VABI_F(structure, field) (::vabi::FieldId::structure##__##field)
#define VABI_C(name) (::vabi::ConstId::name)
#define VABI_S(name) (::vabi::StructId::name)

// Unit tests that are watched for `test --relax` keep here which rules were asked for
// (test_rules.cc); null everywhere else. A rule is asked for only where its condition holds, so
// nobody else pays for it.
inline std::atomic<std::atomic<bool>*> rules_asked{nullptr};
inline std::atomic<std::atomic<bool>*> knobs_asked{nullptr};  // the same of knobs

inline int64_t KnobOf(const WorldImage& image, KnobId id) {
  if (auto* asked = knobs_asked.load(std::memory_order_acquire)) [[unlikely]] {
    asked[Index(id)].store(true, std::memory_order_relaxed);
  }
  return image.knob[Index(id)];
}

class World {
 public:
  explicit World(const WorldImage* image) : image_(image) {}

  const WorldImage& image() const { return *image_; }

  // Bytes of the structure in this kernel; 0 when it has none.
  size_t Size(StructId id) const { return image_->struct_size[Index(id)]; }
  bool Has(StructId id) const { return Size(id) != 0; }
  FieldLoc At(FieldId id) const { return image_->field[Index(id)]; }
  bool Has(FieldId id) const { return At(id).offset >= 0; }
  // Offset of the first byte behind the field: the kernel's offsetofend(); 0 when it has no such
  // field.
  size_t End(FieldId id) const {
    const FieldLoc at = At(id);
    return at.offset < 0 ? 0 : static_cast<size_t>(at.offset) + at.size;
  }

  std::optional<int64_t> Constant(ConstId id) const {
    const ConstEntry& entry = image_->constant[Index(id)];
    if (!entry.present) return std::nullopt;
    return entry.value;
  }
  // The value, or 0 when this kernel has no such constant: right for flag bits.
  int64_t Flag(ConstId id) const { return Constant(id).value_or(0); }

  const RuleEntry& Rule(RuleId id) const {
    if (auto* asked = rules_asked.load(std::memory_order_acquire)) [[unlikely]] {
      asked[Index(id)].store(true, std::memory_order_relaxed);
    }
    return image_->rule[Index(id)];
  }
  int64_t Knob(KnobId id) const { return KnobOf(*image_, id); }
  bool Served(WriteId id) const { return image_->write_served[Index(id)] != 0; }
  bool Served(WriteExId id) const { return image_->write_ex_served[Index(id)] != 0; }
  bool Served(MethodId id) const { return image_->method_served[Index(id)] != 0; }
  bool Served(DriverId driver, Op op) const {
    return image_->op_served[Index(driver)][Index(op)] != 0;
  }

 private:
  const WorldImage* image_;
};

// A structure as the caller laid it out, or as the kernel answers it, accessed through this
// kernel's layout. Fields that this kernel lacks, or that lie beyond `length`, read as 0 and are
// not written.
class Body {
 public:
  Body(const World& world, void* base, size_t length)
      : world_(&world), base_(static_cast<uint8_t*>(base)), length_(length) {}

  uint8_t* base() const { return base_; }
  size_t length() const { return length_; }

  uint64_t Get(FieldId id) const {
    const FieldLoc at = world_->At(id);
    uint64_t value = 0;
    if (Covers(at)) std::memcpy(&value, base_ + at.offset, at.size < 8 ? at.size : 8);
    return value;
  }
  uint32_t U32(FieldId id) const { return static_cast<uint32_t>(Get(id)); }
  int32_t S32(FieldId id) const { return static_cast<int32_t>(Get(id)); }

  void Set(FieldId id, uint64_t value) const {
    const FieldLoc at = world_->At(id);
    if (Covers(at)) std::memcpy(base_ + at.offset, &value, at.size < 8 ? at.size : 8);
  }
  // A field of any size: copies min(field, size) bytes.
  void SetBytes(FieldId id, const void* from, size_t size) const {
    const FieldLoc at = world_->At(id);
    if (Covers(at)) std::memcpy(base_ + at.offset, from, at.size < size ? at.size : size);
  }
  void GetBytes(FieldId id, void* to, size_t size) const {
    const FieldLoc at = world_->At(id);
    if (Covers(at)) std::memcpy(to, base_ + at.offset, at.size < size ? at.size : size);
  }
  // The nested structure that starts at this field; empty when the field is not there.
  Body Sub(FieldId id) const {
    const FieldLoc at = world_->At(id);
    if (!Covers(at)) return Body(*world_, nullptr, 0);
    return Body(*world_, base_ + at.offset, at.size);
  }
  bool Has(FieldId id) const { return Covers(world_->At(id)); }

 private:
  bool Covers(FieldLoc at) const {
    return at.offset >= 0 && static_cast<size_t>(at.offset) + at.size <= length_;
  }

  const World* world_;
  uint8_t* base_;
  size_t length_;
};

// A Body with zeroed storage of its own, as large as this kernel's structure.
template <size_t kMax = 512>
class OwnedBody : public Body {
 public:
  OwnedBody(const World& world, StructId id)
      : Body(world, bytes_, world.Size(id) < kMax ? world.Size(id) : kMax) {}
  OwnedBody(const OwnedBody&) = delete;
  OwnedBody& operator=(const OwnedBody&) = delete;

 private:
  alignas(8) uint8_t bytes_[kMax] = {};
};

}  // namespace vabi

#endif  // VABI_HARNESS_WORLD_WORLD_H_
