// SPDX-License-Identifier: BSD-2-Clause
// What rxe grants and refuses when objects are made, and its queues as a program maps them.
// Expected values: drivers/infiniband/sw/rxe of the kernel named (rxe_verbs.c, rxe_qp.c, rxe_cq.c,
// rxe_srq.c, rxe_queue.c, rxe_mmap.c, rxe_param.h), and the layouts of rdma_user_rxe.h.
#include "shims/providers/rxe/test_rxe.h"

namespace vabi::rxe {
namespace {

class Objects : public RxeTest {
 protected:
  using RxeTest::RxeTest;
  long CreateCq(uint32_t cqe, size_t driver_room) {
    Bytes reply(world().Size(VABI_S(ib_uverbs_create_cq_resp)) + driver_room);
    return Command(kCreateCq, CqRequest(cqe), &reply);
  }
  long CreateQp(const QpWish& wish, size_t driver_room = 32, const Bytes& input = {}) {
    if (cq_.handle == 0 && cq_.cqe == 0) cq_ = MakeCq();
    Bytes reply(world().Size(VABI_S(ib_uverbs_create_qp_resp)) + driver_room);
    return Command(kCreateQp, QpRequest(cq_.handle, cq_.handle, wish), &reply, input);
  }
  struct Srq {
    uint32_t handle = 0, max_wr = 0, max_sge = 0, number = 0;
    MappedQueue queue;
  };
  Bytes SrqRequest(uint32_t max_wr, uint32_t max_sge, uint32_t limit) {
    Bytes request = Zero(VABI_S(ib_uverbs_create_srq));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_create_srq, pd_handle), pd_);
    body.Set(VABI_F(ib_uverbs_create_srq, user_handle), 0x5e);
    body.Set(VABI_F(ib_uverbs_create_srq, max_wr), max_wr);
    body.Set(VABI_F(ib_uverbs_create_srq, max_sge), max_sge);
    body.Set(VABI_F(ib_uverbs_create_srq, srq_limit), limit);
    return request;
  }
  long CreateSrq(uint32_t max_wr, uint32_t max_sge, size_t driver_room, Srq* srq = nullptr,
                 uint32_t limit = 0) {
    const size_t core = world().Size(VABI_S(ib_uverbs_create_srq_resp));
    Bytes reply(core + driver_room);
    const long result = Command(kCreateSrq, SrqRequest(max_wr, max_sge, limit), &reply);
    if (srq == nullptr || result < 0) return result;
    const Body body = In(reply);
    srq->handle = body.U32(VABI_F(ib_uverbs_create_srq_resp, srq_handle));
    srq->max_wr = body.U32(VABI_F(ib_uverbs_create_srq_resp, max_wr));
    srq->max_sge = body.U32(VABI_F(ib_uverbs_create_srq_resp, max_sge));
    MapAt(reply, core, &srq->queue);
    std::memcpy(&srq->number, reply.data() + core + 16, 4);  // struct rxe_create_srq_resp
    return result;
  }
  long ModifySrq(const Srq& srq, uint32_t mask, uint32_t max_wr, uint32_t limit,
                 const Bytes& driver) {
    Bytes request = Zero(VABI_S(ib_uverbs_modify_srq));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_modify_srq, srq_handle), srq.handle);
    body.Set(VABI_F(ib_uverbs_modify_srq, attr_mask), mask);
    body.Set(VABI_F(ib_uverbs_modify_srq, max_wr), max_wr);
    body.Set(VABI_F(ib_uverbs_modify_srq, srq_limit), limit);
    return Command(kModifySrq, request, nullptr, driver);
  }
  static Bytes PlacePointer(const void* to) {
    Bytes bytes(8);
    const uint64_t at = reinterpret_cast<uintptr_t>(to);
    std::memcpy(bytes.data(), &at, 8);
    return bytes;
  }
  std::pair<uint32_t, uint32_t> QuerySrq(const Srq& srq) {
    Bytes request = Zero(VABI_S(ib_uverbs_query_srq));
    In(request).Set(VABI_F(ib_uverbs_query_srq, srq_handle), srq.handle);
    Bytes reply(world().Size(VABI_S(ib_uverbs_query_srq_resp)));
    EXPECT_GT(Command(kQuerySrq, request, &reply), 0);
    return {In(reply).U32(VABI_F(ib_uverbs_query_srq_resp, max_wr)),
            In(reply).U32(VABI_F(ib_uverbs_query_srq_resp, srq_limit))};
  }

  Cq cq_;
};

