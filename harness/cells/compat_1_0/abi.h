// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CELLS_COMPAT_1_0_ABI_H_
#define VABI_HARNESS_CELLS_COMPAT_1_0_ABI_H_

#include <cstddef>
#include <cstdint>

// The ABI of libibverbs 1.0 (2006) as its applications know it: node IBVERBS_1.0. rdma-core still
// serves it (libibverbs/compat-1_0.c, the same from 33.2 to 65.0): it hands out objects of its own
// in these layouts, each with the real one behind its last member. Offsets are checked
// for x86_64 and i386.

namespace compat {

struct Context;
struct Device;
struct Channel;  // a completion channel; see main.cc for why there is none
struct AddressHandle;

struct Pd {
  Context* context;
  uint32_t handle;
};

struct Mr {
  Context* context;
  Pd* pd;
  uint32_t handle, lkey, rkey;
};

struct Srq {
  Context* context;
  void* srq_context;
  Pd* pd;
};

struct Cq {
  Context* context;
  void* cq_context;
  uint32_t handle;
  int cqe;
};

struct Qp {
  Context* context;
  void* qp_context;
  Pd* pd;
  Cq *send_cq, *recv_cq;
  Srq* srq;
  uint32_t handle, qp_num, state, qp_type;
};

struct Sge {
  uint64_t addr;
  uint32_t length, lkey;
};

struct SendWr {
  SendWr* next;
  uint64_t wr_id;
  Sge* sg_list;
  int num_sge;
  uint32_t opcode;
  int send_flags;
  uint32_t imm_data;
  union {
    struct {
      uint64_t remote_addr;
      uint32_t rkey;
    } rdma;
    struct {
      uint64_t remote_addr, compare_add, swap;
      uint32_t rkey;
    } atomic;
    struct {
      AddressHandle* ah;
      uint32_t remote_qpn, remote_qkey;
    } ud;
  } wr;
};

struct RecvWr {
  RecvWr* next;
  uint64_t wr_id;
  Sge* sg_list;
  int num_sge;
};

struct Wc {
  uint64_t wr_id;
  uint32_t status, opcode, vendor_err, byte_len, imm_data, qp_num, src_qp, wc_flags;
  uint16_t pkey_index, slid;
  uint8_t sl, dlid_path_bits;
};

// Applications of 1.0 call these through inline functions; no others are filled in.
struct ContextOps {
  void* to_create_cq[7];
  int (*poll_cq)(Cq*, int, Wc*);
  int (*req_notify_cq)(Cq*, int);
  void* to_destroy_srq[7];
  int (*post_srq_recv)(Srq*, RecvWr*, RecvWr**);
  void* to_destroy_qp[4];
  int (*post_send)(Qp*, SendWr*, SendWr**);
  int (*post_recv)(Qp*, RecvWr*, RecvWr**);
  void* to_detach_mcast[4];
};

struct Context {
  Device* device;
  ContextOps ops;
  int cmd_fd, async_fd, num_comp_vectors;
};

// Two big-endian words: aligned as a machine aligns these in a structure.
struct Word {
  uint64_t value;
};
struct Gid {
  alignas(Word) uint8_t raw[16];
};

struct PortAttr {
  uint32_t state, max_mtu, active_mtu;
  int gid_tbl_len;
  uint32_t port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr;
  uint16_t pkey_tbl_len, lid, sm_lid;
  uint8_t lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply, active_width, active_speed;
  uint8_t phys_state;
  // Padding in 1.0; later the link layer, which says whether addresses need a GRH.
  uint8_t link_layer, flags;
};

struct QpCap {
  uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
};

struct QpInitAttr {
  void* qp_context;
  Cq *send_cq, *recv_cq;
  Srq* srq;
  QpCap cap;
  uint32_t qp_type;
  int sq_sig_all;
};

struct AhAttr {
  Gid dgid;
  uint32_t flow_label;
  uint8_t sgid_index, hop_limit, traffic_class;
  uint16_t dlid;
  uint8_t sl, src_path_bits, static_rate, is_global, port_num;
};

struct QpAttr {
  uint32_t qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn, dest_qp_num;
  int qp_access_flags;
  QpCap cap;
  AhAttr ah_attr, alt_ah_attr;
  uint16_t pkey_index, alt_pkey_index;
  uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer;
  uint8_t port_num, timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout;
};

struct SrqAttr {
  uint32_t max_wr, max_sge, srq_limit;
};

struct SrqInitAttr {
  void* srq_context;
  SrqAttr attr;
};

struct AsyncEvent {
  union {
    Cq* cq;
    Qp* qp;
    Srq* srq;
    int port_num;
  } element;
  uint32_t event_type;
};

#if defined(__i386__)
static_assert(offsetof(Mr, rkey) == 16 && offsetof(Cq, cqe) == 12 && offsetof(Qp, qp_num) == 28);
static_assert(offsetof(SendWr, imm_data) == 28 && offsetof(SendWr, wr) == 32);
static_assert(sizeof(SendWr) == 60 && sizeof(RecvWr) == 20);
static_assert(sizeof(QpInitAttr) == 44 && sizeof(AsyncEvent) == 8);
#else
static_assert(offsetof(Mr, rkey) == 24 && offsetof(Cq, cqe) == 20 && offsetof(Qp, qp_num) == 52);
static_assert(offsetof(SendWr, imm_data) == 36 && offsetof(SendWr, wr) == 40);
static_assert(sizeof(SendWr) == 72 && sizeof(RecvWr) == 32);
static_assert(sizeof(QpInitAttr) == 64 && sizeof(AsyncEvent) == 16);
#endif
constexpr size_t kPointer = sizeof(void*);
static_assert(offsetof(ContextOps, poll_cq) == 7 * kPointer &&
              offsetof(ContextOps, post_send) == 21 * kPointer &&
              sizeof(ContextOps) == 27 * kPointer);
static_assert(sizeof(Wc) == 48 && sizeof(PortAttr) == 48);
static_assert(sizeof(AhAttr) == 32 && sizeof(QpAttr) == 136);

// enum values of 1.0, as far as they are used here
enum : uint32_t { kRc = 2 };
enum : uint32_t { kInit = 1, kRtr = 2, kRts = 3, kSqd = 4 };
enum : uint32_t { kPortActive = 4 };
enum : uint8_t { kEthernet = 2 };
enum : uint32_t { kWrite = 0, kSend = 2, kRead = 4 };
enum : int { kSignaled = 1 << 1 };
enum : int { kLocalWrite = 1, kRemoteWrite = 2, kRemoteRead = 4 };
enum : uint32_t { kSuccess = 0 };
enum : int {
  kQpState = 1 << 0,
  kQpSqdNotify = 1 << 2,
  kQpAccess = 1 << 3,
  kQpPkey = 1 << 4,
  kQpPort = 1 << 5,
  kQpAv = 1 << 7,
  kQpMtu = 1 << 8,
  kQpTimeout = 1 << 9,
  kQpRetry = 1 << 10,
  kQpRnrRetry = 1 << 11,
  kQpRqPsn = 1 << 12,
  kQpRdAtomic = 1 << 13,
  kQpRnrTimer = 1 << 15,
  kQpSqPsn = 1 << 16,
  kQpDestRdAtomic = 1 << 17,
  kQpDestQpn = 1 << 20,
};
enum : int { kSrqLimit = 2 };
enum : uint32_t {
  kEventCqError = 0,
  kEventQpFirst = 1,  // QP_FATAL; up to PATH_MIG_ERR all are of a queue pair
  kEventQpLast = 7,
  kEventDeviceFatal = 8,
  kEventSrqError = 14,
  kEventSrqLimit = 15,
  kEventLastWqe = 16,
};

}  // namespace compat

