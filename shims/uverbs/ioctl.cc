// SPDX-License-Identifier: BSD-2-Clause
// RDMA_VERBS_IOCTL (uverbs_ioctl.c), in the kernel's order: the first offence decides.
#include "shims/uverbs/ioctl.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "shims/sys/sys.h"
#include "shims/trace/gaps.h"
#include "shims/uverbs/command.h"
#include "shims/uverbs/destroy.h"
#include "shims/uverbs/events.h"
#include "shims/uverbs/faults.h"
#include "shims/uverbs/ioctl_state.h"
#include "shims/uverbs/object_table.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace {

// struct ib_uverbs_ioctl_hdr of 24 bytes. Kernels with the header of 16 bytes have another ioctl
// number.
struct Header {
  uint16_t length;
  uint16_t object_id;
  uint16_t method_id;
  uint16_t num_attrs;
  uint64_t reserved1;
  uint32_t driver_id;
  uint32_t reserved2;
};
static_assert(sizeof(Header) == 24);

constexpr size_t kPageSize = 4096;
constexpr size_t kMaxAttrs = (kPageSize - sizeof(Header)) / sizeof(UserAttr);
constexpr uint16_t kMandatory = 1;  // UVERBS_ATTR_F_MANDATORY

// _IOWR(RDMA_IOCTL_MAGIC, 1, struct ib_uverbs_ioctl_hdr): the number follows the structure's size.
unsigned long IoctlNumber(const World& world) {
  return 3UL << 30 | world.Size(VABI_S(ib_uverbs_ioctl_hdr)) << 16 | 0x1bUL << 8 | 1;
}

class Runner {
 public:
  Runner(IoctlCall& call, IoctlCall::State& state)
      : call_(call), state_(state), file_(call.file), device_(call.file.device()) {}

  int Run(uint64_t argument) {
    Header header;
    if (sys::CopyFromUser(&header, argument, sizeof(header)) != 0) {
      return call_.Refuse(RuleId::ioctl_header_fault);
    }
    Describe(header);
    if (call_.Violates(RuleId::ioctl_length,
                       header.length > kPageSize ||
                           header.length != sizeof(header) + header.num_attrs * sizeof(UserAttr))) {
      return call_.Refuse(RuleId::ioctl_length);
    }
    if (call_.Violates(RuleId::ioctl_reserved, header.reserved1 != 0 || header.reserved2 != 0)) {
      return call_.Refuse(RuleId::ioctl_reserved);
    }
    if (call_.Violates(RuleId::ioctl_driver_id, header.driver_id != device_.image().driver_id)) {
      return call_.Refuse(RuleId::ioctl_driver_id);
    }
    state_.method = device_.methods().Find(header.object_id, header.method_id);
    if (state_.method == nullptr) return call_.Refuse(RuleId::ioctl_method_unknown);
    if (const char* what = state_.method->spec->unmodelled) return call_.Unmodelled(what);
    if (call_.world.Knob(KnobId::ioctl_early) != 0) {
      if (file_.context() == nullptr) return call_.Refuse(RuleId::ioctl_no_context);
      if (header.num_attrs == 0) return call_.Refuse(RuleId::ioctl_no_attributes);
    }
    state_.user_attributes = argument + sizeof(header);
    const int result = RunMethod(header.num_attrs);
    return Finish(result);
  }

 private:
  void Describe(const Header& header) {
    call_.record.object = header.object_id;
    call_.record.method = header.method_id;
    const char* name = nullptr;
    if (const CompiledMethod* method = device_.methods().Find(header.object_id, header.method_id)) {
      name = method->name;
    } else {
      name = MethodTable::NameOf(call_.world, device_.driver().PrivateMethods(), header.object_id,
                                 header.method_id);
    }
    if (name != nullptr) {
      std::strncpy(call_.record.name, name, sizeof(call_.record.name) - 1);
    } else {
      std::snprintf(call_.record.name, sizeof(call_.record.name), "object %u method %u",
                    header.object_id, header.method_id);
    }
  }

