// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx5/flow_parse.h"

#include <algorithm>
#include <cstring>

#include "shims/providers/mlx5/wire_format.h"
#include "shims/uverbs/flow_spec.h"

namespace vabi::mlx5 {
namespace {

constexpr size_t kHeader = sizeof(FlowSpecHeader);
constexpr uint8_t kProtocolTcp = 6, kProtocolUdp = 17, kProtocolGre = 47;
constexpr uint32_t kTagLimit = 1 << 24;
constexpr uint16_t kTypeIpv4 = 0x0800, kTypeIpv6 = 0x86dd, kTypeMpls = 0x8847,
                   kTypeMplsMulti = 0x8848;

// One spec: value and mask of a filter, padded with zeroes to the longest one that is known.
struct Spec {
  uint32_t type;
  uint16_t size;
  uint8_t value[40], mask[40];
  uint32_t number;  // actions: what stands behind the header
};

bool Next(std::span<const uint8_t>* rest, Spec* spec) {
  if (rest->size() < kHeader) return false;
  *spec = {};
  std::memcpy(&spec->type, rest->data(), sizeof(spec->type));
  std::memcpy(&spec->size, rest->data() + 4, sizeof(spec->size));
  if (spec->size < kHeader || spec->size > rest->size()) return false;
  const uint8_t* body = rest->data() + kHeader;
  if (spec->type >= kSpecActionTag) {
    if (spec->size >= kHeader + 4) std::memcpy(&spec->number, body, sizeof(spec->number));
  } else {
    const size_t half = (spec->size - kHeader) / 2u;
    const size_t known = std::min(half, sizeof(spec->value));
    std::memcpy(spec->value, body, known);
    std::memcpy(spec->mask, body + half, known);
  }
  *rest = rest->subspan(spec->size);
  return true;
}

bool AnySet(const uint8_t* from, const uint8_t* to) {
  return std::any_of(from, to, [](uint8_t byte) { return byte != 0; });
}

class Parser {
 public:
  Parser(Call& call, FlowRule* rule, FlowActions* actions)
      : call_(call), rule_(*rule), actions_(*actions) {}

  int Add(const Spec& spec) {
    section_ =
        (spec.type & kSpecInner) != 0 && spec.type < kSpecActionTag ? kInnerHeaders : kOuterHeaders;
    const uint32_t type = spec.type < kSpecActionTag ? spec.type & ~kSpecInner : spec.type;
    switch (type) {
      case kSpecEth:
        return AddEthernet(spec);
      case kSpecIpv4:
        return AddIpv4(spec);
      case kSpecIpv6:
        return AddIpv6(spec);
      case kSpecEsp:
        return call_.Refuse(RuleId::mlx5_create_flow_esp);
      case kSpecTcp:
        return AddPorts(spec, kProtocolTcp, kMatchTcpPorts);
      case kSpecUdp:
        return AddPorts(spec, kProtocolUdp, kMatchUdpPorts);
      case kSpecGre:
        return AddGre(spec);
      case kSpecMpls:
        if (AnySet(spec.mask, spec.mask + 4)) return call_.Refuse(RuleId::mlx5_create_flow_mpls);
        return 0;
      case kSpecVxlan:
        std::memcpy(&rule_.mask[kMiscParameters + kMatchVni], spec.mask + 1, 3);
        std::memcpy(&rule_.value[kMiscParameters + kMatchVni], spec.value + 1, 3);
        return 0;
      case kSpecActionTag:
        if (call_.Violates(RuleId::mlx5_create_flow_tag, spec.number >= kTagLimit)) {
          return call_.Refuse(RuleId::mlx5_create_flow_tag);
        }
        actions_.has_tag = true;
        actions_.tag = spec.number;
        return 0;
      case kSpecActionDrop:
        actions_.drop = true;
        return 0;
      case kSpecActionHandle:
        return call_.Unmodelled("mlx5: flow actions in CREATE_FLOW");
      case kSpecActionCount:
        if (call_.Violates(RuleId::mlx5_create_flow_count_twice, actions_.count)) {
          return call_.Refuse(RuleId::mlx5_create_flow_count_twice);
        }
        actions_.count = true;
        return 0;
      default:
        return call_.Refuse(RuleId::mlx5_create_flow_spec);
    }
  }

 private:
  void Put(size_t at, const uint8_t* value, const uint8_t* mask, size_t size) {
    std::memcpy(&rule_.value[section_ + at], value, size);
    std::memcpy(&rule_.mask[section_ + at], mask, size);
  }
  void PutByte(size_t at, uint8_t value, uint8_t mask) { Put(at, &value, &mask, 1); }

  // set_proto
  int SetProtocol(uint8_t mask, uint8_t value) {
    const bool strict = call_.On(RuleId::mlx5_create_flow_protocol);
    if (strict) {
      if (mask == 0) return 0;
      const uint8_t old = rule_.mask[section_ + kMatchProtocol];
      if (old != 0) {
        const bool same = old == mask && rule_.value[section_ + kMatchProtocol] == value;
        return same ? 0 : call_.Refuse(RuleId::mlx5_create_flow_protocol);
      }
    }
    PutByte(kMatchProtocol, value, mask);
    return 0;
  }

  void SetIpVersion(uint8_t version) {
    rule_.mask[section_ + kMatchTags] |= 0xf << kMatchIpVersionShift;
    rule_.value[section_ + kMatchTags] |= static_cast<uint8_t>(version << kMatchIpVersionShift);
  }

  int CheckUnknown(const Spec& spec, size_t from, size_t to) {
    if (call_.Violates(RuleId::mlx5_create_flow_field, AnySet(spec.mask + from, spec.mask + to))) {
      return call_.Refuse(RuleId::mlx5_create_flow_field);
    }
    return 0;
  }

