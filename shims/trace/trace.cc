// SPDX-License-Identifier: BSD-2-Clause
#include "shims/trace/trace.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "shims/sys/own_fd.h"
#include "shims/sys/sys.h"
#include "shims/trace/descriptor.h"
#include "shims/trace/errno_name.h"
#include "shims/trace/gaps.h"

namespace vabi::trace {
namespace {

// -1: no trace. Opened once, with O_APPEND, so that processes and threads can share the file.
std::atomic<int> trace_fd{-1};
bool IsGaps(const char* path) {
  return path != nullptr && std::strncmp(path, kGaps, sizeof kGaps - 1) == 0;
}

const char* FileOf(const char* path) { return IsGaps(path) ? path + sizeof kGaps - 1 : path; }

// Only gaps are written, and so many by this process: a loop over a call that is not modelled says
// the same again and again.
constexpr uint32_t kMostGaps = 256;
std::atomic<bool> only_gaps{false};
std::atomic<uint32_t> gaps_written{0};

bool OnlyGaps() { return only_gaps.load(std::memory_order_relaxed); }

// The descriptor to write a gap to, or -1.
int GapDescriptor() {
  const int fd = trace_fd.load(std::memory_order_relaxed);
  if (fd < 0 || !OnlyGaps()) return fd;
  if (gaps_written.load(std::memory_order_relaxed) >= kMostGaps) return -1;
  gaps_written.fetch_add(1, std::memory_order_relaxed);
  return fd;
}

// FNV-1a.
constexpr uint32_t kNothingSaid = 2166136261u;
thread_local uint32_t t_answer = kNothingSaid;

uint32_t Digest(uint32_t before, uint8_t byte) { return (before ^ byte) * 16777619u; }

// Where Linux puts programs, heaps, libraries and stacks of x86-64 processes.
bool IsAddress(uint64_t word) { return word >> 40 >= 0x55 && word >> 40 <= 0x7f; }

constexpr const char* kFrontEndNames[] = {"open", "write",   "write_ex", "ioctl", "mmap",
                                          "read", "netlink", "doorbell", "close"};

// A line for people on standard error.
class Sentence {
 public:
  void Add(const char* text, char underscore = '_') {
    for (; *text != '\0' && length_ < sizeof(bytes_) - 1; ++text) {
      const unsigned char c = static_cast<unsigned char>(*text);
      bytes_[length_++] = c == '_' ? underscore : c < 0x20 ? '?' : *text;
    }
  }
  void Say() {
    bytes_[length_++] = '\n';
    sys::Write(2, bytes_, length_);
  }

