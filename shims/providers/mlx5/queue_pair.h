// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_QUEUE_PAIR_H_
#define VABI_SHIMS_PROVIDERS_MLX5_QUEUE_PAIR_H_

#include <cstdint>
#include <deque>
#include <set>

#include "shims/fabric/fabric.h"
#include "shims/providers/mlx5/completion_queue.h"
#include "shims/providers/mlx5/receive_queue.h"
#include "shims/providers/mlx5/steering.h"
#include "shims/providers/mlx5/tag_list.h"
#include "shims/providers/mlx5/work_queue.h"
#include "shims/uverbs/objects.h"

// A queue pair as the NIC sees it: takes work requests out of the program's memory, has the fabric
// carry them out, and writes completions. All calls with fabric::Lock() held.

namespace vabi::mlx5 {

// enum ib_event_type, as far as queue pairs have them
enum QpEvent : uint32_t {
  kEventQpFatal = 1,
  kEventQpRequestError = 2,
  kEventQpAccessError = 3,
  kEventCommunicationEstablished = 4,
  kEventSqDrained = 5,
  kEventLastWqeReached = 16,
};

class QueuePair final : public fabric::Endpoint, public PacketSink {
 public:
  struct Parts {
    SendRing send;
    ReceiveRing::Geometry receive;
    CompletionQueue* send_cq = nullptr;
    CompletionQueue* recv_cq = nullptr;
    SharedQueue* srq = nullptr;
    uint32_t user_index = 0;
    bool user_indices = false;  // completions carry user indices (cqe_version 1)
    Qp* qp = nullptr;
    // A DCI with streams: how many of them may be in error before all of it is. 0: no streams.
    uint32_t errored_streams = 0;
  };

  explicit QueuePair(const Parts& parts) : parts_(parts), receives_(parts.receive) {}

  bool PopReceive(fabric::RecvRequest* out) override;
  bool Match(const fabric::Message& message, fabric::RecvRequest* out, uint32_t* skip) override;
  void ReturnReceive(const fabric::RecvRequest&) override { receives_.Return(); }
  void CompleteReceive(const fabric::RecvRequest& request,
                       const fabric::Completion& completion) override;
  void EnterError() override;
  void Report(fabric::Event event) override;
  void Aim(uint32_t xrc_srq) override;
  void Answered(const fabric::Completion& completion) override;
  // A frame for a raw packet queue pair, or for a work queue.
  void Receive(const Frame& frame) override;

  // Looks at the doorbell records and works off what was posted; some of it. True when there was
  // work.
  bool Progress();
  // 2RST_QP: forgets all that was posted.
  void Reset();
  // Goes into the error state: what is posted will be flushed.
  void ToError();
  void ReportEvent(uint32_t event);
  // False: that stream is not in error.
  bool ResetStream(uint16_t stream) { return errored_.erase(stream) != 0; }

 private:
  // What became of a request; kRetry: not now.
  fabric::Outcome CarryOut(const Wqe& wqe, fabric::Completion* completion);
  void DropSent();
  void Transmit(const Wqe& wqe, const fabric::SendRequest& request, fabric::Completion* completion);
  bool SendEmpty();
  bool ProgressSend();
  bool FlushSend();
  bool FlushReceives();
  bool ChangeTags(const Wqe& wqe);
  void CopyMemory(const Wqe& wqe, fabric::Completion* completion);
  void TellTag(CqeText* text);
  bool ProgressOwn();
  void FinishOwn(const fabric::Completion& completion);
  bool InErroredStream(const Wqe& wqe) const;
  // After a completion with error: of one stream, or of all.
  void Failed(const Wqe& wqe);
  Translation UpdateKey(const Wqe& wqe, fabric::Completion* completion);
  void Bind(const Wqe& wqe, fabric::Bind bind, bool invalidate, fabric::Completion* completion);
  void CompleteSend(const Wqe& wqe, const fabric::Completion& completion);
  void FailSend(fabric::Status status, fabric::Completion* completion);
  void Emit(CompletionQueue* queue, const CqeText& text);

  Parts parts_;
  ReceiveRing receives_;
  // In blocks. The first `sent_` behind the head are with the fabric, which answers later.
  uint16_t send_head_ = 0, send_producer_ = 0, sent_ = 0;
  uint32_t attempt_ = 0;
  std::set<uint16_t> errored_;  // streams
  // Tag matching: what the message that is delivered met, and what the NIC does by itself for those
  // that only tell where their data are.
  struct Matched {
    uint8_t answer = 0;
    uint8_t header[kRendezvousHeader] = {};
    TagEntry entry;
    bool read = false;  // the data are there
  };
  Matched matched_;
  std::deque<Matched> own_;
  bool own_sent_ = false;
  uint32_t own_attempt_ = 0;
  bool fatal_reported_ = false;
};

// enum ib_wc_status to the syndrome of an error completion, and the vendor's.
uint8_t Syndrome(fabric::Status status);
uint8_t VendorSyndrome(fabric::Status status, bool is_receive);

// Shared queues by number, for XRC: who sends names the queue on the wire.
// Its protection domain is that of all that is asked through it.
void AddXrcQueue(uint32_t device, SharedQueue* queue, CompletionQueue* cq, uint32_t pd);
void RemoveXrcQueue(uint32_t device, SharedQueue* queue);

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_QUEUE_PAIR_H_
