# SPDX-License-Identifier: BSD-2-Clause
"""Worlds on disk: asks vabi-world (one process for many worlds) to compile a cell's world into a run folder."""

import contextlib
import fcntl
import functools
import json
import pathlib
import resource
import shutil
import subprocess
import tempfile
import threading
import time

from verbs_abi import matrix, paths
from verbs_abi.errors import UserError


class Absent(Exception):
    """This kernel has no such driver: the cell cannot exist."""


def no_driver(reason, cell):
    """The error of a cell that is Absent, with what the kernel's files say of the driver, which may have gone, too."""
    for driver in [matrix.get("providers", device.provider).data["driver"] for device in cell.devices]:
        told = ((entry.name, row) for entry in matrix.lineage(cell.kernel) for row in reversed(entry.data["changes"])
                if row.get("driver") == driver and "present" in row)
        name, row = next(told, (None, None))
        if row and not row["present"]:
            return UserError(str(reason), hint=f"{name}: {row['why']}")
    return UserError(str(reason))


def runs_dir():
    """Where run folders are made: memory-backed where there is such a place."""
    shared = pathlib.Path("/dev/shm")
    return shared if shared.is_dir() and shutil.disk_usage(shared).free > 64 << 20 else pathlib.Path(tempfile.gettempdir())


class Compiler:
    """A vabi-world process. Safe to share between threads."""

    def __init__(self, build=None):
        self._program = (build or paths.build_dir()) / "harness/world/vabi-world"
        self._lock = threading.Lock()
        self._process = None

    def _ask(self, question):
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    [str(self._program), str(paths.matrix_dir().parent)], stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, text=True, start_new_session=True)
            try:
                self._process.stdin.write(json.dumps(question) + "\n")
                self._process.stdin.flush()
                answer = self._process.stdout.readline()
            except BrokenPipeError:
                answer = ""
        if not answer:
            raise UserError(f"{self._program.name} ended while it compiled a world",
                            details=[json.dumps(question)], hint="This is a defect of verbs-abi; please report it.")
        return json.loads(answer)

    def compile(self, cell, run_dir, trace="", relax=()):
        """(path of the world file, digest of the world). Raises Absent, or UserError for a broken matrix."""
        answer = self.tell(cell, run_dir, trace, relax, model=False)
        return answer["world"], "fnv:" + answer["digest"]

    def tell(self, cell, run_dir, trace="", relax=(), model=True):
        """All that vabi-world says of the world that it has compiled: world, digest, devices, faults, model."""
        answer = self._ask({
            **({"model": True} if model else {}),
            "kernel": cell.kernel, "devices": [device.spec() for device in cell.devices],
            "overlays": list(cell.overlays), "relax": list(relax), "run_dir": str(run_dir),
            "cache_dir": str(paths.cache_dir() / "trees"), "trace": str(trace)})
        if "error" in answer:
            raise UserError(answer["error"])
        if "absent" in answer:
            raise Absent(answer["absent"])
        return answer

    def close(self):
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait(timeout=10)
            self._process.stdout.close()
            self._process = None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


# The lock that who made a run folder holds: the kernel drops it with the process, however that ends.
_OWNER = ".owner"

# Seconds. What an owner's programs still have open when it is killed, they have some time to end with.
_LEFT_BEHIND = 3600


@functools.cache
def _sweep(place):
    """Removes run folders whose owner was killed a while ago: in memory they would stay until the next boot. Once a
    process: a run makes a folder for each of its cells."""
    for owner in place.glob(f"verbs-abi-*/{_OWNER}"):
        try:
            if time.time() - owner.stat().st_mtime < _LEFT_BEHIND:
                continue
            with owner.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(owner.parent, ignore_errors=True)
        except OSError:
            continue  # still in use, another user's, or another run is removing it


@contextlib.contextmanager
def run_folder():
    """A folder of its own for one process tree; gone afterwards."""
    place = runs_dir()
    _sweep(place)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="verbs-abi-", dir=place))
    try:
        with (folder / _OWNER).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def environment(world, environ):
    """The variables with which the shim finds its world, and knows how much memory this machine lets lock: what is not
    the machine's limit is a program's doing, or the world's (shims/uverbs/pinned_memory.h)."""
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return {**environ, "VERBS_ABI_WORLD": str(world), "VERBS_ABI_MEMLOCK": str(limit & (2**64 - 1))}


def shim(build=None, arch="x86_64"):
    """The library to preload into programs of that architecture. build: the folder of the usual one's build."""
    folder = build or paths.build_dir()
    return (folder if arch == "x86_64" else folder.parent / arch) / "shims/libc/libverbs_abi_shim.so"


def model(kernel, build=None):
    """What a kernel's model comes to, as vabi-world prints it."""
    program = (build or paths.build_dir()) / "harness/world/vabi-world"
    result = subprocess.run([str(program), str(paths.matrix_dir().parent), "model", kernel], text=True,
                            capture_output=True, check=False, timeout=60)
    if result.returncode:
        raise UserError(result.stderr.strip().removeprefix("vabi-world: "))
    return json.loads(result.stdout)


def rules(build=None):
    """Every rule of the fake kernel: rows {name, errno, kind, source}."""
    program = (build or paths.build_dir()) / "harness/world/vabi-world"
    result = subprocess.run([str(program), str(paths.matrix_dir().parent), "rules"], text=True,
                            capture_output=True, check=True, timeout=60)
    return json.loads(result.stdout)
