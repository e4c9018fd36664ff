// SPDX-License-Identifier: BSD-2-Clause
#include "step.h"

#include <cstdio>
#include <cstring>

namespace journey {
namespace {

int failures = 0;

void PrintText(const char* text) {
  std::putchar('"');
  for (; *text != '\0'; ++text) {
    if (*text == '"' || *text == '\\') std::putchar('\\');
    if (static_cast<unsigned char>(*text) >= 0x20) std::putchar(*text);
  }
  std::putchar('"');
}

enum class Kind { kMust, kMay, kAsk };

void Print(const char* step, bool ok, Kind kind, int error, const char* note) {
  const char* prefix = kind == Kind::kAsk ? "ask:" : "";
  std::printf("{\"step\": \"%s%s\", \"ok\": %s", prefix, step, ok ? "true" : "false");
  if (kind != Kind::kMust) std::printf(", \"optional\": true");
  if (kind == Kind::kAsk) std::printf(", \"asked\": true");
  if (!ok && error != 0) std::printf(", \"errno\": \"%s\"", ErrnoName(error));
  if (note != nullptr && *note != '\0') {
    std::printf(", \"note\": ");
    PrintText(note);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

}  // namespace

int Failures() { return failures; }

bool Must(const char* step, bool ok, int error, const char* note) {
  if (!ok) ++failures;
  Print(step, ok, Kind::kMust, error, note);
  return ok;
}

bool May(const char* step, bool ok, int error, const char* note) {
  Print(step, ok, Kind::kMay, error, note);
  return ok;
}

bool Ask(const char* what, bool ok, int error) {
  Print(what, ok, Kind::kAsk, error, nullptr);
  return ok;
}

void Value(const char* name, uint64_t value) {
  std::printf("{\"value\": \"%s\", \"is\": %llu}\n", name, static_cast<unsigned long long>(value));
  std::fflush(stdout);
}

const char* ErrnoName(int error) {
  const char* name = strerrorname_np(error < 0 ? -error : error);
  return name != nullptr ? name : "E?";
}

}  // namespace journey
