// SPDX-License-Identifier: BSD-2-Clause
//
// Two queue pairs, each in a process of its own (or, with "here", both in one), through the real
// libibverbs and provider. One JSON object on standard output:
//   send64 [MESSAGES]           64-byte RC SENDs a second from one process to the other, both sides
//                               completed; and 64-byte messages a second over a Unix socket
//   mixed [OPERATIONS] [here]   SEND, SEND with immediate, WRITE with immediate, READ, fetch and
//                               add, compare and swap in an order that both sides know; every byte
//                               says which operation it belongs to and where it stands, and is
//                               looked at. {"operations": N, "bytes": N, "mismatches": 0}
// Exit status 0: all well.

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

constexpr int kDepth = 512;
constexpr uint32_t kSlot = 65536;       // bytes of one operation
constexpr uint32_t kSlots = 512;        // half of them may be on their way at once
constexpr uint32_t kConstant = 262144;  // bytes that are only read
constexpr uint64_t kAddend = 0x0001000100010003ULL;
constexpr double kSeconds = 3600;  // no run takes longer

double Seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

[[noreturn]] void Die(const char* what, long detail = 0) {
  fprintf(stderr, "processes: %s failed (%ld, %s)\n", what, detail, strerror(errno));
  exit(1);
}

struct Address {
  uint32_t qpn, rkey;
  uint64_t slots, constant, counter;
  uint16_t lid;
  ibv_gid gid;
};

// One side: memory of slots, constant bytes, and 64 bytes of counters behind them.
struct Side {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_qp* qp = nullptr;
  uint8_t* bytes = nullptr;
  bool global = false;

  uint8_t* Slot(uint64_t i) const { return bytes + (i % kSlots) * kSlot; }
  uint8_t* Constant() const { return bytes + size_t{kSlots} * kSlot; }
  uint8_t* Counters() const { return Constant() + kConstant; }

  Address Open() {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    if (list == nullptr || count == 0) Die("ibv_get_device_list");
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    if (context == nullptr) Die("ibv_open_device");
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 4 * kDepth, nullptr, nullptr, 0);
    const size_t size = size_t{kSlots} * kSlot + kConstant + 4096;
    bytes = static_cast<uint8_t*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (pd == nullptr || cq == nullptr || bytes == MAP_FAILED) Die("ibv_create_cq");
    mr = ibv_reg_mr(pd, bytes, size,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC);
    if (mr == nullptr) Die("ibv_reg_mr");
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = cq;
    init.qp_type = IBV_QPT_RC;
    init.cap.max_send_wr = init.cap.max_recv_wr = kDepth;
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    qp = ibv_create_qp(pd, &init);
    if (qp == nullptr) Die("ibv_create_qp");
    ibv_port_attr port = {};
    if (ibv_query_port(context, 1, &port) != 0) Die("ibv_query_port");
    global = port.link_layer == IBV_LINK_LAYER_ETHERNET;
    Address address = {};
    address.qpn = qp->qp_num;
    address.rkey = mr->rkey;
    address.slots = reinterpret_cast<uintptr_t>(bytes);
    address.constant = reinterpret_cast<uintptr_t>(Constant());
    address.counter = reinterpret_cast<uintptr_t>(Counters());
    address.lid = port.lid;
    if (ibv_query_gid(context, 1, 0, &address.gid) != 0) Die("ibv_query_gid");
    return address;
  }

  void Connect(const Address& peer) {
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0) {
      Die("ibv_modify_qp to INIT");
    }
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer.qpn;
    attr.max_dest_rd_atomic = 16;
    attr.min_rnr_timer = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.dlid = peer.lid;
    attr.ah_attr.is_global = global;
    attr.ah_attr.grh.dgid = peer.gid;
    attr.ah_attr.grh.hop_limit = 1;
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0) {
      Die("ibv_modify_qp to RTR");
    }
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 18;
    attr.retry_cnt = 6;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 16;
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) != 0) {
      Die("ibv_modify_qp to RTS");
    }
  }

  void Receive(uint64_t wr_id, uint8_t* to, uint32_t length) {
    ibv_sge sge = {reinterpret_cast<uintptr_t>(to), length, mr->lkey};
    ibv_recv_wr wr = {};
    ibv_recv_wr* bad = nullptr;
    wr.wr_id = wr_id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    if (const int error = ibv_post_recv(qp, &wr, &bad)) Die("ibv_post_recv", error);
  }

  int Poll(ibv_wc* completions, int room) {
    const int got = ibv_poll_cq(cq, room, completions);
    if (got < 0) Die("ibv_poll_cq");
    for (int i = 0; i < got; ++i) {
      if (completions[i].status != IBV_WC_SUCCESS) {
        fprintf(stderr, "processes: completion: %s\n", ibv_wc_status_str(completions[i].status));
        exit(1);
      }
    }
    return got;
  }

  void Close() {
    ibv_destroy_qp(qp);
    ibv_dereg_mr(mr);
    ibv_destroy_cq(cq);
    ibv_dealloc_pd(pd);
    ibv_close_device(context);
  }
};

