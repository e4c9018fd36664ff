// SPDX-License-Identifier: BSD-2-Clause
#include "shims/recorder/describe.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "shims/sys/sys.h"

namespace vabi::recorder {
namespace {

struct LegacyCommand {
  uint32_t number;
  const char* name;
  int32_t request, reply;
  bool has_driver_part;
};
constexpr LegacyCommand kLegacy[] = {
#define VABI_LEGACY(number, name, request, reply, driver) {number, name, request, reply, driver},
#define VABI_EXTENDED(number, name)
#include "shims/recorder/commands.def"
#undef VABI_LEGACY
#undef VABI_EXTENDED
};

struct NumberedName {
  uint32_t number;
  const char* name;
};
constexpr NumberedName kExtended[] = {
#define VABI_LEGACY(number, name, request, reply, driver)
#define VABI_EXTENDED(number, name) {number, name},
#include "shims/recorder/commands.def"
#undef VABI_LEGACY
#undef VABI_EXTENDED
};

struct NumberedMethod {
  const char* name;
  uint16_t object, method;
};
constexpr NumberedMethod kMethods[] = {
#define VABI_METHOD_NUMBER(name, object, method) {name, object, method},
#include "shims/uverbs/method_numbers.def"
#undef VABI_METHOD_NUMBER
};

// Of enum rdma_nldev_command (rdma_netlink.h), what user space sends.
constexpr uint32_t kNldev = 5;  // RDMA_NL_NLDEV
constexpr NumberedName kNldevCommands[] = {
    {1, "GET"},         {2, "SET"},
    {3, "NEWLINK"},     {4, "DELLINK"},
    {5, "PORT_GET"},    {6, "SYS_GET"},
    {7, "SYS_SET"},     {9, "RES_GET"},
    {10, "RES_QP_GET"}, {11, "RES_CM_ID_GET"},
    {12, "RES_CQ_GET"}, {13, "RES_MR_GET"},
    {14, "RES_PD_GET"}, {15, "GET_CHARDEV"},
    {16, "STAT_SET"},   {17, "STAT_GET"},
    {18, "STAT_DEL"},
};

// struct ib_uverbs_cmd_hdr with ib_uverbs_ex_cmd_hdr behind it; struct ib_uverbs_ioctl_hdr, struct
// ib_uverbs_attr: none of them ever changed.
struct WriteHeader {
  uint32_t command;
  uint16_t in_words, out_words;
  uint64_t ex_response;
  uint16_t provider_in_words, provider_out_words;
  uint32_t ex_reserved;
};
static_assert(sizeof(WriteHeader) == 24);
constexpr size_t kShortHeader = 8;
constexpr uint32_t kExtendedFlag = 0x80000000;  // IB_USER_VERBS_CMD_FLAG_EXTENDED
constexpr uint32_t kCommandMask = 0xff;

struct IoctlHeader {
  uint16_t length, object, method, count;
  uint64_t reserved1;
  uint32_t driver, reserved2;
};
static_assert(sizeof(IoctlHeader) == 24);
struct UserAttribute {
  uint16_t id, length, flags, more;
  uint64_t data;
};
static_assert(sizeof(UserAttribute) == 16);
constexpr uint32_t kVerbsIoctl = 0xc0181b01;  // _IOWR(0x1b, 1, 24 bytes), since 4.18

// Where data cannot be told from an address by its length, its size does: no program's memory is
// below.
constexpr uint64_t kAddresses = uint64_t{1} << 32;

constexpr uint32_t kGetContext = 0, kCreateCompChannel = 17;
constexpr uint16_t kUhwIn = 0x1000, kUhwOut = 0x1001;               // UVERBS_ATTR_UHW_*
constexpr uint16_t kCoreIn = 0, kCoreOut = 1, kWriteCommand = 2;    // of INVOKE_WRITE
constexpr uint32_t kInvokeWrite = 0, kAsyncEventAlloc = 16u << 16;  // object << 16 | method
// The methods that hand a driver's own request and reply on (UVERBS_ATTR_UHW): INVOKE_WRITE,
// GET_CONTEXT, CQ, QP and SRQ CREATE, REG_MR, WQ CREATE. In others these ids are a driver's own.
constexpr uint32_t kWithDriverPart[] = {
    0, 3, 3u << 16, 4u << 16, 5u << 16, 7u << 16 | 5, 12u << 16,
};

const char* CommandName(uint32_t number, bool extended) {
  if (extended) {
    for (const NumberedName& row : kExtended) {
      if (row.number == number) return row.name;
    }
    return nullptr;
  }
  for (const LegacyCommand& row : kLegacy) {
    if (row.number == number) return row.name;
  }
  return nullptr;
}

template <size_t kRoom>
void NameCommand(uint32_t number, bool extended, char (&to)[kRoom]) {
  if (const char* name = CommandName(number, extended)) {
    std::snprintf(to, kRoom, "%s", name);
  } else {
    std::snprintf(to, kRoom, "command %u", number);
  }
}

NewFile MadeBy(uint32_t number, bool extended, uint64_t reply) {
  if (extended || reply == 0) return {};
  if (number == kGetContext) return {NewFile::Kind::kAsyncEvents, reply};
  if (number == kCreateCompChannel) return {NewFile::Kind::kCompletionEvents, reply};
  return {};
}

void DescribeLegacy(const WriteHeader& header, uint32_t number, trace::Record* record) {
  const int32_t in = header.in_words * 4 - static_cast<int32_t>(kShortHeader);
  const int32_t out = header.out_words * 4;
  record->core_in = in;
  record->core_out = out;
  for (const LegacyCommand& row : kLegacy) {
    if (row.number != number || !row.has_driver_part) continue;
    if (in > row.request) {
      record->core_in = row.request;
      record->uhw_in = in - row.request;
    }
    if (row.reply != 0 && out > row.reply) {
      record->core_out = row.reply;
      record->uhw_out = out - row.reply;
    }
  }
}

void DescribeInvoke(const UserAttribute* attributes, int count, trace::Record* record,
                    NewFile* made) {
  uint64_t number = 0, reply = 0;
  for (int i = 0; i < count; ++i) {
    if (attributes[i].id == kWriteCommand) number = attributes[i].data;
    if (attributes[i].id == kCoreIn) record->core_in = attributes[i].length;
    if (attributes[i].id == kCoreOut) {
      record->core_out = attributes[i].length;
      reply = attributes[i].data;
    }
  }
  record->core_in = std::max(record->core_in, 0);
  record->core_out = std::max(record->core_out, 0);
  const bool extended = (number & kExtendedFlag) != 0;
  const auto index = static_cast<uint32_t>(number & kCommandMask);
  record->command = static_cast<int32_t>(index);
  NameCommand(index, extended, record->inner);
  *made = MadeBy(index, extended, reply);
}

void NoteAttribute(const UserAttribute& attribute, trace::Attribute* to) {
  uint64_t value = 0;
  const bool fits = attribute.length <= sizeof(attribute.data);
  // Short data stand in the first bytes, and the others mean nothing; handles have no length.
  if (fits) {
    std::memcpy(&value, &attribute.data,
                attribute.length != 0 ? attribute.length : sizeof(attribute.data));
  }
  *to = {attribute.id, attribute.length, attribute.flags, value,
         fits && attribute.data < kAddresses};
}

}  // namespace

void DescribeWrite(const void* user, size_t size, trace::Record* record, NewFile* made) {
  record->front_end = trace::FrontEnd::kWrite;
  WriteHeader header = {};
  const uint64_t address = reinterpret_cast<uintptr_t>(user);
  if (size < kShortHeader || sys::CopyFromUser(&header, address, kShortHeader) != 0) {
    std::snprintf(record->name, sizeof record->name, "write of %zu bytes", size);
    return;
  }
  const bool extended = (header.command & kExtendedFlag) != 0;
  const uint32_t number = header.command & kCommandMask;
  record->command = static_cast<int32_t>(number);
  NameCommand(number, extended, record->name);
  if (!extended) {
    DescribeLegacy(header, number, record);
    uint64_t reply = 0;  // the first field of both requests that make a file
    if (size >= kShortHeader + sizeof reply) {
      sys::CopyFromUser(&reply, address + kShortHeader, sizeof reply);
    }
    *made = MadeBy(number, false, reply);
    return;
  }
  record->front_end = trace::FrontEnd::kWriteEx;
  record->core_in = header.in_words * 8;
  record->core_out = header.out_words * 8;
  if (size < sizeof header || sys::CopyFromUser(&header, address, sizeof header) != 0) return;
  if (header.provider_in_words != 0) record->uhw_in = header.provider_in_words * 8;
  if (header.provider_out_words != 0) record->uhw_out = header.provider_out_words * 8;
}

void DescribeIoctl(unsigned long request, const void* argument, trace::Record* record,
                   NewFile* made) {
  record->front_end = trace::FrontEnd::kIoctl;
  const uint64_t address = reinterpret_cast<uintptr_t>(argument);
  IoctlHeader header;
  if (static_cast<uint32_t>(request) != kVerbsIoctl ||
      sys::CopyFromUser(&header, address, sizeof header) != 0) {
    std::snprintf(record->name, sizeof record->name, "ioctl 0x%lx", request);
    return;
  }
  record->object = header.object;
  record->method = header.method;
  std::snprintf(record->name, sizeof record->name, "object %u method %u", header.object,
                header.method);
  for (const NumberedMethod& row : kMethods) {
    if (row.object == header.object && row.method == header.method)
      std::snprintf(record->name, sizeof record->name, "%s", row.name);
  }
  UserAttribute attributes[trace::kMaxAttributes];
  const int count = std::min<int>(header.count, trace::kMaxAttributes);
  const uint64_t place = address + sizeof header;
  if (sys::CopyFromUser(attributes, place, static_cast<size_t>(count) * sizeof *attributes) != 0)
    return;
  record->attribute_count = count;
  for (int i = 0; i < count; ++i) NoteAttribute(attributes[i], &record->attributes[i]);
  const uint32_t key = uint32_t{header.object} << 16 | header.method;
  if (std::find(std::begin(kWithDriverPart), std::end(kWithDriverPart), key) !=
      std::end(kWithDriverPart)) {
    for (int i = 0; i < count; ++i) {
      if (attributes[i].id == kUhwIn) record->uhw_in = attributes[i].length;
      if (attributes[i].id == kUhwOut) record->uhw_out = attributes[i].length;
    }
  }
  if (key == kInvokeWrite) DescribeInvoke(attributes, count, record, made);
  if (key == kAsyncEventAlloc && count > 0) {
    *made = {NewFile::Kind::kAsyncEvents, place + offsetof(UserAttribute, data)};
  }
}

void DescribeNetlink(uint16_t type, size_t payload, trace::Record* record) {
  record->front_end = trace::FrontEnd::kNetlink;
  record->command = type & 0x3ff;
  record->core_in = static_cast<int32_t>(payload);
  std::snprintf(record->name, sizeof record->name, "netlink type %u", type);
  if (type >> 10 != kNldev) return;
  for (const NumberedName& row : kNldevCommands) {
    if (row.number == (type & 0x3ffu))
      std::snprintf(record->name, sizeof record->name, "%s", row.name);
  }
}

}  // namespace vabi::recorder
