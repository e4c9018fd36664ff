# SPDX-License-Identifier: BSD-2-Clause
"""A cell that crashes, hangs or fills its output, a file or memory is told as such, and leaves nothing behind."""

import os
import pathlib
import sys
import time

import pytest

from verbs_abi.cells import conformance, ids, outcome, pool, runner

CELL = ids.Cell("deb-44.0", "debian-6.1.192", (ids.Device("rxe"),))
STEP = '{"step": "open_device", "ok": true}'


def run(script, **limits):
    return runner.run(["/bin/sh", "-c", script], dict(os.environ), **limits)


def told(ended):
    result = outcome.judge(CELL, ended, [])
    return result.outcome, result.message


@pytest.mark.parametrize("name", ("SEGV", "ABRT", "KILL", "BUS"))
def test_a_crash_is_told_with_its_signal_and_the_last_step(name):
    ended = run(f"echo '{STEP}'; kill -{name} $$")
    assert (ended.status, ended.signal_name, ended.limit) == (None, f"SIG{name}", None)
    assert told(ended) == ("broken", f"crashed: SIG{name} after step open_device")
    assert conformance.judge(ended, []).message == f"crashed: SIG{name} before the first test"


def test_a_crash_before_the_first_step_says_so():
    assert told(run("kill -SEGV $$")) == ("broken", "crashed: SIGSEGV before its first step")


def test_a_hang_ends_at_the_limit_of_time():
    ended = run("echo begun; exec sleep 1000", seconds=0.3)
    assert (ended.status, ended.signal, ended.limit, ended.stdout) == (None, None, "time", "begun\n")
    assert told(ended)[1].startswith("no end after 0 s")
    # One that closed its output hangs just as well.
    assert run("exec sleep 1000 >/dev/null 2>&1", seconds=0.3).limit == "time"


def test_endless_output_ends_at_the_limit_of_output():
    ended = run("exec yes")
    assert ended.limit == "output"
    assert runner.OUTPUT <= len(ended.stdout) < 2 * runner.OUTPUT
    assert told(ended) == ("broken", "too much output")
    assert run("exec yes >&2").limit == "output"


def test_memory_and_files_have_limits():
    grab = [sys.executable, "-c", f"b = bytearray({2 * runner.MEMORY})"]
    ended = runner.run(grab, dict(os.environ))
    assert ended.status == 1 and "MemoryError" in ended.stderr
    assert told(ended)[0] == "broken"


def test_a_runaway_file_ends_its_writer(tmp_path):
    ended = runner.run(["/bin/sh", "-c", "exec cat /dev/zero > big"], dict(os.environ), cwd=tmp_path)
    assert ended.signal_name == "SIGXFSZ"
    assert (tmp_path / "big").stat().st_size == runner.FILE


def test_children_end_with_their_cell(tmp_path):
    ended = run(f"sleep 1000 & echo $! > {tmp_path}/child; exit 3", seconds=0.5)
    child = int((tmp_path / "child").read_text())
    assert ended.status == 3
    end = time.monotonic() + 10
    # Gone, or a zombie that its new parent has not looked at yet.
    while time.monotonic() < end:
        state = pathlib.Path(f"/proc/{child}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.05)
    raise AssertionError(f"child {child} is still there")


def test_what_went_past_the_fake_kernel_is_never_a_pass():
    ended = run(f"echo '{STEP}'")
    for event in ("not_intercepted", "unmodelled"):
        result = outcome.judge(CELL, ended, [{"event": event, "text": "a raw system call"}])
        assert (result.outcome, result.message) == ("unmodelled", f"{event.replace('_', ' ')}: a raw system call")
        assert conformance.judge(ended, [{"event": event, "text": "x"}]).outcome == "unmodelled"


def test_bad_cells_harm_no_other(setup, monkeypatch):
    scripts = {"crash": "kill -SEGV $$", "hang": "sleep 1000", "flood": "yes"}
    kernels = dict(zip(scripts, ("linux-5.6", "linux-5.8", "debian-5.10.223")))
    usual = pool.argv_of

    def argv_of(given, cell):
        for name, kernel in kernels.items():
            if cell.kernel == kernel:
                return ["/bin/sh", "-c", scripts[name]]
        return usual(given, cell)

    monkeypatch.setattr(pool, "argv_of", argv_of)
    monkeypatch.setattr(runner.run, "__kwdefaults__", {**runner.run.__kwdefaults__, "seconds": 10})
    cells = [ids.parse(f"deb-44.0/{kernel}/rxe@devices")
             for kernel in (*kernels.values(), "debian-6.1.192", "debian-6.12.117")]
    rows = {}
    pool.run_cells(setup, cells, 2, lambda row: rows.update({row["kernel"]: row}))
    assert rows[kernels["crash"]]["signal"] == "SIGSEGV"
    assert rows[kernels["hang"]]["limit"] == "time"
    assert rows[kernels["flood"]]["limit"] == "output"
    for name in kernels.values():
        assert (rows[name]["outcome"], rows[name]["verdict"]) == ("broken", "unexpected")
    for name in ("debian-6.1.192", "debian-6.12.117"):
        assert (rows[name]["outcome"], rows[name]["verdict"]) == ("full", "expected"), rows[name]
