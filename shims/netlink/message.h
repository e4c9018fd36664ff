// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_NETLINK_MESSAGE_H_
#define VABI_SHIMS_NETLINK_MESSAGE_H_

#include <linux/netlink.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "harness/world/world.h"

// Netlink messages: building answers, and reading the attributes of requests as nla_parse does.

namespace vabi::netlink {

// One message under construction (nlmsg_put, nla_put…, nlmsg_end).
class Message {
 public:
  Message(uint16_t type, uint16_t flags, uint32_t sequence, uint32_t port_id);

  // An attribute that this kernel's headers do not have is left out.
  void PutU8(const World& world, ConstId attribute, uint8_t value) {
    Put(world, attribute, &value, 1);
  }
  void PutU32(const World& world, ConstId attribute, uint32_t value) {
    Put(world, attribute, &value, sizeof value);
  }
  void PutU64(const World& world, ConstId attribute, uint64_t value) {
    Put(world, attribute, &value, sizeof value);
  }
  void PutString(const World& world, ConstId attribute, const char* text) {
    Put(world, attribute, text, std::strlen(text) + 1);
  }
  void PutBytes(const World& world, ConstId attribute, const void* bytes, size_t size) {
    Put(world, attribute, bytes, size);
  }
  // An attribute of attributes, around what is put between the two: nla_nest_start_noflag, or with
  // the flag nla_nest_start. Only where the headers have it.
  size_t Begin(const World& world, ConstId attribute, bool flagged = false);
  void End(size_t begun);
  // Payload that is no attribute.
  void Append(const void* bytes, size_t size);

  // Sets the length; the message as it is sent.
  const std::string& Finish();

 private:
  void Put(const World& world, ConstId attribute, const void* value, size_t size);

  std::string bytes_;
};

// The attributes of one request, by number (struct nlattr* tb[]).
class Attributes {
 public:
  enum class Fault : uint8_t { kNone, kRange, kInvalid };

  // nlmsg_parse. In its liberal form, by which most queries are read, unknown attributes and bytes
  // left over are passed over, and known ones must be of their type (lib/nlattr.c:validate_nla);
  // the strict one refuses all of that, and any other length.
  static Fault Parse(const World& world, std::span<const uint8_t> payload, bool strict,
                     Attributes* out);

  bool Has(const World& world, ConstId attribute) const;
  uint32_t U32(const World& world, ConstId attribute) const;
  std::string_view Text(const World& world, ConstId attribute) const;

 private:
  static constexpr size_t kMax = 256;
  std::span<const uint8_t> Find(const World& world, ConstId attribute) const;

  const uint8_t* data_[kMax] = {};
  uint16_t length_[kMax] = {};
};

}  // namespace vabi::netlink

#endif  // VABI_SHIMS_NETLINK_MESSAGE_H_
