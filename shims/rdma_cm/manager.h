// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_RDMA_CM_MANAGER_H_
#define VABI_SHIMS_RDMA_CM_MANAGER_H_

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "shims/rdma_cm/cm_file.h"
#include "shims/rdma_cm/identifier.h"
#include "shims/rdma_cm/wire.h"
#include "shims/trace/decision.h"

// The connection manager of this process: core/cma.c and core/cm.c for all identifiers. Everything
// is called with Lock() held.

namespace vabi {
class Device;
}

namespace vabi::rdma_cm {

using IdPointer = std::shared_ptr<Identifier>;

class Manager {
 public:
  static Manager& Get();
  // Somebody has asked for it.
  static bool InUse();
  // To be taken before anything else; after a fork, what the parent had is forgotten.
  std::unique_lock<std::mutex> Lock();

  IdPointer Create(CmFile* file, const World& world);
  IdPointer Find(uint32_t number);
  // rdma_destroy_id, and the identifier's events go: how many it had been told of.
  uint32_t Destroy(const IdPointer& id);
  void DestroyAll(CmFile* file);
  void DestroyEverything();

  // cma.c, by the names that the functions have there. 0, or -errno with the rule in `call`.
  int Bind(Decision& call, const IdPointer& id, const Address& address);
  int ResolveAddress(Decision& call, const IdPointer& id, const Address& source,
                     const Address& target, uint32_t timeout_ms);
  int ResolveRoute(Decision& call, const IdPointer& id, uint32_t timeout_ms);
  int SetPath(Decision& call, const IdPointer& id, const Path& path);
  int Listen(Decision& call, const IdPointer& id);
  int Connect(Decision& call, const IdPointer& id, const ConnectionParameters& parameters,
              const Ece& ece);
  int Accept(Decision& call, const IdPointer& id, const ConnectionParameters* parameters,
             const Ece& ece);
  int Reject(Decision& call, const IdPointer& id, const uint8_t* data, uint8_t length,
             uint8_t reason);
  int Disconnect(Decision& call, const IdPointer& id);
  // rdma_join_multicast: `member` is the membership's number, `uid` the program's.
  int Join(Decision& call, const IdPointer& id, const Address& group, bool send_only, uint64_t uid,
           uint32_t* member);
  int JoinSubnet(Decision& call, const IdPointer& id, const Address& group, uint64_t uid,
                 uint32_t* member);
  int Leave(Decision& call, CmFile* file, uint32_t member, uint32_t* events_reported);
  void CountGroupEvent(uint32_t member);

  // struct ib_uverbs_ah_attr of the way to the peer.
  void WritePath(const Identifier& id, uint8_t out[32]) const;
  // What is to be done at the end of every call: messages of this process to itself, and what RDMA
  // netlink tells of the identifiers that were touched.
  void Drain();
  // An event whose read creates the request's identifier, in kernels before 5.10.
  void NumberLate(const IdPointer& id);
  // Reuse or family of an identifier that holds a port has changed.
  void Changed() { Publish(); }

 private:
  struct Membership {
    std::weak_ptr<Identifier> id;
    CmFile* file = nullptr;
    uint64_t uid = 0;
    uint32_t events_reported = 0;
  };

  void Tell(const IdPointer& id, CmEvent event, int status,
            const ConnectionParameters* parameters = nullptr, const Ece* ece = nullptr,
            const IdPointer& request = nullptr, const IdPointer& told = nullptr);
  void TellDatagram(const IdPointer& id, CmEvent event, int status,
                    const ConnectionParameters& parameters, const uint8_t* path,
                    const IdPointer& request = nullptr, const IdPointer& told = nullptr);
  int UsePort(Decision& call, const IdPointer& id);
  int AnyPort(const IdPointer& id);
  RuleId PortConflict(const Decision& call, const Identifier& id, bool reuse);
  std::vector<PortHolder> Holders(const Identifier* but) const;
  void Publish();
  void Attach(const IdPointer& id, const Place& place);
  bool FindOnSubnet(const Address& target, Place* place) const;
  int AskSubnet(Decision& call, const IdPointer& id, const Device& device, uint32_t timeout_ms);
  int FindListener(const Message& request, const Place& there, uint32_t* listener) const;
  void Send(int process, Message message);
  Message Begin(const IdPointer& id, MessageKind kind) const;
  void SendDisconnect(const IdPointer& id, bool reply);
  uint8_t AckTimeout(const Identifier& id, uint8_t delay, uint8_t life) const;
  uint32_t FreeNumber() const;
  IdPointer FindKey(uint32_t key);
  void Watch();
  void Touch(const IdPointer& id);
  void TrackId(Identifier& id) const;
  // A membership with its event, which has that ib_uverbs_ah_attr: its number.
  uint32_t AddMember(const IdPointer& id, uint64_t uid, const uint8_t way[32]);

  void Receive(const Message& message);
  void ReceiveRequest(const Message& message);
  void ReceiveReply(const IdPointer& id, const Message& message);
  void PeerGone(int process);
  static void FromWire(const Message& message);
  static void GoneOnWire(int process);
  static void DeviceGone(Device& device);
  void Enter();

  std::mutex mutex_;
  int process_ = 0;
  const World* world_ = nullptr;
  std::map<uint32_t, IdPointer> ids_;
  std::vector<IdPointer> unnumbered_;
  // Found since the last Drain, by whatever way: only these can have changed.
  std::vector<IdPointer> touched_;
  std::map<uint32_t, Membership> members_;
  std::vector<Message> loop_;
  Wire wire_;
  uint32_t next_psn_ = 0x100, next_key_ = 1;
  uint16_t next_port_ = 0;
};

}  // namespace vabi::rdma_cm

#endif  // VABI_SHIMS_RDMA_CM_MANAGER_H_
