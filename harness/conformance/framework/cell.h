// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CONFORMANCE_FRAMEWORK_CELL_H_
#define VABI_HARNESS_CONFORMANCE_FRAMEWORK_CELL_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The facts of the cell in which a suite runs. The runner writes them as JSON into the file that
// the environment variable VERBS_ABI_CELL names:
//
//   {"id": "deb-44.0/linux-5.6/mlx5", "kernel": "linux-5.6", "userland": "deb-44.0", "release":
//   "44.0",
//    "devices": [{"driver": "mlx5", "name": "mlx5_0", "link": "ib", "abi": 1}], "overlays":
//    ["no-ioctl"], "trace": "/…/trace.jsonl", "model": {…}}
//
// "model" is what vabi-world says of the compiled world, its overlays applied: rules {name: {on,
// errno}}, knobs, methods, write, write_ex, structs {name: bytes}, ops {driver: {operation:
// served}}.

namespace vabi::conformance {

// A release of rdma-core: 44.0.
struct Release {
  int major = 0, minor = 0;
  auto operator<=>(const Release&) const = default;
};
Release ParseRelease(std::string_view text);

struct CellDevice {
  std::string driver, name, link;  // link: "ib" | "roce" | "iw"
  int abi = 0;                     // of the driver, as the kernel tells it
};

struct RuleFact {
  bool on = false;
  int error = 0;  // errno
};

struct Cell {
  std::string id, kernel, userland, trace;
  Release release;
  std::vector<CellDevice> devices;
  std::vector<std::string> overlays;
  std::map<std::string, RuleFact, std::less<>> rules;
  std::map<std::string, long, std::less<>> knobs;
  std::map<std::string, bool, std::less<>> methods, write, write_ex;
  std::map<std::string, size_t, std::less<>> structs;
  std::map<std::string, std::map<std::string, bool, std::less<>>, std::less<>> ops;

  // All of these fail loudly for names that the model does not know: a test must not pass by a slip
  // of the pen.
  bool HasIoctl() const { return Knob("ioctl") != 0; }
  long Knob(std::string_view name) const;
  const RuleFact& Rule(std::string_view name) const;
  bool Op(std::string_view driver, std::string_view operation) const;
  // "CQ.CREATE": an ioctl method. "REREG_MR": a write command. "EX_CREATE_CQ": an extended one. A
  // method that does not exist because there is no ioctl at all is not served.
  bool Serves(std::string_view name) const;
  // Bytes of a structure in this kernel; 0 when it has none.
  size_t SizeOf(std::string_view structure) const;
  bool HasOverlay(std::string_view text) const;
  const CellDevice& device() const { return devices.front(); }
  // The value of overlay NAME=VALUE; nothing when there is none.
  std::optional<std::string> OverlayValue(std::string_view name) const;
};

// The error says what is wrong with the text.
bool ParseCell(const std::string& text, Cell* cell, std::string* error);

}  // namespace vabi::conformance

#endif  // VABI_HARNESS_CONFORMANCE_FRAMEWORK_CELL_H_