  void Note(const UserAttr* attributes, size_t count) {
    call_.record.attribute_count =
        static_cast<int>(count < trace::kMaxAttributes ? count : trace::kMaxAttributes);
    for (int i = 0; i < call_.record.attribute_count; ++i) {
      const UserAttr& attribute = attributes[i];
      const bool is_inline = IsInline(attribute);
      uint64_t value = 0;
      if (is_inline) {
        // A short attribute's data stand in the first bytes; the others mean nothing.
        std::memcpy(&value, &attribute.data, attribute.len != 0 ? attribute.len : sizeof(value));
      }
      call_.record.attributes[i] = {attribute.attr_id, attribute.len, attribute.flags, value,
                                    is_inline};
    }
  }

  // Do the data stand in the attribute itself? A reply's never do, however short it is: its address
  // does. Of an attribute that this kernel does not know, nobody can tell.
  bool IsInline(const UserAttr& attribute) const {
    const int index = state_.method->Find(attribute.attr_id);
    if (index < 0 || attribute.len > sizeof(attribute.data)) return false;
    switch (state_.method->attributes[static_cast<size_t>(index)].spec->kind) {
      case AttrKind::kPtrOut:
        return false;
      case AttrKind::kIdr:
      case AttrKind::kFd:
      case AttrKind::kRawFd:
        return true;
      case AttrKind::kPtrIn:
      case AttrKind::kEnumIn:
      case AttrKind::kIdrsArray:
        return attribute.len != 0;
    }
    return false;
  }

  // ib_uverbs_run_method
  int RunMethod(size_t count) {
    if (count > kMaxAttrs) count = kMaxAttrs;  // only when ioctl.length is relaxed
    alignas(8) UserAttr small[24];
    std::vector<UserAttr> large;
    UserAttr* attributes = small;
    if (count > std::size(small)) {
      large.resize(count);
      attributes = large.data();
    }
    if (sys::CopyFromUser(attributes, state_.user_attributes, count * sizeof(UserAttr)) != 0) {
      return call_.Refuse(RuleId::ioctl_attributes_fault);
    }
    if (trace::Enabled()) Note(attributes, count);
    // Methods of the driver's own end at once (uverbs_uapi.c:uverbs_disassociate_api_pre).
    const bool own =
        call_.record.object >> 12 != 0 || call_.record.method >> 12 != 0;  // UVERBS_ID_NS_SHIFT
    if (own && device_.gone()) return call_.Refuse(RuleId::device_gone);
    if (const int fault = FaultAt(call_.world, call_.record.name)) {
      call_.record.fault = "errno";
      return -fault;
    }
    const size_t known = state_.method->attributes.size();
    for (size_t i = 0; i < known; ++i) state_.values[i].present = false;
    for (size_t i = 0; i < count; ++i) {
      if (const int error = SetAttribute(attributes[i], i)) return error;
    }
    for (size_t i = 0; i < known; ++i) {
      const AttrSpec& spec = *state_.method->attributes[i].spec;
      if (spec.mandatory && !state_.values[i].present) {
        return call_.Refuse(RuleId::ioctl_mandatory_missing);
      }
    }
    if (state_.method->has_udata) FillUdata();
    if (state_.method->destroys >= 0) {
      AttrValue& value = state_.values[static_cast<size_t>(state_.method->destroys)];
      if (!value.object->gone) {
        if (const int error = DestroyObject(call_, *value.object, RemoveReason::kDestroy))
          return error;
      }
      state_.destroyed = file_.Remove(*value.object);
    }
    int result = state_.method->spec->handler(call_);
    if (result == 0 && state_.method->has_udata) {
      // The driver is taken to have written its reply.
      const int marked = call_.MarkWritten(VABI_C(UVERBS_ATTR_UHW_OUT));
      if (marked != -ENOENT) result = marked;
    }
    return result == -EPROTONOSUPPORT ? -EINVAL : result;
  }

  void FillUdata() {
    if (const AttrValue* in = state_.Find(VABI_C(UVERBS_ATTR_UHW_IN))) {
      call_.in = UdataIn(in->data, in->length, in->length <= sizeof(in->data));
      call_.record.uhw_in = in->length;
    }
    if (const AttrValue* out = state_.Find(VABI_C(UVERBS_ATTR_UHW_OUT))) {
      call_.out = UdataOut(out->data, out->length);
      call_.record.uhw_out = out->length;
    }
  }

