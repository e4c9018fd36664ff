# SPDX-License-Identifier: BSD-2-Clause
"""Clients as scenarios: commands, the start of roles, what their ends mean. No fake kernel."""

import os
import socket
import sys

import pytest

from verbs_abi import matrix
from verbs_abi.cells import clients, ids, runner
from verbs_abi.cells.runner import Ended

SERVER = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    peer, _ = listener.accept()
    print("served", peer.recv(9).decode())
"""
CLIENT = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5) as peer:
    peer.sendall(b"ping")
print("10 iters in 1 s")
"""


def _ended(stdout="", status=0, **more):
    return Ended(**{"status": status, "signal": None, "limit": None, "stdout": stdout, "stderr": "", "seconds": 1.0} | more)


def _start(argv, seconds):
    return runner.run(argv, dict(os.environ), seconds=seconds)


def _play(server, client, seconds=20):
    port = clients.free_port()
    return clients.play({"server": [sys.executable, "-c", server, str(port)],
                         "client": [sys.executable, "-c", client, str(port)]}, _start, port, seconds)


DATA = {"roles": {"server": ["{program}", "-p", "{port}", "{device_arguments}", "{arguments}"],
                  "client": ["{program}", "-d", "{device}", "{arguments}", "127.0.0.1"]},
        "devices": {"*": [], "roce": ["-g", "0"], "rxe": ["-g", "1"]}, "values": {"iterations": "10"},
        "expect": {"client": "^{iterations} iters"}, "seconds": 5, "tests": []}
MLX5 = ids.Cell("u", "linux-9.9", (ids.Device("mlx5"),))
RXE = ids.Cell("u", "linux-9.9", (ids.Device("rxe"),))
TEST = {"name": "rc", "program": "pp", "arguments": ["-n", "{iterations}"]}


def test_commands_are_filled_for_the_device():
    assert clients.commands(DATA, TEST, ids.Device("mlx5"), 77) == {
        "server": ["pp", "-p", "77", "-n", "10"], "client": ["pp", "-d", "mlx5_0", "-n", "10", "127.0.0.1"]}
    assert clients.commands(DATA, TEST, ids.Device("mlx5", "a", "roce"), 77)["server"] == [
        "pp", "-p", "77", "-g", "0", "-n", "10"]
    assert clients.commands(DATA, TEST, ids.Device("mlx5", "a", "roce"), 77)["client"][2] == "a"
    assert "1" in clients.commands(DATA, TEST, ids.Device("rxe"), 77)["server"]
    own = TEST | {"values": {"iterations": "3"}}
    assert clients.commands(DATA, own, ids.Device("mlx5"), 77)["server"][-1] == "3"


def test_the_client_starts_when_the_server_listens():
    played = _play("import time; time.sleep(0.5)" + SERVER, CLIENT)
    assert played.problem is None
    assert played.ended["server"].stdout == "served ping\n"
    assert played.ended["client"].status == 0


def test_a_server_that_ends_at_once_gets_no_client():
    played = _play("import sys; sys.exit(3)", CLIENT)
    assert list(played.ended) == ["server"] and played.ended["server"].status == 3
    row = clients.judge(DATA, TEST, MLX5, played)
    assert row["result"] == "failed" and "server: exit status 3" in row["message"]


def test_a_server_that_never_listens_is_ended(monkeypatch):
    monkeypatch.setattr(clients, "LISTENS", 0.3)
    played = _play("import time; time.sleep(60)", CLIENT, seconds=1)
    assert "does not listen" in played.problem
    assert clients.judge(DATA, TEST, MLX5, played)["result"] == "failed"


def test_listening_is_seen_and_leaves_nothing():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert clients.listens(port)
    assert not clients.listens(port)


@pytest.mark.parametrize("client,expected", [
    (_ended("10 iters in 1 s"), None),
    (_ended("9 iters in 1 s"), "did not say"),
    (_ended("10 iters", status=1), "exit status 1"),
    (_ended("10 iters", status=None, signal=11), "crashed: SIGSEGV"),
    (_ended("", status=None, limit="time"), "no end after 1 s"),
])
def test_what_ends_mean(client, expected):
    played = clients.Played({"server": _ended(), "client": client})
    row = clients.judge(DATA, TEST, MLX5, played)
    assert row["result"] == ("passed" if expected is None else "failed")
    assert expected is None or expected in row["message"]


def test_what_a_device_lacks_is_skipped_on_that_device_and_kernel_alone():
    test = TEST | {"lacks": [{"drivers": ["rxe"], "match": "no XRC", "reason": "rxe has no XRC"}]}
    played = clients.Played({"server": _ended("Couldn't open: no XRC", status=1)})
    assert clients.judge(DATA, test, RXE, played) == {"name": "rc", "result": "skipped", "message": "rxe has no XRC"}
    assert clients.judge(DATA, test, MLX5, played)["result"] == "failed"
    test["lacks"][0]["kernels"] = ["linux-8.*"]
    assert clients.judge(DATA, test, RXE, played)["result"] == "failed"
    test["lacks"][0]["kernels"] = ["linux-9.*"]
    assert clients.judge(DATA, test, RXE, played)["result"] == "skipped"
    good = clients.Played({"server": _ended("no XRC"), "client": _ended("10 iters in 1 s")})
    assert clients.judge(DATA, test, RXE, good)["result"] == "passed", "it has it"


def test_a_cell_is_full_only_when_something_passed():
    passed = {"name": "a", "result": "passed", "message": None}
    skipped = {"name": "b", "result": "skipped", "message": "why"}
    failed = {"name": "c", "result": "failed", "message": "bad"}
    assert clients._outcome_of([passed, skipped], []).outcome == "full"
    assert clients._outcome_of([skipped], []).outcome == "broken"
    result = clients._outcome_of([passed, failed], [])
    assert result.outcome == "broken" and result.message == "1 of 2 failed; c: bad"


@pytest.mark.parametrize("name", matrix.names("scenarios"))
def test_every_scenario_fills_for_every_link(name):
    data = clients.get(name).data
    assert data["name"] == name
    if "runner" in data:
        return
    assert len({test["name"] for test in data["tests"]}) == len(data["tests"])
    for test in data["tests"]:
        for device in (ids.Device("mlx5"), ids.Device("mlx5", "m", "roce"), ids.Device("rxe")):
            for argv in clients.commands(data, test, device, 1).values():
                assert argv[0] == test["program"] and not any("{" in word for word in argv)