TEST_F(Objects, ACompletionQueueIsRoundedAndMappedOnce) {
  const size_t core = world().Size(VABI_S(ib_uverbs_create_cq_resp));
  Bytes reply(core + 16);
  ASSERT_GT(Command(kCreateCq, CqRequest(16), &reply), 0);
  EXPECT_EQ(In(reply).U32(VABI_F(ib_uverbs_create_cq_resp, cqe)),
            31u);  // 17 slots become 32, one stays free
  uint64_t offset;
  uint32_t size;
  Place(reply, core, &offset, &size);
  EXPECT_EQ(offset, 4096u);
  EXPECT_EQ(size, 8192u);  // 384 bytes and 32 of 128, in whole pages
  MappedQueue queue;
  EXPECT_EQ(Map(offset, size + 1, &queue), -EINVAL) << "longer than the queue";
  EXPECT_EQ(Map(offset + 4096, 4096, &queue), -EINVAL) << "no queue begins there";
  ASSERT_EQ(Map(offset, size, &queue), 0);
  EXPECT_EQ(queue.log2(), 7u);
  EXPECT_EQ(queue.mask(), 31u);
  EXPECT_EQ(queue.producer(), 0u);
  EXPECT_EQ(queue.consumer(), 0u);
  EXPECT_EQ(Map(offset, size, &queue), -EINVAL) << "only once";
  // The next one lies behind.
  Bytes second(core + 16);
  ASSERT_GT(Command(kCreateCq, CqRequest(16), &second), 0);
  Place(second, core, &offset, &size);
  EXPECT_EQ(offset, 4096u + 8192);
}

// rxe_mmap.c:rxe_mmap looks at no flag. Here a private mapping is made of a copy, which the trace
// calls unmodelled when the program may write to it.
TEST_F(Objects, ACompletionQueueCanBeMappedPrivately) {
  Bytes reply(world().Size(VABI_S(ib_uverbs_create_cq_resp)) + 16);
  ASSERT_GT(Command(kCreateCq, CqRequest(20), &reply), 0);
  uint64_t offset;
  uint32_t size;
  Place(reply, world().Size(VABI_S(ib_uverbs_create_cq_resp)), &offset, &size);
  const long mapped =
      file_->Mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, static_cast<int64_t>(offset));
  ASSERT_FALSE(mapped < 0 && mapped > -4096);  // an address of 32 bits may be negative, too
  EXPECT_EQ(31u, reinterpret_cast<uint32_t*>(mapped)[1]) << "index_mask";
  munmap(reinterpret_cast<void*>(mapped), size);
}

TEST_F(Objects, AnotherContextCannotMapIt) {
  const size_t core = world().Size(VABI_S(ib_uverbs_create_cq_resp));
  Bytes reply(core + 16);
  ASSERT_GT(Command(kCreateCq, CqRequest(16), &reply), 0);
  uint64_t offset;
  uint32_t size;
  Place(reply, core, &offset, &size);
  auto first = file_;
  file_ = std::make_shared<UverbsFile>(*FindDevice(0));
  Bytes context(world().Size(VABI_S(ib_uverbs_get_context_resp)));
  ASSERT_GT(Command(kGetContext, Zero(VABI_S(ib_uverbs_get_context)), &context), 0);
  fds_.push_back(static_cast<int>(In(context).U32(VABI_F(ib_uverbs_get_context_resp, async_fd))));
  MappedQueue queue;
  EXPECT_EQ(Map(offset, size, &queue), -EINVAL);
  file_ = first;
  EXPECT_EQ(Map(offset, size, &queue), 0);
}

