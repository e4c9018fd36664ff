// SPDX-License-Identifier: BSD-2-Clause
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>

#include "../journey/step.h"
#include "asks.h"

// Of releases that have it.
struct ibv_mr_init_attr;

namespace asks {
namespace {

using journey::Ask;

constexpr size_t kPage = 4096;
constexpr size_t kBytes = 4 * kPage;

constexpr int kLocal = IBV_ACCESS_LOCAL_WRITE;
// IBV_REG_MR_MASK_ADDR
constexpr uint64_t kByAddress = 1 << 1;

struct Access {
  const char* step;
  int flags;
};

constexpr Access kAccesses[] = {
    {"reg_mr:read_only", 0},
    {"reg_mr:remote_read", IBV_ACCESS_REMOTE_READ},
    {"reg_mr:remote_write", kLocal | IBV_ACCESS_REMOTE_WRITE},
    {"reg_mr:remote_write_alone", IBV_ACCESS_REMOTE_WRITE},
    {"reg_mr:remote_atomic", kLocal | IBV_ACCESS_REMOTE_ATOMIC},
    {"reg_mr:remote_atomic_alone", IBV_ACCESS_REMOTE_ATOMIC},
    {"reg_mr:mw_bind", kLocal | IBV_ACCESS_MW_BIND},
    {"reg_mr:zero_based", kLocal | IBV_ACCESS_ZERO_BASED},
    {"reg_mr:on_demand", kLocal | IBV_ACCESS_ON_DEMAND},
    {"reg_mr:huge_tlb", kLocal | IBV_ACCESS_HUGETLB},
    {"reg_mr:relaxed_ordering", kLocal | IBV_ACCESS_RELAXED_ORDERING},
};

// 56.1 and later: IBV_ACCESS_FLUSH_GLOBAL and IBV_ACCESS_FLUSH_PERSISTENT came with the call that
// needs them.
constexpr Access kFlush[] = {
    {"reg_mr:flush_global", kLocal | 1 << 8},
    {"reg_mr:flush_persistent", kLocal | 1 << 9},
};

void Finish(const char* step, ibv_mr* mr) {
  if (!Ask(step, mr != nullptr, errno)) return;
  const int result = ibv_dereg_mr(mr);
  journey::Must("dereg_mr:asked", result == 0, result);
}

template <size_t kCount>
void AskAccesses(ibv_pd* pd, void* bytes, const Access (&accesses)[kCount]) {
  for (const Access& access : accesses) {
    errno = 0;
    Finish(access.step, ibv_reg_mr(pd, bytes, kBytes, static_cast<unsigned>(access.flags)));
  }
}

template <typename Qp>
void AskFlush(ibv_pd* pd, void* bytes) {
  if constexpr (requires(Qp * qp) { qp->wr_flush; }) AskAccesses(pd, bytes, kFlush);
}

// Where and how long.
void AskPlaces(ibv_pd* pd, uint8_t* bytes) {
  const uintptr_t start = reinterpret_cast<uintptr_t>(bytes);
  errno = 0;
  Finish("reg_mr:no_bytes", ibv_reg_mr(pd, bytes, 0, kLocal));
  errno = 0;
  Finish("reg_mr:one_byte", ibv_reg_mr(pd, bytes + kPage - 1, 1, kLocal));
  errno = 0;
  Finish("reg_mr:iova", ibv_reg_mr_iova(pd, bytes, kBytes, start + (1ULL << 32), kLocal));
  errno = 0;
  Finish("reg_mr:iova_within_a_page", ibv_reg_mr_iova(pd, bytes, kBytes, start + 64, kLocal));
  errno = 0;
  Finish("reg_mr:nowhere", ibv_reg_mr(pd, nullptr, kPage, kLocal));
  void* constant = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (constant == MAP_FAILED) return;
  errno = 0;
  Finish("reg_mr:of_read_only_memory", ibv_reg_mr(pd, constant, kPage, 0));
  errno = 0;
  Finish("reg_mr:of_read_only_memory_to_write", ibv_reg_mr(pd, constant, kPage, kLocal));
  munmap(constant, kPage);
}

// A region that is changed: its access, its place, its protection domain, and all at once.
void AskChanges(ibv_pd* pd, uint8_t* bytes) {
  ibv_pd* other = ibv_alloc_pd(pd->context);
  if (!Ask("alloc_pd:second", other != nullptr, errno)) return;
  struct Change {
    const char* step;
    int flags;
  };
  constexpr Change kChanges[] = {
      {"rereg_mr:access", IBV_REREG_MR_CHANGE_ACCESS},
      {"rereg_mr:translation", IBV_REREG_MR_CHANGE_TRANSLATION},
      {"rereg_mr:pd", IBV_REREG_MR_CHANGE_PD},
      {"rereg_mr:all",
       IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD},
  };
  for (const Change& change : kChanges) {
    ibv_mr* mr = ibv_reg_mr(pd, bytes, kPage, kLocal);
    if (!Ask("reg_mr:to_change", mr != nullptr, errno)) break;
    // libibverbs refuses what the flags do not name.
    const bool access = (change.flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
    const bool moves = (change.flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
    const bool domain = (change.flags & IBV_REREG_MR_CHANGE_PD) != 0;
    errno = 0;
    const int result =
        ibv_rereg_mr(mr, change.flags, domain ? other : nullptr, moves ? bytes : nullptr,
                     moves ? kBytes : 0, access ? kLocal | IBV_ACCESS_REMOTE_READ : 0);
    Ask(change.step, result == 0, errno);
    const int end = ibv_dereg_mr(mr);
    journey::Must("dereg_mr:asked", end == 0, end);
  }
  const int result = ibv_dealloc_pd(other);
  journey::Must("dealloc_pd:asked", result == 0, result);
}

void AskWindows(ibv_pd* pd) {
  for (const ibv_mw_type type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2}) {
    errno = 0;
    ibv_mw* mw = ibv_alloc_mw(pd, type);
    if (!Ask(type == IBV_MW_TYPE_1 ? "alloc_mw:1" : "alloc_mw:2", mw != nullptr, errno)) continue;
    const int result = ibv_dealloc_mw(mw);
    journey::Must("dealloc_mw:asked", result == 0, result);
  }
}

// 65.0: one call for all kinds of memory. Libraries turn to the older one where the kernel, or
// their provider, has no method for it.
template <typename Pd, typename Attr>
void AskExtended(Pd* pd, void* bytes) {
  if constexpr (requires(Attr * attr) { ibv_reg_mr_ex(pd, attr); }) {
    Attr attr = {};
    attr.length = kBytes;
    attr.access = kLocal | IBV_ACCESS_RELAXED_ORDERING;
    attr.comp_mask = kByAddress;
    attr.addr = bytes;
    errno = 0;
    Finish("reg_mr_ex", ibv_reg_mr_ex(pd, &attr));
  }
}

}  // namespace

void AskMemory(ibv_pd* pd) {
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!journey::Must("memory:asked", memory != MAP_FAILED, errno)) return;
  uint8_t* bytes = static_cast<uint8_t*>(memory);
  AskAccesses(pd, bytes, kAccesses);
  AskFlush<ibv_qp_ex>(pd, bytes);
  AskPlaces(pd, bytes);
  AskChanges(pd, bytes);
  AskWindows(pd);
  AskExtended<ibv_pd, ibv_mr_init_attr>(pd, bytes);
  munmap(memory, kBytes);
}

}  // namespace asks
