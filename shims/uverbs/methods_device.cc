// SPDX-License-Identifier: BSD-2-Clause
// UVERBS_OBJECT_DEVICE (uverbs_std_types_device.c).
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "shims/sys/sys.h"
#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/command.h"
#include "shims/uverbs/command_table.h"
#include "shims/uverbs/context.h"
#include "shims/uverbs/faults.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/ioctl_state.h"
#include "shims/uverbs/method_table.h"
#include "shims/uverbs/object_table.h"
#include "shims/uverbs/port.h"

namespace vabi {
namespace {

using attr::kMandatory;
using attr::kOptional;

constexpr uint32_t kExtendedFlag = 0x80000000;
constexpr uint32_t kCommandMask = 0xff;

// An answer that the caller need not have asked for.
bool IsCopyError(int error) { return error != 0 && error != -ENOENT; }

UdataIn InOf(IoctlCall& call, ConstId attribute) {
  const AttrValue* value = call.state->Find(attribute);
  if (value == nullptr) return {};
  return UdataIn(value->data, value->length, value->length <= sizeof(value->data));
}
UdataOut OutOf(IoctlCall& call, ConstId attribute) {
  const AttrValue* value = call.state->Find(attribute);
  return value == nullptr ? UdataOut() : UdataOut(value->data, value->length);
}

// The request of a command with a reply starts with the reply's address (`response`); one of 8
// bytes is nothing else. The trace has no addresses.
void HideAddressOfReply(IoctlCall& call, const CommandEntry& entry) {
  if (entry.response_size == 0) return;
  const auto core_in = call.world.Constant(VABI_C(UVERBS_ATTR_CORE_IN));
  for (int i = 0; i < call.record.attribute_count; ++i) {
    trace::Attribute& attribute = call.record.attributes[i];
    if (attribute.id == core_in && attribute.length == sizeof(uint64_t)) {
      attribute.is_inline = false;
    }
  }
}

int InvokeWrite(IoctlCall& call) {
  uint64_t number = 0;
  call.GetConst(VABI_C(UVERBS_ATTR_WRITE_CMD), &number);
  if (call.Violates(RuleId::ioctl_const_range, number > UINT32_MAX)) {
    return call.Refuse(RuleId::ioctl_const_range);
  }
  const bool extended = (number & kExtendedFlag) != 0;
  const auto index = static_cast<uint32_t>(number & kCommandMask);
  call.record.command = static_cast<int32_t>(index);
  const char* name = CommandTable::NameOf(index, extended);
  if (name != nullptr) {
    std::snprintf(call.record.inner, sizeof(call.record.inner), "%s", name);
  } else {
    std::snprintf(call.record.inner, sizeof(call.record.inner), "command %u", index);
  }
  const CommandEntry* entry = call.file.device().commands().Find(index, extended);
  if (entry != nullptr && !extended) HideAddressOfReply(call, *entry);
  if (const int fault = FaultAt(call.world, call.record.inner)) {
    call.record.fault = "errno";
    return -fault;
  }
  if (call.Violates(RuleId::write_command_bits,
                    (number & ~uint64_t{kExtendedFlag | kCommandMask}) != 0)) {
    return call.Refuse(RuleId::write_command_bits);
  }
  if (entry == nullptr) return call.Refuse(RuleId::write_command_range);
  Command command(call, InOf(call, VABI_C(UVERBS_ATTR_CORE_IN)),
                  OutOf(call, VABI_C(UVERBS_ATTR_CORE_OUT)), &call);
  call.record.core_in = static_cast<int32_t>(command.in.length());
  call.record.core_out = static_cast<int32_t>(command.out.length());
  // uapi_create_write keeps no sizes of extended commands.
  if (!extended && command.in.length() < entry->request_size) {
    return call.Refuse(RuleId::invoke_request_short);
  }
  if (!extended && command.out.length() < entry->response_size) {
    return call.Refuse(RuleId::invoke_response_short);
  }
  if (entry->handler == nullptr) return call.Refuse(RuleId::write_not_served);
  return command.Finish(entry->handler(command));
}

int InfoHandles(IoctlCall& call) {
  const size_t length = call.Length(VABI_C(UVERBS_ATTR_INFO_HANDLES_LIST));
  if (!call.Has(VABI_C(UVERBS_ATTR_INFO_HANDLES_LIST)) || length == 0 ||
      length % sizeof(uint32_t) != 0) {
    return call.Refuse(RuleId::info_handles_list);
  }
  uint64_t id = 0;
  call.GetConst(VABI_C(UVERBS_ATTR_INFO_OBJECT_ID), &id);
  if (call.Violates(RuleId::ioctl_const_range, id > UINT16_MAX)) {
    return call.Refuse(RuleId::ioctl_const_range);
  }
  if (id == UINT16_MAX) return -ENOMSG;  // UVERBS_IDR_ANY_OBJECT: rdma_core.h:uapi_get_object
  const Device& device = call.file.device();
  const std::optional<ObjectType> type = ObjectTypeOf(call.world, id);
  const bool is_device = id == static_cast<uint64_t>(call.world.Flag(VABI_C(UVERBS_OBJECT_DEVICE)));
  const bool known =
      type ? ObjectServed(device, *type) : is_device || device.methods().HasPrivateObject(id);
  if (!known) return call.Refuse(RuleId::info_handles_object);

  std::vector<uint32_t> handles;
  const size_t most = length / sizeof(uint32_t);
  for (Object* object = call.file.newest(); object != nullptr && handles.size() < most;
       object = object->older) {
    const bool same = type ? object->type == *type
                           : object->type == ObjectType::kPrivate &&
                                 call.world.Constant(static_cast<ConstId>(object->private_type)) ==
                                     static_cast<int64_t>(id);
    if (same) handles.push_back(object->handle);
  }
  if (type == ObjectType::kCompChannel || type == ObjectType::kAsyncEvent) {
    // Objects behind descriptors have given up their number.
    for (const auto& weak : call.file.event_files()) {
      const std::shared_ptr<File> file = weak.lock();
      const bool same = type == ObjectType::kCompChannel ? CompletionChannel::From(file) != nullptr
                                                         : AsyncEventFile::From(file) != nullptr;
      if (same && handles.size() < most) handles.push_back(0);
    }
  }
  const uint64_t total = handles.size();
  if (const int error = call.CopyOut(VABI_C(UVERBS_ATTR_INFO_HANDLES_LIST), handles.data(),
                                     handles.size() * sizeof(uint32_t))) {
    return error;
  }
  const int error = call.CopyOut(VABI_C(UVERBS_ATTR_INFO_TOTAL_HANDLES), &total, sizeof(total));
  return error == -ENOENT ? call.Refuse(RuleId::info_handles_total) : error;
}

int CheckContext(IoctlCall& call) {
  if (call.file.device().gone()) return call.Refuse(RuleId::device_gone);
  return call.file.context() == nullptr ? call.Refuse(RuleId::context_none) : 0;
}

int QueryPortMethod(IoctlCall& call) {
  if (const int error = CheckContext(call)) return error;
  Device& device = call.file.device();
  if (!device.Offers(Op::query_port)) return call.Refuse(RuleId::method_no_operation);
  uint64_t port = 0;
  call.GetConst(VABI_C(UVERBS_ATTR_QUERY_PORT_PORT_NUM), &port);
  if (call.Violates(RuleId::ioctl_const_range, port > UINT8_MAX)) {
    return call.Refuse(RuleId::ioctl_const_range);
  }
  if (!device.ValidPort(port)) return call.Refuse(RuleId::port_invalid);
  OwnedBody<128> reply(call.world, VABI_S(ib_uverbs_query_port_resp_ex));
  const auto number = static_cast<uint32_t>(port);
  FillPort(device, number, reply.Sub(VABI_F(ib_uverbs_query_port_resp_ex, legacy_resp)));
  reply.Set(VABI_F(ib_uverbs_query_port_resp_ex, port_cap_flags2), device.port(number).cap_flags2);
  reply.Set(VABI_F(ib_uverbs_query_port_resp_ex, active_speed_ex),
            device.port(number).active_speed);
  return call.CopyOutOrZero(VABI_C(UVERBS_ATTR_QUERY_PORT_RESP), reply.base(), reply.length());
}

int QueryPortSpeedMethod(IoctlCall& call) {
  if (const int error = CheckContext(call)) return error;
  Device& device = call.file.device();
  if (!device.Offers(Op::query_port_speed)) return call.Refuse(RuleId::method_no_operation);
  uint64_t port = 0;
  call.GetConst(VABI_C(UVERBS_ATTR_QUERY_PORT_SPEED_PORT_NUM), &port);
  if (call.Violates(RuleId::ioctl_const_range, port > UINT32_MAX)) {
    return call.Refuse(RuleId::ioctl_const_range);
  }
  if (!device.ValidPort(port)) return call.Refuse(RuleId::port_invalid);
  uint64_t speed = 0;
  if (const int error = device.driver().QueryPortSpeed(call, static_cast<uint32_t>(port), &speed)) {
    return error;
  }
  return call.CopyOut(VABI_C(UVERBS_ATTR_QUERY_PORT_SPEED_RESP), &speed, sizeof(speed));
}

uint64_t CoreSupport(const World& world) {
  return static_cast<uint64_t>(world.Flag(VABI_C(IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS)));
}

int GetContextMethod(IoctlCall& call) {
  const uint32_t vectors = call.file.device().comp_vectors();
  int error =
      call.CopyOut(VABI_C(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS), &vectors, sizeof(vectors));
  if (IsCopyError(error)) return error;
  uint64_t support = CoreSupport(call.world);
  // ib_device_ops.uverbs_robust_udata
  if (call.file.device().Offers(Op::robust_udata)) {
    support |= static_cast<uint64_t>(call.world.Flag(VABI_C(IB_UVERBS_CORE_SUPPORT_ROBUST_UDATA)));
  }
  error = call.CopyOut(VABI_C(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT), &support, sizeof(support));
  if (IsCopyError(error)) return error;
  if (call.Has(VABI_C(UVERBS_ATTR_GET_CONTEXT_FD_ARR))) {
    if (call.file.context() != nullptr) return call.Refuse(RuleId::context_twice);
    const std::span<const uint8_t> bytes = call.Bytes(VABI_C(UVERBS_ATTR_GET_CONTEXT_FD_ARR));
    if (bytes.size() % sizeof(int32_t) != 0) return call.Refuse(RuleId::context_fd_array);
    std::vector<int32_t> descriptors(bytes.size() / sizeof(int32_t));
    if (!bytes.empty()) std::memcpy(descriptors.data(), bytes.data(), bytes.size());
    if (const int refused = CheckCapabilities(call, descriptors)) return refused;
  }
  return InitContext(call);
}

int QueryContextMethod(IoctlCall& call) {
  if (const int error = CheckContext(call)) return error;
  Device& device = call.file.device();
  if (!device.Offers(Op::query_ucontext)) return call.Refuse(RuleId::method_no_operation);
  const uint32_t vectors = device.comp_vectors();
  int error =
      call.CopyOut(VABI_C(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS), &vectors, sizeof(vectors));
  if (IsCopyError(error)) return error;
  const uint64_t support = CoreSupport(call.world);
  error = call.CopyOut(VABI_C(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT), &support, sizeof(support));
  if (IsCopyError(error)) return error;
  return device.driver().QueryContext(call);
}

void FillGidEntry(const GidEntry& gid, uint32_t port, uint32_t index, const Body& to) {
  to.SetBytes(VABI_F(ib_uverbs_gid_entry, gid), gid.raw, 16);
  to.Set(VABI_F(ib_uverbs_gid_entry, gid_index), index);
  to.Set(VABI_F(ib_uverbs_gid_entry, port_num), port);
  to.Set(VABI_F(ib_uverbs_gid_entry, gid_type), gid.type);
  to.Set(VABI_F(ib_uverbs_gid_entry, netdev_ifindex), gid.ifindex);
}

int QueryGidTable(IoctlCall& call) {
  uint64_t flags, entry_size = 0;
  if (const int error = call.GetFlags(VABI_C(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS), 0, &flags))
    return error;
  call.GetConst(VABI_C(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE), &entry_size);
  if (entry_size == 0) return call.Refuse(RuleId::gid_table_entry_size);
  const size_t length = call.Length(VABI_C(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES));
  if (length % entry_size != 0 || length / entry_size == 0) {
    return call.Refuse(RuleId::gid_table_length);
  }
  if (const int error = CheckContext(call)) return error;
  const Device& device = call.file.device();
  const size_t most = length / entry_size;
  const size_t known = call.world.Size(VABI_S(ib_uverbs_gid_entry));
  std::vector<uint8_t> buffer;
  uint64_t count = 0;
  for (uint32_t port = 1; port <= device.image().port_count; ++port) {
    for (uint32_t index = 0; index < device.port(port).gid_table_length; ++index) {
      GidEntry gid;
      if (index >= device.port(port).gid_count) break;
      if (!FindGid(device, port, index, &gid)) continue;
      if (count >= most) return call.Refuse(RuleId::gid_table_full);
      OwnedBody<64> entry(call.world, VABI_S(ib_uverbs_gid_entry));
      FillGidEntry(gid, port, index, entry);
      const size_t at = buffer.size();
      buffer.resize(at + entry_size);
      std::memcpy(buffer.data() + at, entry.base(), entry_size < known ? entry_size : known);
      ++count;
    }
  }
  if (const int error = call.CopyOut(VABI_C(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES),
                                     buffer.data(), buffer.size())) {
    return error;
  }
  return call.CopyOut(VABI_C(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES), &count, sizeof(count));
}

int QueryGidEntry(IoctlCall& call) {
  uint64_t flags, port = 0, index = 0;
  if (const int error = call.GetFlags(VABI_C(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS), 0, &flags))
    return error;
  call.GetConst(VABI_C(UVERBS_ATTR_QUERY_GID_ENTRY_PORT), &port);
  call.GetConst(VABI_C(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX), &index);
  if (call.Violates(RuleId::ioctl_const_range, port > UINT32_MAX || index > UINT32_MAX)) {
    return call.Refuse(RuleId::ioctl_const_range);
  }
  if (const int error = CheckContext(call)) return error;
  const Device& device = call.file.device();
  if (!device.ValidPort(port)) return call.Refuse(RuleId::port_invalid);
  const auto number = static_cast<uint32_t>(port);
  if (index > INT32_MAX || index >= device.port(number).gid_table_length) {
    return call.Refuse(RuleId::gid_entry_range);
  }
  GidEntry gid;
  if (!FindGid(device, number, static_cast<uint32_t>(index), &gid)) {
    return call.Refuse(RuleId::gid_entry_empty);
  }
  OwnedBody<64> entry(call.world, VABI_S(ib_uverbs_gid_entry));
  FillGidEntry(gid, number, static_cast<uint32_t>(index), entry);
  return call.CopyOutOrZero(VABI_C(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY), entry.base(),
                            entry.length());
}

int QueryCompCntrCaps(IoctlCall& call) {
  if (const int error = CheckContext(call)) return error;
  Device& device = call.file.device();
  if (!device.Offers(Op::create_comp_cntr)) return call.Refuse(RuleId::method_no_operation);
  CompletionCounters limits;
  if (const int error = device.driver().QueryCompletionCounters(call, &limits)) return error;
  int error = call.CopyOut(VABI_C(UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_MAX_COUNTERS),
                           &limits.max_counters, sizeof(limits.max_counters));
  if (IsCopyError(error)) return error;
  error = call.CopyOut(VABI_C(UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_MAX_VALUE), &limits.max_value,
                       sizeof(limits.max_value));
  if (IsCopyError(error)) return error;
  error = call.CopyOut(VABI_C(UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_SUPPORTED_QP_ATTACH_OPS),
                       &limits.attach_ops, sizeof(limits.attach_ops));
  return IsCopyError(error) ? error : 0;
}

constexpr AttrSpec kInvokeWrite[] = {
    attr::InMin(VABI_C(UVERBS_ATTR_CORE_IN), 4, kOptional),
    attr::OutMin(VABI_C(UVERBS_ATTR_CORE_OUT), 0, kOptional),
    attr::Const(VABI_C(UVERBS_ATTR_WRITE_CMD), kMandatory),
};
constexpr AttrSpec kInfoHandles[] = {
    attr::Const(VABI_C(UVERBS_ATTR_INFO_OBJECT_ID), kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_INFO_TOTAL_HANDLES), 4, kOptional),
    attr::OutMin(VABI_C(UVERBS_ATTR_INFO_HANDLES_LIST), 4, kOptional),
};
constexpr AttrSpec kQueryPort[] = {
    attr::Const(VABI_C(UVERBS_ATTR_QUERY_PORT_PORT_NUM), kMandatory),
    // Its last field's end is its size, whatever the field is called (`reserved` up to 6.1).
    {.id = VABI_C(UVERBS_ATTR_QUERY_PORT_RESP),
     .kind = AttrKind::kPtrOut,
     .mandatory = true,
     .zero_trailing = true,
     .min = AttrSize::Struct(VABI_S(ib_uverbs_query_port_resp_ex)),
     .max = AttrSize::Struct(VABI_S(ib_uverbs_query_port_resp_ex))},
};
constexpr AttrSpec kQueryPortSpeed[] = {
    attr::Const(VABI_C(UVERBS_ATTR_QUERY_PORT_SPEED_PORT_NUM), kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_QUERY_PORT_SPEED_RESP), 8, kMandatory),
};
constexpr AttrSpec kGetContext[] = {
    attr::Out(VABI_C(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS), 4, kOptional),
    attr::Out(VABI_C(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT), 8, kOptional),
    attr::InMin(VABI_C(UVERBS_ATTR_GET_CONTEXT_FD_ARR), 4, kOptional, true),
};
constexpr AttrSpec kQueryContext[] = {
    attr::Out(VABI_C(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS), 4, kOptional),
    attr::Out(VABI_C(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT), 8, kOptional),
};
constexpr AttrSpec kQueryGidTable[] = {
    attr::Const(VABI_C(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE), kMandatory),
    attr::Flags(VABI_C(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS), kOptional),
    attr::OutMin(VABI_C(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES), 0, kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES), 8, kMandatory),
};
constexpr AttrSpec kQueryGidEntry[] = {
    attr::Const(VABI_C(UVERBS_ATTR_QUERY_GID_ENTRY_PORT), kMandatory),
    attr::Const(VABI_C(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX), kMandatory),
    attr::Flags(VABI_C(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS), kMandatory),
    attr::OutStruct(VABI_C(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY), VABI_S(ib_uverbs_gid_entry),
                    VABI_F(ib_uverbs_gid_entry, netdev_ifindex), kMandatory),
};
constexpr AttrSpec kQueryCompCntrCaps[] = {
    attr::Out(VABI_C(UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_MAX_COUNTERS), 4, kOptional),
    attr::Out(VABI_C(UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_MAX_VALUE), 8, kOptional),
    attr::Out(VABI_C(UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_SUPPORTED_QP_ATTACH_OPS), 4, kOptional),
};

