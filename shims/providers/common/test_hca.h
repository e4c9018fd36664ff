// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_COMMON_TEST_HCA_H_
#define VABI_SHIMS_PROVIDERS_COMMON_TEST_HCA_H_

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "harness/world/test_world.h"
#include "shims/trace/trace.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/test_calls.h"
#include "shims/uverbs/test_fd_table.h"
#include "shims/uverbs/test_memlock.h"
#include "shims/uverbs/uverbs_file.h"

// One device of any driver and one open file, as user space sees them (one at a time: a process has
// one world): write() commands with the
// driver's bytes behind the core's. Every call answers what write() does: the bytes taken, or
// -errno. What the core told is returned by pointer; what the driver told stands in `told`.

namespace vabi {

class TestHca {
 public:
  // Numbers of enum ib_uverbs_write_cmds.
  enum : uint32_t {
    kGetContext = 0,
    kAllocPd = 3,
    kDeallocPd = 4,
    kCreateAh = 5,
    kDestroyAh = 8,
    kRegMr = 9,
    kReregMr = 11,
    kDeregMr = 13,
    kAllocMw = 14,
    kDeallocMw = 16,
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
    kCreateSrq = 32,
    kModifySrq = 33,
    kQuerySrq = 34,
    kDestroySrq = 35,
  };
  // enum ib_qp_type
  enum : uint8_t { kRc = 2, kUc = 3, kUd = 4, kXrcInitiator = 9, kDriver = 0xff };

  // `provider`: a file of matrix/providers. A world is compiled once for each pair.
  TestHca(const std::string& kernel, const std::string& provider)
      : image_(std::make_unique<WorldImage>(Pristine(kernel, provider))),
        world_(image_.get()),
        trace_path_(testing::TempDir() + "/test_hca." + std::to_string(getpid())) {
    Reinstall();
  }
  virtual ~TestHca() {
    file_.reset();
    fds_.Close();
    trace::Open("");
    unlink(trace_path_.c_str());
    if (buffer_ != nullptr) munmap(buffer_, kReserved);
  }
  TestHca(const TestHca&) = delete;
  TestHca& operator=(const TestHca&) = delete;

  // After a change of the world.
  void Reinstall() {
    file_.reset();
    fds_.Close();
    ASSERT_TRUE(InstallWorld(world_));
    unlink(trace_path_.c_str());
    trace::Open(trace_path_.c_str());
    file_ = std::make_shared<UverbsFile>(*FindDevice(0));
  }
  // Another open file of the same device, used from now on.
  std::shared_ptr<UverbsFile> SwapFile(std::shared_ptr<UverbsFile> other = nullptr) {
    if (other == nullptr) other = std::make_shared<UverbsFile>(*FindDevice(0));
    return std::exchange(file_, std::move(other));
  }

  const World& world() const { return world_; }
  WorldImage& image() { return *image_; }
  UverbsFile& file() { return *file_; }
  Device& device() { return *FindDevice(0); }
  DeviceAttributes Attributes() {
    DeviceAttributes all;
    device().driver().Describe(device(), &all);
    return all;
  }
  std::string LastRule() const { return LastRuleIn(trace_path_); }
  // "" or what was not modelled, of the trace's last line.
  std::string LastUnmodelled() const {
    std::string what;
    std::ifstream in(trace_path_);
    for (std::string line; std::getline(in, line);)
      what = nlohmann::json::parse(line).value("unmodelled", "");
    return what;
  }

  Bytes Zero(StructId id) const { return Bytes(world_.Size(id)); }
  Body In(Bytes& bytes) const { return Body(world_, bytes.data(), bytes.size()); }

