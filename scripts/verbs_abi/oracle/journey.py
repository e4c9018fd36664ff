# SPDX-License-Identifier: BSD-2-Clause
"""`verbs-abi oracle record --journey nvmeof`: NVMe over Fabrics on a real kernel, target and host in one
guest over rxe: discovery, connection, data there and back compared byte by byte, disconnection."""

from verbs_abi.oracle import boot
from verbs_abi.oracle import cpio
from verbs_abi.oracle import kernels

MODULES = ("brd", "nvmet", "nvmet_rdma", "nvme_fabrics", "nvme_rdma")

SCRIPT = r"""
while read -r module; do
  case $module in brd) options="rd_nr=1 rd_size=65536" ;; *) options= ;; esac
  insmod "/extra/$module.ko" $options || echo "module $module did not load"
done < /extra/order
mount -t configfs configfs /sys/kernel/config
step() { title=$1; shift; if "$@"; then echo "$title ok"; else echo "$title failed $?"; fi; }
wait_for() { tries=0; while [ ! -e "$1" ] && [ "$tries" -lt 100 ]; do tries=$((tries + 1)); usleep 100000; done; [ -e "$1" ]; }
target() {
  cd /sys/kernel/config/nvmet && mkdir subsystems/one && echo 1 > subsystems/one/attr_allow_any_host &&
  mkdir subsystems/one/namespaces/1 && printf /dev/ram0 > subsystems/one/namespaces/1/device_path &&
  echo 1 > subsystems/one/namespaces/1/enable && mkdir ports/1 && cd ports/1 &&
  echo rdma > addr_trtype && echo ipv4 > addr_adrfam && echo 10.0.0.1 > addr_traddr &&
  echo 4420 > addr_trsvcid && ln -s /sys/kernel/config/nvmet/subsystems/one subsystems/one
}
# The answer to a connection is read from the same open file.
connect() {
  exec 3<>/dev/nvme-fabrics
  printf 'transport=rdma,traddr=10.0.0.1,trsvcid=4420,nqn=%s' "$1" >&3 && head -n 1 <&3 > /tmp/answer
  status=$?; exec 3>&-; [ "$status" = 0 ] && grep -q instance= /tmp/answer
}
controller() { sed -n 's/.*instance=\([0-9]*\).*/nvme\1/p' /tmp/answer; }
gone() { tries=0; while [ -e "/sys/class/nvme/$1" ] && [ "$tries" -lt 100 ]; do tries=$((tries + 1)); usleep 100000; done; [ ! -e "/sys/class/nvme/$1" ]; }
disconnect() { name=$(controller); echo 1 > "/sys/class/nvme/$name/delete_controller" && gone "$name"; }
block() { ls /dev/nvme*n1 2>/dev/null | head -n 1; }
appear() { tries=0; while [ -z "$(block)" ] && [ "$tries" -lt 100 ]; do tries=$((tries + 1)); usleep 100000; done; [ -n "$(block)" ]; }
send() { dd if=/tmp/pattern of="$(block)" bs=64k conv=fsync 2>/dev/null; }
receive() { echo 3 > /proc/sys/vm/drop_caches; dd if="$(block)" of=/tmp/back bs=64k count=32 2>/dev/null && cmp /tmp/pattern /tmp/back; }
dd if=/dev/urandom of=/tmp/pattern bs=64k count=32 2>/dev/null
step target target
cd /
step fabrics wait_for /dev/nvme-fabrics
step discovery_connect connect nqn.2014-08.org.nvmexpress.discovery
step discovery_disconnect disconnect
step connect connect one
step namespace appear
step write send
step read_back receive
step disconnect disconnect
"""

STEPS = SCRIPT.count("\nstep ")


def _modules(unpacked):
    base = {name for name, _ in unpacked.modules()}
    archive = cpio.Archive()
    order = [(name, data) for name, data in unpacked.modules(MODULES) if name not in base]
    for name, data in order:
        archive.file(f"extra/{name}.ko", data)
    archive.file("extra/order", "".join(f"{name}\n" for name, _ in order).encode())
    return archive.data()


def nvmeof(kernel, report=lambda text: None):
    """{"journey-nvmeof.txt": a line a step}, when each step worked. Tried twice."""
    unpacked = kernels.Unpacked(kernels.find(kernel)).prepare()
    for attempt in (1, 2):
        result = boot.run(kernel, SCRIPT, extra=[_modules(unpacked)], timeout=400)
        steps = result.text("stdout").splitlines()
        failed = [line for line in steps if not line.endswith(" ok")]
        if result.ended == "done" and not failed and len(steps) == STEPS:
            return {"journey-nvmeof.txt": result.text("stdout")}
        wrong = (f"guest {result.ended}" if result.ended != "done" else
                 f"steps: {failed[0] if failed else f'{len(steps)} of {STEPS}'} {result.text('stderr')[-300:]}")
        report(f"{kernel}: NVMe-oF {wrong} (attempt {attempt})")
    raise kernels.OracleError(f"{kernel}: NVMe-oF did not come to its end twice ({wrong}); console: "
                              f"{result.console[-800:]}")
