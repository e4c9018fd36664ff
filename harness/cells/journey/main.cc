// SPDX-License-Identifier: BSD-2-Clause
//
// What every application does, once: find a device, open it, make the objects, move data, take all
// down. Built against each userland's own headers and run inside a cell; the cell's outcome is read
// from its report and from the trace. Usage: journey [DEVICE]. Exit 0: all went well, 1: a step
// failed, 3: no device.

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdio>

#include "data.h"
#include "extras.h"
#include "mapped.h"
#include "open.h"
#include "packets.h"
#include "services.h"
#include "step.h"

namespace {

using journey::May;
using journey::Must;
using journey::Value;

bool QueryDevice(ibv_context* context, bool* atomics) {
  ibv_device_attr attr = {};
  int result = ibv_query_device(context, &attr);
  if (!Must("query_device", result == 0, result)) return false;
  Value("max_qp", static_cast<uint64_t>(attr.max_qp));
  Value("max_qp_wr", static_cast<uint64_t>(attr.max_qp_wr));
  Value("max_mr_size", attr.max_mr_size);
  Value("device_cap_flags", attr.device_cap_flags);
  Value("ports", attr.phys_port_cnt);
  ibv_device_attr_ex extended = {};
  result = ibv_query_device_ex(context, nullptr, &extended);
  May("query_device_ex", result == 0, result);
  *atomics = attr.atomic_cap != IBV_ATOMIC_NONE;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  ibv_context* context = journey::Open(argc > 1 ? argv[1] : nullptr);
  journey::TellMapped();
  if (context == nullptr) return 3;
  bool atomics = false;
  journey::Pair pair;
  if (QueryDevice(context, &atomics) && journey::SetUp(context, &pair)) {
    journey::MoveData(&pair, atomics);
    journey::FailOnPurpose(&pair);
    journey::TryExtras(&pair);
    journey::TryServices(&pair);
    journey::TryPackets(&pair);
  }
  journey::TearDown(&pair);
  const int result = ibv_close_device(context);
  Must("close_device", result == 0, result);
  return journey::Failures() == 0 ? 0 : 1;
}
