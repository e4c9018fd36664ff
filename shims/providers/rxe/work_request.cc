// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/rxe/work_request.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace vabi::rxe {
namespace {

using fabric::Opcode;

constexpr Operation kNone = {Opcode::kNop, 0, false, false, false};

constexpr Operation kWrite = {Opcode::kWrite, 1, true, false, false};
constexpr Operation kWriteImm = {Opcode::kWriteImm, 1, true, false, true};
constexpr Operation kSend = {Opcode::kSend, 0, true, false, false};
constexpr Operation kSendImm = {Opcode::kSendImm, 0, true, false, true};
constexpr Operation kRead = {Opcode::kRead, 2, false, false, false};
constexpr Operation kCompareSwap = {Opcode::kCompareSwap, 3, false, false, false};
constexpr Operation kFetchAdd = {Opcode::kFetchAdd, 4, false, false, false};
constexpr Operation kBindMw = {Opcode::kBindMw, 5, false, true, false};
constexpr Operation kLocalInv = {Opcode::kLocalInvalidate, 6, false, true, false};
constexpr Operation kFlush = {Opcode::kFlush, 8, false, false, false};
constexpr Operation kAtomicWrite = {Opcode::kAtomicWrite, 9, false, false, false};
constexpr Operation kSendInv = {Opcode::kSendInvalidate, 0, true, false, false};

// enum ib_uverbs_wr_opcode. READ_WITH_INV (11) is in rxe's table, but next_opcode_rc does not know
// it.
constexpr Operation kByUserNumber[] = {
    kWrite,  kWriteImm, kSend, kSendImm, kRead, kCompareSwap, kFetchAdd, kLocalInv,
    kBindMw, kSendInv,  kNone, kNone,    kNone, kNone,        kFlush,    kAtomicWrite};
// enum ib_wr_opcode up to 4.17 (ib_verbs.h): 7 was LSO, 9 READ_WITH_INV.
constexpr Operation kByKernelNumber[] = {kWrite,   kWriteImm,    kSend,     kSendImm,
                                         kRead,    kCompareSwap, kFetchAdd, kNone,
                                         kSendInv, kNone,        kLocalInv};

void ReadSges(const Layout& layout, const uint8_t* from, uint32_t count, fabric::Sge* to) {
  for (uint32_t i = 0; i < count; ++i, from += layout.sge_size) {
    to[i].address = Load<uint64_t>(from, layout.sge_address);
    to[i].length = Load<uint32_t>(from, layout.sge_length);
    to[i].lkey = Load<uint32_t>(from, layout.sge_lkey);
  }
}

bool Fits(const Layout& layout, uint64_t start, uint32_t count, uint32_t max_sge,
          uint64_t slot_size) {
  return count <= max_sge && count <= fabric::kMaxSge &&
         start + count * layout.sge_size <= slot_size;
}

// dma.length says how much there is; elements beyond it are not reached. How much of it is in none.
uint64_t CutTo(uint64_t length, fabric::SendRequest* request) {
  for (uint32_t i = 0; i < request->sge_count; ++i) {
    fabric::Sge& sge = request->sges[i];
    if (sge.length > length) sge.length = static_cast<uint32_t>(length);
    length -= sge.length;
  }
  return length;
}

}  // namespace

const Operation* FindOperation(const Layout& layout, uint32_t number, bool numbering) {
  const Operation* found = nullptr;
  if (numbering) {
    if (number < std::size(kByUserNumber)) found = &kByUserNumber[number];
  } else if (number < std::size(kByKernelNumber)) {
    found = &kByKernelNumber[number];
  }
  if (found == nullptr || found->opcode == Opcode::kNop) return nullptr;
  const bool late = found->opcode == Opcode::kFlush || found->opcode == Opcode::kAtomicWrite;
  return late && layout.flush_rkey < 0 ? nullptr : found;
}

