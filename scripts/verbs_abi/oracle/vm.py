# SPDX-License-Identifier: BSD-2-Clause
"""Boots a packaged kernel with a job and brings back what the job left in /out.

The guest and the host share one piece of memory (ivshmem), a plain file on the host. What the
guest writes there survives its crash, so a probe that takes the kernel down has still told how
far it came.

  bytes 0 … ANSWERS       free for the job (the probe's answers)
  bytes ANSWERS … end     64-bit length, then the tar of /out, written when the job has ended
"""

import dataclasses
import io
import mmap
import os
import pathlib
import shutil
import struct
import subprocess
import tarfile
import tempfile
import time

from verbs_abi import children, locks
from verbs_abi.oracle import cpio
from verbs_abi.oracle import kernels

ANSWERS = 32 << 20
SHARED = 64 << 20


@dataclasses.dataclass
class Result:
    """What a boot left behind."""

    ended: str  # "done", "crashed", "timeout", "stalled"
    console: str
    answers: bytes  # the job's part of the shared memory, up to the first NUL
    files: dict  # name below /out -> bytes; empty unless ended == "done"
    seconds: float

    def text(self, name):
        return self.files.get(name, b"").decode(errors="replace")


def base_archive(unpacked):
    """The kernel's own initramfs: busybox, the first process, the modules. Cached; two at once take turns."""
    with locks.exclusive(unpacked.cache / "lock", f"packing {unpacked.kernel.name}"):
        return _base_archive(unpacked)


def _base_archive(unpacked):
    init = (pathlib.Path(__file__).parent / "guest_init.sh").read_bytes()
    target = unpacked.cache / "base.cpio"
    stamp = unpacked.cache / "base.init"
    if target.exists() and stamp.exists() and stamp.read_bytes() == init:
        return target
    busybox = shutil.which("busybox")
    if not busybox:
        raise kernels.OracleError("no busybox: install the package busybox-static")
    archive = cpio.Archive()
    archive.char_device("dev/console", 5, 1)
    archive.char_device("dev/null", 1, 3, 0o666)
    archive.file("bin/busybox", pathlib.Path(busybox).read_bytes(), 0o755)
    archive.file("init", init, 0o755)
    modules = unpacked.modules()
    for name, data in modules:
        archive.file(f"modules/{name}.ko", data)
    archive.file("modules/order", "".join(f"{name}\n" for name, _ in modules).encode())
    partial = target.with_suffix(".partial")
    partial.write_bytes(archive.data())
    partial.rename(target)
    stamp.write_bytes(init)
    return target


def accelerator():
    """KVM only on request: a /dev/kvm that opens may still not run a guest."""
    return os.environ.get("VERBS_ABI_QEMU_ACCEL", "tcg,thread=multi")


def boot(unpacked, archives, timeout=120, stall=None, memory=1024, watch=None):
    """Boots `unpacked` with the base archive and `archives` (bytes or paths) on top.

    timeout: seconds for the whole boot. stall: seconds without a change of the answers area
    after which the guest counts as hung. watch(answers_map): called about five times a second.
    """
    qemu = shutil.which("qemu-system-x86_64")
    if not qemu:
        raise kernels.OracleError("no qemu-system-x86_64: install the package qemu-system-x86")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="vabi-vm-") as folder:
        folder = pathlib.Path(folder)
        initrd = folder / "initrd"
        with initrd.open("wb") as out:
            for part in (base_archive(unpacked), *archives):
                out.write(part if isinstance(part, bytes) else pathlib.Path(part).read_bytes())
        shared = folder / "shared"
        with shared.open("wb") as out:
            out.truncate(SHARED)
        console = folder / "console"
        words = [
            qemu, "-M", "pc", "-accel", accelerator(), "-cpu", "max", "-m", str(memory),
            "-smp", "2", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-kernel", str(unpacked.image()), "-initrd", str(initrd),
            "-append", "console=ttyS0 panic=-1 oops=panic mitigations=off quiet loglevel=4 "
                       "tsc=reliable no_timer_check nokaslr random.trust_cpu=on",
            "-serial", f"file:{console}",
            "-object", f"memory-backend-file,id=shm,share=on,mem-path={shared},size={SHARED}",
            "-device", "ivshmem-plain,memdev=shm",
            "-device", "virtio-rng-pci",
        ]
        with open(folder / "qemu.err", "wb") as errors, shared.open("r+b") as handle:
            area = mmap.mmap(handle.fileno(), SHARED)
            with children.started(words, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors) as process:
                ended = _wait(process, area, console, started + timeout, stall, watch)
                children.end(process)
            text = console.read_text(errors="replace") if console.exists() else ""
            text += (folder / "qemu.err").read_text(errors="replace")
            answers = area[:ANSWERS]
            answers = answers[:answers.find(b"\0")] if b"\0" in answers else answers
            size, = struct.unpack_from("<Q", area, ANSWERS)
            files = _unpack(area[ANSWERS + 8:ANSWERS + 8 + size]) if size else {}
            area.close()
    if ended == "exit":
        ended = "done" if "guest: done" in text else "crashed"
    return Result(ended, text, answers, files, time.monotonic() - started)


def _wait(process, area, console, deadline, stall, watch):
    """Until qemu ends by itself; "exit", "timeout" or "stalled"."""
    last_change, seen = time.monotonic(), None
    while process.poll() is None:
        now = time.monotonic()
        if now > deadline:
            return "timeout"
        if watch:
            watch(area)
        if stall and area[0] != 0:
            size = area.find(b"\0", 0 if seen is None else max(0, seen[0] - 1), ANSWERS)
            current = (size, console.stat().st_size if console.exists() else 0)
            if current != seen:
                seen, last_change = current, now
            elif now - last_change > stall:
                return "stalled"
        time.sleep(0.1)
    return "exit"


def _unpack(data):
    files = {}
    with tarfile.open(fileobj=io.BytesIO(bytes(data))) as tar:
        for member in tar:
            if member.isfile():
                files[member.name.removeprefix("out/")] = tar.extractfile(member).read()
    return files
