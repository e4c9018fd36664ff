# SPDX-License-Identifier: BSD-2-Clause
"""The ping-pongs on the fake kernel: a server and a client in one world, as the guests run them on a real kernel."""

import os
import re
import signal
import socket
import subprocess
import time

KINDS = ("rc", "uc", "ud", "srq")
LIMIT_SECONDS = 60

ITERATIONS = "20"  # as the guests do
_COUNT = re.compile(r"^\d+ times:$")


def comparable(title, packed):
    """A ping-pong's packed lines without what differs from run to run: rxe rings its doorbell with a write(), and with
    16 queue pairs on one shared receive queue, who answers first decides how often."""
    if "ibv_srq_pingpong" not in title:
        return packed
    following = [*packed[1:], ""]
    return ["[some] times:" if _COUNT.match(one) and after.startswith("  write POST_SEND ") else one
            for one, after in zip(packed, following)]


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _listens(port):
    wanted = f":{port:04X}"
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(path, encoding="ascii") as table:
            for row in table:
                words = row.split()
                if words[1].endswith(wanted) and words[3] == "0A":
                    return True
    return False


def run(start, program, device="rxe0"):
    """({"server": pid, "client": pid}, what went wrong or ""). start(words): a subprocess.Popen of them in one
    world."""
    port = _free_port()
    words = [program, "-d", device, "-g", "1", "-n", ITERATIONS, "-p", str(port)]
    deadline = time.monotonic() + LIMIT_SECONDS
    running = [start(words)]
    try:
        while running[0].poll() is None and not _listens(port) and time.monotonic() < deadline:
            time.sleep(0.005)
        running.append(start([*words, "127.0.0.1"]))
        wrong = ""
        for role, process in zip(("client", "server"), reversed(running)):
            try:
                output, _ = process.communicate(timeout=max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                wrong = f"{program}: the {role} does not end"
                break
            if process.returncode:
                wrong = f"{program}: {role}: {output.decode(errors='replace').strip()[-300:]}"
    finally:
        for process in running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
    return {"server": running[0].pid, "client": running[1].pid}, wrong