  // A legacy command: `room` bytes for the driver's reply, of which `told` are the bytes.
  long Command(uint32_t command, Bytes request, StructId reply, const Bytes& driver = {},
               size_t room = 0) {
    const size_t core = reply == StructId::kCount ? 0 : world_.Size(reply);
    core_reply_ = Bytes(core + room);
    std::fill(core_reply_.begin() + static_cast<std::ptrdiff_t>(core), core_reply_.end(),
              room_filled_with);
    const bool answers = reply != StructId::kCount;
    const long result = SendWrite(*file_, LegacyCommand(command, std::move(request),
                                                        answers ? &core_reply_ : nullptr, driver));
    told.assign(core_reply_.begin() + static_cast<std::ptrdiff_t>(core), core_reply_.end());
    return result;
  }
  // The same for one that answers nothing.
  long Command(uint32_t command, Bytes request, const Bytes& driver = {}) {
    return Command(command, std::move(request), StructId::kCount, driver);
  }
  // An extended command; request, reply and room are filled up to whole words of 8 bytes.
  long CommandEx(uint32_t command, Bytes request, StructId reply, const Bytes& driver = {},
                 size_t room = 0) {
    const size_t core = (world_.Size(reply) + 7) & ~size_t{7};
    core_reply_ = Bytes(core + room);
    std::fill(core_reply_.begin() + static_cast<std::ptrdiff_t>(core), core_reply_.end(),
              room_filled_with);
    const long result =
        SendWrite(*file_, ExtendedCommand(command, std::move(request), &core_reply_, driver, room));
    told.assign(core_reply_.begin() + static_cast<std::ptrdiff_t>(core), core_reply_.end());
    return result;
  }
  // A legacy command with `room` for the driver's reply, which goes to 64 bytes: how many of these
  // were written.
  size_t Written(uint32_t command, Bytes request, StructId reply, size_t room,
                 const Bytes& driver = {}) {
    constexpr uint8_t kUntouched = 0xa5;
    constexpr size_t kBehind = 64;
    const size_t core = world_.Size(reply);
    core_reply_ = Bytes(core + kBehind, kUntouched);
    Bytes bytes = LegacyCommand(command, std::move(request), &core_reply_, driver);
    const auto words = static_cast<uint16_t>((core + room) / 4);
    std::memcpy(bytes.data() + 6, &words, sizeof(words));
    EXPECT_GT(SendWrite(*file_, bytes), 0) << LastRule() << LastUnmodelled();
    if (command == kGetContext)
      fds_.push_back(static_cast<int>(U32(VABI_F(ib_uverbs_get_context_resp, async_fd))));
    size_t written = kBehind;
    while (written != 0 && core_reply_[core + written - 1] == kUntouched) --written;
    return written;
  }
  // A field of the core's reply to the last command.
  uint32_t U32(FieldId field) { return In(core_reply_).U32(field); }
  uint64_t Get(FieldId field) { return In(core_reply_).Get(field); }
  Body CoreReply() { return In(core_reply_); }
  // A field of the driver's reply to the last command; 0 beyond the room that it had.
  uint64_t Told(FieldId field) { return In(told).Get(field); }

  // DEVICE.INVOKE_WRITE of a command whose private input (or output) stands where nothing is. Its
  // other private part is `driver`, or so much room.
  enum class Lost { kInput, kOutput };
  long Nowhere(Lost lost, uint32_t command, const Bytes& core, StructId reply,
               const Bytes& driver = {}, size_t size = 64) {
    const auto number = [&](ConstId id) { return static_cast<uint16_t>(world_.Flag(id)); };
    Request call(number(VABI_C(UVERBS_OBJECT_DEVICE)), number(VABI_C(UVERBS_METHOD_INVOKE_WRITE)),
                 world_.image().device[0].driver_id);
    call.AddConst(number(VABI_C(UVERBS_ATTR_WRITE_CMD)), command);
    call.AddIn(number(VABI_C(UVERBS_ATTR_CORE_IN)), core);
    core_reply_ = Bytes(world_.Size(reply));
    call.AddOut(number(VABI_C(UVERBS_ATTR_CORE_OUT)), core_reply_);
    told = Bytes(size);
    constexpr uint64_t kNothing = 64;
    if (lost == Lost::kInput) {
      call.Add(number(VABI_C(UVERBS_ATTR_UHW_IN)), size, kNothing);
      call.AddOut(number(VABI_C(UVERBS_ATTR_UHW_OUT)), told);
    } else {
      if (!driver.empty()) call.AddIn(number(VABI_C(UVERBS_ATTR_UHW_IN)), driver);
      call.Add(number(VABI_C(UVERBS_ATTR_UHW_OUT)), size, kNothing);
    }
    return SendIoctl(*file_, call);
  }

