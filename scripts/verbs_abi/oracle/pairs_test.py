# SPDX-License-Identifier: BSD-2-Clause
"""Servers and clients in pairs, with programs that are no ping-pongs."""

import subprocess
import sys

from verbs_abi.oracle import pairs

# Server and client in the ping-pongs' options; a client that cannot connect fails.
PROGRAM = """
import socket, sys
words = sys.argv[1:]
port = int(words[words.index("-p") + 1])
if words[-1] == "127.0.0.1":
    one = socket.create_connection(("127.0.0.1", port))
    BEHAVIOUR
else:
    with socket.create_server(("127.0.0.1", port)) as server:
        server.accept()[0].recv(1)
"""


def pair(behaviour, started):
    def start(words):
        started.append(words)
        return subprocess.Popen([sys.executable, "-c", PROGRAM.replace("BEHAVIOUR", behaviour), *words[1:]],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    return pairs.run(start, "tool")


def test_a_client_follows_its_server():
    started = []
    pids, wrong = pair("one.send(b'x')", started)
    assert wrong == "" and pids["server"] != pids["client"]
    assert started[1] == [*started[0], "127.0.0.1"] and started[0][:3] == ["tool", "-d", "rxe0"]


def test_what_fails_is_told():
    assert "tool: client: no luck" in pair("sys.exit('no luck')", [])[1]


def test_what_does_not_end_is_ended(monkeypatch):
    monkeypatch.setattr(pairs, "LIMIT_SECONDS", 1)
    assert pair("import time; time.sleep(60)", [])[1] == "tool: the client does not end"


def test_how_often_a_shared_receive_queues_users_ring_is_left_out_and_nothing_else():
    packed = ["open 0", "30 times:", "  write POST_SEND 28 in=24/0 out=4/0 32", "16 times:", "  ioctl QP.DESTROY 4.1 0"]
    assert pairs.comparable("deb-1 ibv_srq_pingpong client", packed) == ["open 0", "[some] times:", *packed[2:]]
    assert pairs.comparable("deb-1 ibv_rc_pingpong client", packed) == packed
