// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_WORLD_IMAGE_H_
#define VABI_HARNESS_WORLD_IMAGE_H_

#include <cstdint>
#include <type_traits>

#include "harness/world/abi_tables.h"

// The world file: one flat image, mapped read-only by the fake kernel. No pointers, no parsing. A
// world is a kernel model (facts plus the kernel's file in matrix/), the devices, what the process
// may see, and faults. Shims of 64 and of 32 bits map the same file: whatever has 8 bytes stands at
// a multiple of 8, which i386 would not do by itself.

namespace vabi {

inline constexpr char kWorldMagic[8] = {'V', 'A', 'B', 'I', 'W', 'L', 'D', '1'};

// How a rule, or a whole kernel model, is known; from the best to the weakest.
enum class KnownBy : uint8_t { kCalibrated, kSource, kHeaders };

// Where a field stands in this kernel's structure: bytes. offset < 0: this kernel has no such
// field.
struct FieldLoc {
  int16_t offset;
  uint16_t size;
};

struct ConstEntry {
  alignas(8) int64_t value;
  uint8_t present;
};

struct RuleEntry {
  int16_t error;    // positive errno
  uint8_t on;       // this kernel has the rule
  uint8_t relaxed;  // `test --relax` took it away
  KnownBy known_by;
};

enum class LinkLayer : uint8_t {
  kUnspecified = 0,
  kInfiniband = 1,
  kEthernet = 2
};  // enum rdma_link_layer

struct PortImage {
  uint16_t lid;
  uint16_t sm_lid;
  uint8_t lmc;
  uint8_t sm_sl;
  uint8_t state;       // enum ib_port_state, 4 = ACTIVE
  uint8_t phys_state;  // 5 = LinkUp
  uint8_t max_mtu;     // enum ib_mtu
  uint8_t active_mtu;
  uint8_t active_width;
  uint16_t active_speed;
  uint32_t cap_flags;
  uint16_t cap_flags2;
  uint32_t max_msg_size;
  uint16_t pkey_count;
  uint16_t pkeys[4];
  uint32_t gid_table_length;
  // Filled GID entries; the rest of the table is empty.
  uint8_t gid_count;
  struct {
    uint8_t raw[16];
    uint8_t type;  // enum ib_uverbs_gid_type: 0 IB, 1 RoCE v1, 2 RoCE v2
    uint32_t ndev_ifindex;
  } gids[4];
  // The network interface under the port; an empty name: none.
  char ndev[16];
  uint32_t ndev_ifindex;
  uint8_t ndev_addresses[2][16];  // as a GID tells them: link-local, IPv4
};

struct DeviceImage {
  char name[64];  // "mlx5_0"
  DriverId driver;
  uint32_t driver_id;     // enum rdma_driver_id as this kernel numbers it
  uint32_t index;         // NLDEV dev index
  uint32_t uverbs;        // the N of uverbsN
  uint32_t major, minor;  // of the node
  LinkLayer link;
  uint8_t node_type;  // enum rdma_node_type, 1 = CA
  uint8_t port_count;
  uint32_t abi_version;                // ops.uverbs_abi_ver, as netlink tells it
  alignas(8) uint64_t node_guid;       // host order
  alignas(8) uint64_t sys_image_guid;  // host order
  char fw_ver[64];
  char board_id[64];
  char node_desc[64];
  uint32_t vendor_id, vendor_part_id, hw_ver;
  char pci_address[16];      // "0000:a1:00.0"; empty: a virtual device
  char hidden_from_netlink;  // 1: this world's netlink does not tell of the device
  PortImage ports[2];
};

// The address of the network interface under the device. Its GUID was made of it:
// include/net/addrconf.h:addrconf_addr_eui48 puts ff:fe into the middle and turns the local bit.
inline void InterfaceAddress(const DeviceImage& device, uint8_t* mac) {
  for (int i = 0; i < 3; ++i) {
    mac[i] = static_cast<uint8_t>(device.node_guid >> (56 - 8 * i));
    mac[3 + i] = static_cast<uint8_t>(device.node_guid >> (16 - 8 * i));
  }
  mac[0] ^= 2;
}

// The hardware address of an IPoIB interface (ulp/ipoib): flags and the number of its queue pair,
// then the port's GID. Without the flag of connected mode, which mlx5's own interface has not
// (mlx5/core/ipoib).
inline constexpr int kIpoibAddress = 20;
// 2048, as opensm makes the broadcast group, less the header (IPOIB_UD_MTU).
inline constexpr uint32_t kIpoibMtu = 2044;
inline void IpoibAddress(const PortImage& port, uint8_t (&address)[kIpoibAddress]) {
  constexpr uint8_t kQueuePair = 0x48;
  address[0] = address[1] = address[2] = 0;
  address[3] = kQueuePair;
  for (int i = 0; i < 16; ++i) address[4 + i] = port.gids[0].raw[i];
}
// RFC 4391: the group that every interface of a P_Key is in, the broadcast address.
inline void IpoibBroadcast(const PortImage& port, uint8_t (&address)[kIpoibAddress]) {
  const uint8_t start[] = {0x00, 0xff, 0xff, 0xff, 0xff, 0x12, 0x40, 0x1b};
  for (int i = 0; i < kIpoibAddress; ++i) address[i] = i < 8 ? start[i] : i < 16 ? 0 : 0xff;
  address[8] = static_cast<uint8_t>(port.pkeys[0] >> 8);
  address[9] = static_cast<uint8_t>(port.pkeys[0]);
}

inline constexpr int kMaxDevices = 16;

struct Redirect {
  char from[128];  // a path prefix as the process knows it, without trailing slash
  char to[256];    // where it stands
};

// One thing that goes wrong on purpose. `step` names what it hits, as the trace names it: a write
// command
// ("CREATE_CQ"), a method ("DEVICE.GET_CONTEXT"), "mmap:KIND", "open", "stat", "netlink:OP".
struct Fault {
  char step[64];
  int32_t error;   // positive errno to answer with
  uint32_t after;  // calls of that step that still succeed
  uint32_t count;  // calls that then fail; 0: all
};

// Something that happens to a device while programs use it.
struct ScriptStep {
  enum Kind : uint8_t { kPortEvent, kDeviceFatal, kUnplug };
  uint8_t kind;
  int32_t device;
  uint32_t event;                // kPortEvent: enum ib_event_type
  uint32_t after_calls;          // commands of the process to this device; 0: by time
  alignas(8) uint64_t after_ns;  // since the process first opened the device
};

struct ReadError {
  char path[192];  // a file that opens and whose read fails
  int32_t error;
};

struct NodeView {
  char path[64];  // "/dev/infiniband/uverbs0"
  uint8_t present;
  uint8_t kind;   // 0 character device, 1 regular file
  uint32_t mode;  // permission bits
  uint32_t uid, gid;
  uint32_t major, minor;  // what stat says
  int32_t device;         // index into devices; -1: another node
};

struct WorldImage {
  char magic[8];
  alignas(8) uint64_t tables_digest;
  uint32_t image_size;
  uint32_t page_size;
  char stack[16];   // "rdma-core"
  char arch[16];    // of the kernel's callers: "x86_64"
  char kernel[48];  // "debian-6.1.192"
  KnownBy known_by;

