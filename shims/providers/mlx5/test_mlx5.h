// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_TEST_MLX5_H_
#define VABI_SHIMS_PROVIDERS_MLX5_TEST_MLX5_H_

#include <sys/mman.h>

#include "shims/fabric/fabric.h"
#include "shims/fabric/nic.h"
#include "shims/uverbs/test_fd_table.h"
#include "shims/uverbs/test_uverbs.h"

// One ConnectX with an open context, driven as its library drives it: commands whose private parts
// follow the kernel's header, queues in the program's own memory. What stands in queues is written
// and read here by offsets of rdma-core's mlx5dv.h, not by the driver's own constants.

namespace vabi::mlx5 {

inline void Put16(uint8_t* at, uint32_t value) {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}
inline void Put32(uint8_t* at, uint32_t value) {
  Put16(at, value >> 16);
  Put16(at + 2, value);
}
inline void Put64(uint8_t* at, uint64_t value) {
  Put32(at, static_cast<uint32_t>(value >> 32));
  Put32(at + 4, static_cast<uint32_t>(value));
}
inline uint32_t Get16(const uint8_t* at) { return static_cast<uint32_t>(at[0] << 8 | at[1]); }
inline uint32_t Get32(const uint8_t* at) { return Get16(at) << 16 | Get16(at + 2); }
inline uint64_t Get64(const uint8_t* at) { return uint64_t{Get32(at)} << 32 | Get32(at + 4); }
inline uint64_t Address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
// struct mlx5_wqe_data_seg
inline void PutPointer(uint8_t* segment, const void* at, uint32_t length, uint32_t key) {
  Put32(segment, length);
  Put32(segment + 4, key);
  Put64(segment + 8, Address(at));
}

// Zeroed memory at a page's start.
class Pages {
 public:
  explicit Pages(size_t size) : size_(size) {
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    base_ = static_cast<uint8_t*>(at);
  }
  ~Pages() { munmap(base_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  uint8_t* base() const { return base_; }
  uint8_t* At(size_t offset) const { return base_ + offset; }
  size_t size() const { return size_; }

 private:
  uint8_t* base_;
  size_t size_;
};

class Mlx5Test : public testing::Test {
 protected:
  // write() numbers, enum ib_uverbs_write_cmds
  enum : uint32_t {
    kGetContext = 0,
    kAllocPd = 3,
    kRegMr = 9,
    kAllocMw = 14,
    kCreateChannel = 17,
    kCreateCq = 18,
    kResizeCq = 19,
    kDestroyCq = 20,
    kCreateQp = 24,
    kQueryQp = 25,
    kModifyQp = 26,
    kDestroyQp = 27,
    kCreateSrq = 32,
    kModifySrq = 33,
  };
  static constexpr uint32_t kDevx = 1;                    // MLX5_IB_ALLOC_UCTX_DEVX
  static constexpr uint32_t kLib4k = 1, kLibDynamic = 2;  // MLX5_LIB_CAP_*
  static constexpr uint32_t kUarPageIndex = 1 << 10;      // MLX5_QP_FLAG_UAR_PAGE_INDEX

  explicit Mlx5Test(const char* kernel = "debian-7.3.4")
      : image_(std::make_unique<WorldImage>(Pristine(kernel))),
        world_(image_.get()),
        trace_path_(testing::TempDir() + "/mlx5_test." + std::to_string(getpid())) {
    fabric::UseThread(false);
    fabric::SetClock(Later);
    fabric::ForgetAll();
    Reinstall();
  }
  ~Mlx5Test() override {
    fabric::SetClock(nullptr);
    file_.reset();
    fds_.Close();
    trace::Open("");
    unlink(trace_path_.c_str());
  }
  // A new file, without a context.
  void Reinstall() {
    file_.reset();
    fds_.Close();
    ASSERT_TRUE(InstallWorld(world_));
    unlink(trace_path_.c_str());
    trace::Open(trace_path_.c_str());
    file_ = std::make_shared<UverbsFile>(*FindDevice(0));
  }
  // A clock on which all waiting is over when it is looked at again.
  static uint64_t Later() {
    static uint64_t now = 0;
    return now += 1'000'000'000;
  }

  const World& world() const { return world_; }
  WorldImage& image() { return *image_; }
  Struct S(StructId id, size_t tail = 0) const { return Struct(world_, id, tail); }
  Body In(Bytes& bytes) const { return Body(world_, bytes.data(), bytes.size()); }
  int64_t C(ConstId id) const { return world_.Flag(id); }

  // write(); the driver's request and reply follow the core's.
  long Write(uint32_t command, Struct request, Bytes* reply, const Bytes& driver = {}) {
    return SendWrite(*file_, LegacyCommand(command, request.bytes(), reply, driver));
  }
  // Extended write(); bodies are filled up to 8 bytes.
  long WriteEx(uint32_t command, Bytes request, Bytes* reply, const Bytes& driver = {},
               uint16_t driver_out = 0) {
    return SendWrite(*file_, ExtendedCommand(command, request, reply, driver, driver_out));
  }
  static int Errno(long result) { return result < 0 ? static_cast<int>(-result) : 0; }
  std::string LastRule() { return LastRuleIn(trace_path_); }

  // mlx5_ib_alloc_ucontext_req_v2: the numbers that the library sends.
  Struct ContextRequest(uint64_t lib_caps = 0, uint32_t flags = 0) const {
    Struct request = S(VABI_S(mlx5_ib_alloc_ucontext_req_v2));
    const bool old = !world_.Has(VABI_F(mlx5_ib_alloc_ucontext_req_v2, total_num_bfregs));
    if (old) {
      request.Set(VABI_F(mlx5_ib_alloc_ucontext_req_v2, total_num_uuars), 16);
      request.Set(VABI_F(mlx5_ib_alloc_ucontext_req_v2, num_low_latency_uuars), 4);
    } else {
      request.Set(VABI_F(mlx5_ib_alloc_ucontext_req_v2, total_num_bfregs), 16);
      request.Set(VABI_F(mlx5_ib_alloc_ucontext_req_v2, num_low_latency_bfregs), 4);
    }
    request.Set(VABI_F(mlx5_ib_alloc_ucontext_req_v2, flags), flags);
    request.Set(VABI_F(mlx5_ib_alloc_ucontext_req_v2, max_cqe_version), 1);
    request.Set(VABI_F(mlx5_ib_alloc_ucontext_req_v2, lib_caps), lib_caps);
    return request;
  }
  // GET_CONTEXT with so many bytes of the driver's: `reply` becomes the driver's reply.
  long GetContext(const Bytes& request, Bytes* reply) {
    const size_t core = world_.Size(VABI_S(ib_uverbs_get_context_resp));
    Bytes all(core + reply->size(), 0xee);
    const long result = Write(kGetContext, S(VABI_S(ib_uverbs_get_context)), &all, request);
    if (result > 0)
      fds_.push_back(static_cast<int>(In(all).U32(VABI_F(ib_uverbs_get_context_resp, async_fd))));
    std::copy(all.begin() + static_cast<long>(core), all.end(), reply->begin());
    return result;
  }
  void OpenContext(uint64_t lib_caps = 0, uint32_t flags = 0) {
    Bytes reply(72);
    ASSERT_GT(GetContext(ContextRequest(lib_caps, flags).bytes(), &reply), 0) << LastRule();
    pd_ = Pd();
    ASSERT_GT(Mr(memory_.base(), memory_.size(), &lkey_), 0);
  }
  uint32_t Pd() {
    Bytes reply(8);
    EXPECT_GT(Write(kAllocPd, S(VABI_S(ib_uverbs_alloc_pd)), &reply), 0);
    return In(reply).U32(VABI_F(ib_uverbs_alloc_pd_resp, pd_handle));
  }
  struct MrMade {
    uint32_t handle = 0, lkey = 0;
  };
  long RegMr(uint64_t start, uint64_t length, uint64_t iova, uint32_t access, MrMade* mr) {
    Bytes reply(world_.Size(VABI_S(ib_uverbs_reg_mr_resp)));
    const long result = Write(kRegMr,
                              S(VABI_S(ib_uverbs_reg_mr))
                                  .With(VABI_F(ib_uverbs_reg_mr, start), start)
                                  .With(VABI_F(ib_uverbs_reg_mr, hca_va), iova)
                                  .With(VABI_F(ib_uverbs_reg_mr, length), length)
                                  .With(VABI_F(ib_uverbs_reg_mr, pd_handle), pd_)
                                  .With(VABI_F(ib_uverbs_reg_mr, access_flags), access),
                              &reply);
    *mr = {In(reply).U32(VABI_F(ib_uverbs_reg_mr_resp, mr_handle)),
           In(reply).U32(VABI_F(ib_uverbs_reg_mr_resp, lkey))};
    return result;
  }
  long Mr(const void* at, size_t size, uint32_t* key, uint32_t access = 0x1f) {
    MrMade mr;
    const long result = RegMr(Address(at), size, Address(at), access, &mr);
    *key = mr.lkey;
    return result;
  }
  int Channel() {
    Bytes reply(4);
    EXPECT_GT(Write(kCreateChannel, S(VABI_S(ib_uverbs_create_comp_channel)), &reply), 0);
    fds_.push_back(static_cast<int>(In(reply).U32(VABI_F(ib_uverbs_create_comp_channel_resp, fd))));
    return fds_.back();
  }
  // True when an event waits; it is read.
  static bool ReadEvent(int fd) {
    uint8_t event[16];
    return FdTable::Get(fd)->Read(event, sizeof(event), true) > 0;
  }

  struct Cq {
    explicit Cq(uint32_t entries, uint32_t size = 64)
        : count(entries), cqe_size(size), ring(entries * size) {
      // Libraries begin with elements that are invalid and owned by the NIC.
      for (uint32_t i = 0; i < entries; ++i) ring.base()[(i + 1) * size - 1] = 0xf1;
    }
    uint32_t handle = 0, number = 0, count, cqe_size, consumed = 0, sequence = 0;
    Pages ring, record{4096};

    const uint8_t* Slot(uint32_t index) const {
      return ring.At(size_t{index & (count - 1)} * cqe_size + cqe_size - 64);
    }
    // The next element, or null while it is the NIC's. Consumes it.
    const uint8_t* Poll() {
      const uint8_t* cqe = Slot(consumed);
      const bool odd = (consumed & count) != 0;
      if (cqe[63] >> 4 == 0xf || (cqe[63] & 1) != (odd ? 1 : 0)) return nullptr;
      ++consumed;
      Put32(record.base(), consumed & 0xffffff);
      return cqe;
    }
    void Arm(bool solicited_only) {
      Put32(record.At(4),
            (sequence & 3) << 28 | (solicited_only ? 1u << 24 : 0) | (consumed & 0xffffff));
    }
  };
  Struct CqRequest(const Cq& cq, int channel = -1) const {
    return S(VABI_S(ib_uverbs_create_cq))
        .With(VABI_F(ib_uverbs_create_cq, cqe), cq.count - 1)
        .With(VABI_F(ib_uverbs_create_cq, user_handle), 0xc0)
        .With(VABI_F(ib_uverbs_create_cq, comp_channel), static_cast<uint32_t>(channel));
  }
  Struct CqPrivate(const Cq& cq) const {
    return S(VABI_S(mlx5_ib_create_cq))
        .With(VABI_F(mlx5_ib_create_cq, buf_addr), Address(cq.ring.base()))
        .With(VABI_F(mlx5_ib_create_cq, db_addr), Address(cq.record.base()))
        .With(VABI_F(mlx5_ib_create_cq, cqe_size), cq.cqe_size);
  }
  long MakeCq(Cq* cq, const Bytes& driver, int channel = -1) {
    const size_t core = world_.Size(VABI_S(ib_uverbs_create_cq_resp));
    Bytes reply(core + 8, 0xee);
    const long result = Write(kCreateCq, CqRequest(*cq, channel), &reply, driver);
    cq->handle = In(reply).U32(VABI_F(ib_uverbs_create_cq_resp, cq_handle));
    std::memcpy(&cq->number, reply.data() + core, 4);
    return result;
  }
  void MakeCq(Cq* cq, int channel = -1) {
    ASSERT_GT(MakeCq(cq, CqPrivate(*cq).bytes(), channel), 0) << LastRule();
  }

  struct Srq {
    explicit Srq(uint32_t entries)
        : count(entries), ring(entries * 32 < 4096 ? 4096 : entries * 32) {
      for (uint32_t i = 0; i < entries; ++i)
        Put16(ring.At(size_t{i} * 32 + 2), (i + 1) & (entries - 1));
    }
    uint32_t handle = 0, number = 0, count, posted = 0;
    Pages ring, record{4096};
    // Elements of 32 bytes: the chain, and one pointer.
    void Post(uint32_t slot, const void* at, uint32_t length, uint32_t key) {
      uint8_t* element = ring.At(size_t{slot} * 32);
      PutPointer(element + 16, at, length, key);
      Put32(record.base(), ++posted);
    }
  };
  Struct SrqPrivate(const Srq& srq) const {
    return S(VABI_S(mlx5_ib_create_srq))
        .With(VABI_F(mlx5_ib_create_srq, buf_addr), Address(srq.ring.base()))
        .With(VABI_F(mlx5_ib_create_srq, db_addr), Address(srq.record.base()));
  }
  long MakeSrq(Srq* srq, const Bytes& driver, uint32_t max_sge = 1) {
    const size_t core = world_.Size(VABI_S(ib_uverbs_create_srq_resp));
    Bytes reply(core + 8);
    const long result = Write(kCreateSrq,
                              S(VABI_S(ib_uverbs_create_srq))
                                  .With(VABI_F(ib_uverbs_create_srq, pd_handle), pd_)
                                  .With(VABI_F(ib_uverbs_create_srq, max_wr), srq->count - 1)
                                  .With(VABI_F(ib_uverbs_create_srq, max_sge), max_sge),
                              &reply, driver);
    srq->handle = In(reply).U32(VABI_F(ib_uverbs_create_srq_resp, srq_handle));
    std::memcpy(&srq->number, reply.data() + core, 4);
    return result;
  }

  // A queue pair: receive ring (stride 32), then send ring.
  struct Qp {
    explicit Qp(uint32_t blocks = 16, uint32_t receives = 16)
        : send_blocks(blocks), receive_count(receives), ring(receives * 32 + blocks * 64 + 4096) {}
    uint32_t handle = 0, number = 0, index = 0x77, send_blocks, receive_count;
    uint16_t posted_blocks = 0, posted_receives = 0;
    uint8_t type = 2;
    Pages ring, record{4096};
    uint8_t* Block(uint32_t block) const {
      return ring.At(size_t{receive_count} * 32 + size_t{block & (send_blocks - 1)} * 64);
    }
    // Segments of 16 bytes, of which the first is the control segment; wraps as the ring does.
    void Post(Bytes wqe, uint8_t opcode, uint8_t flags, uint32_t immediate = 0) {
      wqe.resize((wqe.size() + 15) / 16 * 16);
      Put32(wqe.data(), uint32_t{posted_blocks} << 8 | opcode);
      Put32(wqe.data() + 4, number << 8 | static_cast<uint32_t>(wqe.size() / 16));
      wqe[11] = flags;
      std::memcpy(wqe.data() + 12, &immediate, 4);
      for (size_t at = 0; at < wqe.size(); at += 64) {
        std::memcpy(Block(posted_blocks++), wqe.data() + at, std::min<size_t>(64, wqe.size() - at));
      }
      Ring();
    }
    void Ring() { Put32(record.At(4), posted_blocks); }
    void Receive(const void* at, uint32_t length, uint32_t key) {
      uint8_t* element = ring.At(size_t{posted_receives & (receive_count - 1)} * 32);
      PutPointer(element, at, length, key);
      Put32(element + 16, 0);
      Put32(element + 20, 0x100);
      Put32(record.base(), ++posted_receives);
    }
  };
  Struct QpRequest(const Cq& send, const Cq& receive, const Qp& qp,
                   const Srq* srq = nullptr) const {
    return S(VABI_S(ib_uverbs_create_qp))
        .With(VABI_F(ib_uverbs_create_qp, pd_handle), pd_)
        .With(VABI_F(ib_uverbs_create_qp, send_cq_handle), send.handle)
        .With(VABI_F(ib_uverbs_create_qp, recv_cq_handle), receive.handle)
        .With(VABI_F(ib_uverbs_create_qp, srq_handle), srq == nullptr ? 0 : srq->handle)
        .With(VABI_F(ib_uverbs_create_qp, is_srq), srq != nullptr)
        .With(VABI_F(ib_uverbs_create_qp, max_send_wr), qp.send_blocks)
        .With(VABI_F(ib_uverbs_create_qp, max_recv_wr), qp.receive_count)
        .With(VABI_F(ib_uverbs_create_qp, max_send_sge), 1)
        .With(VABI_F(ib_uverbs_create_qp, max_recv_sge), 2)
        .With(VABI_F(ib_uverbs_create_qp, qp_type), qp.type);
  }
  Struct QpPrivate(const Qp& qp) const {
    return S(VABI_S(mlx5_ib_create_qp))
        .With(VABI_F(mlx5_ib_create_qp, buf_addr), Address(qp.ring.base()))
        .With(VABI_F(mlx5_ib_create_qp, db_addr), Address(qp.record.base()))
        .With(VABI_F(mlx5_ib_create_qp, sq_wqe_count), qp.send_blocks)
        .With(VABI_F(mlx5_ib_create_qp, rq_wqe_count), qp.receive_count)
        .With(VABI_F(mlx5_ib_create_qp, rq_wqe_shift), qp.receive_count == 0 ? 0 : 5)
        .With(VABI_F(mlx5_ib_create_qp, uidx), qp.index);
  }
  long MakeQp(const Cq& send, const Cq& receive, Qp* qp, const Bytes& driver,
              const Srq* srq = nullptr, Bytes* driver_reply = nullptr) {
    const size_t core = world_.Size(VABI_S(ib_uverbs_create_qp_resp));
    Bytes reply(core + 40);
    const long result = Write(kCreateQp, QpRequest(send, receive, *qp, srq), &reply, driver);
    qp->handle = In(reply).U32(VABI_F(ib_uverbs_create_qp_resp, qp_handle));
    qp->number = In(reply).U32(VABI_F(ib_uverbs_create_qp_resp, qpn));
    if (driver_reply != nullptr)
      driver_reply->assign(reply.begin() + static_cast<long>(core), reply.end());
    return result;
  }
  void MakeQp(const Cq& send, const Cq& receive, Qp* qp, const Srq* srq = nullptr) {
    ASSERT_GT(MakeQp(send, receive, qp, QpPrivate(*qp).bytes(), srq), 0) << LastRule();
  }

#define MODIFY(field) VABI_F(ib_uverbs_modify_qp, field)
  Struct ModifyRequest(const Qp& qp, uint32_t mask,
                       std::initializer_list<std::pair<FieldId, uint64_t>> fields) {
    Struct request = S(VABI_S(ib_uverbs_modify_qp));
    request.Set(MODIFY(qp_handle), qp.handle);
    request.Set(MODIFY(attr_mask), mask);
    for (const auto& [field, value] : fields) request.Set(field, value);
    const Body dest = request.Sub(MODIFY(dest));
    dest.SetBytes(VABI_F(ib_uverbs_qp_dest, dgid), image().device[0].ports[0].gids[0].raw, 16);
    dest.Set(VABI_F(ib_uverbs_qp_dest, dlid), image().device[0].ports[0].lid);
    dest.Set(VABI_F(ib_uverbs_qp_dest, is_global), 1);
    dest.Set(VABI_F(ib_uverbs_qp_dest, port_num), 1);
    return request;
  }
  long Modify(const Qp& qp, uint32_t mask,
              std::initializer_list<std::pair<FieldId, uint64_t>> fields) {
    return Write(kModifyQp, ModifyRequest(qp, mask, fields), nullptr);
  }
  long ToInit(const Qp& qp) {
    return Modify(qp, 0x1 | 0x10 | 0x20 | (qp.type == 4 ? 0x40u : 0x8u),
                  {{MODIFY(qp_state), 1},
                   {MODIFY(port_num), 1},
                   {MODIFY(qp_access_flags), 0xf},
                   {MODIFY(qkey), 0x11}});
  }
  long ToRtr(const Qp& qp, uint32_t dest) {
    const uint32_t connected = 0x80 | 0x100 | 0x100000 | 0x1000, reliable = 0x20000 | 0x8000;
    return Modify(qp, 0x1 | (qp.type != 4 ? connected : 0) | (qp.type == 2 ? reliable : 0),
                  {{MODIFY(qp_state), 2},
                   {MODIFY(path_mtu), 3},
                   {MODIFY(dest_qp_num), dest},
                   {MODIFY(rq_psn), 7},
                   {MODIFY(max_dest_rd_atomic), 3},
                   {MODIFY(min_rnr_timer), 1}});
  }
  long ToRts(const Qp& qp) {
    return Modify(qp, 0x1 | 0x10000 | (qp.type == 2 ? 0x2000 | 0x200 | 0x400 | 0x800u : 0),
                  {{MODIFY(qp_state), 3},
                   {MODIFY(sq_psn), 7},
                   {MODIFY(max_rd_atomic), 3},
                   {MODIFY(timeout), 1},
                   {MODIFY(retry_cnt), 1},
                   {MODIFY(rnr_retry), 1}});
  }
  void Connect(const Qp& qp, uint32_t dest) {
    ASSERT_GT(ToInit(qp), 0) << LastRule();
    ASSERT_GT(ToRtr(qp, dest), 0) << LastRule();
    ASSERT_GT(ToRts(qp), 0) << LastRule();
  }
  // Where messages come from and go to, in memory_: what stands here tells its place, and there
  // stands nothing.
  void FillMemory() {
    for (uint32_t i = 0; i < kHalf; ++i) *From(i) = static_cast<uint8_t>(i * 7 + 1);
  }
  uint8_t* From(size_t offset = 0) const { return memory_.At(offset); }
  uint8_t* To(size_t offset = 0) const { return memory_.At(kHalf + offset); }
  // The next completion, which has that opcode.
  static const uint8_t* Next(Cq& cq, uint8_t opcode) {
    static constexpr uint8_t kNone[64] = {};
    const uint8_t* cqe = cq.Poll();
    EXPECT_NE(nullptr, cqe);
    if (cqe == nullptr) return kNone;
    EXPECT_EQ(opcode, cqe[63] >> 4);
    return cqe;
  }
  // The NIC works until nothing is left to do.
  static void Settle() {
    // A queue that waits for its peer does no work, but counts.
    for (int idle = 0, i = 0; idle < 10 && i < 1000; ++i) idle = fabric::Step() ? 0 : idle + 1;
  }

  static const WorldImage& Pristine(const std::string& kernel) {
    static auto* worlds = new std::map<std::string, std::unique_ptr<TestWorld>>;
    std::unique_ptr<TestWorld>& world = (*worlds)[kernel];
    if (!world)
      world = std::make_unique<TestWorld>(kernel, std::initializer_list<const char*>{"mlx5"});
    return world->image();
  }

  std::unique_ptr<WorldImage> image_;
  World world_;
  std::string trace_path_;
  std::shared_ptr<UverbsFile> file_;
  OpenedFds fds_;
  uint32_t pd_ = 0, lkey_ = 0;  // mlx5 has one key for both
  static constexpr uint32_t kHalf = 32768;
  Pages memory_{2 * kHalf};
};

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_TEST_MLX5_H_