  long Open(const Bytes& driver = {}, size_t room = 0) {
    const long result = Command(kGetContext, Zero(VABI_S(ib_uverbs_get_context)),
                                VABI_S(ib_uverbs_get_context_resp), driver, room);
    if (result > 0)
      fds_.push_back(static_cast<int>(U32(VABI_F(ib_uverbs_get_context_resp, async_fd))));
    return result;
  }
  // GET_CONTEXT by ioctl, with `length` bytes of private request (more than 8: fewer stand in the
  // attribute) at a place that cannot be read.
  long OpenWithLostRequest(uint64_t length, size_t room) {
    const auto id = [this](ConstId constant) { return world().Flag(constant); };
    Request call(static_cast<uint16_t>(id(VABI_C(UVERBS_OBJECT_DEVICE))),
                 static_cast<uint16_t>(id(VABI_C(UVERBS_METHOD_GET_CONTEXT))),
                 image().device[0].driver_id);
    Bytes reply(room);
    call.Add(id(VABI_C(UVERBS_ATTR_UHW_IN)), length, 4096);
    call.AddOut(id(VABI_C(UVERBS_ATTR_UHW_OUT)), reply);
    return SendIoctl(*file_, call);
  }
  // QUERY_DEVICE, extended.
  long QueryDevice(const Bytes& driver = {}, size_t room = 0) {
    return CommandEx(1, Zero(VABI_S(ib_uverbs_ex_query_device)),
                     VABI_S(ib_uverbs_ex_query_device_resp), driver, room);
  }
  long AllocPd(uint32_t* pd, const Bytes& driver = {}, size_t room = 0) {
    const long result = Command(kAllocPd, Zero(VABI_S(ib_uverbs_alloc_pd)),
                                VABI_S(ib_uverbs_alloc_pd_resp), driver, room);
    if (result > 0) *pd = U32(VABI_F(ib_uverbs_alloc_pd_resp, pd_handle));
    return result;
  }
  struct MrWish {
    uint64_t start = 0, length = 4096;  // start 0: Buffer()
    uint32_t access = 1;                // IB_ACCESS_LOCAL_WRITE
    uint64_t iova = 0;                  // 0: as start
  };
  struct MrMade {
    uint32_t handle = 0, lkey = 0, rkey = 0;
  };
  Bytes MrRequest(uint32_t pd, const MrWish& wish) {
    Bytes request = Zero(VABI_S(ib_uverbs_reg_mr));
    const Body body = In(request);
    const uint64_t start = wish.start != 0 ? wish.start : Buffer();
    body.Set(VABI_F(ib_uverbs_reg_mr, start), start);
    body.Set(VABI_F(ib_uverbs_reg_mr, hca_va), wish.iova != 0 ? wish.iova : start);
    body.Set(VABI_F(ib_uverbs_reg_mr, length), wish.length);
    body.Set(VABI_F(ib_uverbs_reg_mr, pd_handle), pd);
    body.Set(VABI_F(ib_uverbs_reg_mr, access_flags), wish.access);
    return request;
  }
  long RegMr(uint32_t pd, const MrWish& wish, MrMade* mr = nullptr, const Bytes& driver = {},
             size_t room = 0) {
    const long result =
        Command(kRegMr, MrRequest(pd, wish), VABI_S(ib_uverbs_reg_mr_resp), driver, room);
    if (result > 0 && mr != nullptr) {
      *mr = {U32(VABI_F(ib_uverbs_reg_mr_resp, mr_handle)),
             U32(VABI_F(ib_uverbs_reg_mr_resp, lkey)), U32(VABI_F(ib_uverbs_reg_mr_resp, rkey))};
    }
    return result;
  }
  // Of two pages, for a user who may lock `pages`.
  long LimitedMr(uint32_t pd, uint64_t pages, uint32_t uid = 1000, const Bytes& driver = {},
                 size_t room = 0) {
    image().check_permissions = 1;
    image().uid = uid;
    const Memlock limit(pages);
    return RegMr(pd, {.length = 8192}, nullptr, driver, room);
  }
  struct CqMade {
    uint32_t handle = 0, cqe = 0;
  };
  Bytes CqRequest(uint32_t cqe, uint32_t comp_vector = 0) {
    Bytes request = Zero(VABI_S(ib_uverbs_create_cq));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_create_cq, cqe), cqe);
    body.Set(VABI_F(ib_uverbs_create_cq, comp_vector), comp_vector);
    body.Set(VABI_F(ib_uverbs_create_cq, comp_channel), ~0u);
    return request;
  }
  long CreateCq(uint32_t cqe, CqMade* cq = nullptr, const Bytes& driver = {}, size_t room = 0,
                uint32_t comp_vector = 0) {
    const long result = Command(kCreateCq, CqRequest(cqe, comp_vector),
                                VABI_S(ib_uverbs_create_cq_resp), driver, room);
    if (result > 0 && cq != nullptr) {
      *cq = {U32(VABI_F(ib_uverbs_create_cq_resp, cq_handle)),
             U32(VABI_F(ib_uverbs_create_cq_resp, cqe))};
    }
    return result;
  }
  // With the flags that only the extended command has. The driver's bytes: whole words of 8.
  long CreateCqEx(uint32_t cqe, uint32_t flags, const Bytes& driver = {}, size_t room = 0) {
    Bytes request = Zero(VABI_S(ib_uverbs_ex_create_cq));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_ex_create_cq, cqe), cqe);
    body.Set(VABI_F(ib_uverbs_ex_create_cq, comp_channel), ~0u);
    body.Set(VABI_F(ib_uverbs_ex_create_cq, flags), flags);
    return CommandEx(18, request, VABI_S(ib_uverbs_ex_create_cq_resp), driver, room);
  }
  long ResizeCq(uint32_t cq, uint32_t cqe, const Bytes& driver = {}, size_t room = 0) {
    Bytes request = Zero(VABI_S(ib_uverbs_resize_cq));
    In(request).Set(VABI_F(ib_uverbs_resize_cq, cq_handle), cq);
    In(request).Set(VABI_F(ib_uverbs_resize_cq, cqe), cqe);
    return Command(kResizeCq, request, VABI_S(ib_uverbs_resize_cq_resp), driver, room);
  }
  struct QpWish {
    uint32_t pd = 0, send_cq = 0, recv_cq = 0;
    uint8_t type = kRc;
    uint32_t send_wr = 16, recv_wr = 16, send_sge = 1, recv_sge = 1, inline_data = 0;
    bool has_srq = false;
    uint32_t srq = 0;
  };
  struct QpMade {
    uint32_t handle = 0, number = 0;
    uint32_t send_wr = 0, recv_wr = 0, send_sge = 0, recv_sge = 0, inline_data = 0;
  };
  Bytes QpRequest(const QpWish& wish) {
    Bytes request = Zero(VABI_S(ib_uverbs_create_qp));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_create_qp, pd_handle), wish.pd);
    body.Set(VABI_F(ib_uverbs_create_qp, send_cq_handle), wish.send_cq);
    body.Set(VABI_F(ib_uverbs_create_qp, recv_cq_handle), wish.recv_cq);
    body.Set(VABI_F(ib_uverbs_create_qp, srq_handle), wish.srq);
    body.Set(VABI_F(ib_uverbs_create_qp, is_srq), wish.has_srq);
    body.Set(VABI_F(ib_uverbs_create_qp, max_send_wr), wish.send_wr);
    body.Set(VABI_F(ib_uverbs_create_qp, max_recv_wr), wish.recv_wr);
    body.Set(VABI_F(ib_uverbs_create_qp, max_send_sge), wish.send_sge);
    body.Set(VABI_F(ib_uverbs_create_qp, max_recv_sge), wish.recv_sge);
    body.Set(VABI_F(ib_uverbs_create_qp, max_inline_data), wish.inline_data);
    body.Set(VABI_F(ib_uverbs_create_qp, qp_type), wish.type);
    return request;
  }
  long CreateQp(const QpWish& wish, QpMade* qp = nullptr, const Bytes& driver = {},
                size_t room = 0) {
    const long result =
        Command(kCreateQp, QpRequest(wish), VABI_S(ib_uverbs_create_qp_resp), driver, room);
    if (result > 0 && qp != nullptr) {
      *qp = {U32(VABI_F(ib_uverbs_create_qp_resp, qp_handle)),
             U32(VABI_F(ib_uverbs_create_qp_resp, qpn)),
             U32(VABI_F(ib_uverbs_create_qp_resp, max_send_wr)),
             U32(VABI_F(ib_uverbs_create_qp_resp, max_recv_wr)),
             U32(VABI_F(ib_uverbs_create_qp_resp, max_send_sge)),
             U32(VABI_F(ib_uverbs_create_qp_resp, max_recv_sge)),
             U32(VABI_F(ib_uverbs_create_qp_resp, max_inline_data))};
    }
    return result;
  }
  // With create_flags. The driver's bytes: whole words of 8.
  long CreateQpEx(const QpWish& wish, uint32_t create_flags, const Bytes& driver = {},
                  size_t room = 0) {
    Bytes request = Zero(VABI_S(ib_uverbs_ex_create_qp));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_ex_create_qp, pd_handle), wish.pd);
    body.Set(VABI_F(ib_uverbs_ex_create_qp, send_cq_handle), wish.send_cq);
    body.Set(VABI_F(ib_uverbs_ex_create_qp, recv_cq_handle), wish.recv_cq);
    body.Set(VABI_F(ib_uverbs_ex_create_qp, max_send_wr), wish.send_wr);
    body.Set(VABI_F(ib_uverbs_ex_create_qp, max_recv_wr), wish.recv_wr);
    body.Set(VABI_F(ib_uverbs_ex_create_qp, max_send_sge), wish.send_sge);
    body.Set(VABI_F(ib_uverbs_ex_create_qp, max_recv_sge), wish.recv_sge);
    body.Set(VABI_F(ib_uverbs_ex_create_qp, qp_type), wish.type);
    body.Set(VABI_F(ib_uverbs_ex_create_qp, create_flags), create_flags);
    return CommandEx(24, request, VABI_S(ib_uverbs_ex_create_qp_resp), driver, room);
  }
  // Fields of struct ib_uverbs_modify_qp.
  long ModifyQp(uint32_t qp, uint32_t mask,
                std::initializer_list<std::pair<FieldId, uint64_t>> fields,
                const Bytes& driver = {}) {
    Bytes request = Zero(VABI_S(ib_uverbs_modify_qp));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_modify_qp, qp_handle), qp);
    body.Set(VABI_F(ib_uverbs_modify_qp, attr_mask), mask);
    for (const auto& [field, value] : fields) body.Set(field, value);
    const Body dest = body.Sub(VABI_F(ib_uverbs_modify_qp, dest));
    const auto& gid = world_.image().device[0].ports[0].gids[0].raw;
    dest.SetBytes(VABI_F(ib_uverbs_qp_dest, dgid), gid, 16);
    dest.Set(VABI_F(ib_uverbs_qp_dest, is_global), 1);
    dest.Set(VABI_F(ib_uverbs_qp_dest, port_num), 1);
    dest.Set(VABI_F(ib_uverbs_qp_dest, hop_limit), 1);
    return Command(kModifyQp, request, driver);
  }
  // IB_QP_STATE and what else `mask` has, for a queue pair of an InfiniBand or RoCE device.
  long ToInit(uint32_t qp, uint8_t type = kRc, const Bytes& driver = {}) {
    return ModifyQp(qp, 0x1 | 0x10 | 0x20 | (type == kUd ? 0x40u : 0x8u),
                    {{VABI_F(ib_uverbs_modify_qp, qp_state), 1},
                     {VABI_F(ib_uverbs_modify_qp, port_num), 1},
                     {VABI_F(ib_uverbs_modify_qp, qp_access_flags), 0x7},
                     {VABI_F(ib_uverbs_modify_qp, qkey), 0x11}},
                    driver);
  }
  long ToRtr(uint32_t qp, uint32_t dest, uint8_t type = kRc, const Bytes& driver = {}) {
    const uint32_t connected = 0x80 | 0x100 | 0x100000 | 0x1000, reliable = 0x20000 | 0x8000;
    return ModifyQp(qp, 0x1 | (type != kUd ? connected : 0) | (type == kRc ? reliable : 0),
                    {{VABI_F(ib_uverbs_modify_qp, qp_state), 2},
                     {VABI_F(ib_uverbs_modify_qp, path_mtu), 3},
                     {VABI_F(ib_uverbs_modify_qp, dest_qp_num), dest},
                     {VABI_F(ib_uverbs_modify_qp, rq_psn), 7},
                     {VABI_F(ib_uverbs_modify_qp, max_dest_rd_atomic), 1},
                     {VABI_F(ib_uverbs_modify_qp, min_rnr_timer), 1}},
                    driver);
  }
  long ToRts(uint32_t qp, uint8_t type = kRc, const Bytes& driver = {}) {
    return ModifyQp(qp, 0x1 | 0x10000 | (type == kRc ? 0x2000 | 0x200 | 0x400 | 0x800u : 0),
                    {{VABI_F(ib_uverbs_modify_qp, qp_state), 3},
                     {VABI_F(ib_uverbs_modify_qp, sq_psn), 7},
                     {VABI_F(ib_uverbs_modify_qp, max_rd_atomic), 1},
                     {VABI_F(ib_uverbs_modify_qp, timeout), 1},
                     {VABI_F(ib_uverbs_modify_qp, retry_cnt), 1},
                     {VABI_F(ib_uverbs_modify_qp, rnr_retry), 1}},
                    driver);
  }
  long ToState(uint32_t qp, uint32_t state, const Bytes& driver = {}) {
    return ModifyQp(qp, 0x1, {{VABI_F(ib_uverbs_modify_qp, qp_state), state}}, driver);
  }
  // Fields of the answer by U32.
  long QueryQp(uint32_t qp, uint32_t mask = 0) {
    Bytes request = Zero(VABI_S(ib_uverbs_query_qp));
    In(request).Set(VABI_F(ib_uverbs_query_qp, qp_handle), qp);
    In(request).Set(VABI_F(ib_uverbs_query_qp, attr_mask), mask);
    return Command(kQueryQp, request, VABI_S(ib_uverbs_query_qp_resp));
  }
  uint64_t StateOf(uint32_t qp) {
    EXPECT_GT(QueryQp(qp, 1), 0) << LastRule();
    return Get(VABI_F(ib_uverbs_query_qp_resp, qp_state));
  }
  struct SrqMade {
    uint32_t handle = 0, max_wr = 0, max_sge = 0;
  };
  long CreateSrq(uint32_t pd, uint32_t max_wr, uint32_t max_sge, uint32_t limit = 0,
                 SrqMade* srq = nullptr, const Bytes& driver = {}, size_t room = 0) {
    Bytes request = Zero(VABI_S(ib_uverbs_create_srq));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_create_srq, pd_handle), pd);
    body.Set(VABI_F(ib_uverbs_create_srq, max_wr), max_wr);
    body.Set(VABI_F(ib_uverbs_create_srq, max_sge), max_sge);
    body.Set(VABI_F(ib_uverbs_create_srq, srq_limit), limit);
    const long result =
        Command(kCreateSrq, request, VABI_S(ib_uverbs_create_srq_resp), driver, room);
    if (result > 0 && srq != nullptr) {
      *srq = {U32(VABI_F(ib_uverbs_create_srq_resp, srq_handle)),
              U32(VABI_F(ib_uverbs_create_srq_resp, max_wr)),
              U32(VABI_F(ib_uverbs_create_srq_resp, max_sge))};
    }
    return result;
  }
  // mask: 1 IB_SRQ_MAX_WR, 2 IB_SRQ_LIMIT
  long ModifySrq(uint32_t srq, uint32_t mask, uint32_t max_wr, uint32_t limit,
                 const Bytes& driver = {}) {
    Bytes request = Zero(VABI_S(ib_uverbs_modify_srq));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_modify_srq, srq_handle), srq);
    body.Set(VABI_F(ib_uverbs_modify_srq, attr_mask), mask);
    body.Set(VABI_F(ib_uverbs_modify_srq, max_wr), max_wr);
    body.Set(VABI_F(ib_uverbs_modify_srq, srq_limit), limit);
    return Command(kModifySrq, request, driver);
  }
  long QuerySrq(uint32_t srq) {
    Bytes request = Zero(VABI_S(ib_uverbs_query_srq));
    In(request).Set(VABI_F(ib_uverbs_query_srq, srq_handle), srq);
    return Command(kQuerySrq, request, VABI_S(ib_uverbs_query_srq_resp));
  }
  long CreateAh(uint32_t pd, uint32_t* ah, const Bytes& driver = {}, size_t room = 0,
                bool global = true) {
    Bytes request = Zero(VABI_S(ib_uverbs_create_ah));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_create_ah, pd_handle), pd);
    const Body attr = body.Sub(VABI_F(ib_uverbs_create_ah, attr));
    attr.Set(VABI_F(ib_uverbs_ah_attr, port_num), 1);
    attr.Set(VABI_F(ib_uverbs_ah_attr, is_global), global ? 1 : 0);
    const Body grh = attr.Sub(VABI_F(ib_uverbs_ah_attr, grh));
    grh.SetBytes(VABI_F(ib_uverbs_global_route, dgid),
                 world_.image().device[0].ports[0].gids[0].raw, 16);
    const long result = Command(kCreateAh, request, VABI_S(ib_uverbs_create_ah_resp), driver, room);
    if (result > 0 && ah != nullptr) *ah = U32(VABI_F(ib_uverbs_create_ah_resp, ah_handle));
    return result;
  }
  // Commands whose request names one object, and whose reply nobody looks at.
  long DeallocPd(uint32_t pd) {
    return Destroy(kDeallocPd, VABI_S(ib_uverbs_dealloc_pd),
                   VABI_F(ib_uverbs_dealloc_pd, pd_handle), pd);
  }
  long DeregMr(uint32_t mr) {
    return Destroy(kDeregMr, VABI_S(ib_uverbs_dereg_mr), VABI_F(ib_uverbs_dereg_mr, mr_handle), mr);
  }
  long DestroyAh(uint32_t ah) {
    return Destroy(kDestroyAh, VABI_S(ib_uverbs_destroy_ah),
                   VABI_F(ib_uverbs_destroy_ah, ah_handle), ah);
  }
  long DestroyCq(uint32_t cq) {
    return Destroy(kDestroyCq, VABI_S(ib_uverbs_destroy_cq),
                   VABI_F(ib_uverbs_destroy_cq, cq_handle), cq, VABI_S(ib_uverbs_destroy_cq_resp));
  }
  long DestroyQp(uint32_t qp) {
    return Destroy(kDestroyQp, VABI_S(ib_uverbs_destroy_qp),
                   VABI_F(ib_uverbs_destroy_qp, qp_handle), qp, VABI_S(ib_uverbs_destroy_qp_resp));
  }
  long DestroySrq(uint32_t srq) {
    return Destroy(kDestroySrq, VABI_S(ib_uverbs_destroy_srq),
                   VABI_F(ib_uverbs_destroy_srq, srq_handle), srq,
                   VABI_S(ib_uverbs_destroy_srq_resp));
  }

  // Where the kernel mapped it, or -errno.
  long Map(uint64_t offset, uint64_t length, int protection = PROT_READ | PROT_WRITE,
           int flags = MAP_SHARED) {
    const long result =
        file_->Mmap(nullptr, length, protection, flags, static_cast<int64_t>(offset));
    const bool failed = result < 0 && result > -4096;
    if (!failed) munmap(reinterpret_cast<void*>(result), length);
    return failed ? result : 1;
  }

  // 64 KiB of memory for queues and regions. Its address is a multiple of kStep, and nothing else
  // is mapped in the kStep bytes from there: a flipped byte above the second leads nowhere.
  static constexpr uint64_t kBuffer = 0x10000;
  uint64_t Buffer() {
    if (buffer_ == nullptr) {
      buffer_ =
          mmap(kHint, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      const uint64_t start = reinterpret_cast<uintptr_t>(buffer_);
      at_ = (start + kStep - 1) & ~(kStep - 1);
      // Twice: what begins anywhere in the buffer may be as long as the buffer.
      mprotect(reinterpret_cast<void*>(at_), 2 * kBuffer, PROT_READ | PROT_WRITE);
    }
    return at_;
  }

  Bytes told;
  // What the room for the driver's reply holds before.
  uint8_t room_filled_with = 0;

 private:
  // What an address leads to when one of its bytes is flipped is nobody else's memory: kStep bytes
  // from the buffer are reserved, and a higher byte leads further than all that is mapped around
  // it. Of 32 bits the highest byte leads there, too: between a program, which begins at 0x56000000
  // or so, and its libraries below 0xf8000000 there is nothing at 0x30…'s counterparts.
  static constexpr bool kWide = sizeof(void*) == 8;
  static constexpr size_t kStep = size_t{1} << (kWide ? 33 : 24), kReserved = 2 * kStep;
  inline static void* const kHint = kWide ? nullptr : reinterpret_cast<void*>(0x30000000);

  long Destroy(uint32_t command, StructId structure, FieldId field, uint32_t handle,
               StructId reply = StructId::kCount) {
    Bytes request = Zero(structure);
    In(request).Set(field, handle);
    return Command(command, request, reply);
  }

  static const WorldImage& Pristine(const std::string& kernel, const std::string& provider) {
    static auto* worlds =
        new std::map<std::pair<std::string, std::string>, std::unique_ptr<TestWorld>>;
    std::unique_ptr<TestWorld>& world = (*worlds)[{kernel, provider}];
    if (!world)
      world =
          std::make_unique<TestWorld>(kernel, std::initializer_list<const char*>{provider.c_str()});
    return world->image();
  }

  std::unique_ptr<WorldImage> image_;
  World world_;
  std::string trace_path_;
  std::shared_ptr<UverbsFile> file_;
  OpenedFds fds_;
  Bytes core_reply_;
  void* buffer_ = nullptr;
  uint64_t at_ = 0;
};

}  // namespace vabi

#endif  // VABI_SHIMS_PROVIDERS_COMMON_TEST_HCA_H_
