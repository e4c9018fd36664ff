// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_RXE_WORK_REQUEST_H_
#define VABI_SHIMS_PROVIDERS_RXE_WORK_REQUEST_H_

#include <cstdint>

#include "shims/fabric/fabric.h"
#include "shims/fabric/window.h"
#include "shims/providers/rxe/layout.h"

// Work requests as they stand in rxe's queues.

namespace vabi::rxe {

// What a work request's number means (rxe_opcode.c: rxe_wr_opcode_info), and the number in its
// completion.
struct Operation {
  fabric::Opcode opcode;
  uint8_t wc_opcode;  // enum ib_uverbs_wc_opcode
  bool has_payload;   // sends and writes: may be inline
  bool is_local;
  bool has_immediate;
};

// Null: rxe has no such operation. `numbering`: knob rxe.wr_numbers. FLUSH and ATOMIC_WRITE exist
// where the layout has them.
const Operation* FindOperation(const Layout& layout, uint32_t number, bool numbering);

enum SendFlag : uint32_t { kFence = 1, kSignaled = 2, kSolicited = 4, kInline = 8 };

// Reads a send request. False: it is malformed (longer than the elements that its slot holds).
// Addresses of datagrams are left to the caller.
bool ReadSend(const Layout& layout, const Operation& operation, const uint8_t* slot,
              uint64_t slot_size, fabric::SendRequest* request);
fabric::AddressVector ReadAddress(const Layout& layout, const uint8_t* slot);
fabric::Bind ReadBind(const Layout& layout, const uint8_t* slot);

// Reads a receive. False: malformed.
// What ReadReceive reads, as rxe_verbs.c:post_one_recv writes it.
void WriteReceive(const Layout& layout, const fabric::RecvRequest& request, uint8_t* slot);
bool ReadReceive(const Layout& layout, const uint8_t* slot, uint64_t slot_size, uint32_t max_sge,
                 fabric::RecvRequest* request);

}  // namespace vabi::rxe

#endif  // VABI_SHIMS_PROVIDERS_RXE_WORK_REQUEST_H_
