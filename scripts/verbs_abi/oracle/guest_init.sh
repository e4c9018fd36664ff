#!/bin/busybox sh
# SPDX-License-Identifier: BSD-2-Clause
# First process of a guest: mounts, loads the modules, runs /job/run, hands /out back to the host.
export PATH=/bin:/sbin
/bin/busybox mkdir -p /proc /sys /dev /tmp /out /run /bin /sbin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm && mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
echo 1 > /proc/sys/kernel/panic_on_oops
hostname guest
ip link set lo up
while read -r module; do
  insmod "/modules/$module.ko" 2>/dev/null || echo "guest: module $module did not load"
done < /modules/order
export VABI_SHM
for device in /sys/bus/pci/devices/*; do
  [ "$(cat "$device/vendor")" = 0x1af4 ] && [ "$(cat "$device/device")" = 0x1110 ] &&
    VABI_SHM=$device/resource2
done
cd /out || exit
echo "guest: ready"
sh /job/run > /out/stdout 2> /out/stderr
echo $? > /out/status
dmesg > /out/dmesg
cd / && tar -c -f /tmp/out.tar out && vabi-guest put "$VABI_SHM" /tmp/out.tar
echo "guest: done"
poweroff -f