bool ReadSend(const Layout& layout, const Operation& operation, const uint8_t* slot,
              uint64_t slot_size, fabric::SendRequest* request) {
  const auto flags = Load<uint32_t>(slot, layout.send_flags);
  request->opcode = operation.opcode;
  request->wr_id = Load<uint64_t>(slot, layout.wr_id);
  request->signaled = (flags & kSignaled) != 0;
  request->solicited = (flags & kSolicited) != 0;
  request->immediate = Load<uint32_t>(slot, layout.immediate);
  request->invalidate_rkey = Load<uint32_t>(slot, layout.invalidate_rkey);
  if (operation.is_local) return true;
  const auto length = Load<uint32_t>(slot, layout.send_length);
  const auto count = Load<uint32_t>(slot, layout.send_count);
  if (operation.opcode == Opcode::kCompareSwap || operation.opcode == Opcode::kFetchAdd) {
    request->remote_address = Load<uint64_t>(slot, layout.atomic_address);
    request->compare_add = Load<uint64_t>(slot, layout.atomic_compare_add);
    request->swap = Load<uint64_t>(slot, layout.atomic_swap);
    request->rkey = Load<uint32_t>(slot, layout.atomic_rkey);
  } else {
    request->remote_address = Load<uint64_t>(slot, layout.remote_address);
    request->rkey = Load<uint32_t>(slot, layout.rkey);
  }
  if (operation.opcode == Opcode::kFlush) {
    constexpr uint8_t kGlobal = 1, kPersistent = 2,
                      kWholeRegion = 1;  // enum ib_placement_type, ib_selectivity_level
    const auto type = Load<uint8_t>(slot, static_cast<uint32_t>(layout.flush_type));
    request->rkey = Load<uint32_t>(slot, static_cast<uint32_t>(layout.flush_rkey));
    request->flush_access = ((type & kGlobal) != 0 ? fabric::kAccessFlushGlobal : 0) |
                            ((type & kPersistent) != 0 ? fabric::kAccessFlushPersistent : 0);
    request->flush_region =
        Load<uint8_t>(slot, static_cast<uint32_t>(layout.flush_level)) == kWholeRegion;
    request->flush_length = length;
    return true;
  }
  // The eight bytes of an ATOMIC_WRITE stand where inline data stand (rxe_dma_info.atomic_wr).
  if (operation.opcode == Opcode::kAtomicWrite ||
      (operation.has_payload && (flags & kInline) != 0)) {
    if (length > slot_size - layout.inline_data) return false;
    request->inline_data = slot + layout.inline_data;
    request->inline_length = length;
    return true;
  }
  // rxe_mr.c:copy_data goes from one to the next until all is copied, whatever num_sge says.
  const auto room = static_cast<uint32_t>((slot_size - layout.send_sges) / layout.sge_size);
  request->sge_count = std::min({count, room, uint32_t{fabric::kMaxSge}});
  ReadSges(layout, slot + layout.send_sges, request->sge_count, request->sges);
  const uint64_t beyond = CutTo(length, request);
  return beyond == 0 || request->sge_count == count;
}

fabric::AddressVector ReadAddress(const Layout& layout, const uint8_t* slot) {
  const uint8_t* av = slot + layout.av;
  fabric::AddressVector address;
  address.is_global = 1;
  address.port_num = Load<uint8_t>(av, layout.av_port);
  std::memcpy(address.dgid, av + layout.av_dgid, sizeof(address.dgid));
  if (layout.has_dmac) std::memcpy(address.dmac, av + layout.av_dmac, sizeof(address.dmac));
  address.flow_label = Load<uint32_t>(av, layout.av_flow_label);
  address.sgid_index = Load<uint8_t>(av, layout.av_sgid_index);
  address.hop_limit = Load<uint8_t>(av, layout.av_hop_limit);
  address.traffic_class = Load<uint8_t>(av, layout.av_traffic_class);
  return address;
}

fabric::Bind ReadBind(const Layout& layout, const uint8_t* slot) {
  const auto at = [](int32_t offset) { return static_cast<uint32_t>(offset); };
  fabric::Bind bind = {};
  bind.window = Load<uint32_t>(slot, at(layout.window_window));
  bind.key = Load<uint32_t>(slot, at(layout.window_key));
  bind.region = Load<uint32_t>(slot, at(layout.window_region));
  bind.address = Load<uint64_t>(slot, at(layout.window_address));
  bind.length = Load<uint64_t>(slot, at(layout.window_length));
  bind.access = Load<uint32_t>(slot, at(layout.window_access));
  return bind;
}

void WriteReceive(const Layout& layout, const fabric::RecvRequest& request, uint8_t* slot) {
  uint32_t length = 0;
  uint8_t* sge = slot + layout.recv_sges;
  for (uint32_t i = 0; i < request.sge_count; ++i, sge += layout.sge_size) {
    Store<uint64_t>(sge, layout.sge_address, request.sges[i].address);
    Store<uint32_t>(sge, layout.sge_length, request.sges[i].length);
    Store<uint32_t>(sge, layout.sge_lkey, request.sges[i].lkey);
    length += request.sges[i].length;
  }
  Store<uint64_t>(slot, layout.recv_wr_id, request.wr_id);
  if (layout.recv_num_sge >= 0) {
    Store<uint32_t>(slot, static_cast<uint32_t>(layout.recv_num_sge), request.sge_count);
  }
  uint8_t* dma = slot + layout.recv_dma;
  Store<uint32_t>(dma, layout.dma_length, length);
  Store<uint32_t>(dma, layout.dma_resid, length);
  Store<uint32_t>(dma, layout.dma_num_sge, request.sge_count);
  Store<uint32_t>(dma, layout.dma_cur_sge, 0);
  Store<uint32_t>(dma, layout.dma_sge_offset, 0);
}

bool ReadReceive(const Layout& layout, const uint8_t* slot, uint64_t slot_size, uint32_t max_sge,
                 fabric::RecvRequest* request) {
  request->wr_id = Load<uint64_t>(slot, layout.recv_wr_id);
  const auto count = Load<uint32_t>(slot, layout.recv_count);
  if (!Fits(layout, layout.recv_sges, count, max_sge, slot_size)) return false;
  request->sge_count = count;
  ReadSges(layout, slot + layout.recv_sges, count, request->sges);
  return true;
}

}  // namespace vabi::rxe
