// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_RDMA_CM_WIRE_H_
#define VABI_SHIMS_RDMA_CM_WIRE_H_

#include <cstdint>
#include <vector>

#include "shims/rdma_cm/identifier.h"

// What connection managers say to each other: the messages of IBTA chapter 12 between the processes
// of one world. Each process has a datagram socket of its own (abstract Unix names, so that nothing
// stays behind), and tells in a file of the run folder which service ports it holds.

namespace vabi::rdma_cm {

enum class MessageKind : uint32_t {
  kRequest,
  kReply,
  kReadyToUse,
  kReject,
  kDisconnectRequest,
  kDisconnectReply,
  kSidrRequest,
  kSidrReply,
  kPing,  // is the process still there; never answered
};

struct Message {
  MessageKind kind = MessageKind::kPing;
  int32_t from_process = 0;
  uint32_t from = 0, to = 0;  // identifiers
  uint16_t port_space = 0;
  uint8_t qp_type = 0;
  uint64_t service = 0;  // of a request, in host order
  Place place;           // where it arrives
  Path path;             // of a request: the requester's
  uint32_t status = 0;   // reason of a rejection, status of a SIDR reply
  uint32_t psn = 0;
  uint8_t timeout = 0, ack_delay = 0;
  Ece ece;
  ConnectionParameters parameters;
};

// A service port that some identifier holds.
struct PortHolder {
  int32_t process = 0;
  uint32_t number = 0;
  uint16_t port_space = 0, port = 0;
  Address address;
  int32_t device = -1;  // that it is bound to
  bool reuse = false, family_only = false, listening = false;
};

class Wire {
 public:
  // The world's run folder; empty: the process is alone. `receive` is called for each message of
  // another process, on a thread of the wire's.
  void Start(const char* run_dir, void (*receive)(const Message&));
  // False: the process is not there.
  bool Send(int process, const Message& message);
  // What this process holds; replaces what it told before.
  void Publish(const std::vector<PortHolder>& held);
  // What the other processes hold.
  std::vector<PortHolder> Others() const;
  // Processes whose end matters: `gone` is called for each that ends, on the wire's thread.
  void Watch(std::vector<int> processes, void (*gone)(int process));
  // After fork: the child has no wire yet.
  void Forget();
  bool started() const { return socket_ >= 0; }

 private:
  void Run();
  static void* RunThread(void* self);
  int socket_ = -1;
  char folder_[300] = {};
  void (*receive_)(const Message&) = nullptr;
  void (*gone_)(int) = nullptr;
  std::vector<int> watched_;
};

}  // namespace vabi::rdma_cm

#endif  // VABI_SHIMS_RDMA_CM_WIRE_H_