TEST_F(Objects, CompletionQueuesAreRefused) {
  EXPECT_EQ(Errno(CreateCq(16, 12)), EINVAL) << "no room for the place";
  EXPECT_EQ(Errno(CreateCq(32768, 16)), EINVAL);
  EXPECT_GT(CreateCq(32767, 16), 0);
}

TEST_F(Objects, ResizingKeepsWhatIsThere) {
  Cq cq = MakeCq(15);
  const QpWish wish;
  Qp qp = MakeQp(cq, cq, wish);
  Connect(qp, qp.number);
  for (uint64_t i = 0; i < 3; ++i)
    Send(qp,
         {.opcode = kWrite, .wr_id = i, .sges = {At(0, 8)}, .remote = Address(64), .rkey = rkey_});
  ASSERT_EQ(cq.queue.Count(), 3u);
  Poll(cq);
  const auto resize = [&](uint32_t cqe, size_t room, Bytes* reply) {
    Bytes request = Zero(VABI_S(ib_uverbs_resize_cq));
    In(request).Set(VABI_F(ib_uverbs_resize_cq, cq_handle), cq.handle);
    In(request).Set(VABI_F(ib_uverbs_resize_cq, cqe), cqe);
    reply->assign(world().Size(VABI_S(ib_uverbs_resize_cq_resp)) + room, 0);
    return Command(kResizeCq, request, reply);
  };
  Bytes reply;
  EXPECT_EQ(Errno(resize(100, 12, &reply)), EINVAL);
  EXPECT_EQ(Errno(resize(1, 16, &reply)), EINVAL) << "two completions are there";
  EXPECT_EQ(Errno(resize(32768, 16, &reply)), EINVAL);
  ASSERT_GT(resize(100, 16, &reply), 0);
  EXPECT_EQ(In(reply).U32(VABI_F(ib_uverbs_resize_cq_resp, cqe)), 127u);
  MapAt(reply, world().Size(VABI_S(ib_uverbs_resize_cq_resp)), &cq.queue);
  EXPECT_EQ(cq.queue.mask(), 127u);
  EXPECT_EQ(Poll(cq).wr_id, 1u);
  EXPECT_EQ(Poll(cq).wr_id, 2u);
  Send(qp,
       {.opcode = kWrite, .wr_id = 9, .sges = {At(0, 8)}, .remote = Address(64), .rkey = rkey_});
  EXPECT_EQ(Poll(cq).wr_id, 9u);
}

TEST_F(Objects, AQueuePairIsGrantedWhatItsSlotsHold) {
  Cq cq = MakeCq();
  // 100 inline bytes hold six elements of 16; both queues are rounded, one slot stays free.
  Qp qp = MakeQp(cq, cq,
                 {.send_wr = 16, .recv_wr = 5, .send_sge = 2, .recv_sge = 3, .inline_data = 100});
  EXPECT_EQ(qp.send_wr, 31u);
  EXPECT_EQ(qp.recv_wr, 7u);
  EXPECT_EQ(qp.send_sge, 6u);
  EXPECT_EQ(qp.recv_sge, 3u);
  EXPECT_EQ(qp.inline_data, 100u);
  EXPECT_EQ(qp.send.log2(), 9u);     // sizeof(struct rxe_send_wqe) 208, and 100
  EXPECT_EQ(qp.receive.log2(), 7u);  // sizeof(struct rxe_recv_wqe) 40, and 48
  EXPECT_GE(qp.number, 17u);
  EXPECT_EQ(Query(qp, VABI_F(ib_uverbs_query_qp_resp, max_send_wr)), 31u);
  EXPECT_EQ(Query(qp, VABI_F(ib_uverbs_query_qp_resp, path_mtu)), 1u);
}

