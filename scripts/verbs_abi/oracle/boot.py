# SPDX-License-Identifier: BSD-2-Clause
"""One boot of a real kernel with a shell script: the answer to a question in ten seconds.

    verbs-abi oracle boot --kernel debian-6.1.192 --file ./prog 'prog /dev/infiniband/uverbs0'

Files land in the guest's /bin; the script finds rxe0 (on eth0), /dev/infiniband/uverbs0, busybox.
"""

import fcntl
import pathlib
import subprocess
import tempfile
import threading
import time

from verbs_abi.oracle import apt
from verbs_abi.oracle import cpio
from verbs_abi.oracle import kernels
from verbs_abi.oracle import vm

# A made-up Ethernet device with the addresses that the fake kernel's worlds have, and rxe0 on it.
ADD_ETH = """
ip link set dummy0 name eth0
ip link set eth0 address 00:00:c0:00:01:00
ip addr add 10.0.0.1/24 dev eth0
ip link set eth0 up
"""
ADD_RXE = ADD_ETH + """
vabi-guest addlink rxe0 rxe eth0
tries=0
while [ "$tries" -lt 50 ] &&
      ! grep -q 'ffff:0a00:0001' /sys/class/infiniband/rxe0/ports/1/gids/1; do
  tries=$((tries + 1)); usleep 100000
done
"""
PROBE_ROOM = kernels.SOURCE_ROOT / "harness" / "probe"


def _sources(prefix):
    return sorted(path.name for path in PROBE_ROOM.glob(f"{prefix}*.cc")
                  if not path.name.endswith("_test.cc"))


_TOOLS = threading.Lock()
_BUILT = {}  # by cache folder: one recording uses the same programs from its first boot to its last


def guest_tools(cache=None):
    """Builds the static guest programs (no CMake needed). Returns {name: path}."""
    with _TOOLS:
        if cache not in _BUILT:
            _BUILT[cache] = _guest_tools(cache)
        return _BUILT[cache]


def _guest_tools(cache):
    folder = (cache or apt.cache_dir()) / "oracle" / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    tools = {}
    for name, sources in (("vabi-guest", ["guest.cc"]),
                          ("vabi-probe-static", _sources("probe")),
                          ("vabi-dump-static", _sources("dump"))):
        paths = [PROBE_ROOM / source for source in sources]
        if not paths:
            continue
        target = folder / name
        newest = max(path.stat().st_mtime
                     for path in paths + list(PROBE_ROOM.glob("*.h")))
        if not target.exists() or target.stat().st_mtime < newest:
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                fresh = pathlib.Path(scratch) / name
                subprocess.run(["g++", "-std=c++20", "-O1", "-static", "-I",
                                str(kernels.SOURCE_ROOT), "-o", str(fresh), *map(str, paths)],
                               check=True, timeout=300)
                fresh.rename(target)
        tools[name] = target
    return tools


MOST_GUESTS = 2  # at a time, on this machine: each keeps a core busy


def a_guests_place(places=MOST_GUESTS):
    """A lock on one of the places for guests, when one is free. Close it to release."""
    folder = apt.cache_dir() / "oracle"
    folder.mkdir(parents=True, exist_ok=True)
    handles = [(folder / f"guest{number}.lock").open("w") for number in range(places)]
    while True:
        for handle in handles:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            for other in handles:
                if other is not handle:
                    other.close()
            return handle
        time.sleep(0.2)


def job(script, files=(), rxe=True):
    """The archive that makes a guest run `script`; files: (host path, name in the guest)."""
    archive = cpio.Archive()
    for name, path in guest_tools().items():
        archive.file(f"bin/{name}", path.read_bytes(), 0o755)
    for path, name in files:
        data = pathlib.Path(path).read_bytes()
        archive.file(name if "/" in name else f"bin/{name}", data, 0o755)
    archive.file("job/run", ((ADD_RXE if rxe else "") + script + "\n").encode())
    return archive.data()


def run(kernel, script, files=(), rxe=True, extra=(), **limits):
    """Boots the kernel of that name, runs the script; returns vm.Result."""
    unpacked = kernels.Unpacked(kernels.find(kernel)).prepare()
    with a_guests_place():
        return vm.boot(unpacked, [*extra, job(script, files, rxe)], **limits)