  uint16_t struct_size[kCountOf<StructId>];  // bytes; 0: this kernel has no such structure
  FieldLoc field[kCountOf<FieldId>];
  ConstEntry constant[kCountOf<ConstId>];
  RuleEntry rule[kCountOf<RuleId>];
  alignas(8) int64_t knob[kCountOf<KnobId>];
  uint8_t write_served[kCountOf<WriteId>];
  uint8_t write_ex_served[kCountOf<WriteExId>];
  uint8_t method_served[kCountOf<MethodId>];
  uint8_t op_served[kCountOf<DriverId>]
                   [kCountOf<Op>];  // 0: this kernel's driver has not that operation

  uint32_t device_count;
  DeviceImage device[kMaxDevices];

  // What the process may see.
  uint32_t uid, gid;          // whom permissions are checked for
  uint8_t check_permissions;  // 0: as root
  uint8_t virtual_time;       // waits inside libraries pass at once
  uint8_t memlock_stated;     // 0: no limit
  uint32_t memlock_kib;       // RLIMIT_MEMLOCK
  char run_dir[256];          // never shown to the process
  char trace_path[256];       // empty: no trace
  uint32_t redirect_count;
  Redirect redirect[32];  // longest prefix first
  uint32_t node_count;
  NodeView node[kMaxDevices * 4];
  uint32_t read_error_count;
  ReadError read_error[32];
  uint32_t fault_count;
  Fault fault[32];
  uint32_t script_count;
  ScriptStep script[16];
};

static_assert(std::is_trivially_copyable_v<WorldImage>);
static_assert(sizeof(ConstEntry) == 16 && alignof(DeviceImage) == 8 && alignof(ScriptStep) == 8 &&
              sizeof(ScriptStep) == 24 && alignof(WorldImage) == 8);

}  // namespace vabi

#endif  // VABI_HARNESS_WORLD_IMAGE_H_