void Put(int fd, const void* bytes, size_t size) {
  if (write(fd, bytes, size) != static_cast<ssize_t>(size)) Die("write");
}
void Take(int fd, void* bytes, size_t size) {
  if (read(fd, bytes, size) != static_cast<ssize_t>(size)) Die("read");
}

// What both processes see.
struct Shared {
  std::atomic<uint64_t> verified{0};  // operations whose bytes the responder has looked at
  std::atomic<uint64_t> mismatches{0}, bytes{0};
};

// ---- 64-byte SENDs

void ServeSends(Side* side, int messages) {
  ibv_wc completions[64];
  int posted = std::min(messages, kDepth - 1);
  for (int done = 0; done < messages;) {
    const int got = side->Poll(completions, 64);
    for (int i = 0; i < got && posted < messages; ++i, ++posted) {
      side->Receive(0, side->bytes, 64);
    }
    done += got;
  }
}

double SendAll(Side* side, int messages) {
  ibv_sge sge = {reinterpret_cast<uintptr_t>(side->bytes), 64, side->mr->lkey};
  ibv_send_wr wr = {};
  ibv_send_wr* bad = nullptr;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  ibv_wc completions[64];
  const double start = Seconds();
  for (int posted = 0, done = 0; done < messages;) {
    while (posted < messages && posted - done < kDepth - 1) {
      if (const int error = ibv_post_send(side->qp, &wr, &bad)) Die("ibv_post_send", error);
      ++posted;
    }
    done += side->Poll(completions, 64);
  }
  return messages / (Seconds() - start);
}

// The same messages over a Unix socket.
double OverSocket(int messages) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0) Die("socketpair");
  const pid_t child = fork();
  char message[64] = {};
  if (child == 0) {
    for (int i = 0; i < messages; ++i) Take(pair[1], message, sizeof(message));
    Put(pair[1], message, 1);
    _exit(0);
  }
  const double start = Seconds();
  for (int i = 0; i < messages; ++i) Put(pair[0], message, sizeof(message));
  Take(pair[0], message, 1);
  const double spent = Seconds() - start;
  waitpid(child, nullptr, 0);
  close(pair[0]);
  close(pair[1]);
  return messages / spent;
}

// ---- mixed operations

enum Kind : uint32_t { kSend, kSendImm, kWriteImm, kRead, kAdd, kSwap, kKinds };

uint64_t Mix(uint64_t value) {
  value ^= value >> 31;
  value *= 0x7fb5d329728ea185ULL;
  value ^= value >> 27;
  value *= 0x81dadef4bc2dd44dULL;
  return value ^ value >> 33;
}

// What operation number i is: both sides work it out.
struct Operation {
  explicit Operation(uint64_t i) {
    const uint64_t dice = Mix(i * 2 + 1);
    kind = static_cast<Kind>(dice % kKinds);
    const uint32_t size = dice >> 8 & 255;
    const uint32_t most = size == 0 ? kSlot : size < 16 ? 4096 : 128;
    length = static_cast<uint32_t>((dice >> 16) % (most + 1));
    offset = static_cast<uint32_t>((dice >> 40) % (kConstant - kSlot));
    if (kind == kAdd || kind == kSwap) length = 8;
  }
  bool takes_receive() const { return kind <= kWriteImm; }
  Kind kind;
  uint32_t length, offset;
};

