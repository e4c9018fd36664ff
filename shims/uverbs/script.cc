// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/script.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <mutex>
#include <vector>

#include "shims/sys/sys.h"
#include "shims/trace/trace.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/events.h"
#include "shims/uverbs/uverbs_file.h"
#include "shims/uverbs/world_stage.h"

namespace vabi {
namespace {

constexpr size_t kMaxSteps = std::extent_v<decltype(WorldImage::script)>;
// enum ib_event_type
constexpr uint32_t kEventDeviceFatal = 8;

struct State {
  std::mutex mutex;
  std::vector<std::weak_ptr<UverbsFile>> files;
  std::atomic<uint32_t> calls[kMaxDevices];
  std::atomic<bool> done[kMaxSteps];
  uint64_t opened_ns[kMaxDevices] = {};  // 0: not yet
  std::vector<void (*)(Device&)> clients;
  std::mutex stepping;      // held while a step that was due by time happens
  uint32_t generation = 0;  // of worlds; under stepping
};
// Never destroyed: the thread may outlive destructors.
State& Get() {
  static auto* const state = new State();
  return *state;
}

std::vector<std::shared_ptr<UverbsFile>> FilesOf(const Device& device) {
  State& state = Get();
  std::lock_guard lock(state.mutex);
  std::vector<std::shared_ptr<UverbsFile>> found;
  for (const auto& weak : state.files) {
    std::shared_ptr<UverbsFile> file = weak.lock();
    if (file != nullptr && &file->device() == &device) found.push_back(std::move(file));
  }
  return found;
}

// ib_dispatch_event: every async event file of every open file hears of it
// (uverbs_main.c:ib_uverbs_event_handler).
void Tell(Device& device, uint64_t element, uint32_t event) {
  for (const auto& file : FilesOf(device)) {
    std::lock_guard lock(file->mutex());
    for (const auto& weak : file->event_files()) {
      if (const auto events = AsyncEventFile::From(weak.lock())) {
        events->Report(element, event, nullptr, nullptr);
      }
    }
  }
}

// The step, unless somebody else was faster.
void TakeStep(const World& world, uint32_t number) {
  if (Get().done[number].exchange(true)) return;
  const ScriptStep& step = world.image().script[number];
  if (Device* device = FindDevice(static_cast<uint32_t>(step.device))) Happen(*device, step);
}

// What a thread has to do: the steps of one device that are due by time, in the order in which they
// are. It is the thread's own, so that it asks nothing of a world that is no longer there.
struct Agenda {
  struct Item {
    uint64_t due_ns;
    ScriptStep step;
  };
  std::vector<Item> items;
  uint32_t generation;
};

void* Wait(void* argument) {
  const std::unique_ptr<Agenda> agenda(static_cast<Agenda*>(argument));
  State& state = Get();
  for (const Agenda::Item& item : agenda->items) {
    for (uint64_t now = sys::MonotonicNs(); now < item.due_ns; now = sys::MonotonicNs()) {
      const uint32_t nobody = 0;  // a futex that nothing wakes: a sleep
      sys::FutexWait(&nobody, 0, static_cast<int64_t>(item.due_ns - now));
    }
    std::lock_guard lock(state.stepping);
    if (state.generation != agenda->generation) return nullptr;
    const uint32_t number = static_cast<uint32_t>(item.step.device);
    if (Device* device = FindDevice(number)) Happen(*device, item.step);
  }
  return nullptr;
}

void StartThread(std::unique_ptr<Agenda> agenda) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, Wait, agenda.get()) == 0) {
    static_cast<void>(agenda.release());  // the thread's own
    pthread_detach(thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// cdev_device_del, ib_uverbs_free_hw_resources; a driver that cannot let go of its contexts waits
// for them instead.
void Unplug(Device& device) {
  trace::Event("unplug", device.image().name);
  device.SetGone(device.Offers(Op::disassociate_ucontext));
  std::vector<void (*)(Device&)> clients;
  {
    std::lock_guard lock(Get().mutex);
    clients = Get().clients;
  }
  for (const auto tell : clients) tell(device);
  if (!device.Offers(Op::disassociate_ucontext)) return;
  for (const auto& file : FilesOf(device)) file->Disassociate();
}

}  // namespace

void ScriptOpened(const std::shared_ptr<UverbsFile>& file) {
  const WorldImage& image = file->world().image();
  if (image.script_count == 0) return;
  const uint32_t device = file->device().number();
  State& state = Get();
  uint64_t opened;
  {
    std::lock_guard lock(state.mutex);
    std::erase_if(state.files, [](const auto& weak) { return weak.expired(); });
    state.files.push_back(file);
    if (state.opened_ns[device] != 0) return;
    opened = state.opened_ns[device] = sys::MonotonicNs();
  }
  auto agenda = std::make_unique<Agenda>();
  for (uint32_t i = 0; i < image.script_count && i < kMaxSteps; ++i) {
    const ScriptStep& step = image.script[i];
    if (step.after_calls == 0 && static_cast<uint32_t>(step.device) == device)
      agenda->items.push_back({opened + step.after_ns, step});
  }
  if (agenda->items.empty()) return;
  std::stable_sort(agenda->items.begin(), agenda->items.end(),
                   [](const auto& a, const auto& b) { return a.due_ns < b.due_ns; });
  {
    std::lock_guard lock(state.stepping);
    agenda->generation = state.generation;
  }
  StartThread(std::move(agenda));
}

void ScriptCommand(Device& device) {
  const WorldImage& image = device.world().image();
  if (image.script_count == 0) return;
  const uint32_t before = Get().calls[device.number()].fetch_add(1);
  for (uint32_t i = 0; i < image.script_count && i < kMaxSteps; ++i) {
    const ScriptStep& step = image.script[i];
    if (step.after_calls == 0 || static_cast<uint32_t>(step.device) != device.number()) continue;
    if (before >= step.after_calls) TakeStep(device.world(), i);
  }
}

void WhenUnplugged(void (*tell)(Device&)) {
  State& state = Get();
  std::lock_guard lock(state.mutex);
  if (std::find(state.clients.begin(), state.clients.end(), tell) == state.clients.end())
    state.clients.push_back(tell);
}

void Happen(Device& device, const ScriptStep& step) {
  constexpr uint32_t kPort = 1;
  switch (step.kind) {
    case ScriptStep::kPortEvent:
      device.Move(step);
      MoveStage(device.world().image(), step);
      Tell(device, kPort, step.event);
      break;
    case ScriptStep::kDeviceFatal:
      Tell(device, kPort, kEventDeviceFatal);
      break;
    case ScriptStep::kUnplug:
      MoveStage(device.world().image(), step);
      Unplug(device);
      break;
  }
}

void ResetScript() {
  State& state = Get();
  std::lock_guard stepping(state.stepping);
  ++state.generation;
  std::lock_guard lock(state.mutex);
  state.files.clear();
  for (auto& calls : state.calls) calls.store(0);
  for (auto& done : state.done) done.store(false);
  for (uint64_t& opened : state.opened_ns) opened = 0;
}

}  // namespace vabi
