// SPDX-License-Identifier: BSD-2-Clause
// main.c: mlx5_ib_mmap and what it calls
#include <sys/mman.h>

#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/clock.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/sys/sys.h"
#include "shims/uverbs/device.h"

namespace vabi::mlx5 {
namespace {

constexpr uint64_t kPage = 4096;
constexpr int kPageShift = 12;

// The offset's pages: command in bits 8 to 15, index in 0 to 7 and, extended, in 16 to 23.
uint32_t Command(uint64_t page) { return page >> 8 & 0xff; }
uint32_t Index(uint64_t page) { return page & 0xff; }
uint32_t ExtendedIndex(uint64_t page) {
  return static_cast<uint32_t>(Index(page) | (page >> 16 & 0xff) << 8);
}

class Mapper {
 public:
  Mapper(Call& call, Context& context, const MapRequest& request, MapReply* reply)
      : call_(call),
        context_(StateOf(context)),
        device_(*context.device),
        request_(request),
        page_(request.offset >> kPageShift),
        length_((request.length + kPage - 1) & ~(kPage - 1)),
        protection_(request.protection),
        reply_(reply) {}

  int Run() {
    const World& world = call_.world;
    const uint32_t command = Command(page_);
    const auto is = [&](ConstId id) { return world.Constant(id) == static_cast<int64_t>(command); };
    if (is(VABI_C(MLX5_IB_MMAP_WC_PAGE)) || is(VABI_C(MLX5_IB_MMAP_ALLOC_WC))) {
      reply_->kind = "UAR";
      if (call_.Violates(RuleId::mlx5_map_write_combining, !kCaps.write_combining)) {
        return call_.Refuse(RuleId::mlx5_map_write_combining);
      }
      return MapUar(is(VABI_C(MLX5_IB_MMAP_ALLOC_WC)));
    }
    if (is(VABI_C(MLX5_IB_MMAP_NC_PAGE)) || is(VABI_C(MLX5_IB_MMAP_REGULAR_PAGE))) {
      reply_->kind = "UAR";
      return MapUar(false);
    }
    if (is(VABI_C(MLX5_IB_MMAP_GET_CONTIGUOUS_PAGES)))
      return call_.Refuse(RuleId::mlx5_map_contiguous);
    if (is(VABI_C(MLX5_IB_MMAP_CORE_CLOCK))) return MapCoreClock();
    if (is(VABI_C(MLX5_IB_MMAP_CLOCK_INFO))) return MapClockInfo();
    return MapEntryOf(command);
  }

 private:
  // uar_mmap
  int MapUar(bool dynamic) {
    if (call_.Violates(RuleId::mlx5_map_uar_dynamic_context, context_.dyn_uar)) {
      return call_.Refuse(RuleId::mlx5_map_uar_dynamic_context);
    }
    if (call_.Violates(RuleId::mlx5_map_uar_length, length_ != kPage)) {
      return call_.Refuse(RuleId::mlx5_map_uar_length);
    }
    const uint32_t index = dynamic ? ExtendedIndex(page_) + context_.static_pages : Index(page_);
    const uint32_t end = dynamic ? context_.pages : context_.static_pages;
    if (index >= end) return call_.Refuse(RuleId::mlx5_map_uar_index);
    if (dynamic) {
      const uint32_t bfreg = index * kUarsInPage * kNonFastPathBfregsPerUar;
      if (call_.Violates(RuleId::mlx5_map_uar_busy, context_.bfreg_users[bfreg] != 0)) {
        return call_.Refuse(RuleId::mlx5_map_uar_busy);
      }
    }
    if (const int error = request_.CheckShared(call_)) return error;
    if (dynamic) {
      const uint32_t bfreg = index * kUarsInPage * kNonFastPathBfregsPerUar;
      ++context_.bfreg_users[bfreg];
      context_.uars[index] = device_.NextNumber();
    }
    // What is written there is not looked at: doorbell records tell it all.
    reply_->anonymous = true;
    return 0;
  }

  int MapCoreClock() {
    reply_->kind = "CORE_CLOCK";
    if (call_.Violates(RuleId::mlx5_map_clock_length, length_ != kPage)) {
      return call_.Refuse(RuleId::mlx5_map_clock_length);
    }
    if (call_.Violates(RuleId::mlx5_map_clock_writable, (protection_ & PROT_WRITE) != 0)) {
      return call_.Refuse(RuleId::mlx5_map_clock_writable);
    }
    if (const int error = request_.CheckShared(call_)) return error;
    reply_->may_write = call_.world.Knob(KnobId::mlx5_clock_may_write) != 0;
    return MapMemory(Clock::RegisterPage());
  }

  // mlx5_ib_mmap_clock_info_page
  int MapClockInfo() {
    reply_->kind = "CLOCK_INFO";
    if (call_.Violates(RuleId::mlx5_map_info_length, length_ != kPage)) {
      return call_.Refuse(RuleId::mlx5_map_info_length);
    }
    if (const int error = request_.CheckShared(call_)) return error;
    if (call_.Violates(RuleId::mlx5_map_info_index,
                       Index(page_) != static_cast<uint32_t>(
                                           call_.world.Flag(VABI_C(MLX5_IB_CLOCK_INFO_V1))))) {
      return call_.Refuse(RuleId::mlx5_map_info_index);
    }
    const int forbidden =
        call_.On(RuleId::mlx5_map_info_executable) ? PROT_WRITE | PROT_EXEC : PROT_WRITE;
    if (call_.Violates(RuleId::mlx5_map_info_writable, (protection_ & forbidden) != 0)) {
      return call_.Refuse(RuleId::mlx5_map_info_writable);
    }
    if (call_.world.Knob(KnobId::mlx5_clock_may_write) == 0) {
      reply_->may_write = false;
      reply_->pages = DeviceVma::Pages::kInserted;  // vm_insert_page came in the same release
    }
    return MapMemory(Clock::InfoPage(call_.world));
  }

  int MapMemory(void* memory) {
    if (sys::IsError(memory)) return sys::ErrorOf(memory);
    reply_->memory = memory;
    return 0;
  }

  // mlx5_ib_mmap_offset: what a command gave the offset of.
  int MapEntryOf(uint32_t command) {
    const auto found = context_.entries.find(command << 16 | ExtendedIndex(page_));
    if (found == context_.entries.end()) return call_.Refuse(RuleId::mlx5_map_offset);
    const MapEntry& entry = found->second;
    switch (entry.kind) {
      case MapEntry::Kind::kUarWriteCombining:
      case MapEntry::Kind::kUarNonCached:
        reply_->kind = "UAR";
        break;
      case MapEntry::Kind::kVar:
        reply_->kind = "VAR";
        break;
      case MapEntry::Kind::kDeviceMemory:
        reply_->kind = "DEVICE_MEM";
        break;
    }
    // core/ib_core_uverbs.c:rdma_user_mmap_io
    if (const int error = request_.CheckShared(call_)) return error;
    if (call_.Violates(RuleId::mlx5_map_entry_length,
                       length_ != ((entry.length + kPage - 1) & ~(kPage - 1)))) {
      return call_.Refuse(RuleId::mlx5_map_entry_length);
    }
    reply_->memory = entry.memory;
    reply_->anonymous = entry.memory == nullptr;
    return 0;
  }

  Call& call_;
  ContextState& context_;
  Device& device_;
  const MapRequest& request_;
  uint64_t page_, length_;
  int protection_;
  MapReply* reply_;
};

}  // namespace

int Mlx5Driver::Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) {
  return Mapper(call, context, request, reply).Run();
}

}  // namespace vabi::mlx5