// Eight bytes at a time: which operation, and where.
uint64_t Word(uint64_t seed, uint64_t at) { return Mix(seed * 0x9e3779b97f4a7c15ULL + at); }

void Fill(uint8_t* to, uint64_t seed, uint64_t from, uint32_t length) {
  for (uint32_t done = 0; done < length;) {
    const uint64_t at = from + done;
    const uint64_t word = Word(seed, at / 8);
    const auto part = std::min<uint32_t>(8 - at % 8, length - done);
    memcpy(to + done, reinterpret_cast<const uint8_t*>(&word) + at % 8, part);
    done += part;
  }
}

bool Holds(const uint8_t* bytes, uint64_t seed, uint64_t from, uint32_t length) {
  for (uint32_t done = 0; done < length;) {
    const uint64_t at = from + done;
    const uint64_t word = Word(seed, at / 8);
    const auto part = std::min<uint32_t>(8 - at % 8, length - done);
    if (memcmp(bytes + done, reinterpret_cast<const uint8_t*>(&word) + at % 8, part) != 0) {
      return false;
    }
    done += part;
  }
  return true;
}

constexpr uint64_t kConstantSeed = ~0ULL;
constexpr int kReceives = 384;  // more than SENDs and WRITEs may be on their way

// The responder: looks at what arrives, in order.
class Responder {
 public:
  Responder(Side* side, Shared* shared, uint64_t operations)
      : side_(side), shared_(shared), operations_(operations) {
    Fill(side->Constant(), kConstantSeed, 0, kConstant);
    for (; posted_ < kReceives; ++posted_) Post();
  }
  // False: all are done.
  bool Step() {
    SkipOthers();
    if (next_ >= operations_) return false;
    ibv_wc completions[16];
    const int got = side_->Poll(completions, 16);
    for (int i = 0; i < got; ++i) Took(completions[i]);
    if (got == 0) sched_yield();
    return true;
  }
  // In one process both share a completion queue.
  void Took(const ibv_wc& completion) {
    SkipOthers();
    const Operation operation(next_);
    // SENDs land in the receives, which stand in the upper half of the slots' memory.
    const uint8_t* at = operation.kind == kWriteImm ? side_->Slot(next_)
                                                    : Landing(static_cast<int>(completion.wr_id));
    const bool immediate = operation.kind != kSend;
    bool good = Holds(at, next_, 0, operation.length);
    good &= completion.byte_len == operation.length;
    good &= ((completion.wc_flags & IBV_WC_WITH_IMM) != 0) == immediate;
    good &= !immediate || completion.imm_data == static_cast<uint32_t>(next_);
    if (!good) shared_->mismatches.fetch_add(1);
    shared_->bytes.fetch_add(operation.length, std::memory_order_relaxed);
    ++next_;
    SkipOthers();
    shared_->verified.store(next_, std::memory_order_release);
    posted_ = static_cast<int>(completion.wr_id);
    Post();
  }
  bool done() {
    SkipOthers();
    return next_ >= operations_;
  }

 private:
  uint8_t* Landing(int receive) {
    if (landing_ == nullptr) {
      const size_t size = size_t{kReceives} * kSlot;
      landing_ = static_cast<uint8_t*>(
          mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      landing_mr_ = ibv_reg_mr(side_->pd, landing_, size, IBV_ACCESS_LOCAL_WRITE);
      if (landing_mr_ == nullptr) Die("ibv_reg_mr");
    }
    return landing_ + size_t{kSlot} * static_cast<size_t>(receive);
  }
  void Post() {
    ibv_sge sge = {reinterpret_cast<uintptr_t>(Landing(posted_)), kSlot, 0};
    sge.lkey = landing_mr_->lkey;
    ibv_recv_wr wr = {};
    ibv_recv_wr* bad = nullptr;
    wr.wr_id = static_cast<uint64_t>(posted_);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    if (const int error = ibv_post_recv(side_->qp, &wr, &bad)) Die("ibv_post_recv", error);
  }
  void SkipOthers() {
    while (next_ < operations_ && !Operation(next_).takes_receive()) ++next_;
    if (next_ >= operations_) shared_->verified.store(operations_, std::memory_order_release);
  }

  Side* side_;
  Shared* shared_;
  uint64_t operations_, next_ = 0;
  int posted_ = 0;
  uint8_t* landing_ = nullptr;
  ibv_mr* landing_mr_ = nullptr;
};

class Requester {
 public:
  Requester(Side* side, const Address& peer, Shared* shared, uint64_t operations)
      : side_(side), peer_(peer), shared_(shared), operations_(operations) {}

