// SPDX-License-Identifier: BSD-2-Clause
//
// Costs through the real libibverbs and provider, one JSON object on standard output:
//   query_device_ns   one raw ioctl INVOKE_WRITE of QUERY_DEVICE on the device's descriptor
//   send64_per_s      64-byte RC SENDs from one queue pair to another, each received and completed
//   on both sides post_poll_ns      what the provider itself needs for such a message: post_recv,
//   post_send and two poll_cq that find
//                     their completion, with everything already there; its inverse is the limit of
//                     send64_per_s
// Usage: verbs [DEVICE] [MESSAGES]

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "harness/cells/journey/queue_pair.h"
#include "harness/cells/journey/step.h"

namespace {

double Seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double QueryDeviceNs(ibv_context* context) {
  constexpr int kAttributes = 3;
  // The header ends in an array without length: the attributes stand right behind it.
  constexpr size_t kBytes = sizeof(ib_uverbs_ioctl_hdr) + kAttributes * sizeof(ib_uverbs_attr);
  alignas(8) unsigned char bytes[kBytes] = {};
  auto* header = reinterpret_cast<ib_uverbs_ioctl_hdr*>(bytes);
  auto* attributes = reinterpret_cast<ib_uverbs_attr*>(bytes + sizeof *header);
  ib_uverbs_query_device request = {};
  ib_uverbs_query_device_resp reply = {};
  header->length = kBytes;
  header->object_id = UVERBS_OBJECT_DEVICE;
  header->method_id = UVERBS_METHOD_INVOKE_WRITE;
  header->num_attrs = kAttributes;
  const auto set = [&](int index, uint16_t id, size_t length, uint64_t data) {
    attributes[index].attr_id = id;
    attributes[index].len = static_cast<uint16_t>(length);
    attributes[index].flags = UVERBS_ATTR_F_MANDATORY;
    attributes[index].data = data;
  };
  set(0, UVERBS_ATTR_WRITE_CMD, sizeof(uint64_t), IB_USER_VERBS_CMD_QUERY_DEVICE);
  set(1, UVERBS_ATTR_CORE_IN, sizeof request, reinterpret_cast<uintptr_t>(&request));
  set(2, UVERBS_ATTR_CORE_OUT, sizeof reply, reinterpret_cast<uintptr_t>(&reply));
  // The right driver id is the one that is not refused.
  int result = -1;
  for (uint32_t driver = 0; driver < 32 && result != 0; ++driver) {
    header->driver_id = driver;
    result = ioctl(context->cmd_fd, RDMA_VERBS_IOCTL, header);
  }
  if (result != 0) return -1;
  constexpr int kRounds = 20000;
  const double start = Seconds();
  for (int i = 0; i < kRounds; ++i) {
    if (ioctl(context->cmd_fd, RDMA_VERBS_IOCTL, header) != 0) return -1;
  }
  return (Seconds() - start) / kRounds * 1e9;
}

struct Work {
  ibv_sge from, to;
  ibv_send_wr send;
  ibv_recv_wr receive;

  explicit Work(journey::Pair* pair) : send(), receive() {
    from = {reinterpret_cast<uintptr_t>(pair->left.bytes), 64, pair->left.mr->lkey};
    to = {reinterpret_cast<uintptr_t>(pair->right.bytes), 64, pair->right.mr->lkey};
    send.sg_list = &from;
    send.num_sge = 1;
    send.opcode = IBV_WR_SEND;
    send.send_flags = IBV_SEND_SIGNALED;
    receive.sg_list = &to;
    receive.num_sge = 1;
  }
};

// Keeps the queues half full, so that posting, moving and polling go on at once.
double SendPerSecond(journey::Pair* pair, int messages) {
  Work work(pair);
  ibv_send_wr* bad_send = nullptr;
  ibv_recv_wr* bad_receive = nullptr;
  ibv_wc completions[32];
  int posted = 0;
  int done = 0;
  const double start = Seconds();
  while (done < 2 * messages) {
    while (posted < messages && posted - done / 2 < static_cast<int>(journey::kDepth) - 2) {
      if (ibv_post_recv(pair->right.qp, &work.receive, &bad_receive) != 0) return -1;
      if (ibv_post_send(pair->left.qp, &work.send, &bad_send) != 0) return -1;
      ++posted;
    }
    const int got = ibv_poll_cq(pair->cq, 32, completions);
    if (got < 0) return -1;
    for (int i = 0; i < got; ++i) {
      if (completions[i].status != IBV_WC_SUCCESS) return -1;
    }
    done += got;
    if (got == 0 && Seconds() - start > 60) return -1;
  }
  return messages / (Seconds() - start);
}

double PostPollNs(journey::Pair* pair) {
  Work work(pair);
  ibv_send_wr* bad_send = nullptr;
  ibv_recv_wr* bad_receive = nullptr;
  ibv_wc completions[32];
  constexpr int kBatch = static_cast<int>(journey::kDepth) - 2;
  constexpr int kRounds = 300;
  // The best round each: others are those in which the machine did something else.
  double post = 1, poll = 1;
  for (int round = 0; round < kRounds; ++round) {
    double start = Seconds();
    for (int i = 0; i < kBatch; ++i) {
      if (ibv_post_recv(pair->right.qp, &work.receive, &bad_receive) != 0) return -1;
      if (ibv_post_send(pair->left.qp, &work.send, &bad_send) != 0) return -1;
    }
    post = std::min(post, Seconds() - start);
    const timespec settle = {0, 1000000};
    nanosleep(&settle, nullptr);
    start = Seconds();
    int got = 0;
    while (got < 2 * kBatch) {
      const int more = ibv_poll_cq(pair->cq, 32, completions);
      if (more < 0 || Seconds() - start > 5) return -1;
      got += more;
    }
    poll = std::min(poll, Seconds() - start);
  }
  return (post + poll) / kBatch * 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr || count == 0) return 3;
  ibv_device* device = list[0];
  for (int i = 0; argc > 1 && i < count; ++i) {
    if (strcmp(ibv_get_device_name(list[i]), argv[1]) == 0) device = list[i];
  }
  ibv_context* context = ibv_open_device(device);
  ibv_free_device_list(list);
  if (context == nullptr) return 1;
  const int messages = argc > 2 ? atoi(argv[2]) : 200000;
  // The steps of the journey's set-up go to standard output as well; the result is the last line.
  journey::Pair pair;
  if (!journey::SetUp(context, &pair)) return 1;
  const double query = QueryDeviceNs(context);
  SendPerSecond(&pair, messages / 10);  // warm
  const double sends = SendPerSecond(&pair, messages);
  const double limit = PostPollNs(&pair);
  journey::TearDown(&pair);
  ibv_close_device(context);
  printf("{\"query_device_ns\": %.1f, \"send64_per_s\": %.0f, \"post_poll_ns\": %.1f}\n", query,
         sends, limit);
  return journey::Failures() != 0 || sends < 0;
}
