// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CONFORMANCE_FRAMEWORK_ABI_TEST_H_
#define VABI_HARNESS_CONFORMANCE_FRAMEWORK_ABI_TEST_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "harness/conformance/framework/cell.h"
#include "harness/conformance/framework/needs.h"
#include "harness/trace/matchers.h"
#include "harness/trace/trace.h"

// A test of what libibverbs, a provider and a kernel do with each other:
//
//   ABI_TEST(Fallback, EnottyMarksTheWholeContext, Needs{.provider = "rxe", .ioctl =
//   Ioctl::kAbsent}) {
//     Context context = OpenOnlyDevice();
//     EXPECT_THAT(trace().Ioctls(), ElementsAre(Failed("DEVICE.INVOKE_WRITE", ENOTTY), …));
//   }
//
// Each test runs in a process of its own (main.cc), forked before libibverbs has been touched: what
// the library keeps for the life of a process is new to it.

namespace vabi::conformance {

using traces::Called;
using traces::Command;
using traces::Failed;
using traces::Invoked;
using traces::InvokedExtended;
using traces::Mapped;
using traces::Trace;
using traces::Wanted;
using traces::Wrote;
using traces::WroteExtended;

// Of this process.
const Cell& cell();
Trace& trace();

// Kernels by what their command table checks itself (core/uverbs_cmd.c: sizes of requests and
// replies, 5.0).
inline const std::vector<std::string> kUntil420 = {"linux-4.*"};
inline const std::vector<std::string> kSince50 = {"linux-[5-9].*", "debian-*"};

class AbiTest : public ::testing::Test {};

// Remembers what a test needs. Returns true.
bool Declare(const char* suite, const char* name, Needs needs);
// What was declared for SUITE.NAME; null when nothing was.
const Needs* Declared(const std::string& name);

// Sets what cell() and trace() give; called by main.
void SetCell(Cell cell);
void StartTrace();

#define ABI_TEST(suite, name, ...)                                                                 \
  class suite##_##name##_Test : public ::vabi::conformance::AbiTest {                              \
   public:                                                                                         \
    void TestBody() override;                                                                      \
  };                                                                                               \
  [[maybe_unused]] static const bool suite##_##name##_declared =                                   \
      ::vabi::conformance::Declare(#suite, #name, __VA_ARGS__) &&                                  \
      ::testing::RegisterTest(                                                                     \
          #suite, #name, nullptr, nullptr, __FILE__, __LINE__,                                     \
          []() -> ::vabi::conformance::AbiTest* { return new suite##_##name##_Test; }) != nullptr; \
  void suite##_##name##_Test::TestBody()

}  // namespace vabi::conformance

#endif  // VABI_HARNESS_CONFORMANCE_FRAMEWORK_ABI_TEST_H_
