// SPDX-License-Identifier: BSD-2-Clause
#include "shims/umad/umad_file.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "shims/sys/later.h"
#include "shims/sys/sys.h"
#include "shims/umad/answer.h"
#include "shims/uverbs/address.h"

namespace vabi::umad {
namespace {

// include/uapi/rdma/ib_user_mad.h: _IOWR(0x1b, 1, …), _IOW(0x1b, 2, u32), _IO(0x1b, 3), _IOWR(0x1b,
// 4, …), without the size.
enum IoctlNumber : unsigned long {
  kRegisterAgent = 0xc0001b01,
  kUnregisterAgent = 0x40001b02,
  kEnablePkey = 0x00001b03,
  kRegisterAgent2 = 0xc0001b04,
};

#define HEADER(name) VABI_F(ib_user_mad_hdr, name)

uint32_t FromBig(uint64_t value) { return __builtin_bswap32(static_cast<uint32_t>(value)); }
uint16_t FromBig16(uint64_t value) { return __builtin_bswap16(static_cast<uint16_t>(value)); }

}  // namespace

size_t UmadFile::HeaderSize() const {
  return world().Size(use_pkey_index_ ? VABI_S(ib_user_mad_hdr) : VABI_S(ib_user_mad_hdr_old));
}

bool UmadFile::StatAs(unsigned int* mode, uint64_t* rdev) const {
  if (node_ == nullptr) return false;
  *mode = S_IFCHR | node_->mode;
  *rdev = makedev(node_->major, node_->minor);
  return true;
}

void UmadFile::Release() {
  std::lock_guard lock(mutex_);
  agents_.fill(nullptr);
  received_.clear();
  sent_.clear();
}

void UmadFile::Signal() {
  const bool wanted = !received_.empty();
  if (wanted) turns_.Next();
  if (wanted == signalled_ || backing_fd() < 0) return;
  uint64_t count = 1;
  if (wanted) {
    sys::Write(backing_fd(), &count, sizeof(count));
  } else if (sys::Poll(backing_fd(), POLLIN, 0) == 1) {
    sys::Read(backing_fd(), &count, sizeof(count));
  }
  signalled_ = wanted;
}

// queue_packet: under the number that the agent has now; an agent that is gone loses it.
void UmadFile::Queue(std::shared_ptr<Packet> packet) {
  const auto slot = std::find(agents_.begin(), agents_.end(), packet->agent);
  if (packet->agent == nullptr || slot == agents_.end()) return;
  Header(packet->header).Set(HEADER(id), static_cast<uint64_t>(slot - agents_.begin()));
  received_.push_back(std::move(packet));
  Signal();
}

// send_handler: nobody answered in time.
void UmadFile::Expire(const std::shared_ptr<Packet>& packet) {
  std::lock_guard lock(mutex_);
  const auto found = std::find(sent_.begin(), sent_.end(), packet);
  if (found == sent_.end()) return;
  sent_.erase(found);
  packet->length = kMadHeader;
  Header(packet->header).Set(HEADER(status), ETIMEDOUT);
  Queue(packet);
}

ssize_t UmadFile::Read(void* user, size_t size, bool nonblock) {
  Decision call(world(), trace::FrontEnd::kRead, device_.image().name, "read:mad");
  const auto answer = [&](long result) { return static_cast<ssize_t>(call.Finish(result)); };
  if (const int error = CheckRead()) return error;
  if (size < HeaderSize()) return answer(call.Refuse(RuleId::umad_read_header));
  for (;;) {
    uint32_t turn;
    {
      std::lock_guard lock(mutex_);
      turn = turns_.now();
      if (gone() && world().Rule(RuleId::umad_read_gone).on)
        return answer(call.Refuse(RuleId::umad_read_gone));
      if (!received_.empty()) {
        Packet& packet = *received_.front();
        const size_t header = HeaderSize();
        const size_t first = packet.length - packet.rest.size();
        if (size < header + first) return answer(call.Refuse(RuleId::umad_read_short));
        const uint64_t at = reinterpret_cast<uintptr_t>(user);
        // What cannot be delivered stays the first one.
        if (sys::CopyToUser(at, packet.header, header) != 0 ||
            sys::CopyToUser(at + header, packet.data, first) != 0) {
          return answer(call.Refuse(RuleId::umad_read_fault));
        }
        // copy_recv_mad: who had too little room has the first segment, which says how much there
        // is.
        if (size < header + packet.length) return answer(-ENOSPC);
        if (sys::CopyToUser(at + header + first, packet.rest.data(), packet.rest.size()) != 0)
          return answer(call.Refuse(RuleId::umad_read_fault));
        const auto result = static_cast<long>(header + packet.length);
        received_.pop_front();
        Signal();
        return answer(result);
      }
      if (nonblock) return answer(call.Refuse(RuleId::umad_read_again));
    }
    if (const int waited = turns_.WaitFor(turn)) return answer(waited);
  }
}

ssize_t UmadFile::Write(const void* user, size_t size) {
  Decision call(world(), trace::FrontEnd::kWrite, device_.image().name, "umad:SEND");
  if (const int error = CheckWrite()) return error;
  std::lock_guard lock(mutex_);
  const int result = SendMad(call, static_cast<const uint8_t*>(user), size);
  return static_cast<ssize_t>(call.Finish(result < 0 ? result : static_cast<long>(size)));
}

// rdma_create_user_ah of the header's address.
int UmadFile::CheckAddress(Decision& call, const Body& header) const {
  fabric::AddressVector address;
  address.port_num = port_;
  address.is_global = header.Get(HEADER(grh_present)) != 0;
  address.sgid_index = static_cast<uint8_t>(header.Get(HEADER(gid_index)));
  const auto broken = BrokenAddressRule(device_, address);
  return broken ? call.Refuse(*broken) : 0;
}

// smi_handle_dr_smp_send of a channel adapter, then smi_check_local_smp. `*local`: this port's own
// agent gets it.
int UmadFile::CheckRoute(Decision& call, Mad* mad, bool* local) const {
  constexpr int kMaxHops = 64;  // IB_SMP_MAX_PATH_HOPS
  const bool returning = mad->returning();
  const uint8_t count = mad->hop_count(), pointer = mad->hop_pointer();
  if ((returning ? mad->dr_dlid() : mad->dr_slid()) == kPermissiveLid) {
    // In the middle of a path only switches handle it.
    const bool midway =
        returning ? pointer >= 2 && pointer <= count : pointer != 0 && pointer < count;
    bool handled = false;
    if (count < kMaxHops && !midway && !returning) {
      if (count != 0 && pointer == 0) {
        mad->set_hop_pointer(1);
        handled = mad->initial_path(1) == port_;
      } else if (pointer == count) {
        mad->set_hop_pointer(static_cast<uint8_t>(pointer + 1));
        handled = mad->dr_dlid() == kPermissiveLid;
      } else {
        handled = pointer == count + 1;
      }
    } else if (count < kMaxHops && !midway) {
      if (count != 0 && pointer == count + 1) {
        mad->set_hop_pointer(count);
        handled = mad->return_path(count) == port_;
      } else if (pointer == 1) {
        mad->set_hop_pointer(0);
        handled = mad->dr_slid() == kPermissiveLid;
      } else {
        handled = pointer == 0;
      }
    }
    if (call.Violates(RuleId::umad_write_route, !handled))
      return call.Refuse(RuleId::umad_write_route);
  }
  // Needs a driver with an agent (ib_device.process_mad).
  *local = device_.image().driver == DriverId::mlx5 &&
           (returning ? mad->hop_pointer() == 0 : mad->hop_pointer() == mad->hop_count() + 1);
  return 0;
}

bool UmadFile::IsDuplicate(const Packet& packet) const {
  uint8_t data[kMadSize];
  std::memcpy(data, packet.data, sizeof(data));
  const Mad mad(data);
  for (const auto& other : sent_) {
    const Mad sent(other->data);
    if (sent.tid() != mad.tid() || sent.mgmt_class() != mad.mgmt_class()) continue;
    if (sent.IsResponse() != mad.IsResponse()) continue;
    if (!mad.IsResponse()) return true;
    uint8_t mine[kMaxHeader];
    std::memcpy(mine, packet.header, sizeof(mine));
    const Body a = Header(mine), b = Header(other->header);
    const bool global = a.Get(HEADER(grh_present)) != 0;
    if (global != (b.Get(HEADER(grh_present)) != 0)) continue;
    uint8_t first[16] = {}, second[16] = {};
    a.GetBytes(HEADER(gid), first, sizeof(first));
    b.GetBytes(HEADER(gid), second, sizeof(second));
    if (global ? std::memcmp(first, second, sizeof(first)) == 0
               : a.Get(HEADER(lid)) == b.Get(HEADER(lid))) {
      return true;
    }
  }
  return false;
}

// ib_umad_write
int UmadFile::SendMad(Decision& call, const uint8_t* user, size_t size) {
  const size_t header_size = HeaderSize();
  if (size < header_size + kRmppHeader) return call.Refuse(RuleId::umad_write_short);
  auto packet = std::make_shared<Packet>();
  const uint64_t from = reinterpret_cast<uintptr_t>(user);
  if (sys::CopyFromUser(packet->header, from, header_size) != 0)
    return call.Refuse(RuleId::umad_write_fault);
  const Body header = Header(packet->header);
  const uint32_t id = header.U32(HEADER(id));
  if (id >= kMaxAgents) return call.Refuse(RuleId::umad_write_id);
  if (sys::CopyFromUser(packet->data, from + header_size, kRmppHeader) != 0)
    return call.Refuse(RuleId::umad_write_fault);
  packet->agent = gone() ? nullptr : agents_[id];
  if (packet->agent == nullptr) return call.Refuse(RuleId::umad_write_no_agent);
  const Agent& agent = *packet->agent;
  if (const int error = CheckAddress(call, header)) return error;

  Mad mad(packet->data);
  const bool has_rmpp = HasRmpp(mad.mgmt_class());
  const size_t class_header = DataOffset(mad.mgmt_class());
  if (call.Violates(RuleId::umad_write_class_header, size < header_size + class_header))
    return call.Refuse(RuleId::umad_write_class_header);
  const bool rmpp_active = (mad.rmpp_flags() & 1) != 0;  // IB_MGMT_RMPP_FLAG_ACTIVE
  const bool segmented = has_rmpp && agent.KernelRmpp() && rmpp_active;
  const size_t length = size - header_size;
  if (!segmented && length > kMadSize) return call.Refuse(RuleId::umad_write_long);
  // Of a message in segments, what follows the first one never leaves: nobody is there to take it.
  if (sys::CopyFromUser(packet->data, from + header_size, std::min(length, kMadSize)) != 0)
    return call.Refuse(RuleId::umad_write_fault);
  if (!mad.IsResponse()) mad.set_tid_high(agent.hi_tid);
  const bool user_segments = has_rmpp && !agent.KernelRmpp() && rmpp_active;
  if (call.Violates(RuleId::umad_write_duplicate, !user_segments && IsDuplicate(*packet)))
    return call.Refuse(RuleId::umad_write_duplicate);
  if (call.Violates(RuleId::umad_write_class_rmpp, !has_rmpp && agent.what.rmpp_version != 0))
    return call.Refuse(RuleId::umad_write_class_rmpp);
  bool local = false;
  if (mad.mgmt_class() == kSubnDirected) {
    if (const int error = CheckRoute(call, &mad, &local)) return error;
  }
  Post(call, std::move(packet), local);
  return 0;
}

void UmadFile::Post(Decision& call, std::shared_ptr<Packet> packet, bool local) {
  const Body header = Header(packet->header);
  const Mad mad(packet->data);
  auto reply = std::make_shared<Packet>();
  reply->agent = packet->agent;
  reply->length = kMadSize;
  const Body out = Header(reply->header);
  const auto deliver = [&](uint32_t qpn, uint16_t lid) {
    out.Set(HEADER(length), HeaderSize() + reply->length);
    out.Set(HEADER(qpn), FromBig(qpn));
    out.Set(HEADER(lid), FromBig16(lid));
    Queue(std::move(reply));
  };
  const char* unmodelled = nullptr;
  if (local) {
    // handle_outgoing_dr_smp: what the agent does not answer is over without an answer.
    const bool answered = ProcessMad(device_, port_, packet->data, reply->data, &unmodelled);
    if (unmodelled != nullptr) call.Unmodelled(unmodelled);
    if (!answered) return;
    out.Set(HEADER(pkey_index), header.Get(HEADER(pkey_index)));
    deliver(0, kPermissiveLid);
    return;
  }
  // Over the wire: a port of this world, or nobody.
  const uint32_t qpn = FromBig(header.Get(HEADER(qpn)));
  const bool global = header.Get(HEADER(grh_present)) != 0;
  uint8_t gid[16] = {};
  header.GetBytes(HEADER(gid), gid, sizeof(gid));
  const uint16_t lid = FromBig16(header.Get(HEADER(lid)));
  const bool permissive = lid == kPermissiveLid && mad.mgmt_class() == kSubnLid;
  // A directed route that leaves this port ends at a node that is not there.
  const bool leaves = mad.mgmt_class() == kSubnDirected && mad.dr_slid() == kPermissiveLid;
  for (uint32_t d = 0; d < DeviceCount() && !leaves; ++d) {
    const Device* device = FindDevice(d);
    if (device == nullptr) continue;
    for (uint8_t p = 1; p <= device->image().port_count; ++p) {
      const PortImage& there = device->port(p);
      const bool same_link = device->image().link == device_.image().link;
      const bool mine = device == &device_ && p == port_;
      bool addressed = permissive && mine;
      if (!global && same_link && there.lid != 0 && device->image().link == LinkLayer::kInfiniband)
        addressed |= lid >= there.lid && lid < there.lid + (1U << there.lmc);
      for (uint8_t g = 0; global && same_link && g < there.gid_count; ++g)
        addressed |= std::memcmp(there.gids[g].raw, gid, sizeof(gid)) == 0;
      if (!addressed || reply == nullptr) continue;
      if (qpn > 1) {
        unmodelled = "a MAD to a queue pair other than QP0 and QP1";
        continue;
      }
      std::vector<uint8_t> message;
      if (Receive(*device, p, qpn, packet->data, reply->data, &message, &unmodelled) !=
          Answered::kReply)
        continue;
      if (!message.empty()) {
        if (!packet->agent->KernelRmpp()) {
          unmodelled = "an answer in segments that the program puts together";
          continue;
        }
        reply->length = message.size();
        if (message.size() > kMadSize)
          reply->rest.assign(message.begin() + kMadSize, message.end());
      }
      out.Set(HEADER(grh_present), global);
      if (global) {
        out.Set(HEADER(gid_index), header.Get(HEADER(gid_index)));
        out.Set(HEADER(hop_limit), 0xff);
        out.SetBytes(HEADER(gid), gid, sizeof(gid));
      }
      deliver(qpn, there.lid);
    }
  }
  if (unmodelled != nullptr) call.Unmodelled(unmodelled);
  if (reply == nullptr) return;
  // Nobody answers. Without a time to wait the send is all there was.
  const uint32_t timeout = header.U32(HEADER(timeout_ms));
  if (timeout == 0) return;
  sent_.push_back(packet);
  const uint64_t tries = uint64_t{header.U32(HEADER(retries))} + 1;
  const uint64_t wait = world().image().virtual_time != 0 ? 0 : timeout * tries * 1000000;
  sys::Later(wait, [weak = weak_from_this(), packet = std::move(packet)] {
    if (const auto file = weak.lock()) file->Expire(packet);
  });
}

int UmadFile::FreeSlot() const {
  const auto slot = std::find(agents_.begin(), agents_.end(), nullptr);
  return slot == agents_.end() ? -1 : static_cast<int>(slot - agents_.begin());
}

int UmadFile::Admit(Decision& call, const Registration& what, uint64_t id_address, bool second) {
  const int slot = FreeSlot();
  int error = 0;
  auto agent = Register(call, device_, port_, what, &error);
  if (agent == nullptr) return error;
  const auto number = static_cast<uint32_t>(slot);
  if (sys::CopyToUser(id_address, &number, sizeof(number)) != 0)
    return call.Refuse(RuleId::umad_agent_fault);
  if (!already_used_) {
    already_used_ = true;
    use_pkey_index_ |= second;
  }
  agents_[number] = std::move(agent);
  return 0;
}

// ib_umad_reg_agent
int UmadFile::RegisterAgent(Decision& call, uint64_t argument) {
  if (gone()) return call.Refuse(RuleId::umad_agent_gone);
  const OwnedBody<> request(world(), VABI_S(ib_user_mad_reg_req));
  if (sys::CopyFromUser(request.base(), argument, request.length()) != 0)
    return call.Refuse(RuleId::umad_agent_fault);
#define FIELD(name) VABI_F(ib_user_mad_reg_req, name)
  Registration what;
  what.qpn = request.U32(FIELD(qpn));
  if (call.Violates(RuleId::umad_agent_qpn, what.qpn > 1))
    return call.Refuse(RuleId::umad_agent_qpn);
  if (FreeSlot() < 0) return call.Refuse(RuleId::umad_agent_many);
  what.mgmt_class = static_cast<uint8_t>(request.Get(FIELD(mgmt_class)));
  what.class_version = static_cast<uint8_t>(request.Get(FIELD(mgmt_class_version)));
  what.rmpp_version = static_cast<uint8_t>(request.Get(FIELD(rmpp_version)));
  request.GetBytes(FIELD(oui), what.oui, sizeof(what.oui));
  request.GetBytes(FIELD(method_mask), what.methods, sizeof(what.methods));
  return Admit(call, what, argument + static_cast<uint64_t>(world().At(FIELD(id)).offset), false);
#undef FIELD
}

// ib_umad_reg_agent2
int UmadFile::RegisterAgent2(Decision& call, uint64_t argument) {
  if (gone()) return call.Refuse(RuleId::umad_agent_gone);
  const OwnedBody<> request(world(), VABI_S(ib_user_mad_reg_req2));
  if (sys::CopyFromUser(request.base(), argument, request.length()) != 0)
    return call.Refuse(RuleId::umad_agent_fault);
#define FIELD(name) VABI_F(ib_user_mad_reg_req2, name)
  Registration what;
  what.qpn = request.U32(FIELD(qpn));
  if (call.Violates(RuleId::umad_agent_qpn, what.qpn > 1))
    return call.Refuse(RuleId::umad_agent_qpn);
  what.flags = request.U32(FIELD(flags));
  if (call.Violates(RuleId::umad_agent_flags, (what.flags & ~kUserRmpp) != 0)) {
    // Tells which there are.
    const uint32_t known = kUserRmpp;
    const auto at = static_cast<uint64_t>(world().At(FIELD(flags)).offset);
    if (sys::CopyToUser(argument + at, &known, sizeof(known)) != 0)
      return call.Refuse(RuleId::umad_agent_fault);
    return call.Refuse(RuleId::umad_agent_flags);
  }
  if (FreeSlot() < 0) return call.Refuse(RuleId::umad_agent_many);
  what.mgmt_class = static_cast<uint8_t>(request.Get(FIELD(mgmt_class)));
  what.class_version = static_cast<uint8_t>(request.Get(FIELD(mgmt_class_version)));
  what.rmpp_version = static_cast<uint8_t>(request.Get(FIELD(rmpp_version)));
  const uint32_t oui = request.U32(FIELD(oui));
  if (call.Violates(RuleId::umad_agent_oui, what.mgmt_class != 0 && (oui & 0xff000000) != 0))
    return call.Refuse(RuleId::umad_agent_oui);
  for (int i = 0; i < 3; ++i) what.oui[i] = static_cast<uint8_t>(oui >> (16 - 8 * i));
  request.GetBytes(FIELD(method_mask), what.methods, sizeof(what.methods));
  return Admit(call, what, argument + static_cast<uint64_t>(world().At(FIELD(id)).offset), true);
#undef FIELD
}

// ib_umad_unreg_agent
int UmadFile::Unregister(Decision& call, uint64_t argument) {
  uint32_t id = 0;
  if (sys::CopyFromUser(&id, argument, sizeof(id)) != 0)
    return call.Refuse(RuleId::umad_unregister_fault);
  if (id >= kMaxAgents || gone() || agents_[id] == nullptr)
    return call.Refuse(RuleId::umad_unregister_id);
  // ib_unregister_mad_agent: what it sent is cancelled, without a word.
  std::erase_if(sent_, [&](const auto& packet) { return packet->agent == agents_[id]; });
  agents_[id] = nullptr;
  return 0;
}

long UmadFile::Ioctl(unsigned long request, void* argument) {
  const struct {
    unsigned long number;
    const char* name;
    int (UmadFile::*run)(Decision&, uint64_t);
  } table[] = {
      {kRegisterAgent | world().Size(VABI_S(ib_user_mad_reg_req)) << 16, "umad:REGISTER_AGENT",
       &UmadFile::RegisterAgent},
      {kRegisterAgent2 | world().Size(VABI_S(ib_user_mad_reg_req2)) << 16, "umad:REGISTER_AGENT2",
       &UmadFile::RegisterAgent2},
      {kUnregisterAgent | sizeof(uint32_t) << 16, "umad:UNREGISTER_AGENT", &UmadFile::Unregister},
  };
  const unsigned long number = request & 0xffffffff;
  const uint64_t at = reinterpret_cast<uintptr_t>(argument);
  std::lock_guard lock(mutex_);
  for (const auto& row : table) {
    if (row.number != number) continue;
    Decision call(world(), trace::FrontEnd::kIoctl, device_.image().name, row.name);
    return call.Finish((this->*row.run)(call, at));
  }
  if (number == kEnablePkey) {
    Decision call(world(), trace::FrontEnd::kIoctl, device_.image().name, "umad:ENABLE_PKEY");
    if (call.Violates(RuleId::umad_pkey_late, already_used_))
      return call.Finish(call.Refuse(RuleId::umad_pkey_late));
    use_pkey_index_ = true;
    return call.Finish(0);
  }
  Decision call(world(), trace::FrontEnd::kIoctl, device_.image().name, "umad:unknown");
  return call.Finish(call.Refuse(RuleId::umad_ioctl_unknown));
}

namespace {

std::atomic<bool> issm_taken[kMaxDevices][2];

}  // namespace

int IssmFile::Open(Decision& call, Device& device, uint8_t port, const NodeView* node,
                   bool nonblock, std::shared_ptr<File>* out) {
  std::atomic<bool>& taken = issm_taken[device.number()][port - 1];
  // The kernel waits for ever for a semaphore; a minute is enough to see that nobody lets go.
  constexpr int kTries = 6000;
  for (int i = 0; taken.exchange(true); ++i) {
    if (nonblock) return call.Refuse(RuleId::umad_issm_busy);
    if (i == kTries) return -EINTR;
    const uint32_t nobody = 0;
    sys::FutexWait(&nobody, 0, 10000000);
  }
  SetSubnetManager(device, port, true);
  out->reset(new IssmFile(device, port, node));
  return 0;
}

bool IssmFile::StatAs(unsigned int* mode, uint64_t* rdev) const {
  *mode = S_IFCHR | node_->mode;
  *rdev = makedev(node_->major, node_->minor);
  return true;
}

void IssmFile::Release() {
  if (released_) return;
  released_ = true;
  SetSubnetManager(device_, port_, false);
  issm_taken[device_.number()][port_ - 1].store(false);
}

}  // namespace vabi::umad
