// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UMAD_UMAD_FILE_H_
#define VABI_SHIMS_UMAD_UMAD_FILE_H_

#include <fcntl.h>

#include <array>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "shims/access_mode.h"
#include "shims/file.h"
#include "shims/sys/turns.h"
#include "shims/trace/decision.h"
#include "shims/umad/agents.h"
#include "shims/umad/mad.h"
#include "shims/uverbs/device.h"

namespace vabi::umad {

// An open /dev/infiniband/umadN: struct ib_umad_file of core/user_mad.c. The backing descriptor is
// an eventfd that is readable exactly while there is a MAD to read.
class UmadFile : public File, public std::enable_shared_from_this<UmadFile> {
 public:
  UmadFile(Device& device, uint8_t port, const NodeView* node)
      : device_(device), port_(port), node_(node) {}

  ssize_t Read(void* user, size_t size, bool nonblock) override;
  ssize_t Write(const void* user, size_t size) override;
  long Ioctl(unsigned long request, void* argument) override;
  bool StatAs(unsigned int* mode, uint64_t* rdev) const override;
  void Release() override;
  const char* Name() const override {
    return node_ != nullptr ? node_->path : "/dev/infiniband/umad";
  }
  int CheckRead() const override { return access_.CheckRead(); }
  int CheckWrite() const override { return access_.CheckWrite(); }
  void set_access_mode(AccessMode mode) { access_ = mode; }

 private:
  static constexpr uint32_t kMaxAgents = 32;  // IB_UMAD_MAX_AGENTS
  static constexpr size_t kMaxHeader = 64;
  struct Packet {
    uint8_t header[kMaxHeader] = {};  // struct ib_user_mad_hdr
    uint8_t data[kMadSize] = {};
    size_t length = 0;          // of the data
    std::vector<uint8_t> rest;  // what stood in segments behind the first, and counts in `length`
    std::shared_ptr<Agent> agent;
  };

  const World& world() const { return device_.world(); }
  bool gone() const { return device_.node_gone(); }
  size_t HeaderSize() const;
  Body Header(uint8_t* bytes) const { return Body(world(), bytes, kMaxHeader); }
  int RegisterAgent(Decision& call, uint64_t argument);
  int RegisterAgent2(Decision& call, uint64_t argument);
  int Admit(Decision& call, const Registration& what, uint64_t id_address, bool second);
  int FreeSlot() const;
  int Unregister(Decision& call, uint64_t argument);
  int SendMad(Decision& call, const uint8_t* user, size_t size);
  int CheckAddress(Decision& call, const Body& header) const;
  int CheckRoute(Decision& call, Mad* mad, bool* local) const;
  bool IsDuplicate(const Packet& packet) const;
  void Post(Decision& call, std::shared_ptr<Packet> packet, bool local);
  void Queue(std::shared_ptr<Packet> packet);
  void Expire(const std::shared_ptr<Packet>& packet);
  void Signal();

  Device& device_;
  const uint8_t port_;
  const NodeView* const node_;
  AccessMode access_;
  std::mutex mutex_;
  std::array<std::shared_ptr<Agent>, kMaxAgents> agents_;
  std::deque<std::shared_ptr<Packet>> received_;
  std::list<std::shared_ptr<Packet>> sent_;  // waiting for an answer
  bool use_pkey_index_ = false;
  bool already_used_ = false;
  bool signalled_ = false;
  sys::Turns turns_;  // readers wait here
};

// An open /dev/infiniband/issmN: while it is open, the port says that it has a subnet manager.
class IssmFile : public File {
 public:
  // ib_umad_sm_open: one at a time. 0, or -errno; the rule is in `call`.
  static int Open(Decision& call, Device& device, uint8_t port, const NodeView* node, bool nonblock,
                  std::shared_ptr<File>* out);
  ~IssmFile() override { Release(); }
  bool StatAs(unsigned int* mode, uint64_t* rdev) const override;
  void Release() override;
  const char* Name() const override { return node_->path; }

 private:
  IssmFile(Device& device, uint8_t port, const NodeView* node)
      : device_(device), port_(port), node_(node) {}
  Device& device_;
  const uint8_t port_;
  const NodeView* const node_;
  bool released_ = false;
};

}  // namespace vabi::umad

#endif  // VABI_SHIMS_UMAD_UMAD_FILE_H_