  // uverbs_set_attr
  int SetAttribute(const UserAttr& user, size_t user_index) {
    const int index = state_.method->Find(user.attr_id);
    if (index < 0) {
      if (call_.Violates(RuleId::ioctl_attr_unknown_mandatory, (user.flags & kMandatory) != 0)) {
        return call_.Refuse(RuleId::ioctl_attr_unknown_mandatory);
      }
      return 0;
    }
    AttrValue& value = state_.values[static_cast<size_t>(index)];
    if (value.present) {
      if (call_.On(RuleId::ioctl_attr_duplicate)) return call_.Refuse(RuleId::ioctl_attr_duplicate);
      return 0;
    }
    value = {false,      0,         user.len, static_cast<uint16_t>(user_index),
             user.flags, user.data, nullptr,  -1};
    const CompiledAttr& attribute = state_.method->attributes[static_cast<size_t>(index)];
    if (const int error = Process(attribute, user, &value)) return error;
    value.present = true;
    return 0;
  }

  // uverbs_process_attr
  int Process(const CompiledAttr& attribute, const UserAttr& user, AttrValue* value) {
    const AttrSpec& spec = *attribute.spec;
    const bool reserved = user.elem_id != 0 || user.elem_reserved != 0;
    switch (spec.kind) {
      case AttrKind::kEnumIn: {
        if (user.elem_id >= spec.variants.size()) return call_.Refuse(RuleId::ioctl_enum_unknown);
        if (call_.Violates(RuleId::ioctl_enum_reserved, user.elem_reserved != 0)) {
          return call_.Refuse(RuleId::ioctl_enum_reserved);
        }
        value->enum_id = user.elem_id;
        const AttrSpec& variant = spec.variants[user.elem_id];
        return ProcessPointer(variant, variant.min.In(call_.world), variant.max.In(call_.world),
                              user, false, value);
      }
      case AttrKind::kPtrIn:
      case AttrKind::kPtrOut:
        return ProcessPointer(spec, attribute.min, attribute.max, user, reserved, value);
      case AttrKind::kRawFd: {
        const auto number = static_cast<int64_t>(user.data);
        if (call_.Violates(RuleId::ioctl_raw_fd,
                           reserved || user.len != 0 || number < INT_MIN || number > INT_MAX)) {
          return call_.Refuse(RuleId::ioctl_raw_fd);
        }
        return 0;
      }
      case AttrKind::kIdrsArray:
        return ProcessArray(spec, attribute, user, reserved, value);
      case AttrKind::kIdr:
      case AttrKind::kFd:
        if (call_.Violates(RuleId::ioctl_object_reserved, reserved)) {
          return call_.Refuse(RuleId::ioctl_object_reserved);
        }
        if (call_.Violates(RuleId::ioctl_object_length, user.len != 0)) {
          return call_.Refuse(RuleId::ioctl_object_length);
        }
        if (spec.access == Access::kNew) return BeginNew(spec, user, value);
        return spec.kind == AttrKind::kIdr
                   ? Look(spec, static_cast<int64_t>(user.data), &value->object)
                   : LookFd(spec, static_cast<int64_t>(user.data), value);
    }
    return call_.Refuse(RuleId::ioctl_enum_unknown);
  }

  int ProcessPointer(const AttrSpec& spec, size_t min, size_t max, const UserAttr& user,
                     bool reserved, AttrValue* value) {
    if (spec.kind != AttrKind::kPtrOut && user.len > max && spec.zero_trailing) {
      const UdataIn whole(user.data, user.len, user.len <= sizeof(user.data));
      if (call_.Violates(RuleId::ioctl_attr_tail, whole.TailIsZero(max) != 1)) {
        return call_.Refuse(RuleId::ioctl_attr_tail);
      }
    }
    if (user.len < min) return call_.Refuse(RuleId::ioctl_attr_short);
    if (call_.Violates(RuleId::ioctl_attr_long, !spec.zero_trailing && user.len > max)) {
      return call_.Refuse(RuleId::ioctl_attr_long);
    }
    if (call_.Violates(RuleId::ioctl_attr_reserved, reserved)) {
      return call_.Refuse(RuleId::ioctl_attr_reserved);
    }
    if (spec.alloc_and_copy && user.len > sizeof(user.data)) {
      std::vector<uint8_t> bytes(user.len);
      if (sys::CopyFromUser(bytes.data(), user.data, user.len) != 0) {
        return call_.Refuse(RuleId::ioctl_attr_fault);
      }
      value->extra = static_cast<int32_t>(state_.copies.size());
      state_.copies.push_back(std::move(bytes));
    }
    return 0;
  }

