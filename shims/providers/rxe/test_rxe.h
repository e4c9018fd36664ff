// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_RXE_TEST_RXE_H_
#define VABI_SHIMS_PROVIDERS_RXE_TEST_RXE_H_

#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "harness/world/test_world.h"
#include "shims/fabric/fabric.h"
#include "shims/fabric/nic.h"
#include "shims/providers/rxe/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/test_calls.h"
#include "shims/uverbs/test_fd_table.h"
#include "shims/uverbs/uverbs_file.h"

// rxe as its user space sees it: write() commands, queues mapped from the device, work requests put
// there by the layout of the kernel's header. Nothing here uses the driver's own reading of them.

namespace vabi::rxe {

// A queue as librxe maps it. The header's layout: rxe_queue.h of 4.9 to 5.10, rdma_user_rxe.h
// since.
class MappedQueue {
 public:
  uint8_t* base = nullptr;
  uint64_t size = 0;
  uint32_t log2() const { return At(0); }
  uint32_t mask() const { return At(4); }
  uint32_t producer() const { return At(128); }
  uint32_t consumer() const { return At(256); }
  uint8_t* Slot(uint32_t index) const {
    return base + 384 + (static_cast<uint64_t>(index & mask()) << log2());
  }
  bool Full() const { return ((producer() + 1) & mask()) == consumer(); }
  void Produce() { Set(128, (producer() + 1) & mask()); }
  void Consume() { Set(256, (consumer() + 1) & mask()); }
  uint32_t Count() const { return (producer() - consumer()) & mask(); }

 private:
  uint32_t At(int offset) const {
    return __atomic_load_n(reinterpret_cast<const uint32_t*>(base + offset), __ATOMIC_ACQUIRE);
  }
  void Set(int offset, uint32_t value) {
    __atomic_store_n(reinterpret_cast<uint32_t*>(base + offset), value, __ATOMIC_RELEASE);
  }
};

struct Wc {
  uint64_t wr_id;
  uint32_t status, opcode, byte_len, imm, qp_num, src_qp, flags;
  uint32_t port;
};

class RxeTest : public testing::Test {
 protected:
  // write() numbers, enum ib_uverbs_write_cmds
  enum : uint32_t {
    kGetContext = 0,
    kAllocPd = 3,
    kCreateAh = 5,
    kRegMr = 9,
    kReregMr = 11,
    kDeregMr = 13,
    kAllocMw = 14,
    kDeallocMw = 16,
    kCreateChannel = 17,
    kCreateCq = 18,
    kResizeCq = 19,
    kDestroyCq = 20,
    kPollCq = 21,
    kReqNotifyCq = 23,
    kCreateQp = 24,
    kQueryQp = 25,
    kModifyQp = 26,
    kDestroyQp = 27,
    kPostSend = 28,
    kPostRecv = 29,
    kAttachMcast = 30,
    kDetachMcast = 31,
    kCreateSrq = 32,
    kModifySrq = 33,
    kQuerySrq = 34,
    kDestroySrq = 35,
  };
  enum : uint32_t {
    kWrite = 0,
    kWriteImm = 1,
    kSend = 2,
    kSendImm = 3,
    kRead = 4,
    kCas = 5,
    kFaa = 6,
    kLocalInv = 7,
    kBindMw = 8,
    kSendInv = 9
  };
  enum : uint32_t { kSignaled = 2, kSolicited = 4, kInline = 8 };

  explicit RxeTest(const char* kernel = "debian-7.3.4") : world_(kernel, {"rxe"}) {
    fabric::UseThread(false);
    fabric::SetClock(Later);
    fabric::ForgetAll();
    Open();
  }
  ~RxeTest() override {
    fabric::SetClock(nullptr);
    file_.reset();
    for (const MappedQueue& queue : mapped_) munmap(queue.base, queue.size);
    fds_.Close();
  }
  // Again, after a change of the world.
  void Open() {
    file_.reset();
    fds_.Close();
    ASSERT_TRUE(InstallWorld(world_.world()));
    file_ = std::make_shared<UverbsFile>(*FindDevice(0));
    Bytes reply(world().Size(VABI_S(ib_uverbs_get_context_resp)));
    ASSERT_GT(Command(kGetContext, Zero(VABI_S(ib_uverbs_get_context)), &reply), 0);
    fds_.push_back(static_cast<int>(In(reply).U32(VABI_F(ib_uverbs_get_context_resp, async_fd))));
    async_fd_ = fds_.back();
    memory_.assign(65536 + 8, 0);
    bytes = memory_.data() + (-reinterpret_cast<uintptr_t>(memory_.data()) & 7);
    for (uint32_t i = 0; i < kSize; ++i) bytes[i] = Pattern(i);
    pd_ = Pd();
    Mr(pd_, 0x1f, &lkey_, &rkey_);
  }
  // A clock on which all waiting is over when it is looked at again.
  static uint64_t Later() {
    static uint64_t now = 0;
    return now += 1'000'000'000;
  }
  static uint8_t Pattern(uint32_t i) { return static_cast<uint8_t>((i * 2654435761u) >> 24); }