// What node IBVERBS_1.0 exports (matrix/symbols); the program is linked to a stub that has these
// names under this node alone.
extern "C" {
compat::Device** ibv_get_device_list(int* count);
void ibv_free_device_list(compat::Device** list);
const char* ibv_get_device_name(compat::Device* device);
uint64_t ibv_get_device_guid(compat::Device* device);
compat::Context* ibv_open_device(compat::Device* device);
int ibv_close_device(compat::Context* context);
int ibv_get_async_event(compat::Context* context, compat::AsyncEvent* event);
void ibv_ack_async_event(compat::AsyncEvent* event);
int ibv_query_port(compat::Context* context, uint8_t port, compat::PortAttr* attr);
int ibv_query_gid(compat::Context* context, uint8_t port, int index, compat::Gid* gid);
int ibv_query_pkey(compat::Context* context, uint8_t port, int index, uint16_t* pkey);
compat::Pd* ibv_alloc_pd(compat::Context* context);
int ibv_dealloc_pd(compat::Pd* pd);
compat::Mr* ibv_reg_mr(compat::Pd* pd, void* address, size_t length, int access);
int ibv_dereg_mr(compat::Mr* mr);
compat::Cq* ibv_create_cq(compat::Context* context, int entries, void* cq_context,
                          compat::Channel* channel, int vector);
int ibv_destroy_cq(compat::Cq* cq);
compat::Srq* ibv_create_srq(compat::Pd* pd, compat::SrqInitAttr* attr);
int ibv_modify_srq(compat::Srq* srq, compat::SrqAttr* attr, int mask);
int ibv_query_srq(compat::Srq* srq, compat::SrqAttr* attr);
int ibv_destroy_srq(compat::Srq* srq);
compat::Qp* ibv_create_qp(compat::Pd* pd, compat::QpInitAttr* attr);
int ibv_query_qp(compat::Qp* qp, compat::QpAttr* attr, int mask, compat::QpInitAttr* init);
int ibv_modify_qp(compat::Qp* qp, compat::QpAttr* attr, int mask);
int ibv_destroy_qp(compat::Qp* qp);
}

#endif  // VABI_HARNESS_CELLS_COMPAT_1_0_ABI_H_
