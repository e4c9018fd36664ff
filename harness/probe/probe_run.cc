// SPDX-License-Identifier: BSD-2-Clause
#include "harness/probe/probe_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

#include "harness/probe/probe_memory.h"

namespace vabi::probe {
namespace {

constexpr size_t kAreaSize = 32u << 20;  // as scripts/verbs_abi/oracle/vm.py shares it

void OnAlarm(int) {}

// Interrupts a call that does not end by itself; repeats, in case the first came too early.
class TimeLimit {
 public:
  TimeLimit() {
    struct sigaction action {};
    action.sa_handler = OnAlarm;  // no SA_RESTART: the call is to fail with EINTR
    sigaction(SIGALRM, &action, nullptr);
    Set(kCallLimitMs, 200);
  }
  ~TimeLimit() { Set(0, 0); }

 private:
  static void Set(int first_ms, int next_ms) {
    itimerval timer{};
    timer.it_value = {first_ms / 1000, first_ms % 1000 * 1000};
    timer.it_interval = {next_ms / 1000, next_ms % 1000 * 1000};
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
};

struct Outcome {
  long value = -1;
  int error = 0;
  const char* kind = nullptr;  // instead of the number, when the call succeeded
  std::string more;
};

using Numbers = std::vector<uint64_t>;

Outcome Returned(long value, const char* kind = nullptr) {
  return {value, value < 0 ? errno : 0, kind, ""};
}

int Fd(uint64_t number) { return static_cast<int>(number); }
void* Pointer(uint64_t number) { return reinterpret_cast<void*>(number); }

Outcome Perform(const std::string& op, const Numbers& n, const Options& options);

// The same call in a forked child that shares the files; only its return value is seen.
Outcome InChild(const std::string& op, const Numbers& n, const Options& options) {
  struct Report {
    long value;
    int error;
  };
  void* map =
      mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return {-1, errno, nullptr, " probe=mmap"};
  auto* report = new (map) Report{-1, ECHILD};
  pid_t child = fork();
  if (child == 0) {
    Outcome outcome = Perform(op, n, options);
    *report = {outcome.value, outcome.error};
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  Outcome outcome{report->value, report->error, nullptr, ""};
  if (WIFSIGNALED(status)) outcome.more = " child=signal" + std::to_string(WTERMSIG(status));
  munmap(map, sizeof(Report));
  return outcome;
}

Outcome Poll(const Numbers& n) {
  pollfd item{Fd(n[0]), static_cast<short>(n[1]), 0};
  Outcome outcome = Returned(poll(&item, 1, Fd(n[2])));
  outcome.more = " revents=" + std::to_string(item.revents);
  return outcome;
}

Outcome Map(const Numbers& n) {
  void* map = mmap(nullptr, n[1], Fd(n[2]), Fd(n[3]), Fd(n[0]), static_cast<off_t>(n[4]));
  if (map == MAP_FAILED) return Returned(-1);
  return {static_cast<long>(reinterpret_cast<intptr_t>(map)), 0, "addr", ""};
}

struct Operation {
  const char* name;
  size_t arguments;
  Outcome (*run)(const Numbers&, const Options&);
};

const Operation kOperations[] = {
    {"open", 1,
     [](const Numbers& n, const Options& o) {
       return Returned(open(o.device.c_str(), Fd(n[0])), "fd");
     }},
    {"write", 3,
     [](const Numbers& n, const Options&) {
       return Returned(write(Fd(n[0]), Pointer(n[1]), n[2]));
     }},
    {"read", 3,
     [](const Numbers& n, const Options&) {
       return Returned(read(Fd(n[0]), Pointer(n[1]), n[2]));
     }},
    {"ioctl", 3,
     [](const Numbers& n, const Options&) {
       return Returned(ioctl(Fd(n[0]), n[1], Pointer(n[2])));
     }},
    {"poll", 3, [](const Numbers& n, const Options&) { return Poll(n); }},
    {"close", 1, [](const Numbers& n, const Options&) { return Returned(close(Fd(n[0]))); }},
    {"dup", 1, [](const Numbers& n, const Options&) { return Returned(dup(Fd(n[0])), "fd"); }},
    {"mmap", 5, [](const Numbers& n, const Options&) { return Map(n); }},
    {"munmap", 2,
     [](const Numbers& n, const Options&) { return Returned(munmap(Pointer(n[0]), n[1])); }},
    {"fcntl", 3,
     [](const Numbers& n, const Options&) { return Returned(fcntl(Fd(n[0]), Fd(n[1]), n[2])); }},
    {"seteuid", 1,
     [](const Numbers& n, const Options&) { return Returned(seteuid(static_cast<uid_t>(n[0]))); }},
    // Mapped queues: bytes of an object to a mapping, and back into an object so that they are
    // seen.
    {"store", 4,
     [](const Numbers& n, const Options&) {
       std::memcpy(Pointer(n[0] + n[1]), Pointer(n[2]), n[3]);
       std::atomic_thread_fence(std::memory_order_seq_cst);
       return Returned(0);
     }},
    {"load", 4,
     [](const Numbers& n, const Options&) {
       std::atomic_thread_fence(std::memory_order_seq_cst);
       std::memcpy(Pointer(n[2]), Pointer(n[0] + n[1]), n[3]);
       return Returned(0);
     }},
    // Until the 4 bytes in a mapping are VALUE, or for LIMIT ms; the answer tells neither.
    {"settle", 4,
     [](const Numbers& n, const Options&) {
       auto* at = static_cast<volatile uint32_t*>(Pointer(n[0] + n[1]));
       for (uint64_t waited = 0; *at != static_cast<uint32_t>(n[2]) && waited < n[3]; waited += 5) {
         poll(nullptr, 0, 5);
       }
       return Returned(0);
     }},
    {"pause-ms", 1,
     [](const Numbers& n, const Options&) { return Returned(poll(nullptr, 0, Fd(n[0]))); }},
};

Outcome Perform(const std::string& op, const Numbers& n, const Options& options) {
  if (op.starts_with("fork-")) return InChild(op.substr(5), n, options);
  for (const Operation& operation : kOperations) {
    if (op != operation.name) continue;
    if (n.size() != operation.arguments) return {-1, 0, nullptr, " probe=arguments"};
    return operation.run(n, options);
  }
  return {-1, 0, nullptr, " probe=unknown-operation"};
}

class CaseRun {
 public:
  CaseRun(const Case& subject, const Options& options, Answers* answers)
      : case_(subject), options_(options), answers_(answers) {}

  void Run() {
    for (const Statement& statement : case_.statements) {
      std::string error;
      switch (statement.kind) {
        case Statement::Kind::kMemory:
          error = memory_.Define(statement.name, statement.blob, statement.place, symbols_);
          if (!error.empty())
            broken_[statement.name] = error;
          else
            broken_.erase(statement.name);
          break;
        case Statement::Kind::kSet: {
          std::string bytes = memory_.Bytes(statement.blob, symbols_, &error);
          uint64_t value = 0;
          std::memcpy(&value, bytes.data(), std::min<size_t>(bytes.size(), 8));
          if (error.empty()) symbols_[statement.name] = value;
          break;
        }
        case Statement::Kind::kCall:
          Call(statement);
          break;
      }
    }
  }

 private:
  bool Resolve(const Statement& call, Numbers* numbers) const {
    // An object that was to hold a value that nobody gave: its call cannot be made.
    if (!broken_.empty()) return false;
    for (const Argument& argument : call.arguments) {
      if (argument.kind == Argument::Kind::kAddress) {
        numbers->push_back(memory_.Address(argument.name, argument.number));
      } else if (argument.kind == Argument::Kind::kSymbol) {
        auto found = symbols_.find(argument.name);
        if (found == symbols_.end()) return false;
        numbers->push_back(found->second);
      } else {
        numbers->push_back(argument.number);
      }
    }
    return true;
  }

  void Call(const Statement& call) {
    std::string id = case_.name + ":" + call.name;
    if (options_.lethal.contains(id)) {
      broken_.clear();
      answers_->Append(id + " oops\n");
      return;
    }
    Numbers numbers;
    bool resolved = Resolve(call, &numbers);
    broken_.clear();
    if (!resolved) {
      answers_->Append(id + " skipped\n");
      return;
    }
    answers_->Append(id);
    Outcome outcome;
    {
      TimeLimit limit;
      errno = 0;
      outcome = Perform(call.op, numbers, options_);
    }
    std::string changes = memory_.Changes(call.masks);
    std::string line = " ";
    if (outcome.value < 0 && outcome.error == EINTR) {
      line += "blocked -";
    } else if (outcome.value >= 0 && outcome.kind != nullptr) {
      line += std::string(outcome.kind) + " 0";
    } else {
      const char* name = outcome.error != 0 ? strerrorname_np(outcome.error) : "0";
      line += std::to_string(outcome.value) + " " +
              (name != nullptr ? name : std::to_string(outcome.error));
    }
    answers_->Append(line + outcome.more + changes + "\n");
    if (outcome.value >= 0) Capture(call, outcome.value);
  }

  void Capture(const Statement& call, long value) {
    for (const auto& capture : call.captures) {
      uint64_t number = static_cast<uint64_t>(value);
      if (capture.object.empty() ||
          memory_.Load(capture.object, capture.offset, capture.length, &number)) {
        symbols_[capture.symbol] = number;
      }
    }
  }

  const Case& case_;
  const Options& options_;
  Answers* answers_;
  Memory memory_;
  std::map<std::string, uint64_t> symbols_;
  std::map<std::string, std::string> broken_;
};

// Until the child has ended, or its time is up.
void WaitForEnd(pid_t child) {
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, child, 0));  // since Linux 5.3
  if (handle >= 0) {
    pollfd item{handle, POLLIN, 0};
    poll(&item, 1, kCaseLimitMs);
    close(handle);
    return;
  }
  siginfo_t info{};
  for (int waited = 0; waited < kCaseLimitMs && info.si_pid == 0; ++waited) {
    if (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return;
    if (info.si_pid == 0) usleep(1000);
  }
}

std::string AwaitChild(pid_t child) {
  WaitForEnd(child);
  int status = 0;
  if (waitpid(child, &status, WNOHANG) == child) {
    if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
    return "exit " + std::to_string(WEXITSTATUS(status));
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return "limit";
}

}  // namespace

bool Answers::Open(const char* path) {
  fd_ = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) return false;
  struct stat info {};
  if (fstat(fd_, &info) != 0) return false;
  plain_ = info.st_size != static_cast<off_t>(kAreaSize * 2);  // the guest's area has a fixed size
  if (plain_ && (ftruncate(fd_, 0) != 0 || ftruncate(fd_, kAreaSize) != 0)) return false;
  void* area = mmap(nullptr, kAreaSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  void* used =
      mmap(nullptr, sizeof(size_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED || used == MAP_FAILED) return false;
  area_ = static_cast<char*>(area);
  used_ = static_cast<size_t*>(used);
  return true;
}

void Answers::Append(const std::string& text) {
  if (*used_ + text.size() + 1 > kAreaSize) return;
  std::memcpy(area_ + *used_, text.data(), text.size());
  *used_ += text.size();
}

void Answers::EndLine(const std::string& text) {
  if (*used_ > 0 && area_[*used_ - 1] != '\n') Append(text);
}

void Answers::Close() {
  if (plain_ && ftruncate(fd_, static_cast<off_t>(*used_)) != 0)
    std::perror("vabi-probe: ftruncate");
  close(fd_);
}

bool RunCase(const Block& block, const Options& options, Answers* answers, std::string* error) {
  constexpr size_t kRoom = 512;
  void* shared = mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    *error = "no memory for a case";
    return false;
  }
  auto* problem = static_cast<char*>(shared);
  pid_t child = fork();
  if (child == 0) {
    std::string told;
    const List list = Parse(block.text, &told);
    std::snprintf(problem, kRoom, "%s", told.c_str());
    if (told.empty()) CaseRun(list.cases.front(), options, answers).Run();
    _exit(0);
  }
  std::string end = child < 0 ? "nofork" : AwaitChild(child);
  *error = problem;
  munmap(shared, kRoom);
  if (!error->empty()) {
    *error = "case " + std::string(block.name) + " (from line " + std::to_string(block.line) +
             " on), its " + *error;
    return false;
  }
  answers->EndLine(" died\n");
  answers->Append(std::string(block.name) + ":end " + end + "\n");
  return true;
}

}  // namespace vabi::probe