  const World& world() const { return world_.world(); }
  Bytes Zero(StructId id) const { return Bytes(world().Size(id)); }
  Body In(Bytes& bytes) const { return Body(world(), bytes.data(), bytes.size()); }
  uint64_t Address(uint32_t offset) const { return reinterpret_cast<uintptr_t>(bytes + offset); }

  // A write() with a reply of so many bytes: the core's and the driver's.
  long Command(uint32_t command, Bytes request, Bytes* reply, const Bytes& driver = {}) {
    return SendWrite(*file_, LegacyCommand(command, std::move(request), reply, driver));
  }
  static int Errno(long result) { return result < 0 ? static_cast<int>(-result) : 0; }

  uint32_t Pd() {
    Bytes reply(world().Size(VABI_S(ib_uverbs_alloc_pd_resp)));
    EXPECT_GT(Command(kAllocPd, Zero(VABI_S(ib_uverbs_alloc_pd)), &reply), 0);
    return In(reply).U32(VABI_F(ib_uverbs_alloc_pd_resp, pd_handle));
  }
  long Mr(uint32_t pd, uint32_t access, uint32_t* lkey, uint32_t* rkey, uint64_t start = 0,
          uint64_t length = kSize, uint32_t* handle = nullptr) {
    if (start == 0) start = Address(0);
    Bytes request = Zero(VABI_S(ib_uverbs_reg_mr));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_reg_mr, start), start);
    body.Set(VABI_F(ib_uverbs_reg_mr, hca_va), start);
    body.Set(VABI_F(ib_uverbs_reg_mr, length), length);
    body.Set(VABI_F(ib_uverbs_reg_mr, pd_handle), pd);
    body.Set(VABI_F(ib_uverbs_reg_mr, access_flags), access);
    Bytes reply(world().Size(VABI_S(ib_uverbs_reg_mr_resp)));
    const long result = Command(kRegMr, request, &reply);
    if (lkey != nullptr) *lkey = In(reply).U32(VABI_F(ib_uverbs_reg_mr_resp, lkey));
    if (rkey != nullptr) *rkey = In(reply).U32(VABI_F(ib_uverbs_reg_mr_resp, rkey));
    if (handle != nullptr) *handle = In(reply).U32(VABI_F(ib_uverbs_reg_mr_resp, mr_handle));
    return result;
  }
  int Channel() {
    Bytes reply(world().Size(VABI_S(ib_uverbs_create_comp_channel_resp)));
    EXPECT_GT(Command(kCreateChannel, Zero(VABI_S(ib_uverbs_create_comp_channel)), &reply), 0);
    fds_.push_back(static_cast<int>(In(reply).U32(VABI_F(ib_uverbs_create_comp_channel_resp, fd))));
    return fds_.back();
  }

  // struct mminfo at an offset of a reply
  void Place(const Bytes& reply, size_t at, uint64_t* offset, uint32_t* size) {
    std::memcpy(offset, reply.data() + at, 8);
    std::memcpy(size, reply.data() + at + 8, 4);
  }
  long Map(uint64_t offset, uint64_t size, MappedQueue* queue) {
    const long result = file_->Mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED,
                                    static_cast<int64_t>(offset));
    if (result < 0 && result > -4096) return result;
    queue->base = reinterpret_cast<uint8_t*>(result);
    queue->size = size;
    mapped_.push_back(*queue);
    return 0;
  }
  void MapAt(const Bytes& reply, size_t at, MappedQueue* queue) {
    uint64_t offset;
    uint32_t size;
    Place(reply, at, &offset, &size);
    ASSERT_EQ(Map(offset, size, queue), 0);
  }

  struct Cq {
    uint32_t handle = 0, cqe = 0;
    MappedQueue queue;
  };
  Bytes CqRequest(uint32_t cqe, int channel = -1) {
    Bytes request = Zero(VABI_S(ib_uverbs_create_cq));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_create_cq, cqe), cqe);
    body.Set(VABI_F(ib_uverbs_create_cq, user_handle), 0xc0);
    body.Set(VABI_F(ib_uverbs_create_cq, comp_channel), static_cast<uint32_t>(channel));
    return request;
  }
  Cq MakeCq(uint32_t cqe = 63, int channel = -1) {
    Cq cq;
    const size_t core = world().Size(VABI_S(ib_uverbs_create_cq_resp));
    Bytes reply(core + 16);
    EXPECT_GT(Command(kCreateCq, CqRequest(cqe, channel), &reply), 0);
    cq.handle = In(reply).U32(VABI_F(ib_uverbs_create_cq_resp, cq_handle));
    cq.cqe = In(reply).U32(VABI_F(ib_uverbs_create_cq_resp, cqe));
    MapAt(reply, core, &cq.queue);
    return cq;
  }
  // The next completion; none: status 999.
  Wc Poll(Cq& cq) {
    if (cq.queue.Count() == 0) return {0, 999, 0, 0, 0, 0, 0, 0, 0};
    const Body body(world(), cq.queue.Slot(cq.queue.consumer()), 1u << cq.queue.log2());
    Wc wc = {body.Get(VABI_F(ib_uverbs_wc, wr_id)),   body.U32(VABI_F(ib_uverbs_wc, status)),
             body.U32(VABI_F(ib_uverbs_wc, opcode)),  body.U32(VABI_F(ib_uverbs_wc, byte_len)),
             body.U32(VABI_F(ib_uverbs_wc, ex)),      body.U32(VABI_F(ib_uverbs_wc, qp_num)),
             body.U32(VABI_F(ib_uverbs_wc, src_qp)),  body.U32(VABI_F(ib_uverbs_wc, wc_flags)),
             body.U32(VABI_F(ib_uverbs_wc, port_num))};
    cq.queue.Consume();
    return wc;
  }

  struct Qp {
    uint32_t handle = 0, number = 0;
    uint32_t send_wr = 0, recv_wr = 0, send_sge = 0, recv_sge = 0, inline_data = 0;
    MappedQueue send, receive;
  };
  struct QpWish {
    uint8_t type = 2;
    uint32_t send_wr = 15, recv_wr = 15, send_sge = 4, recv_sge = 4, inline_data = 64, srq = 0;
    bool has_srq = false, signal_all = false;
  };
  Bytes QpRequest(uint32_t send_cq, uint32_t recv_cq, const QpWish& wish) {
    Bytes request = Zero(VABI_S(ib_uverbs_create_qp));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_create_qp, user_handle), 0x90);
    body.Set(VABI_F(ib_uverbs_create_qp, pd_handle), pd_);
    body.Set(VABI_F(ib_uverbs_create_qp, send_cq_handle), send_cq);
    body.Set(VABI_F(ib_uverbs_create_qp, recv_cq_handle), recv_cq);
    body.Set(VABI_F(ib_uverbs_create_qp, srq_handle), wish.srq);
    body.Set(VABI_F(ib_uverbs_create_qp, is_srq), wish.has_srq);
    body.Set(VABI_F(ib_uverbs_create_qp, max_send_wr), wish.send_wr);
    body.Set(VABI_F(ib_uverbs_create_qp, max_recv_wr), wish.recv_wr);
    body.Set(VABI_F(ib_uverbs_create_qp, max_send_sge), wish.send_sge);
    body.Set(VABI_F(ib_uverbs_create_qp, max_recv_sge), wish.recv_sge);
    body.Set(VABI_F(ib_uverbs_create_qp, max_inline_data), wish.inline_data);
    body.Set(VABI_F(ib_uverbs_create_qp, sq_sig_all), wish.signal_all);
    body.Set(VABI_F(ib_uverbs_create_qp, qp_type), wish.type);
    return request;
  }
  Qp MakeQp(const Cq& send_cq, const Cq& recv_cq, const QpWish& wish) {
    Qp qp;
    const size_t core = world().Size(VABI_S(ib_uverbs_create_qp_resp));
    Bytes reply(core + 32);
    EXPECT_GT(Command(kCreateQp, QpRequest(send_cq.handle, recv_cq.handle, wish), &reply), 0);
    const Body body = In(reply);
    qp.handle = body.U32(VABI_F(ib_uverbs_create_qp_resp, qp_handle));
    qp.number = body.U32(VABI_F(ib_uverbs_create_qp_resp, qpn));
    qp.send_wr = body.U32(VABI_F(ib_uverbs_create_qp_resp, max_send_wr));
    qp.recv_wr = body.U32(VABI_F(ib_uverbs_create_qp_resp, max_recv_wr));
    qp.send_sge = body.U32(VABI_F(ib_uverbs_create_qp_resp, max_send_sge));
    qp.recv_sge = body.U32(VABI_F(ib_uverbs_create_qp_resp, max_recv_sge));
    qp.inline_data = body.U32(VABI_F(ib_uverbs_create_qp_resp, max_inline_data));
    // struct rxe_create_qp_resp: receive queue, send queue
    if (!wish.has_srq) MapAt(reply, core, &qp.receive);
    MapAt(reply, core + 16, &qp.send);
    return qp;
  }
  long Modify(const Qp& qp, uint32_t mask,
              std::initializer_list<std::pair<FieldId, uint64_t>> fields) {
    Bytes request = Zero(VABI_S(ib_uverbs_modify_qp));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_modify_qp, qp_handle), qp.handle);
    body.Set(VABI_F(ib_uverbs_modify_qp, attr_mask), mask);
    for (const auto& [field, value] : fields) body.Set(field, value);
    const Body dest = body.Sub(VABI_F(ib_uverbs_modify_qp, dest));
    dest.SetBytes(VABI_F(ib_uverbs_qp_dest, dgid), world().image().device[0].ports[0].gids[0].raw,
                  16);
    dest.Set(VABI_F(ib_uverbs_qp_dest, is_global), 1);
    dest.Set(VABI_F(ib_uverbs_qp_dest, port_num), 1);
    dest.Set(VABI_F(ib_uverbs_qp_dest, hop_limit), 1);
    return Command(kModifyQp, request, nullptr);
  }
