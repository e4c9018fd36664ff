// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx5/work_queue.h"

#include <algorithm>

#include "shims/fabric/memory.h"

namespace vabi::mlx5 {
namespace {

using fabric::Opcode;
using fabric::Service;

constexpr uint64_t kTwoGigabytes = 0x80000000;

// Walks along the segments of an element.
class Reader {
 public:
  explicit Reader(const Wqe& wqe) : at_(wqe.bytes), end_(wqe.bytes + wqe.segments * kSegment) {}
  // The next `size` bytes, or null.
  const uint8_t* Take(uint32_t size) {
    if (static_cast<uint32_t>(end_ - at_) < size) return nullptr;
    const uint8_t* taken = at_;
    at_ += size;
    return taken;
  }
  uint32_t left() const { return static_cast<uint32_t>(end_ - at_); }
  const uint8_t* at() const { return at_; }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

struct OpcodeRow {
  uint8_t number;
  Opcode opcode;
  bool remote;  // a remote address segment follows
  bool atomic;
};
constexpr OpcodeRow kOpcodes[] = {
    {kOpNop, Opcode::kNop, false, false},
    {kOpSendInvalidate, Opcode::kSendInvalidate, false, false},
    {kOpWrite, Opcode::kWrite, true, false},
    {kOpWriteImm, Opcode::kWriteImm, true, false},
    {kOpSend, Opcode::kSend, false, false},
    {kOpSendImm, Opcode::kSendImm, false, false},
    {kOpRead, Opcode::kRead, true, false},
    {kOpAtomicCs, Opcode::kCompareSwap, true, true},
    {kOpAtomicFa, Opcode::kFetchAdd, true, true},
};

const OpcodeRow* FindOpcode(uint8_t number) {
  for (const OpcodeRow& row : kOpcodes) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

bool ReadAddress(Reader* reader, uint32_t qkey, fabric::SendRequest* request) {
  const uint8_t* av = reader->Take(kAvBaseSize);
  if (av == nullptr) return false;
  const uint32_t qpn = Load32(av + kAvQpn);
  request->remote_qpn = qpn & 0xffffff;
  request->remote_qkey = Load32(av + kAvQkey);
  if ((request->remote_qkey & kPrivilegedQkey) != 0) request->remote_qkey = qkey;
  fabric::AddressVector& address = request->address;
  address = fabric::AddressVector();
  address.sl = av[kAvRateSl] & 0xf;
  address.static_rate = av[kAvRateSl] >> 4;
  address.src_path_bits = av[kAvPathBits] & 0x7f;
  address.dlid = Load16(av + kAvRlid);
  if ((qpn & kAvExtended) == 0) return true;
  if (reader->Take(kAvSize - kAvBaseSize) == nullptr) return false;
  std::memcpy(address.dmac, av + kAvMac, sizeof(address.dmac));
  address.traffic_class = av[kAvTclass];
  address.hop_limit = av[kAvHopLimit];
  const uint32_t grh = Load32(av + kAvGrh);
  address.is_global = (grh & kAvGrhPresent) != 0;
  address.sgid_index = static_cast<uint8_t>(grh >> 20);
  address.flow_label = grh & 0xfffff;
  std::memcpy(address.dgid, av + kAvGid, sizeof(address.dgid));
  return true;
}

// The Ethernet segment; headers may stand in it.
bool SkipEthernet(Reader* reader) {
  if (reader->left() < kSegment) return false;
  const uint32_t headers = Load16(reader->at() + kEthHeaderSize);
  const uint32_t size = headers == 0 ? kSegment : kEthHeaders + headers;
  return reader->Take((size + kSegment - 1) / kSegment * kSegment) != nullptr;
}

// The rest of the element: pointers, or inline data.
Translation ReadData(Reader* reader, fabric::SendRequest* request) {
  while (reader->left() >= kSegment) {
    const uint8_t* segment = reader->at();
    const uint32_t count = Load32(segment);
    if ((count & kInline) == 0) {
      if (request->sge_count == fabric::kMaxSge) return Translation::kMalformed;
      const uint32_t length = count == 0 ? static_cast<uint32_t>(kTwoGigabytes) : count;
      request->sges[request->sge_count++] = {Load64(segment + 8), length, Load32(segment + 4)};
      reader->Take(kSegment);
      continue;
    }
    const uint32_t length = count & ~kInline;
    const uint32_t padded = (kInlineHeader + length + kSegment - 1) / kSegment * kSegment;
    if (length > reader->left() || reader->Take(padded) == nullptr) return Translation::kMalformed;
    // Bytes in front of pointers UCX sends (a header of its own), nobody others.
    if (request->inline_data != nullptr || request->sge_count != 0) return Translation::kUnmodelled;
    request->inline_data = segment + kInlineHeader;
    request->inline_length = length;
  }
  return Translation::kRequest;
}

uint32_t AccessOf(uint8_t bits) {
  uint32_t access = 0;
  if ((bits & kMkeyLocalWrite) != 0) access |= fabric::kAccessLocalWrite;
  if ((bits & kMkeyRemoteWrite) != 0) access |= fabric::kAccessRemoteWrite;
  if ((bits & kMkeyRemoteRead) != 0) access |= fabric::kAccessRemoteRead;
  if ((bits & kMkeyAtomic) != 0) access |= fabric::kAccessRemoteAtomic;
  return access;
}

bool IsZero(const uint8_t* segment) {
  return std::all_of(segment, segment + kSegment, [](uint8_t byte) { return byte == 0; });
}

// What libraries make of BIND_MW and LOCAL_INV: a key context with the translation inline.
Translation ReadUmr(const Wqe& wqe, fabric::Bind* bind) {
  Reader reader(wqe);
  reader.Take(kSegment);
  const uint8_t* control = reader.Take(kUmrControlSize);
  const uint8_t* mkey = reader.Take(kUmrMkeySize);
  if (control == nullptr || mkey == nullptr) return Translation::kMalformed;
  bind->window = Load32(wqe.bytes + kCtrlImmediate);
  bind->key = Load32(mkey + kMkeyQpnKey) & 0xff;
  bind->region = 0;
  bind->address = bind->length = 0;
  bind->access = 0;
  if ((mkey[kMkeyFree] & kMkeyFreeBit) != 0) {
    return reader.left() == 0 ? Translation::kInvalidate : Translation::kUnmodelled;
  }
  const uint8_t* translation = reader.Take(kSegment);
  if ((control[kUmrFlags] & kUmrInline) == 0 || translation == nullptr)
    return Translation::kUnmodelled;
  for (const uint8_t* more = reader.at(); reader.Take(kSegment) != nullptr; more = reader.at()) {
    if (!IsZero(more)) return Translation::kUnmodelled;  // several translations
  }
  bind->length = Load64(mkey + kMkeyLength);
  bind->region = Load32(translation + 4);
  bind->address = Load64(translation + 8);
  bind->access = AccessOf(mkey[kMkeyAccess]);
  const uint64_t start = Load64(mkey + kMkeyStart);
  if (start == 0 && bind->address != 0) {
    bind->access |= fabric::kAccessZeroBased;
  } else if (start != bind->address) {
    return Translation::kUnmodelled;
  }
  return Translation::kBind;
}

}  // namespace

bool ReadWqe(const SendRing& ring, uint16_t index, Wqe* wqe) {
  const uint32_t mask = ring.blocks - 1;
  wqe->index = index;
  fabric::ReadMemory(wqe->bytes, ring.buffer + uint64_t{index & mask} * kBlock, kBlock);
  wqe->segments = Load32(wqe->bytes + kCtrlQpnDs) & kMaxSegments;
  if (wqe->segments == 0 || wqe->blocks() > ring.blocks) return false;
  for (uint32_t block = 1; block < wqe->blocks(); ++block) {
    fabric::ReadMemory(wqe->bytes + block * kBlock,
                       ring.buffer + uint64_t{(index + block) & mask} * kBlock, kBlock);
  }
  return true;
}

// mlx5dv.h: struct mlx5_wqe_umr_klm_seg, mlx5_wqe_umr_repeat_block_seg, mlx5_wqe_umr_repeat_ent_seg
Translation ReadKeyUpdate(const Wqe& wqe, uint32_t room, fabric::MemoryKey* key) {
  Reader reader(wqe);
  reader.Take(kSegment);
  const uint8_t* control = reader.Take(kUmrControlSize);
  const uint8_t* mkey = reader.Take(kUmrMkeySize);
  if (control == nullptr || mkey == nullptr) return Translation::kMalformed;
  const uint64_t mask = Load64(control + kUmrMask);
  constexpr uint64_t kKnown =
      kUmrMaskLength | kUmrMaskStart | kUmrMaskKey | kUmrMaskQpn | kUmrMaskAccess | kUmrMaskFree;
  const bool renames = (mask & kUmrMaskKey) != 0 && (Load32(mkey + kMkeyQpnKey) & 0xff) !=
                                                        (Load32(wqe.bytes + kCtrlImmediate) & 0xff);
  if ((mask & ~kKnown) != 0 || renames) return Translation::kUnmodelled;
  const uint32_t octowords = Load16(control + kUmrOctowords);
  if (octowords != 0) {
    if ((control[kUmrFlags] & kUmrInline) == 0 || Load16(control + kUmrBsfOctowords) != 0)
      return Translation::kUnmodelled;
    if (octowords > (room + 3) / 4 * 4) return Translation::kMalformed;
    const uint8_t* list = reader.Take(octowords * kSegment);
    if (list == nullptr) return Translation::kMalformed;
    constexpr uint32_t kMostPieces = 48;  // of one message: fabric::kMaxSge, and other elements
    key->parts.clear();
    key->repeat = 1;
    uint32_t count = octowords, first = 0;
    const bool repeats = Load32(list + 4) == kRepeatBlock;
    if (repeats) {
      key->repeat = Load32(list + 8);
      count = Load16(list + 14) + 1u, first = 1;
      if (count > octowords) return Translation::kMalformed;
    }
    for (uint32_t i = first; i < count; ++i) {
      const uint8_t* entry = list + size_t{i} * kSegment;
      if (IsZero(entry)) continue;  // filling
      const uint32_t lkey = Load32(entry + 4);
      const uint64_t address = Load64(entry + 8);
      if (repeats) {
        key->parts.push_back({address, Load16(entry + 2), Load16(entry), lkey});
      } else {
        key->parts.push_back({address, Load32(entry), 0, lkey});
      }
    }
    if (key->parts.size() * uint64_t{key->repeat} > kMostPieces) return Translation::kUnmodelled;
  }
  if ((mask & kUmrMaskLength) != 0) key->length = Load64(mkey + kMkeyLength);
  if ((mask & kUmrMaskStart) != 0) key->iova = Load64(mkey + kMkeyStart);
  if ((mask & kUmrMaskAccess) == kUmrMaskAccess) {
    key->access = AccessOf(mkey[kMkeyAccess]);
  } else if ((mask & kUmrMaskAccess) != 0) {
    return Translation::kUnmodelled;
  }
  if ((mask & kUmrMaskFree) != 0) key->invalidated = (mkey[kMkeyFree] & kMkeyFreeBit) != 0;
  return Translation::kRequest;
}

Translation Translate(const Wqe& wqe, Service service, uint32_t qkey, fabric::SendRequest* request,
                      fabric::Bind* bind, uint32_t* remote_srqn) {
  if (wqe.opcode() == kOpUmr) return ReadUmr(wqe, bind);
  const OpcodeRow* row = FindOpcode(wqe.opcode());
  if (row == nullptr) return Translation::kUnmodelled;
  Reader reader(wqe);
  reader.Take(kSegment);
  request->opcode = row->opcode;
  request->index = wqe.index;
  request->signaled = wqe.signaled();
  request->solicited = (wqe.flags() & kFlagSolicited) != 0;
  request->sge_count = 0;
  request->inline_data = nullptr;
  request->inline_length = 0;
  request->remote_address = 0;
  request->rkey = 0;
  request->compare_add = request->swap = 0;
  std::memcpy(&request->immediate, wqe.bytes + kCtrlImmediate, sizeof(request->immediate));
  request->invalidate_rkey = Load32(wqe.bytes + kCtrlImmediate);
  if (row->opcode == Opcode::kNop) return Translation::kRequest;
  if (service == Service::kXrcInitiator) {
    const uint8_t* xrc = reader.Take(kSegment);
    if (xrc == nullptr) return Translation::kMalformed;
    *remote_srqn = Load32(xrc) & 0xffffff;
  }
  if (service == Service::kRaw && !SkipEthernet(&reader)) return Translation::kMalformed;
  const bool addressed = service == Service::kUd || service == Service::kDcInitiator;
  if (addressed) request->dc_key = Load64(reader.at() + kAvDcKey);
  if (addressed && !ReadAddress(&reader, qkey, request)) return Translation::kMalformed;
  if (row->remote) {
    const uint8_t* remote = reader.Take(kSegment);
    if (remote == nullptr) return Translation::kMalformed;
    request->remote_address = Load64(remote);
    request->rkey = Load32(remote + 8);
  }
  if (row->atomic) {
    const uint8_t* atomic = reader.Take(kSegment);
    if (atomic == nullptr) return Translation::kMalformed;
    const uint64_t swap_or_add = Load64(atomic), compare = Load64(atomic + 8);
    const bool swaps = row->opcode == Opcode::kCompareSwap;
    request->swap = swaps ? swap_or_add : 0;
    request->compare_add = swaps ? compare : swap_or_add;
  }
  return ReadData(&reader, request);
}

}  // namespace vabi::mlx5
