// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sysfs/counters.h"

#include <span>

#include "harness/world/world.h"

namespace vabi::sysfs {
namespace {

// core/sysfs.c: pma_attrs_ext
constexpr const char* kPmaExtended[] = {"symbol_error",
                                        "link_error_recovery",
                                        "link_downed",
                                        "port_rcv_errors",
                                        "port_rcv_remote_physical_errors",
                                        "port_rcv_switch_relay_errors",
                                        "port_xmit_discards",
                                        "port_xmit_constraint_errors",
                                        "port_rcv_constraint_errors",
                                        "local_link_integrity_errors",
                                        "excessive_buffer_overrun_errors",
                                        "VL15_dropped",
                                        "port_xmit_data",
                                        "port_rcv_data",
                                        "port_xmit_packets",
                                        "port_rcv_packets",
                                        "port_xmit_wait",
                                        "unicast_rcv_packets",
                                        "unicast_xmit_packets",
                                        "multicast_rcv_packets",
                                        "multicast_xmit_packets"};

// A name of a driver's hardware counters, in the lists `first` to `last` of its knob.
struct HwCounter {
  const char* name;
  int first, last;
};

// sw/rxe/rxe_hw_counters.c
constexpr HwCounter kRxe[] = {
    {"sent_pkts", 1, 9},           {"rcvd_pkts", 1, 9},          {"duplicate_request", 1, 9},
    {"out_of_sequence", 1, 1},     {"out_of_seq_request", 2, 9}, {"rcvd_rnr_err", 1, 9},
    {"send_rnr_err", 1, 9},        {"rcvd_seq_err", 1, 9},       {"ack_deffered", 1, 1},
    {"ack_deferred", 2, 9},        {"retry_exceeded_err", 1, 9}, {"retry_rnr_exceeded_err", 1, 9},
    {"completer_retry_err", 1, 9}, {"send_err", 1, 9},           {"link_downed", 2, 9},
    {"rdma_sends", 2, 9},          {"rdma_recvs", 2, 9},         {"sent_bytes", 3, 9},
    {"rcvd_bytes", 3, 9}};

// hw/mlx5/main.c, counters.c
constexpr HwCounter kMlx5[] = {{"rx_write_requests", 1, 9},
                               {"rx_read_requests", 1, 9},
                               {"rx_atomic_requests", 1, 9},
                               {"rx_dct_connect", 4, 9},
                               {"out_of_buffer", 1, 9},
                               {"out_of_sequence", 1, 9},
                               {"duplicate_request", 1, 9},
                               {"rnr_nak_retry_err", 1, 9},
                               {"packet_seq_err", 1, 9},
                               {"implied_nak_seq_err", 1, 9},
                               {"local_ack_timeout_err", 1, 9},
                               {"resp_local_length_error", 1, 9},
                               {"resp_cqe_error", 1, 9},
                               {"req_cqe_error", 1, 9},
                               {"req_remote_invalid_request", 1, 9},
                               {"req_remote_access_errors", 1, 9},
                               {"resp_remote_access_errors", 1, 9},
                               {"resp_cqe_flush_error", 1, 9},
                               {"req_cqe_flush_error", 1, 9},
                               {"req_transport_retries_exceeded", 5, 9},
                               {"req_rnr_retries_exceeded", 5, 9},
                               {"roce_adp_retrans", 3, 9},
                               {"roce_adp_retrans_to", 3, 9},
                               {"roce_slow_restart", 3, 9},
                               {"roce_slow_restart_cnps", 3, 9},
                               {"roce_slow_restart_trans", 3, 9},
                               {"rp_cnp_ignored", 1, 9},
                               {"rp_cnp_handled", 1, 9},
                               {"np_ecn_marked_roce_packets", 1, 9},
                               {"np_cnp_sent", 1, 9},
                               {"rx_icrc_encapsulated", 2, 9}};

struct DriverCounters {
  DriverId driver;
  std::span<const HwCounter> names;
  KnobId list;
};
constexpr DriverCounters kDrivers[] = {{DriverId::rxe, kRxe, KnobId::sysfs_rxe_hw_counters},
                                       {DriverId::mlx5, kMlx5, KnobId::sysfs_mlx5_hw_counters}};

bool AnswersPma(const WorldImage& image, const DeviceImage& device) {
  if (device.driver == DriverId::rxe) return KnobOf(image, KnobId::sysfs_rxe_pma) != 0;
  return device.driver == DriverId::mlx5;
}

// core/cm.c: the groups that it adds to every port, and what each counts
constexpr const char* kCmGroups[] = {"cm_tx_msgs", "cm_tx_retries", "cm_rx_msgs",
                                     "cm_rx_duplicates"};
constexpr const char* kCmMessages[] = {"req",  "mra",      "rej",      "rep", "rtu", "dreq",
                                       "drep", "sidr_req", "sidr_rep", "lap", "apr"};

}  // namespace

void DescribeCounters(const WorldImage& image, const DeviceImage& device, const std::string& port,
                      Tree* tree) {
  if (AnswersPma(image, device)) {
    for (const char* name : kPmaExtended) tree->Add(port + "/counters/" + name, "0\n");
  }
  for (const DriverCounters& driver : kDrivers) {
    const int64_t list = KnobOf(image, driver.list);
    if (driver.driver != device.driver || list == 0) continue;
    for (const HwCounter& counter : driver.names) {
      if (counter.first <= list && list <= counter.last) {
        tree->Add(port + "/hw_counters/" + counter.name, "0\n");
      }
    }
    // RDMA_HW_STATS_DEFAULT_LIFESPAN
    tree->Add(port + "/hw_counters/lifespan", "10\n", 0644);
  }
  if (KnobOf(image, KnobId::modules_cm) == 0 || KnobOf(image, KnobId::sysfs_cm_counters) == 0)
    return;
  for (const char* group : kCmGroups) {
    for (const char* message : kCmMessages) {
      tree->Add(port + "/" + group + "/" + message, "0\n");
    }
  }
}

}  // namespace vabi::sysfs