TEST_F(Objects, QueuePairsAreRefusedInRxesOrder) {
  EXPECT_EQ(Errno(CreateQp({}, 32, Bytes(8))), EINVAL) << "private input";
  EXPECT_EQ(Errno(CreateQp({}, 28)), EINVAL) << "no room for the places";
  EXPECT_EQ(Errno(CreateQp({.type = 8}, 28)), EINVAL) << "the reply comes before the type";
  EXPECT_EQ(Errno(CreateQp({.type = 8})), EOPNOTSUPP);
  EXPECT_EQ(Errno(CreateQp({.send_wr = (1 << 20) + 1})), EINVAL);
  EXPECT_EQ(Errno(CreateQp({.recv_wr = (1 << 20) + 1})), EINVAL);
  EXPECT_EQ(Errno(CreateQp({.send_sge = 33})), EINVAL);
  EXPECT_EQ(Errno(CreateQp({.recv_sge = 33})), EINVAL);
  EXPECT_EQ(Errno(CreateQp({.inline_data = 513})), EINVAL);
  EXPECT_GT(CreateQp({.send_sge = 32, .recv_sge = 32, .inline_data = 512}), 0);
}

TEST_F(Objects, RelaxedRulesLetThemPass) {
  world_.Relax(RuleId::rxe_qp_input);
  world_.Relax(RuleId::rxe_qp_inline);
  Open();
  EXPECT_GT(CreateQp({.inline_data = 600}, 32, Bytes(8)), 0);
}

TEST_F(Objects, AReplyThatCannotBeWrittenLeavesNothingBehind) {
  Bytes request = CqRequest(16);
  const uint64_t nowhere = 16;
  std::memcpy(request.data(), &nowhere, 8);
  Bytes all(8);
  all.insert(all.end(), request.begin(), request.end());
  const uint32_t command = kCreateCq;
  const uint16_t words[2] = {static_cast<uint16_t>(all.size() / 4), 6};
  std::memcpy(all.data(), &command, 4);
  std::memcpy(all.data() + 4, words, 4);
  EXPECT_EQ(file_->Write(all.data(), all.size()), -EFAULT);
  MappedQueue queue;
  EXPECT_EQ(Map(4096, 4096, &queue), -EINVAL);
}

TEST_F(Objects, SharedReceiveQueues) {
  EXPECT_EQ(Errno(CreateSrq(16, 2, 20)), EINVAL);
  EXPECT_EQ(Errno(CreateSrq(0, 2, 24)), EINVAL);
  EXPECT_EQ(Errno(CreateSrq((1 << 20) + 1, 2, 24)), EINVAL);
  EXPECT_EQ(Errno(CreateSrq(16, 28, 24)), EINVAL);
  Srq srq;
  ASSERT_GT(CreateSrq(16, 0, 24, &srq), 0);
  EXPECT_EQ(srq.max_wr, 31u);
  EXPECT_EQ(srq.max_sge, 1u);       // RXE_MIN_SRQ_SGE
  EXPECT_EQ(srq.number, 0x20001u);  // RXE_MIN_SRQ_INDEX
  EXPECT_EQ(srq.queue.log2(), 6u);

  // MODIFY_SRQ wants its pointer even when only the limit is set.
  EXPECT_EQ(Errno(ModifySrq(srq, 2, 0, 5, {})), EINVAL);
  EXPECT_EQ(Errno(ModifySrq(srq, 2, 0, 5, Bytes(4))), EINVAL);
  Bytes tail(16);
  tail[12] = 1;
  EXPECT_EQ(Errno(ModifySrq(srq, 2, 0, 5, tail)), EOPNOTSUPP);
  EXPECT_EQ(Errno(ModifySrq(srq, 2, 0, 32, Bytes(8))), EINVAL) << "more than it holds";
  ASSERT_GT(ModifySrq(srq, 2, 0, 5, Bytes(16)), 0);
  EXPECT_EQ(QuerySrq(srq), (std::pair<uint32_t, uint32_t>{31, 5}));

  Bytes place(16);
  EXPECT_EQ(Errno(ModifySrq(srq, 1, 4, 0, PlacePointer(place.data()))), EINVAL)
      << "below the limit";
  EXPECT_EQ(Errno(ModifySrq(srq, 1, 0, 0, PlacePointer(place.data()))), EINVAL);
  EXPECT_EQ(Errno(ModifySrq(srq, 1, 60, 0, PlacePointer(reinterpret_cast<void*>(16)))), EFAULT);
  Receive(srq.queue, 7, {At(0, 8)});
  ASSERT_GT(ModifySrq(srq, 1, 60, 0, PlacePointer(place.data())), 0);
  MapAt(place, 0, &srq.queue);
  EXPECT_EQ(srq.queue.mask(), 63u);
  EXPECT_EQ(srq.queue.Count(), 1u);
  EXPECT_EQ(QuerySrq(srq).first, 63u);
}