constexpr MethodSpec kMethods[] = {
    {MethodId::DEVICE__INVOKE_WRITE, Op::always, kInvokeWrite, InvokeWrite, true},
    {MethodId::DEVICE__INFO_HANDLES, Op::always, kInfoHandles, InfoHandles},
    {MethodId::DEVICE__QUERY_PORT, Op::always, kQueryPort, QueryPortMethod},
    {MethodId::DEVICE__QUERY_PORT_SPEED, Op::always, kQueryPortSpeed, QueryPortSpeedMethod},
    {MethodId::DEVICE__GET_CONTEXT, Op::always, kGetContext, GetContextMethod, true},
    {MethodId::DEVICE__QUERY_CONTEXT, Op::always, kQueryContext, QueryContextMethod},
    {MethodId::DEVICE__QUERY_GID_TABLE, Op::always, kQueryGidTable, QueryGidTable},
    {MethodId::DEVICE__QUERY_GID_ENTRY, Op::always, kQueryGidEntry, QueryGidEntry},
    {MethodId::DEVICE__QUERY_COMP_CNTR_CAPS, Op::always, kQueryCompCntrCaps, QueryCompCntrCaps},
};

}  // namespace

std::span<const MethodSpec> DeviceMethods() { return kMethods; }

}  // namespace vabi
