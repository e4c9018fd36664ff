// SPDX-License-Identifier: BSD-2-Clause
#include <cerrno>
#include <cstring>

#include "../journey/step.h"
#include "asks.h"

// Of releases that have it.
struct ibv_comp_cntr_caps;

namespace asks {
namespace {

using journey::Ask;

constexpr int kEntries = 16;  // of a port's tables

// As ibv_devinfo -v reads them: one by one, until the table's end.
void AskGids(ibv_context* context, const ibv_port_attr& port) {
  int found = 0, refused = 0;
  for (int i = 0; i < port.gid_tbl_len && i < kEntries; ++i) {
    ibv_gid_entry entry = {};
    const int result = ibv_query_gid_ex(context, 1, static_cast<uint32_t>(i), &entry, 0);
    if (result == 0) {
      ++found;
    } else if (result != ENODATA) {
      refused = result;
    }
  }
  Ask("query_gid_ex", found > 0 && refused == 0, refused);
  ibv_gid_entry past = {};
  int result = ibv_query_gid_ex(context, 1, static_cast<uint32_t>(port.gid_tbl_len), &past, 0);
  Ask("query_gid_ex:past_the_end", result == 0, result);
  ibv_gid_entry table[kEntries] = {};
  const ssize_t count = ibv_query_gid_table(context, table, kEntries, 0);
  Ask("query_gid_table", count > 0, count < 0 ? static_cast<int>(-count) : 0);
}

void AskKeys(ibv_context* context, const ibv_port_attr& port) {
  for (int i = 0; i < port.pkey_tbl_len && i < 2; ++i) {
    __be16 key = 0;
    errno = 0;
    Ask("query_pkey", ibv_query_pkey(context, 1, i, &key) == 0, errno);
  }
  errno = 0;
  Ask("get_pkey_index", ibv_get_pkey_index(context, 1, htobe16(0xffff)) >= 0, errno);
}

// 56.1's ports tell more than active_speed, which has eight bits, and 65.0's are asked by a method.
template <typename Context, typename Port>
void AskSpeed(Context* context, const Port& port) {
  if constexpr (requires { port.active_speed_ex; }) {
    Ask("active_speed_ex", port.active_speed_ex != 0);
  }
  if constexpr (requires(uint64_t * speed) { ibv_query_port_speed(context, 1, speed); }) {
    uint64_t speed = 0;
    const int result = ibv_query_port_speed(context, 1, &speed);
    Ask("query_port_speed", result == 0, result);
  }
}

// 65.0
template <typename Context, typename Caps>
void AskCompletionCounters(Context* context) {
  if constexpr (requires(Caps * caps) { ibv_query_comp_cntr_caps(context, caps); }) {
    Caps caps = {};
    const int result = ibv_query_comp_cntr_caps(context, &caps);
    Ask("query_comp_cntr_caps", result == 0, result);
  }
}

void AskPorts(ibv_context* context, const ibv_device_attr& device) {
  for (int port = 1; port <= device.phys_port_cnt && port <= 4; ++port) {
    ibv_port_attr attr = {};
    const int result = ibv_query_port(context, static_cast<uint8_t>(port), &attr);
    Ask("query_port", result == 0, result);
    if (port == 1 && result == 0) {
      AskGids(context, attr);
      AskKeys(context, attr);
      AskSpeed(context, attr);
    }
  }
  ibv_port_attr attr = {};
  int result = ibv_query_port(context, 0, &attr);
  Ask("query_port:0", result == 0, result);
  result = ibv_query_port(context, static_cast<uint8_t>(device.phys_port_cnt + 1), &attr);
  Ask("query_port:past_the_last", result == 0, result);
}

}  // namespace

void AskDevice(ibv_context* context) {
  ibv_device_attr device = {};
  int result = ibv_query_device(context, &device);
  if (!Ask("query_device", result == 0, result)) return;
  ibv_device_attr_ex extended = {};
  const ibv_query_device_ex_input input = {};
  result = ibv_query_device_ex(context, &input, &extended);
  Ask("query_device_ex", result == 0, result);
  AskPorts(context, device);
  AskCompletionCounters<ibv_context, ibv_comp_cntr_caps>(context);
}

}  // namespace asks