TEST_F(Objects, MemoryRegions) {
  uint32_t lkey = 0, rkey = 0;
  EXPECT_GT(Mr(pd_, 0x1, &lkey, &rkey), 0);
  EXPECT_EQ(lkey, rkey);  // rxe_mr_init: one key for both
  EXPECT_EQ(Errno(Mr(pd_, 0x21, nullptr, nullptr)), EOPNOTSUPP)
      << "ZERO_BASED is not among RXE_ACCESS_SUPPORTED_MR";
  EXPECT_EQ(Errno(Mr(pd_, 0x1, nullptr, nullptr, Address(0) & ~4095ULL, 0)), EINVAL)
      << "no page (ib_umem_num_pages)";
  EXPECT_GT(Mr(pd_, 0x1, nullptr, nullptr, (Address(0) & ~4095ULL) + 4096 + 8, 0), 0) << "one page";
  EXPECT_EQ(Errno(Mr(pd_, 0x1, nullptr, nullptr, Address(0), 0x7f7f7f7f7f7f7f7f)), EINVAL)
      << "more pages than UINT_MAX, before any is looked at";
  EXPECT_EQ(Errno(Mr(pd_, 0x1, nullptr, nullptr, ~0ULL - 100, 200)), EINVAL) << "wraps around";
  EXPECT_EQ(Errno(Mr(pd_, 0x1, nullptr, nullptr, 4096, 8)), EFAULT) << "not mapped";
  void* read_only = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(Errno(Mr(pd_, 0x1, nullptr, nullptr, reinterpret_cast<uintptr_t>(read_only), 8)),
            EFAULT);
  EXPECT_GT(Mr(pd_, 0x4, nullptr, nullptr, reinterpret_cast<uintptr_t>(read_only), 8), 0)
      << "only to be read";
  munmap(read_only, 4096);
  EXPECT_EQ(Errno(Mr(pd_, 0x1 | 0x200, nullptr, nullptr)), EINVAL) << "no persistent memory";
  EXPECT_GT(Mr(pd_, 0x1 | 0x40, nullptr, nullptr), 0) << "on demand";
  EXPECT_EQ(Errno(Mr(pd_, 0x41, nullptr, nullptr, 0x1000, ~0ULL)), EOVERFLOW)
      << "umem_odp.c:ib_init_umem_odp";
}

// core/umem.c: the number of pages is held in an unsigned int.
TEST_F(Objects, ARegionOfMorePagesThanCanBeCountedIsRefusedBeforeItIsLookedAt) {
  EXPECT_EQ(Errno(Mr(pd_, 0x1, nullptr, nullptr, 4096, uint64_t{1} << 44)), EINVAL);
  EXPECT_EQ(Errno(Mr(pd_, 0x1, nullptr, nullptr, 4096, (uint64_t{1} << 44) - 4096)), EFAULT);
}