#define MODIFY(field) VABI_F(ib_uverbs_modify_qp, field)
  long ToInit(const Qp& qp, uint8_t type = 2) {
    return Modify(qp, 0x1 | 0x10 | 0x20 | (type == 4 ? 0x40u : 0x8u),
                  {{MODIFY(qp_state), 1},
                   {MODIFY(port_num), 1},
                   {MODIFY(qp_access_flags), 0xf},
                   {MODIFY(qkey), 0x11}});
  }
  long ToRtr(const Qp& qp, uint32_t dest, uint8_t type = 2) {
    const uint32_t connected = 0x80 | 0x100 | 0x100000 | 0x1000, reliable = 0x20000 | 0x8000;
    return Modify(qp, 0x1 | (type != 4 ? connected : 0) | (type == 2 ? reliable : 0),
                  {{MODIFY(qp_state), 2},
                   {MODIFY(path_mtu), 3},
                   {MODIFY(dest_qp_num), dest},
                   {MODIFY(rq_psn), 7},
                   {MODIFY(max_dest_rd_atomic), 3},
                   {MODIFY(min_rnr_timer), 1}});
  }
  long ToRts(const Qp& qp, uint8_t type = 2) {
    return Modify(qp, 0x1 | 0x10000 | (type == 2 ? 0x2000 | 0x200 | 0x400 | 0x800u : 0),
                  {{MODIFY(qp_state), 3},
                   {MODIFY(sq_psn), 7},
                   {MODIFY(max_rd_atomic), 3},
                   {MODIFY(timeout), 1},
                   {MODIFY(retry_cnt), 1},
                   {MODIFY(rnr_retry), rnr_retry_}});
  }
  long ToState(const Qp& qp, uint32_t state) {
    return Modify(qp, 0x1, {{MODIFY(qp_state), state}});
  }
  void Connect(const Qp& qp, uint32_t dest, uint8_t type = 2) {
    ASSERT_GT(ToInit(qp, type), 0);
    ASSERT_GT(ToRtr(qp, dest, type), 0);
    ASSERT_GT(ToRts(qp, type), 0);
  }
  uint64_t Query(const Qp& qp, FieldId field) {
    Bytes request = Zero(VABI_S(ib_uverbs_query_qp));
    In(request).Set(VABI_F(ib_uverbs_query_qp, qp_handle), qp.handle);
    Bytes reply(world().Size(VABI_S(ib_uverbs_query_qp_resp)));
    EXPECT_GT(Command(kQueryQp, request, &reply), 0);
    return In(reply).Get(field);
  }
  uint64_t State(const Qp& qp) { return Query(qp, VABI_F(ib_uverbs_query_qp_resp, qp_state)); }

  struct Wish {  // of a send request
    uint32_t opcode = kSend;
    uint64_t wr_id = 1;
    uint32_t flags = kSignaled;
    std::vector<fabric::Sge> sges = {};
    Bytes inline_data = {};
    uint64_t remote = 0;
    uint32_t rkey = 0, imm = 0;
    uint64_t add = 0, swap = 0;
    uint32_t qpn = 0, qkey = 0, ah_num = 0;
  };
  // Puts a request into the send queue, by the kernel's header: struct rxe_send_wqe.
  void Post(Qp& qp, const Wish& wish) {
    ASSERT_FALSE(qp.send.Full());
    uint8_t* slot = qp.send.Slot(qp.send.producer());
    std::memset(slot, 0, 1u << qp.send.log2());
    const Body wqe(world(), slot, world().Size(VABI_S(rxe_send_wqe)));
    const Body wr = wqe.Sub(VABI_F(rxe_send_wqe, wr));
    wr.Set(VABI_F(rxe_send_wr, wr_id), wish.wr_id);
    wr.Set(VABI_F(rxe_send_wr, opcode), wish.opcode);
    wr.Set(VABI_F(rxe_send_wr, send_flags), wish.flags);
    wr.Set(VABI_F(rxe_send_wr, imm_data), wish.imm);
    if (wish.opcode == kCas || wish.opcode == kFaa) {
      wr.Set(VABI_F(rxe_send_wr, atomic_remote_addr), wish.remote);
      wr.Set(VABI_F(rxe_send_wr, atomic_rkey), wish.rkey);
      wr.Set(VABI_F(rxe_send_wr, atomic_compare_add), wish.add);
      wr.Set(VABI_F(rxe_send_wr, atomic_swap), wish.swap);
    } else if (wish.qpn != 0) {
      wr.Set(VABI_F(rxe_send_wr, ud_remote_qpn), wish.qpn);
      wr.Set(VABI_F(rxe_send_wr, ud_remote_qkey), wish.qkey);
      wr.Set(VABI_F(rxe_send_wr, ud_ah_num), wish.ah_num);
      if (wish.ah_num == 0) {
        const Body av = wqe.Has(VABI_F(rxe_send_wqe, av)) ? wqe.Sub(VABI_F(rxe_send_wqe, av))
                                                          : wr.Sub(VABI_F(rxe_send_wr, ud_av));
        av.Set(VABI_F(rxe_av, port_num), 1);
        av.Sub(VABI_F(rxe_av, grh))
            .SetBytes(VABI_F(rxe_global_route, dgid),
                      world().image().device[0].ports[0].gids[0].raw, 16);
      }
    } else {
      wr.Set(VABI_F(rxe_send_wr, rdma_remote_addr), wish.remote);
      wr.Set(VABI_F(rxe_send_wr, rdma_rkey), wish.rkey);
    }
    if (wish.opcode == kLocalInv || wish.opcode == kSendInv)
      wr.Set(VABI_F(rxe_send_wr, invalidate_rkey), wish.rkey);
    const Body dma = wqe.Sub(VABI_F(rxe_send_wqe, dma));
    uint8_t* tail = dma.base() + world().Size(VABI_S(rxe_dma_info));
    uint32_t length = static_cast<uint32_t>(wish.inline_data.size());
    if (!wish.inline_data.empty())
      std::memcpy(tail, wish.inline_data.data(), wish.inline_data.size());
    for (const fabric::Sge& sge : wish.sges) {
      std::memcpy(tail, &sge.address, 8);
      std::memcpy(tail + 8, &sge.length, 4);
      std::memcpy(tail + 12, &sge.lkey, 4);
      tail += 16;
      length += sge.length;
    }
    dma.Set(VABI_F(rxe_dma_info, length), length);
    dma.Set(VABI_F(rxe_dma_info, resid), length);
    dma.Set(VABI_F(rxe_dma_info, num_sge), wish.sges.size());
    qp.send.Produce();
  }
  long Ring(const Qp& qp) {
    Bytes request = Zero(VABI_S(ib_uverbs_post_send));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_post_send, qp_handle), qp.handle);
    body.Set(VABI_F(ib_uverbs_post_send, wqe_size), world().Size(VABI_S(ib_uverbs_send_wr)));
    Bytes reply(world().Size(VABI_S(ib_uverbs_post_send_resp)));
    return Command(kPostSend, request, &reply);
  }
  // POST_RECV of one element.
  long PostReceive(const Qp& qp, uint64_t wr_id, const fabric::Sge& sge, uint32_t* bad_wr) {
    Bytes request = Zero(VABI_S(ib_uverbs_post_recv)), wr = Zero(VABI_S(ib_uverbs_recv_wr)),
          entry = Zero(VABI_S(ib_uverbs_sge));
    In(request).Set(VABI_F(ib_uverbs_post_recv, qp_handle), qp.handle);
    In(request).Set(VABI_F(ib_uverbs_post_recv, wr_count), 1);
    In(request).Set(VABI_F(ib_uverbs_post_recv, sge_count), 1);
    In(request).Set(VABI_F(ib_uverbs_post_recv, wqe_size), wr.size());
    In(wr).Set(VABI_F(ib_uverbs_recv_wr, wr_id), wr_id);
    In(wr).Set(VABI_F(ib_uverbs_recv_wr, num_sge), 1);
    In(entry).Set(VABI_F(ib_uverbs_sge, addr), sge.address);
    In(entry).Set(VABI_F(ib_uverbs_sge, length), sge.length);
    In(entry).Set(VABI_F(ib_uverbs_sge, lkey), sge.lkey);
    wr.insert(wr.end(), entry.begin(), entry.end());
    Bytes reply(world().Size(VABI_S(ib_uverbs_post_recv_resp)));
    const long result = Command(kPostRecv, request, &reply, wr);
    *bad_wr = In(reply).U32(VABI_F(ib_uverbs_post_recv_resp, bad_wr));
    return result;
  }
  void Send(Qp& qp, const Wish& wish) {
    Post(qp, wish);
    ASSERT_GT(Ring(qp), 0);
  }
  void Receive(MappedQueue& queue, uint64_t wr_id, const std::vector<fabric::Sge>& sges) {
    ASSERT_FALSE(queue.Full());
    uint8_t* slot = queue.Slot(queue.producer());
    std::memset(slot, 0, 1u << queue.log2());
    const Body wqe(world(), slot, world().Size(VABI_S(rxe_recv_wqe)));
    wqe.Set(VABI_F(rxe_recv_wqe, wr_id), wr_id);
    const Body dma = wqe.Sub(VABI_F(rxe_recv_wqe, dma));
    uint8_t* tail = dma.base() + world().Size(VABI_S(rxe_dma_info));
    uint32_t length = 0;
    for (const fabric::Sge& sge : sges) {
      std::memcpy(tail, &sge.address, 8);
      std::memcpy(tail + 8, &sge.length, 4);
      std::memcpy(tail + 12, &sge.lkey, 4);
      tail += 16;
      length += sge.length;
    }
    dma.Set(VABI_F(rxe_dma_info, length), length);
    dma.Set(VABI_F(rxe_dma_info, resid), length);
    dma.Set(VABI_F(rxe_dma_info, num_sge), sges.size());
    queue.Produce();
  }
  fabric::Sge At(uint32_t offset, uint32_t length) const {
    return {Address(offset), length, lkey_};
  }

  // The next event of the async file: (element, type); none: (0, -1).
  std::pair<uint64_t, int> AsyncEvent() { return ReadEvent(async_fd_, 16); }
  std::pair<uint64_t, int> ReadEvent(int fd, size_t size) {
    pollfd wait = {fd, POLLIN, 0};
    if (poll(&wait, 1, 0) != 1) return {0, -1};
    uint8_t event[16] = {};
    EXPECT_EQ(FdTable::Get(fd)->Read(event, size, true), static_cast<ssize_t>(size));
    uint64_t element;
    int32_t type;
    std::memcpy(&element, event, 8);
    std::memcpy(&type, event + 8, 4);
    return {element, size == 16 ? type : 0};
  }

  static constexpr uint32_t kSize = 65536;
  TestWorld world_;
  std::shared_ptr<UverbsFile> file_;
  OpenedFds fds_;
  std::vector<MappedQueue> mapped_;
  int async_fd_ = -1;
  Bytes memory_;
  uint8_t* bytes = nullptr;
  uint32_t pd_ = 0, lkey_ = 0, rkey_ = 0;
  uint64_t rnr_retry_ = 1;
};

}  // namespace vabi::rxe

#endif  // VABI_SHIMS_PROVIDERS_RXE_TEST_RXE_H_
