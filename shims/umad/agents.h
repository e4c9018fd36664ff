// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UMAD_AGENTS_H_
#define VABI_SHIMS_UMAD_AGENTS_H_

#include <cstdint>
#include <memory>

#include "shims/trace/decision.h"
#include "shims/uverbs/device.h"

// Who registered for which MADs on a port: core/mad.c.

namespace vabi::umad {

inline constexpr uint32_t kUserRmpp = 1;  // IB_USER_MAD_USER_RMPP

struct Registration {
  uint32_t qpn = 0;
  uint8_t mgmt_class = 0;  // 0: the agent only sends, and takes the answers to that
  uint8_t class_version = 0;
  uint8_t oui[3] = {};
  uint8_t rmpp_version = 0;
  uint32_t flags = 0;
  uint64_t methods[2] = {};  // unsolicited methods, bit by number
};

struct Agent {
  Registration what;
  uint32_t hi_tid = 0;  // upper half of the transaction numbers of its requests
  // core/mad_priv.h:ib_mad_kernel_rmpp_agent
  bool KernelRmpp() const { return what.rmpp_version != 0 && (what.flags & kUserRmpp) == 0; }
};

// core/mad.c:ib_register_mad_agent. Null, and *error is what it answers.
std::shared_ptr<Agent> Register(Decision& call, const Device& device, uint8_t port,
                                const Registration& what, int* error);
// The agent of a program of this process that takes such a request; null: none.
// core/mad.c:find_mad_agent
std::shared_ptr<Agent> FindListener(const Device& device, uint8_t port, const uint8_t* mad);

}  // namespace vabi::umad

#endif  // VABI_SHIMS_UMAD_AGENTS_H_