  bool done() const { return finished_ == operations_; }
  void Post() {
    while (posted_ < operations_ && posted_ - finished_ < kSlots / 2 &&
           posted_ < shared_->verified.load(std::memory_order_acquire) + kSlots / 2) {
      One(posted_++);
    }
  }
  void Step() {
    const uint64_t before = posted_;
    Post();
    ibv_wc completions[16];
    const int got = side_->Poll(completions, 16);
    for (int i = 0; i < got; ++i) {
      if (completions[i].wr_id != kProbe) Took();
    }
    // Four threads poll here, the programs' and their NICs': where there are fewer processors, who
    // has nothing to do must not keep one for its whole turn.
    if (got == 0 && posted_ == before) sched_yield();
    if (got != 0 || posted_ != finished_) {
      idle_since_ = 0;
    } else if (idle_since_ == 0) {
      idle_since_ = Seconds();
    } else if (Seconds() - idle_since_ > 1) {
      Probe();
    }
  }
  // Completions come in order.
  void Took() {
    const uint64_t i = finished_++;
    const Operation operation(i);
    bool good = true;
    uint64_t value;
    memcpy(&value, side_->Slot(i), sizeof(value));
    if (operation.kind == kRead) {
      good = Holds(side_->Slot(i), kConstantSeed, operation.offset, operation.length);
    } else if (operation.kind == kAdd) {
      good = value == added_;
      added_ += kAddend;
    } else if (operation.kind == kSwap) {
      good = value == swapped_;
      swapped_ = i + 1;
    }
    if (!good) shared_->mismatches.fetch_add(1);
    if (!operation.takes_receive()) {
      shared_->bytes.fetch_add(operation.length, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr uint64_t kProbe = ~0ULL;

  // Nothing is on its way, and the other side does not go on: is it still there?
  void Probe() {
    ibv_send_wr wr = {};
    ibv_send_wr* bad = nullptr;
    wr.wr_id = kProbe;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = peer_.slots;
    wr.wr.rdma.rkey = peer_.rkey;
    if (const int error = ibv_post_send(side_->qp, &wr, &bad)) Die("ibv_post_send", error);
    idle_since_ = Seconds();
  }

  void One(uint64_t i) {
    const Operation operation(i);
    uint8_t* slot = side_->Slot(i);
    ibv_sge sge = {reinterpret_cast<uintptr_t>(slot), operation.length, side_->mr->lkey};
    ibv_send_wr wr = {};
    ibv_send_wr* bad = nullptr;
    wr.wr_id = i;
    wr.sg_list = &sge;
    wr.num_sge = operation.length == 0 ? 0 : 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.imm_data = static_cast<uint32_t>(i);
    if (operation.takes_receive()) Fill(slot, i, 0, operation.length);
    switch (operation.kind) {
      case kSend:
        wr.opcode = IBV_WR_SEND;
        break;
      case kSendImm:
        wr.opcode = IBV_WR_SEND_WITH_IMM;
        break;
      case kWriteImm:
        wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        wr.wr.rdma.remote_addr = peer_.slots + (i % kSlots) * kSlot;
        wr.wr.rdma.rkey = peer_.rkey;
        break;
      case kRead:
        memset(slot, 0xa5, operation.length);
        wr.opcode = IBV_WR_RDMA_READ;
        wr.wr.rdma.remote_addr = peer_.constant + operation.offset;
        wr.wr.rdma.rkey = peer_.rkey;
        break;
      case kAdd:
        wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr.wr.atomic = {peer_.counter, kAddend, 0, peer_.rkey};
        break;
      default:
        wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        wr.wr.atomic = {peer_.counter + 8, last_swap_, i + 1, peer_.rkey};
        last_swap_ = i + 1;
        break;
    }
    if (const int error = ibv_post_send(side_->qp, &wr, &bad)) Die("ibv_post_send", error);
  }

  Side* side_;
  Address peer_;
  Shared* shared_;
  uint64_t operations_, posted_ = 0, finished_ = 0;
  uint64_t added_ = 0, swapped_ = 0, last_swap_ = 0;
  double idle_since_ = 0;
};

int MixedHere(uint64_t operations, Shared* shared) {
  Side left, right;
  const Address a = left.Open(), b = right.Open();
  left.Connect(b);
  right.Connect(a);
  Responder responder(&right, shared, operations);
  Requester requester(&left, b, shared, operations);
  const double start = Seconds();
  while ((!requester.done() || !responder.done()) && Seconds() - start < kSeconds) {
    if (!requester.done()) requester.Step();
    responder.Step();
  }
  left.Close();
  right.Close();
  return requester.done() && responder.done() ? 0 : 1;
}

// Both processes open the device by themselves, after the fork.
int Together(bool mixed, uint64_t count, Shared* shared, double* rate) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) Die("socketpair");
  const pid_t child = fork();
  if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody else would end it
  const int fd = pair[child == 0];
  close(pair[child != 0]);
  Side side;
  const Address own = side.Open();
  Address peer;
  Put(fd, &own, sizeof(own));
  Take(fd, &peer, sizeof(peer));
  side.Connect(peer);
  char ready = 1;
  if (child == 0) {
    const auto messages = static_cast<int>(count);
    if (mixed) {
      Responder responder(&side, shared, count);
      Put(fd, &ready, 1);
      const double start = Seconds();
      while (responder.Step() && Seconds() - start < kSeconds) {
      }
    } else {
      for (int i = 0; i < std::min(messages, kDepth - 1); ++i) side.Receive(0, side.bytes, 64);
      Put(fd, &ready, 1);
      ServeSends(&side, messages);
    }
    Take(fd, &ready, 1);  // the other side needs us no more
    side.Close();
    exit(0);
  }
  Take(fd, &ready, 1);
  bool good = true;
  if (mixed) {
    Requester requester(&side, peer, shared, count);
    const double start = Seconds();
    while (!requester.done() && Seconds() - start < kSeconds) requester.Step();
    *rate = static_cast<double>(count) / (Seconds() - start);
    good = requester.done();
  } else {
    *rate = SendAll(&side, static_cast<int>(count));
  }
  Put(fd, &ready, 1);
  int status = -1;
  waitpid(child, &status, 0);
  side.Close();
  return good && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool mixed = argc > 1 && strcmp(argv[1], "mixed") == 0;
  if (!mixed && (argc < 2 || strcmp(argv[1], "send64") != 0)) {
    fprintf(stderr, "usage: processes send64 [MESSAGES] | mixed [OPERATIONS] [here]\n");
    return 2;
  }
  const uint64_t count = argc > 2 ? strtoull(argv[2], nullptr, 0) : 100000;
  const bool here = argc > 3 && strcmp(argv[3], "here") == 0;
  auto* shared =
      new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          Shared();
  double rate = 0;
  if (!mixed) {
    const double socket = OverSocket(static_cast<int>(count));
    const int status = Together(false, count, shared, &rate);
    printf("{\"send64_per_s\": %.0f, \"socket64_per_s\": %.0f}\n", rate, socket);
    return status;
  }
  const int status = here ? MixedHere(count, shared) : Together(true, count, shared, &rate);
  const uint64_t wrong = shared->mismatches.load();
  printf("{\"operations\": %llu, \"bytes\": %llu, \"mismatches\": %llu}\n",
         static_cast<unsigned long long>(count),
         static_cast<unsigned long long>(shared->bytes.load()),
         static_cast<unsigned long long>(wrong));
  return status != 0 || wrong != 0;
}