  // struct ib_flow_eth_filter: destination, source, type, VLAN tag
  int AddEthernet(const Spec& spec) {
    Put(kMatchDmac, spec.value, spec.mask, 6);
    Put(kMatchSmac, spec.value + 6, spec.mask + 6, 6);
    if (AnySet(spec.mask + 14, spec.mask + 16)) {
      rule_.mask[section_ + kMatchTags] |= kMatchCvlan;
      rule_.value[section_ + kMatchTags] |= kMatchCvlan;
      Put(kMatchVlan, spec.value + 14, spec.mask + 14, 2);
    }
    Put(kMatchEthertype, spec.value + 12, spec.mask + 12, 2);
    return 0;
  }

  // struct ib_flow_ipv4_filter: addresses, protocol, TOS; TTL and flags are not matched
  int AddIpv4(const Spec& spec) {
    if (const int error = CheckUnknown(spec, 10, 12)) return error;
    SetIpVersion(4);
    Put(kMatchSource + kMatchIpv4, spec.value, spec.mask, 4);
    Put(kMatchDestination + kMatchIpv4, spec.value + 4, spec.mask + 4, 4);
    PutByte(kMatchTos, spec.value[9], spec.mask[9]);
    return SetProtocol(spec.mask[8], spec.value[8]);
  }

  // struct ib_flow_ipv6_filter: addresses, flow label, next header, traffic class; no hop limit
  int AddIpv6(const Spec& spec) {
    if (const int error = CheckUnknown(spec, 38, 39)) return error;
    SetIpVersion(6);
    Put(kMatchSource, spec.value, spec.mask, 16);
    Put(kMatchDestination, spec.value + 16, spec.mask + 16, 16);
    PutByte(kMatchTos, spec.value[37], spec.mask[37]);
    if (const int error = SetProtocol(spec.mask[36], spec.value[36])) return error;
    const size_t label =
        kMiscParameters + (section_ == kInnerHeaders ? kMatchInnerFlowLabel : kMatchFlowLabel);
    Store32(&rule_.mask[label], Load32(spec.mask + 32) & 0xfffff);
    Store32(&rule_.value[label], Load32(spec.value + 32) & 0xfffff);
    return 0;
  }

  // struct ib_flow_tcp_udp_filter: destination port, source port
  int AddPorts(const Spec& spec, uint8_t protocol, size_t at) {
    if (const int error = SetProtocol(0xff, protocol)) return error;
    Put(at, spec.value + 2, spec.mask + 2, 2);
    Put(at + 2, spec.value, spec.mask, 2);
    return 0;
  }

  // struct ib_flow_gre_filter: flags and version, protocol, key
  int AddGre(const Spec& spec) {
    if (call_.Violates(RuleId::mlx5_create_flow_gre, AnySet(spec.mask, spec.mask + 2))) {
      return call_.Refuse(RuleId::mlx5_create_flow_gre);
    }
    if (const int error = SetProtocol(0xff, kProtocolGre)) return error;
    section_ = kMiscParameters;
    Put(kMatchGreProtocol, spec.value + 2, spec.mask + 2, 2);
    Put(kMatchGreKey, spec.value + 4, spec.mask + 4, 4);
    return 0;
  }

  Call& call_;
  FlowRule& rule_;
  FlowActions& actions_;
  size_t section_ = 0;
};

// is_valid_ethertype: the headers of one section
bool EthertypeFits(std::span<const uint8_t> specs, uint32_t inner) {
  bool has_type = false, whole_mask = true;
  uint16_t type = 0;
  uint32_t ip = 0;
  Spec spec;
  while (Next(&specs, &spec)) {
    if (spec.type == (kSpecEth | inner) && AnySet(spec.mask + 12, spec.mask + 14)) {
      whole_mask = Load16(spec.mask + 12) == 0xffff;
      has_type = true;
      type = Load16(spec.value + 12);
    } else if (spec.type == (kSpecIpv4 | inner) || spec.type == (kSpecIpv6 | inner)) {
      ip = spec.type & ~kSpecInner;
    }
  }
  if (!has_type || ip == 0) return true;
  if (!whole_mask) return false;
  return (type == kTypeIpv4 && ip == kSpecIpv4) || (type == kTypeIpv6 && ip == kSpecIpv6) ||
         type == kTypeMpls || type == kTypeMplsMulti;
}

}  // namespace

int ParseSpecs(Call& call, std::span<const uint8_t> specs, FlowRule* rule, FlowActions* actions) {
  if (call.Violates(RuleId::mlx5_create_flow_ethertype,
                    !EthertypeFits(specs, 0) || !EthertypeFits(specs, kSpecInner))) {
    return call.Refuse(RuleId::mlx5_create_flow_ethertype);
  }
  Parser parser(call, rule, actions);
  Spec spec;
  while (Next(&specs, &spec)) {
    if (const int error = parser.Add(spec)) return error;
  }
  // get_match_criteria_enable
  for (size_t section = 0; section < 4; ++section) {
    const uint8_t* mask = rule->mask.data() + section * kMatchSection;
    if (AnySet(mask, mask + kMatchSection)) rule->enable |= static_cast<uint8_t>(1 << section);
  }
  return 0;
}

bool MulticastOnly(std::span<const uint8_t> specs) {
  Spec spec;
  if (!Next(&specs, &spec)) return false;
  if (spec.type == kSpecIpv4) return (spec.value[4] & 0xf0) == 0xe0;
  return spec.type == kSpecEth && (spec.mask[0] & 1) != 0 && (spec.value[0] & 1) != 0;
}

}  // namespace vabi::mlx5
