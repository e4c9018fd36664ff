// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx5/doorbell.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "shims/fabric/nic.h"
#include "shims/providers/mlx5/clock.h"

namespace vabi::mlx5 {
namespace {

class Scanner final : public fabric::Pollable {
 public:
  bool Progress() override {
    bool worked = false;
    Clock::Tick();
    for (size_t i = 0; i < queue_pairs.size(); ++i) worked |= queue_pairs[i]->Progress();
    for (size_t i = 0; i < completion_queues.size(); ++i) worked |= completion_queues[i]->PollArm();
    return worked;
  }

  std::vector<QueuePair*> queue_pairs;  // guarded by fabric::Lock(), as all here
  std::vector<CompletionQueue*> completion_queues;
  bool known = false;
};

Scanner& Get() {
  static auto* const scanner =
      new Scanner();  // never destroyed: the NIC's thread may outlive destructors
  return *scanner;
}

std::mutex& RegistrationMutex() {
  static auto* const mutex = new std::mutex();
  return *mutex;
}

// Before the lists are touched for the first time, and after they became empty.
template <typename Change>
void Edit(Change change) {
  std::lock_guard registration(RegistrationMutex());
  Scanner& scanner = Get();
  bool add, remove;
  {
    std::lock_guard lock(fabric::Lock());
    change(scanner);
    const bool wanted = !scanner.queue_pairs.empty() || !scanner.completion_queues.empty();
    add = wanted && !scanner.known;
    remove = !wanted && scanner.known;
    scanner.known = wanted;
  }
  if (add) fabric::AddPollable(&scanner);
  if (remove) fabric::RemovePollable(&scanner);
  fabric::Kick();
}

}  // namespace

void Watch(QueuePair* queue) {
  Edit([queue](Scanner& scanner) { scanner.queue_pairs.push_back(queue); });
}

void Unwatch(QueuePair* queue) {
  Edit([queue](Scanner& scanner) { std::erase(scanner.queue_pairs, queue); });
}

void Settle() {
  constexpr int kTurns = 1000;  // queues that post without end must not hold up a command
  std::lock_guard lock(fabric::Lock());
  for (int i = 0; i < kTurns && Get().Progress(); ++i) {
  }
}

void Watch(CompletionQueue* queue) {
  if (!queue->wants_polling()) return;
  Edit([queue](Scanner& scanner) { scanner.completion_queues.push_back(queue); });
}

void Unwatch(CompletionQueue* queue) {
  Edit([queue](Scanner& scanner) { std::erase(scanner.completion_queues, queue); });
}

}  // namespace vabi::mlx5