 private:
  size_t length_ = 0;
  char bytes_[640];
};

// A disk that is full, a limit on the size of files: once a process, since a trace with holes that
// nobody knows of says what is not so.
std::atomic<bool> loss_told{false};

void TellLoss(ssize_t written) {
  if (loss_told.exchange(true)) return;
  const char* why = written < 0 ? ErrnoName(static_cast<int>(-written)) : "cut short";
  Sentence said;
  said.Add("verbs-abi: the trace lacks lines: its file cannot be written (");
  said.Add(why != nullptr ? why : "an error");
  said.Add(")");
  said.Say();
}

// A line under construction. What does not fit is cut, and the line still ends as it must.
class Line {
 public:
  void Raw(const char* text) {
    while (*text != '\0') Put(*text++);
  }
  void Put(char c) {
    if (length_ < sizeof(bytes_) - 4) bytes_[length_++] = c;
  }
  void Number(uint64_t value) {
    char digits[24];
    int count = 0;
    do {
      digits[count++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    while (count > 0) Put(digits[--count]);
  }
  void Signed(int64_t value) {
    if (value < 0) Put('-');
    Number(value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
  }
  void Hex(uint64_t value) {
    Raw("\"0x");
    bool started = false;
    for (int shift = 60; shift >= 0; shift -= 4) {
      const unsigned digit = (value >> shift) & 15;
      started = started || digit != 0 || shift == 0;
      if (started) Put("0123456789abcdef"[digit]);
    }
    Put('"');
  }
  void Text(const char* text) {
    Put('"');
    for (; *text != '\0'; ++text) {
      const unsigned char c = static_cast<unsigned char>(*text);
      if (c == '"' || c == '\\') {
        Put('\\');
        Put(*text);
      } else if (c < 0x20 || c >= 0x7f) {
        Raw("\\u00");
        Put("0123456789abcdef"[c >> 4]);
        Put("0123456789abcdef"[c & 15]);
      } else {
        Put(*text);
      }
    }
    Put('"');
  }
  void Key(const char* name) {
    Put(first_ ? '{' : ',');
    first_ = false;
    Put('"');
    Raw(name);
    Raw("\":");
  }
  void Flush(int fd) {
    bytes_[length_++] = '}';
    bytes_[length_++] = '\n';
    const ssize_t written = sys::Write(fd, bytes_, length_);
    if (written != static_cast<ssize_t>(length_)) TellLoss(written);
  }

 private:
  size_t length_ = 0;
  bool first_ = true;
  char bytes_[4096];
};

void WhoAndWhen(Line* line, uint64_t now) {
  line->Key("pid");
  line->Number(static_cast<uint64_t>(sys::GetPid()));
  line->Key("tid");
  line->Number(static_cast<uint64_t>(sys::GetTid()));
  line->Key("t");
  line->Number(now);
}

void Optional(Line* line, const char* name, int32_t value) {
  if (value < 0) return;
  line->Key(name);
  line->Signed(value);
}

void Attributes(Line* line, const Record& record) {
  if (record.attribute_count == 0) return;
  line->Key("attrs");
  line->Put('[');
  for (int i = 0; i < record.attribute_count && i < kMaxAttributes; ++i) {
    const Attribute& attribute = record.attributes[i];
    if (i > 0) line->Put(',');
    line->Raw("{\"id\":");
    line->Number(attribute.id);
    line->Raw(",\"len\":");
    line->Number(attribute.length);
    line->Raw(",\"flags\":");
    line->Number(attribute.flags);
    if (attribute.is_inline) {
      line->Raw(",\"value\":");
      line->Number(attribute.value);
    }
    line->Put('}');
  }
  line->Put(']');
}

}  // namespace

int Descriptor() { return trace_fd.load(std::memory_order_relaxed); }

int MoveDescriptor() {
  const int fd = trace_fd.load(std::memory_order_relaxed);
  // To any other number first: the program's number must be free of it.
  const long other = sys::Syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0);
  const int moved = other < 0 ? -1 : sys::MoveAside(static_cast<int>(other));
  trace_fd.store(moved, std::memory_order_relaxed);
  sys::Close(fd);
  return moved;
}

void Answered(const void* bytes, size_t size) {
  if (!Enabled()) return;
  const auto* at = static_cast<const uint8_t*>(bytes);
  while (size > 0) {
    uint64_t word = 0;
    const size_t part = size < sizeof(word) ? size : sizeof(word);
    std::memcpy(&word, at, part);
    if (part == sizeof(word) && IsAddress(word)) word = 0;
    for (size_t i = 0; i < part; ++i) {
      t_answer = Digest(t_answer, static_cast<uint8_t>(word >> (8 * i)));
    }
    at += part;
    size -= part;
  }
}

int Reply(uint64_t to, const void* from, size_t size) {
  Answered(from, size);
  return sys::CopyToUser(to, from, size);
}

bool Enabled() { return trace_fd.load(std::memory_order_relaxed) >= 0 && !OnlyGaps(); }

bool Wants(const Record& record) {
  return trace_fd.load(std::memory_order_relaxed) >= 0 &&
         (record.unmodelled != nullptr || !OnlyGaps());
}

void Open(const char* path) {
  const bool gaps = IsGaps(path);
  path = FileOf(path);
  const int fd =
      path == nullptr || path[0] == '\0'
          ? -1
          : sys::MoveAside(sys::Open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  only_gaps.store(gaps);
  gaps_written.store(0);
  loss_told.store(false);
  const int old = trace_fd.exchange(fd < 0 ? -1 : fd);
  if (old >= 0) sys::Close(old);
}

void Write(const Record& record) {
  const uint32_t answer = t_answer;
  t_answer = kNothingSaid;
  if (!Wants(record)) return;
  const int fd = GapDescriptor();
  if (fd < 0) return;
  const uint64_t now = sys::MonotonicNs();
  Line line;
  line.Key("via");
  line.Text(kFrontEndNames[static_cast<size_t>(record.front_end)]);
  line.Key("device");
  line.Text(record.device);
  line.Key("name");
  line.Text(record.name);
  if (record.inner[0] != '\0') {
    line.Key("inner");
    line.Text(record.inner);
  }
  Optional(&line, "object", record.object);
  Optional(&line, "method", record.method);
  Optional(&line, "command", record.command);
  Optional(&line, "core_in", record.core_in);
  Optional(&line, "core_out", record.core_out);
  Optional(&line, "uhw_in", record.uhw_in);
  Optional(&line, "uhw_out", record.uhw_out);
  if (record.has_flags) {
    line.Key("flags");
    line.Hex(record.flags);
  }
  Attributes(&line, record);
  line.Key("result");
  line.Signed(record.result);
  if (record.result < 0 && record.result > -4096) {
    const char* name = ErrnoName(static_cast<int>(-record.result));
    if (name != nullptr) {
      line.Key("errno");
      line.Text(name);
    }
  }
  if (answer != kNothingSaid) {
    line.Key("answer");
    line.Hex(answer);
  }
  if (record.rule >= 0) {
    line.Key("rule");
    line.Text(RuleRows()[static_cast<size_t>(record.rule)].name);
  }
  if (record.fault != nullptr) {
    line.Key("fault");
    line.Text(record.fault);
  }
  if (record.unmodelled != nullptr) {
    line.Key("unmodelled");
    line.Text(record.unmodelled);
  }
  WhoAndWhen(&line, now);
  if (record.start_ns != 0 && now >= record.start_ns) {
    line.Key("ns");
    line.Number(now - record.start_ns);
  }
  line.Flush(fd);
}

namespace {

void WriteEvent(int fd, const char* name, const char* text) {
  Line line;
  line.Key("event");
  line.Text(name);
  line.Key("text");
  line.Text(text);
  WhoAndWhen(&line, sys::MonotonicNs());
  line.Flush(fd);
}

}  // namespace

void Event(const char* name, const char* text) {
  const int fd = GapDescriptor();
  if (fd >= 0) WriteEvent(fd, name, text);
}

void Fault(const char* step) {
  if (OnlyGaps()) Event("fault", step);
}

bool WritesAll(const char* trace_path) { return trace_path[0] != '\0' && !IsGaps(trace_path); }

// A file's first line is nearly always all of it; of a longer text, so much and a digest.
constexpr size_t kShown = 64;

void Sysfs(const char* path, const char* text, size_t length, int error) {
  if (!Enabled()) return;
  char said[512];
  const char* name = error > 0 ? ErrnoName(error) : nullptr;
  while (length > 0 && text[length - 1] == '\n') --length;
  const int shown = static_cast<int>(length < kShown ? length : kShown);
  if (error > 0) {
    std::snprintf(said, sizeof(said), "%s: %s", path, name != nullptr ? name : "an error");
  } else if (length <= kShown) {
    std::snprintf(said, sizeof(said), "%s: %.*s", path, shown, text != nullptr ? text : "");
  } else {
    uint32_t digest = kNothingSaid;
    for (size_t i = 0; i < length; ++i) digest = Digest(digest, static_cast<uint8_t>(text[i]));
    std::snprintf(said, sizeof(said), "%s: %.*s... (%zu bytes, 0x%x)", path, shown, text, length,
                  digest);
  }
  WriteEvent(trace_fd.load(std::memory_order_relaxed), "sysfs", said);
}

void EventTo(const char* path, const char* name, const char* text) {
  if (path[0] == '\0') return;
  const int fd = sys::Open(FileOf(path), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd >= 0) {
    WriteEvent(fd, name, text);
    sys::Close(fd);
    return;
  }
  Sentence said;
  said.Add("verbs-abi: ");
  said.Add(name, ' ');
  said.Add(": ");
  said.Add(text);
  said.Say();
}

}  // namespace vabi::trace