  // uverbs_process_idrs_array
  int ProcessArray(const AttrSpec& spec, const CompiledAttr& attribute, const UserAttr& user,
                   bool reserved, AttrValue* value) {
    if (call_.Violates(RuleId::ioctl_object_reserved, reserved)) {
      return call_.Refuse(RuleId::ioctl_object_reserved);
    }
    const size_t count = user.len / sizeof(uint32_t);
    if (user.len % sizeof(uint32_t) != 0 || count < attribute.min || count > attribute.max) {
      return call_.Refuse(RuleId::ioctl_array_length);
    }
    std::vector<uint32_t> handles(count);
    const UdataIn source(user.data, user.len, user.len <= sizeof(user.data));
    if (source.Copy(handles.data(), user.len) != 0) return call_.Refuse(RuleId::ioctl_attr_fault);
    std::vector<Object*> objects;
    for (const uint32_t handle : handles) {
      Object* object = nullptr;
      if (const int error = Look(spec, handle, &object)) return error;
      objects.push_back(object);
    }
    value->extra = static_cast<int32_t>(state_.arrays.size());
    state_.arrays.push_back(std::move(objects));
    return 0;
  }

  // rdma_core.c:rdma_lookup_get_uobject, lookup_get_idr_uobject
  int Look(const AttrSpec& spec, int64_t handle, Object** object) {
    const bool generic = spec.object != ObjectType::kAny && spec.object != ObjectType::kPrivate;
    // The one object of the core that has no class here.
    const bool absent = spec.object == ObjectType::kPrivate &&
                        spec.private_type == static_cast<uint16_t>(VABI_C(UVERBS_OBJECT_DMAH)) &&
                        !device_.Offers(Op::alloc_dmah);
    if (absent || (generic && !ObjectServed(device_, spec.object))) {
      return call_.Refuse(RuleId::object_absent);
    }
    if (handle < 0) return call_.Refuse(RuleId::ioctl_handle_negative);
    *object = file_.FindAny(spec.object, static_cast<uint64_t>(handle));
    if (*object == nullptr) return call_.Refuse(RuleId::ioctl_handle_none);
    const bool fits = spec.object == ObjectType::kAny ||
                      ((*object)->type == spec.object &&
                       (generic || (*object)->private_type == spec.private_type));
    if (!fits) return call_.Refuse(RuleId::handle_kind);
    return device_.gone() && spec.access != Access::kDestroy ? call_.Refuse(RuleId::device_gone)
                                                             : 0;
  }

  // lookup_get_fd_uobject
  int LookFd(const AttrSpec& spec, int64_t number, AttrValue* value) {
    if (number < INT_MIN || number > INT_MAX) return call_.Refuse(RuleId::ioctl_fd_range);
    if (spec.access != Access::kRead) return call_.Refuse(RuleId::ioctl_fd_access);
    if (call_.Violates(RuleId::ioctl_fd_untranslated, spec.object == ObjectType::kCompChannel)) {
      return call_.Refuse(RuleId::ioctl_fd_untranslated);
    }
    std::shared_ptr<File> file = FdTable::Get(static_cast<int>(number));
    bool fits = false;
    if (file != nullptr) {
      if (spec.object == ObjectType::kCompChannel) {
        const auto channel = CompletionChannel::From(file);
        fits = channel != nullptr && channel->owner() == file_.serial();
      } else if (spec.object == ObjectType::kAsyncEvent) {
        const auto events = AsyncEventFile::From(file);
        fits = events != nullptr && events->owner() == file_.serial();
      } else {
        fits = device_.driver().IsPrivateFile(spec.private_type, *file);
      }
    }
    if (!fits) return call_.Refuse(RuleId::fd_wrong);
    value->extra = static_cast<int32_t>(state_.files.size());
    state_.files.push_back(std::move(file));
    return 0;
  }

