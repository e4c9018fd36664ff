// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_RXE_QUEUE_PAIR_H_
#define VABI_SHIMS_PROVIDERS_RXE_QUEUE_PAIR_H_

#include "shims/fabric/fabric.h"
#include "shims/providers/rxe/completion_queue.h"
#include "shims/providers/rxe/device.h"
#include "shims/providers/rxe/queue.h"
#include "shims/providers/rxe/work_request.h"

namespace vabi::rxe {

// struct rxe_qp: the queues, and the requester, completer and responder that work on them. Where
// rxe's tasks run later, these run at once, in the call that rang the doorbell; what has to wait is
// driven on by the NIC. Everything here runs with the fabric's lock held.
class QueuePair : public DriverState, public fabric::Endpoint {
 public:
  QueuePair(RxeDevice& device, Qp& qp);
  ~QueuePair() override;

  static QueuePair& Of(Qp& qp) { return *static_cast<QueuePair*>(qp.driver.get()); }

  // fabric::Endpoint
  bool PopReceive(fabric::RecvRequest* out) override;
  void ReturnReceive(const fabric::RecvRequest& request) override;
  void CompleteReceive(const fabric::RecvRequest& request,
                       const fabric::Completion& completion) override;
  void EnterError() override;
  void Report(fabric::Event event) override;
  void Answered(const fabric::Completion& completion) override;
  void Resume() override { Drive(); }

  // Carries out what is posted, until the queue is empty or its head has to wait (rxe_sender).
  void Drive();
  // modify_qp's part: a new state, with what follows from it at once.
  void SetState(QpState next);
  bool draining() const { return draining_; }
  bool waits() const { return waits_; }
  // The responder's task, in the error state.
  void FlushPosted() { FlushReceive(); }
  // The NIC has to come back to it.
  bool unfinished() const { return waits_ || draining_; }

  RxeDevice& rxe;
  Qp& qp;
  Queue send, receive;
  Pool::Seat seat;
  uint32_t max_send_sge = 0, max_receive_sge = 0, max_inline = 0;
  bool attached = false;                    // to a multicast group
  QpState current_state = QpState::kReset;  // as IB_QP_CUR_STATE left it

 private:
  void Reset();
  void FlushSend();
  void FlushReceive();
  void ReportEvent(uint32_t type);
  void CheckDrained();
  void StopWaiting();
  // One request: false when it has to wait.
  bool Carry(uint8_t* slot);
  void Finish(uint8_t* slot, const Operation* operation, const fabric::Completion& completion);
  void DropSent();
  fabric::Status LocalOperation(const Operation& operation, const uint8_t* slot);
  fabric::Status Address(const uint8_t* slot, fabric::SendRequest* request) const;
  void Complete(uint8_t* slot, const Operation* operation, fabric::Status status, uint32_t state);
  // make_send_cqe. `operation` may be null: rxe does not know it.
  WorkCompletion MakeCompletion(const uint8_t* slot, const Operation* operation,
                                fabric::Status status) const;
  // The request at the head failed; everything else is flushed. Local: rxe found out by itself.
  void FailHead(uint8_t* slot, const Operation* operation, fabric::Status status);
  void FailLocally(uint8_t* slot, const Operation* operation, fabric::Status status);
  void WaitInLine();

  bool waits_ = false;     // the head of the send queue was started, and waits
  bool draining_ = false;  // SQD was asked for
  uint32_t attempt_ = 0;
  // The first so many slots are with the fabric, which answers later.
  uint32_t sent_ = 0;
};

}  // namespace vabi::rxe

#endif  // VABI_SHIMS_PROVIDERS_RXE_QUEUE_PAIR_H_