// rxe_odp.c:rxe_ib_advise_mr
class Advice : public Objects {
 protected:
  struct Attribute {
    uint16_t id, length, flags, reserved;
    uint64_t data;
  };
  int Advise(uint32_t pd, uint64_t advice, uint64_t flags, uint32_t lkey, uint64_t address,
             uint32_t length) {
    const auto number = [this](ConstId id) { return static_cast<uint16_t>(world().Flag(id)); };
    const struct {
      uint64_t address;
      uint32_t length, lkey;
    } sge = {address, length, lkey};
    struct {
      uint16_t length, object, method, attributes;
      uint64_t reserved;
      uint32_t driver, reserved2;
      Attribute all[4];
    } call = {sizeof call,
              number(VABI_C(UVERBS_OBJECT_MR)),
              number(VABI_C(UVERBS_METHOD_ADVISE_MR)),
              4,
              0,
              FindDevice(0)->image().driver_id,
              0,
              {{number(VABI_C(UVERBS_ATTR_ADVISE_MR_PD_HANDLE)), 0, 1, 0, pd},
               {number(VABI_C(UVERBS_ATTR_ADVISE_MR_ADVICE)), 8, 1, 0, advice},
               {number(VABI_C(UVERBS_ATTR_ADVISE_MR_FLAGS)), 8, 1, 0, flags},
               {number(VABI_C(UVERBS_ATTR_ADVISE_MR_SGE_LIST)), sizeof sge, 1, 0,
                reinterpret_cast<uintptr_t>(&sge)}}};
    return Errno(file_->Ioctl(0xc0181b01, &call));
  }
};

TEST_F(Advice, LooksForAWritableRegionOfThePd) {
  uint32_t readable = 0;
  Mr(pd_, 0x4, &readable, nullptr);
  for (const uint64_t advice : {0, 1, 2}) {
    EXPECT_EQ(Advise(pd_, advice, 0, lkey_, Address(0), 4096), 0);
    EXPECT_EQ(Advise(pd_, advice, 0, lkey_ ^ 1, Address(0), 4096), EINVAL);
    EXPECT_EQ(Advise(pd_, advice, 0, readable, Address(0), 4096), EINVAL);
    EXPECT_EQ(Advise(Pd(), advice, 0, lkey_, Address(0), 4096), EINVAL) << "of another PD";
  }
  EXPECT_EQ(Advise(pd_, 3, 0, lkey_, Address(0), 4096), EOPNOTSUPP);
  EXPECT_EQ(Advise(pd_, 0, 0, lkey_, 4096, 4096), 0) << "bounds are looked at by a worker";
}

// core/umem_odp.c:ib_umem_odp_map_dma_and_lock
TEST_F(Advice, AFlushSaysWhatItFound) {
  uint32_t lkey = 0;
  const uint64_t page = (Address(0) + 4095) & ~uint64_t{4095};
  Mr(pd_, 0x41, &lkey, nullptr, page, 8192);
  EXPECT_EQ(Advise(pd_, 0, 1, lkey, page, 8192), 0);
  EXPECT_EQ(Advise(pd_, 0, 1, lkey, page - 1, 8), EFAULT);
  EXPECT_EQ(Advise(pd_, 0, 1, lkey, page + 8192, 1), EFAULT);
  void* gone = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Mr(pd_, 0x41, &lkey, nullptr, reinterpret_cast<uintptr_t>(gone), 4096);
  munmap(gone, 4096);
  EXPECT_EQ(Advise(pd_, 1, 1, lkey, reinterpret_cast<uintptr_t>(gone), 4096), EFAULT);
  EXPECT_EQ(Advise(pd_, 2, 1, lkey, reinterpret_cast<uintptr_t>(gone), 4096), 0) << "NO_FAULT";
}

