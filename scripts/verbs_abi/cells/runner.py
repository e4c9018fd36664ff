# SPDX-License-Identifier: BSD-2-Clause
"""One process tree inside a world, within limits on time, memory and output."""

import dataclasses
import os
import resource
import selectors
import signal
import subprocess
import time

# Of one cell. A healthy journey takes 0.1 s and 60 MiB of address space beyond its libraries.
SECONDS = 20
MEMORY = 4 << 30
OUTPUT = 1 << 20
# The kernel lets nothing write more than this into one file (a runaway trace).
FILE = 64 << 20


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a process tree ended.

    status: exit status, or None when it was killed by `signal` (a number) or stopped for `limit` ("time", "output").
    """

    status: int | None
    signal: int | None
    limit: str | None
    stdout: str
    stderr: str
    seconds: float

    @property
    def signal_name(self):
        try:
            return signal.Signals(self.signal).name if self.signal else None
        except ValueError:
            return f"signal {self.signal}"


def _limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end(process):
    """Ends the whole group; only processes that we started are in it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(argv, env, *, seconds=SECONDS, cwd=None, limits=True):
    """Runs argv in a group of its own and waits for it and what it left behind."""
    start = time.monotonic()
    process = subprocess.Popen(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True,
                               preexec_fn=_limits if limits else None)
    chunks = {process.stdout: [], process.stderr: []}
    sizes = {process.stdout: 0, process.stderr: 0}
    limit = None
    try:
        with selectors.DefaultSelector() as selector:
            for pipe in chunks:
                selector.register(pipe, selectors.EVENT_READ)
            while selector.get_map() and limit is None:
                left = start + seconds - time.monotonic()
                ready = selector.select(max(0, left)) if left > 0 else []
                if not ready:
                    # A child that outlives the program holds the pipes open: that is not a hang of the program.
                    if process.poll() is not None:
                        break
                    limit = "time"
                for key, _ in ready:
                    data = os.read(key.fd, 1 << 16)
                    if not data:
                        selector.unregister(key.fileobj)
                        continue
                    chunks[key.fileobj].append(data)
                    sizes[key.fileobj] += len(data)
                    if sizes[key.fileobj] > OUTPUT:
                        limit = "output"
        if limit is None:
            try:
                process.wait(timeout=max(0.1, start + seconds - time.monotonic()))
            except subprocess.TimeoutExpired:
                limit = "time"
    finally:
        _end(process)
        process.wait()
        for pipe in chunks:
            pipe.close()
    code = process.returncode
    text = {pipe: b"".join(data).decode(errors="replace") for pipe, data in chunks.items()}
    return Ended(status=code if code >= 0 and limit is None else None,
                 signal=-code if code < 0 and limit is None else None, limit=limit,
                 stdout=text[process.stdout], stderr=text[process.stderr], seconds=time.monotonic() - start)
