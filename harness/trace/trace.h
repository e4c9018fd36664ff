// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_TRACE_TRACE_H_
#define VABI_HARNESS_TRACE_TRACE_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/trace/reader.h"

// What a program has asked of the kernel, to be asked about by tests:
//
//   EXPECT_THAT(trace.Ioctls(), ElementsAre(Failed("DEVICE.INVOKE_WRITE", ENOTTY)));
//   EXPECT_THAT(trace.Commands(), ElementsAre(Wrote("GET_CONTEXT"), Wrote("ALLOC_PD")));
//   EXPECT_THAT(trace.Unchecked(), IsEmpty());
//
// Every question reads on to the trace's present end. What a question has answered counts as
// checked.

namespace vabi::traces {

class Trace {
 public:
  explicit Trace(Reader reader) : reader_(std::move(reader)) {}

  // Everything since the beginning, or since the last Forget().
  std::vector<Command> All();
  // Commands of the uverbs file that were carried out, by whichever way.
  std::vector<Command> Commands();
  // All ioctls, and all writes (both forms), refused ones too.
  std::vector<Command> Ioctls();
  std::vector<Command> Writes();
  std::vector<Command> Mmaps();
  std::vector<Command> Netlink();
  std::vector<Command> Opens();
  // All that was refused.
  std::vector<Command> Refused();
  // Everything that asked for this, by any of these names: "GET_CONTEXT", "DEVICE.GET_CONTEXT".
  std::vector<Command> Of(std::initializer_list<std::string_view> names);
  std::vector<Command> Of(std::string_view name) { return Of({name}); }
  std::vector<Command> Where(const std::function<bool(const Command&)>& holds);

  // Verbs that no question has answered yet.
  std::vector<Command> Unchecked();
  // What was until now is of no interest.
  void Forget();

  // The last lines, for people.
  std::string Tail(size_t lines);

 private:
  void ReadOn();

  Reader reader_;
  std::vector<Command> seen_;
  std::vector<bool> checked_;
  size_t start_ = 0;
};

}  // namespace vabi::traces

#endif  // VABI_HARNESS_TRACE_TRACE_H_