TEST_F(Objects, ReregistrationTakesPdAndAccess) {
  uint32_t lkey = 0, rkey = 0, handle = 0;
  ASSERT_GT(Mr(pd_, 0x4, &lkey, &rkey, 0, kSize, &handle), 0);
  const auto rereg = [&](uint32_t flags, uint32_t access) {
    Bytes request = Zero(VABI_S(ib_uverbs_rereg_mr));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_rereg_mr, mr_handle), handle);
    body.Set(VABI_F(ib_uverbs_rereg_mr, flags), flags);
    body.Set(VABI_F(ib_uverbs_rereg_mr, start), Address(0));
    body.Set(VABI_F(ib_uverbs_rereg_mr, hca_va), Address(0));
    body.Set(VABI_F(ib_uverbs_rereg_mr, length), 4096);
    body.Set(VABI_F(ib_uverbs_rereg_mr, access_flags), access);
    Bytes reply(world().Size(VABI_S(ib_uverbs_rereg_mr_resp)));
    return Command(kReregMr, request, &reply);
  };
  EXPECT_EQ(Errno(rereg(1, 0)), EOPNOTSUPP) << "another range";
  EXPECT_EQ(Errno(rereg(4, 1)), EACCES) << "pinned for reading";
  EXPECT_GT(rereg(4, 0x4 | 0x100000), 0);
  // umem->writable is of the registration.
  ASSERT_GT(Mr(pd_, 0x1, &lkey, &rkey, 0, kSize, &handle), 0);
  EXPECT_GT(rereg(4, 0x4), 0);
  EXPECT_GT(rereg(4, 0x1), 0);
}

class ObjectsOf510 : public Objects {
 protected:
  ObjectsOf510() : Objects("debian-5.10.223") {}
};

TEST_F(ObjectsOf510, EntriesOfCompletionQueuesHave64Bytes) {
  Cq cq = MakeCq(16);
  EXPECT_EQ(cq.queue.log2(), 6u);  // struct ib_wc before its port_num grew
  EXPECT_EQ(cq.queue.size, 4096u);
}

TEST_F(ObjectsOf510, LimitsAndKeysOfThatKernel) {
  EXPECT_EQ(Errno(CreateQp({.send_wr = 0x4001})), EINVAL);
  EXPECT_EQ(Errno(CreateSrq(0x4001, 1, 24)), EINVAL);
  EXPECT_GT(CreateSrq(16, 1, 24, nullptr, 0x4001), 0)
      << "IB_SRQ_INIT_MASK is all but the limit (rxe_loc.h)";
  uint32_t lkey = 0, rkey = 0;
  EXPECT_GT(Mr(pd_, 0x1, &lkey, &rkey), 0);
  EXPECT_NE(lkey, 0u);
  EXPECT_EQ(rkey, 0u);  // rxe_mem_init: no remote access, no rkey
}

// rxe_qp_chk_init does not ask for the type before 5.11; modify_qp has rows for raw packets.
TEST_F(ObjectsOf510, QueuePairsOfServicesThatItDoesNotHave) {
  EXPECT_GT(CreateQp({.type = 8}), 0);
  EXPECT_GT(CreateQp({.type = 9}), 0);
  EXPECT_GT(CreateQp({.type = 0xff}), 0);
  Qp qp = MakeQp(cq_, cq_, {.type = 8});
  EXPECT_GT(Modify(qp, 0x21, {{MODIFY(qp_state), 1}, {MODIFY(port_num), 1}}), 0);
}

// rxe_verbs.c:rxe_post_recv and post_one_recv: the kernel writes into the program's queue.
TEST_F(ObjectsOf510, ReceivesPostedByTheKernel) {
  Cq cq = MakeCq();
  Qp qp = MakeQp(cq, cq, {.recv_wr = 3});
  uint32_t bad = 0;
  EXPECT_EQ(Errno(PostReceive(qp, 5, At(30000, 64), &bad)), EINVAL) << "RESET";
  EXPECT_EQ(bad, 1u);
  Connect(qp, qp.number);
  ASSERT_GT(PostReceive(qp, 5, At(30000, 64), &bad), 0);
  EXPECT_EQ(bad, 0u);
  EXPECT_EQ(qp.receive.Count(), 1u);
  Send(qp, {.wr_id = 6, .sges = {At(0, 64)}});
  EXPECT_EQ(Poll(cq).wr_id, 5u);
  EXPECT_EQ(bytes[30001], bytes[1]);
  for (int i = 0; i < 3; ++i) ASSERT_GT(PostReceive(qp, 7, At(30000, 64), &bad), 0);
  EXPECT_EQ(Errno(PostReceive(qp, 7, At(30000, 64), &bad)), ENOMEM) << "three of four slots";
}

