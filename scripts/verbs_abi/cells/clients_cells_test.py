# SPDX-License-Identifier: BSD-2-Clause
"""Data between two processes of one world, through the real libraries; what is left of it afterwards."""

import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from verbs_abi import userlands
from verbs_abi.cells import ids, pool, programs, worlds

# The whole check has 10 million (bench/README.md).
OPERATIONS = "3000"
KERNELS = ["linux-4.16", "debian-6.12.117"]


def _run(compiler, provider, kernel, words, folder):
    cell = ids.Cell("deb-44.0", kernel, (ids.Device.parse(provider),))
    world, _ = compiler.compile(cell, folder)
    userland = userlands.get("deb-44.0")
    argv, env = userland.command([str(programs.build("processes", userland)), *words], worlds.shim())
    return subprocess.Popen(argv, env=worlds.environment(world, env), text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, start_new_session=True)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("provider", ["mlx5", "mlx5,link=roce", "rxe"])
@pytest.mark.parametrize("where", [[], ["here"]], ids=["two", "here"])
def test_every_byte_of_mixed_operations_arrives(compiler, provider, kernel, where):
    with worlds.run_folder() as folder:
        process = _run(compiler, provider, kernel, ["mixed", OPERATIONS, *where], folder)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        told = json.loads(out)
        assert told["operations"] == int(OPERATIONS) and told["mismatches"] == 0 and told["bytes"] > 0
        assert not (folder / "fabric").exists(), "the last one removes what they shared"


def test_a_peer_that_is_killed_is_noticed_and_leaves_nothing(compiler):
    with worlds.run_folder() as folder:
        process = _run(compiler, "mlx5", "debian-6.12.117", ["mixed", "1000000000"], folder)
        children = []
        until = time.monotonic() + 60
        while (not children or not (folder / "fabric").exists()) and time.monotonic() < until:
            text = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
            children = [int(word) for word in text.split()]
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(children[0], signal.SIGKILL)
        _, err = process.communicate(timeout=100)
        assert "transport retry counter exceeded" in err
        assert process.returncode == 1
        assert not (folder / "fabric").exists()


def test_a_scenario_is_a_cell_like_any_other(setup):
    row = pool.run_cell(setup, ids.parse("deb-44.0/debian-6.12.117/rxe@pingpong"))
    assert row["outcome"] == "full" and row["verdict"] == "expected", row["message"]
    results = {test["name"]: test["result"] for test in row["tests"]}
    assert results["rc"] == "passed" and results["xsrq"] == "skipped"
    assert row["exec"].startswith("./verbs-abi exec ") and "ibv_rc_pingpong" in row["exec"]
