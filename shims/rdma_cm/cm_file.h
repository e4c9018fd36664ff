// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_RDMA_CM_CM_FILE_H_
#define VABI_SHIMS_RDMA_CM_CM_FILE_H_

#include <deque>
#include <memory>

#include "shims/access_mode.h"
#include "shims/file.h"
#include "shims/rdma_cm/identifier.h"
#include "shims/sys/turns.h"
#include "shims/trace/decision.h"

namespace vabi::rdma_cm {

struct Event {
  static constexpr size_t kSize = 336;  // struct rdma_ucm_event_resp
  uint8_t bytes[kSize] = {};
  std::shared_ptr<Identifier> about;    // whose counter is raised when it is read
  std::shared_ptr<Identifier> request;  // kConnectRequest: the new connection
  uint32_t group = 0;                   // kMulticastJoin: number of the membership, from 1
};

// An open /dev/infiniband/rdma_cm: struct ucma_file of core/ucma.c. The backing descriptor is an
// eventfd that is readable exactly while there are events.
class CmFile : public File {
 public:
  CmFile(const World& world, const NodeView* node);

  // ucma_fops has a write, and nothing that reads.
  ssize_t Read(void* user, size_t size, bool nonblock) override;
  ssize_t Write(const void* user, size_t size) override;
  int CheckRead() const override { return access_.RefuseRead(); }
  int CheckWrite() const override { return access_.CheckWrite(); }
  void set_access_mode(AccessMode mode) { access_ = mode; }
  bool StatAs(unsigned int* mode, uint64_t* rdev) const override;
  void Release() override;
  const char* Name() const override;
  static std::shared_ptr<CmFile> From(const std::shared_ptr<File>& file);

  const World& world() const { return world_; }
  // The events, in their order. With the connection managers' lock held.
  std::deque<Event>& events() { return events_; }
  void Signal();
  // Where readers wait for the next event, without the lock.
  sys::Turns& turns() { return turns_; }

 private:
  const World& world_;
  const NodeView* const node_;
  const int opener_;
  const uint64_t opener_credentials_;
  AccessMode access_;
  bool signalled_ = false;
  sys::Turns turns_;
  std::deque<Event> events_;
};

}  // namespace vabi::rdma_cm

#endif  // VABI_SHIMS_RDMA_CM_CM_FILE_H_