TEST_F(ObjectsOf510, PollingThroughTheKernel) {
  Cq cq = MakeCq();
  Bytes request = Zero(VABI_S(ib_uverbs_poll_cq));
  In(request).Set(VABI_F(ib_uverbs_poll_cq, cq_handle), cq.handle);
  In(request).Set(VABI_F(ib_uverbs_poll_cq, ne), 1);
  Bytes reply(8, 0xff);
  EXPECT_GT(Command(kPollCq, request, &reply), 0);
  EXPECT_EQ(reply, Bytes(8)) << "none";
}

class ObjectsOf61 : public Objects {
 protected:
  ObjectsOf61() : Objects("debian-6.1.192") {}
};

TEST_F(ObjectsOf61, DepthsAreToldAsAsked) {
  Cq cq = MakeCq();
  Qp qp = MakeQp(cq, cq, {.send_wr = 16, .recv_wr = 5});
  EXPECT_EQ(qp.send_wr, 16u);
  EXPECT_EQ(qp.recv_wr, 5u);
  EXPECT_EQ(Query(qp, VABI_F(ib_uverbs_query_qp_resp, max_send_wr)), 31u);
}

// rxe_qp_chk_attr holds every mask against the table; cur_qp_state is what modify_qp was told.
TEST_F(ObjectsOf61, AttributesNeedTheirState) {
  Cq cq = MakeCq();
  Qp qp = MakeQp(cq, cq, {});
  EXPECT_EQ(Errno(Modify(qp, 0x8000, {{MODIFY(min_rnr_timer), 9}})), EINVAL);
  Connect(qp, qp.number);
  EXPECT_EQ(Query(qp, VABI_F(ib_uverbs_query_qp_resp, cur_qp_state)), 0u);
  ASSERT_GT(Modify(qp, 0x3, {{MODIFY(qp_state), 3}, {MODIFY(cur_qp_state), 3}}), 0);
  EXPECT_EQ(Query(qp, VABI_F(ib_uverbs_query_qp_resp, cur_qp_state)), 3u);
}

// Since 6.6 rxe_qp_from_attr asks __qp_chk_state only when IB_QP_STATE is in the mask.
TEST_F(Objects, AttributesNeedNoState) {
  Cq cq = MakeCq();
  Qp qp = MakeQp(cq, cq, {});
  EXPECT_GT(Modify(qp, 0x8000, {{MODIFY(min_rnr_timer), 9}}), 0);
  EXPECT_EQ(Query(qp, VABI_F(ib_uverbs_query_qp_resp, min_rnr_timer)), 9u);
  EXPECT_EQ(Query(qp, VABI_F(ib_uverbs_query_qp_resp, qp_state)), 0u) << "still in RESET";
}

// rxe_cq.c:rxe_cq_chk_attr
TEST_F(ObjectsOf61, NoQueueIsResizedToNothing) {
  Cq cq = MakeCq();
  Bytes request = Zero(VABI_S(ib_uverbs_resize_cq));
  In(request).Set(VABI_F(ib_uverbs_resize_cq, cq_handle), cq.handle);
  Bytes reply(world().Size(VABI_S(ib_uverbs_resize_cq_resp)) + 16);
  EXPECT_EQ(Errno(Command(kResizeCq, request, &reply)), EINVAL);
}

}  // namespace
}  // namespace vabi::rxe