  // rdma_alloc_begin_uobject; the caller learns the handle at once.
  int BeginNew(const AttrSpec& spec, const UserAttr&, AttrValue* value) {
    const bool generic = spec.object != ObjectType::kPrivate;
    if (generic && !ObjectServed(device_, spec.object)) return call_.Refuse(RuleId::object_absent);
    if (device_.gone()) return call_.Refuse(RuleId::device_gone);
    if (file_.context() == nullptr) return call_.Refuse(RuleId::context_none);
    int64_t id;
    if (spec.kind == AttrKind::kFd) {
      state_.new_fd = ReserveEventFd();
      if (state_.new_fd < 0) return state_.new_fd;
      id = state_.new_fd;
    } else {
      state_.new_handle = file_.ReserveHandle(spec.object);
      new_type_ = spec.object;
      id = state_.new_handle;
    }
    state_.new_index = static_cast<int>(value - state_.values.data());
    const uint64_t address =
        state_.user_attributes + value->user_index * sizeof(UserAttr) + offsetof(UserAttr, data);
    if (trace::Reply(address, &id, sizeof(id)) != 0) return call_.Refuse(RuleId::response_fault);
    return 0;
  }

  // bundle_destroy
  int Finish(int result) {
    state_.destroyed.reset();
    if (state_.new_index < 0) return result;
    if (state_.new_fd >= 0) {
      if (result == 0 && state_.made_file) {
        FdTable::Install(state_.new_fd, std::move(state_.made_file));
      } else {
        sys::Close(state_.new_fd);
      }
      return result;
    }
    if (result == 0 && state_.made) {
      state_.made->pins = std::move(call_.pins);
      file_.Commit(std::move(state_.made));
      return 0;
    }
    if (state_.made) DestroyObject(call_, *state_.made, RemoveReason::kAbort);
    file_.Abandon(new_type_, state_.new_handle);
    return result;
  }

  IoctlCall& call_;
  IoctlCall::State& state_;
  UverbsFile& file_;
  Device& device_;
  ObjectType new_type_ = ObjectType::kPd;
};

// The number that every libibverbs since v18 sends: _IOWR(0x1b, 1, 24 bytes).
constexpr uint32_t kUsualNumber = 0xc0181b01;

// A kernel without this ioctl reads nothing; the trace still tells what was meant.
void NameWhatWasMeant(IoctlCall& call, const Device& device, unsigned long request,
                      const void* argument) {
  Header header;
  const char* name = nullptr;
  if (static_cast<uint32_t>(request) == kUsualNumber &&
      sys::CopyFromUser(&header, reinterpret_cast<uintptr_t>(argument), sizeof(header)) == 0) {
    call.record.object = header.object_id;
    call.record.method = header.method_id;
    name = MethodTable::NameOf(call.world, device.driver().PrivateMethods(), header.object_id,
                               header.method_id);
  }
  if (name != nullptr) {
    std::snprintf(call.record.name, sizeof(call.record.name), "%s", name);
  } else {
    std::snprintf(call.record.name, sizeof(call.record.name), "ioctl 0x%lx", request);
  }
}

}  // namespace

long RunIoctl(UverbsFile& file, unsigned long request, void* argument) {
  std::lock_guard lock(file.mutex());
  IoctlCall call(file.world(), file);
  call.record.front_end = trace::FrontEnd::kIoctl;
  call.record.device = file.device().image().name;
  call.record.start_ns = trace::Enabled() ? sys::MonotonicNs() : 0;
  long result;
  if (file.world().Knob(KnobId::ioctl) == 0) {
    result = call.Refuse(RuleId::ioctl_absent);
  } else if (static_cast<uint32_t>(request) != IoctlNumber(file.world())) {
    result = call.Refuse(RuleId::ioctl_number);
  } else {
    IoctlCall::State state;
    call.state = &state;
    result = Runner(call, state).Run(reinterpret_cast<uintptr_t>(argument));
    call.state = nullptr;
  }
  if (trace::Wants(call.record)) {
    if (call.record.name[0] == '\0') NameWhatWasMeant(call, file.device(), request, argument);
    call.record.result = result;
    trace::Write(call.record);
  }
  return result;
}

}  // namespace vabi
