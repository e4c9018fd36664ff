// SPDX-License-Identifier: BSD-2-Clause
//
// Asks for devices as libibverbs begins to: one socket of RDMA netlink. With the shim and a world
// this maps the world and makes the fake kernel ready, with the shim alone nothing of it;
// `verbs-abi bench` takes the difference.

#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

int main() {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  if (fd >= 0) close(fd);
  return 0;
}
