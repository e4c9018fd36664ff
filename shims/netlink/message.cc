// SPDX-License-Identifier: BSD-2-Clause
#include "shims/netlink/message.h"

#include <algorithm>

namespace vabi::netlink {
namespace {

enum class Type : uint8_t { kU8, kU32, kString };

struct PolicyRow {
  ConstId attribute;
  Type type;
  uint16_t longest;  // strings: characters without the final zero
};

// The rows of core/nldev.c:nldev_policy that the commands modelled here read.
constexpr PolicyRow kPolicy[] = {
    {ConstId::RDMA_NLDEV_ATTR_DEV_INDEX, Type::kU32, 0},
    {ConstId::RDMA_NLDEV_ATTR_PORT_INDEX, Type::kU32, 0},
    {ConstId::RDMA_NLDEV_ATTR_DEV_NAME, Type::kString, 64},  // IB_DEVICE_NAME_MAX
    {ConstId::RDMA_NLDEV_ATTR_CHARDEV_TYPE, Type::kString,
     32},                                                       // RDMA_NLDEV_ATTR_CHARDEV_TYPE_SIZE
    {ConstId::RDMA_NLDEV_ATTR_CHARDEV_NAME, Type::kString, 1},  // RDMA_NLDEV_ATTR_EMPTY_STRING
    {ConstId::RDMA_NLDEV_ATTR_FW_VERSION, Type::kString, 1},
    {ConstId::RDMA_NLDEV_ATTR_DEV_PROTOCOL, Type::kString, 1},
    {ConstId::RDMA_NLDEV_ATTR_LINK_TYPE, Type::kString, 16},  // IFNAMSIZ
    {ConstId::RDMA_NLDEV_ATTR_NDEV_NAME, Type::kString, 16},
    {ConstId::RDMA_NLDEV_ATTR_NDEV_INDEX, Type::kU32, 0},
    {ConstId::RDMA_NLDEV_ATTR_DEV_NODE_TYPE, Type::kU8, 0},
    {ConstId::RDMA_NLDEV_ATTR_DEV_DIM, Type::kU8, 0},
    {ConstId::RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, Type::kU32, 0},
    {ConstId::RDMA_NLDEV_NET_NS_FD, Type::kU32, 0},
    {ConstId::RDMA_NLDEV_SYS_ATTR_NETNS_MODE, Type::kU8, 0},
    {ConstId::RDMA_NLDEV_ATTR_DRIVER_DETAILS, Type::kU8, 0},
};

Attributes::Fault Validate(const PolicyRow& row, const uint8_t* data, uint16_t length,
                           bool strict) {
  switch (row.type) {
    case Type::kU8:
    case Type::kU32:
      if (strict && length != (row.type == Type::kU8 ? 1 : 4)) return Attributes::Fault::kInvalid;
      // A wrong length is only warned about, unless it is too short (nla_attr_minlen).
      return length < (row.type == Type::kU8 ? 1 : 4) ? Attributes::Fault::kRange
                                                      : Attributes::Fault::kNone;
    case Type::kString: {
      const size_t searched = std::min<size_t>(length, row.longest + 1U);
      if (searched == 0 || std::memchr(data, 0, searched) == nullptr) {
        return Attributes::Fault::kInvalid;
      }
      const size_t text = data[length - 1] == 0 ? length - 1U : length;
      return text > row.longest ? Attributes::Fault::kRange : Attributes::Fault::kNone;
    }
  }
  return Attributes::Fault::kNone;
}

}  // namespace

Message::Message(uint16_t type, uint16_t flags, uint32_t sequence, uint32_t port_id) {
  struct nlmsghdr header = {};
  header.nlmsg_type = type;
  header.nlmsg_flags = flags;
  header.nlmsg_seq = sequence;
  header.nlmsg_pid = port_id;
  Append(&header, sizeof header);
}

void Message::Append(const void* bytes, size_t size) {
  bytes_.append(static_cast<const char*>(bytes), size);
}

void Message::Put(const World& world, ConstId attribute, const void* value, size_t size) {
  const auto number = world.Constant(attribute);
  if (!number) return;
  struct nlattr header = {};
  header.nla_type = static_cast<uint16_t>(*number);
  header.nla_len = static_cast<uint16_t>(NLA_HDRLEN + size);
  Append(&header, sizeof header);
  Append(value, size);
  bytes_.resize(NLMSG_ALIGN(bytes_.size()));
}

size_t Message::Begin(const World& world, ConstId attribute, bool flagged) {
  const size_t at = bytes_.size();
  Put(world, attribute, "", 0);
  if (flagged) {
    uint16_t type;
    std::memcpy(&type, bytes_.data() + at + offsetof(struct nlattr, nla_type), sizeof type);
    type |= NLA_F_NESTED;
    std::memcpy(bytes_.data() + at + offsetof(struct nlattr, nla_type), &type, sizeof type);
  }
  return at;
}

void Message::End(size_t at) {
  const auto length = static_cast<uint16_t>(bytes_.size() - at);
  std::memcpy(bytes_.data() + at + offsetof(struct nlattr, nla_len), &length, sizeof length);
}

const std::string& Message::Finish() {
  const auto length = static_cast<uint32_t>(bytes_.size());
  std::memcpy(bytes_.data(), &length, sizeof length);
  return bytes_;
}

Attributes::Fault Attributes::Parse(const World& world, std::span<const uint8_t> payload,
                                    bool strict, Attributes* out) {
  *out = {};
  const auto end = static_cast<size_t>(world.Flag(VABI_C(RDMA_NLDEV_ATTR_MAX)));
  // nla_ok: stops at the first attribute that does not fit.
  while (payload.size() >= sizeof(struct nlattr)) {
    struct nlattr header;
    std::memcpy(&header, payload.data(), sizeof header);
    if (header.nla_len < sizeof header || header.nla_len > payload.size()) break;
    const uint16_t type = header.nla_type & NLA_TYPE_MASK;
    const uint8_t* data = payload.data() + NLA_HDRLEN;
    const auto length = static_cast<uint16_t>(header.nla_len - NLA_HDRLEN);
    if (type != 0 && type < end && type < kMax) {
      for (const PolicyRow& row : kPolicy) {
        if (world.Constant(row.attribute) != type) continue;
        const Fault fault = Validate(row, data, length, strict);
        if (fault != Fault::kNone) return fault;
      }
      out->data_[type] = data;
      out->length_[type] = length;
    } else if (strict) {
      return Fault::kInvalid;
    }
    payload = payload.subspan(std::min<size_t>(NLA_ALIGN(header.nla_len), payload.size()));
  }
  return strict && !payload.empty() ? Fault::kInvalid : Fault::kNone;
}

std::span<const uint8_t> Attributes::Find(const World& world, ConstId attribute) const {
  const auto number = world.Constant(attribute);
  if (!number || *number <= 0 || *number >= static_cast<int64_t>(kMax)) return {};
  const auto at = static_cast<size_t>(*number);
  if (data_[at] == nullptr) return {};
  return {data_[at], length_[at]};
}

bool Attributes::Has(const World& world, ConstId attribute) const {
  return Find(world, attribute).data() != nullptr;
}

uint32_t Attributes::U32(const World& world, ConstId attribute) const {
  const auto data = Find(world, attribute);
  uint32_t value = 0;
  if (data.size() >= sizeof value) std::memcpy(&value, data.data(), sizeof value);
  return value;
}

std::string_view Attributes::Text(const World& world, ConstId attribute) const {
  const auto data = Find(world, attribute);
  const auto* text = reinterpret_cast<const char*>(data.data());
  return data.empty() ? std::string_view() : std::string_view(text, strnlen(text, data.size()));
}

}  // namespace vabi::netlink
