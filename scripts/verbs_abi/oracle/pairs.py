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

# rxe rings its doorbell with a write(): how often, the data path decides, which other tests look at. Here the programs
# set up and tear down everything and transfer nothing.
ITERATIONS = "0"
_DOORBELL = re.compile(r"^ *(\d+ times:|write POST_SEND .*)$")


def without_doorbells(packed):
    """A ping-pong's packed lines without the doorbells."""
    kept, at = [], 0
    while at < len(packed):
        block = 1
        if packed[at].endswith(" times:"):
            while at + block < len(packed) and packed[at + block].startswith("  "):
                block += 1
        if not all(_DOORBELL.match(one) for one in packed[at:at + block]) or \
                not any("POST_SEND" in one for one in packed[at:at + block]):
            kept += packed[at:at + block]
        at += block
    return kept


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
