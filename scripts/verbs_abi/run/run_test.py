# SPDX-License-Identifier: BSD-2-Clause
"""verbs-abi run when it does not run undisturbed: interrupted, resumed, twice at once, on another's folder."""

import json
import os
import signal
import subprocess
import time

import pytest

from verbs_abi import paths
from verbs_abi.cells import worlds

# Some thirty cells of the quick plan that take a few seconds.
SOME = ("--kernel", "debian-5.10.223", "--provider", "rxe", "--scenario", "journey")
# What the first part of a run leaves at least.
FIRST = 3


@pytest.fixture(autouse=True)
def _built():
    if not worlds.shim().exists():
        pytest.skip("there is no build yet: verbs-abi test makes one")


def argv(out, *words):
    return [str(paths.LAUNCHER), "run", *SOME, "--out", str(out), *words]


def start(out, *words):
    return subprocess.Popen(argv(out, *words), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            stdin=subprocess.DEVNULL, start_new_session=True,
                            env={**os.environ, "CI": "true"})


def finish(process):
    out, err = process.communicate(timeout=240)
    assert "Traceback" not in err, err
    return process.returncode, out, err


def journal(out):
    """The cells that are done, by the file that is written as they end."""
    try:
        lines = (out / "cells.jsonl").read_text().splitlines(keepends=True)
    except FileNotFoundError:
        return {}
    rows = [json.loads(line) for line in lines if line.endswith("\n")]
    return {row["id"]: row for row in rows if "id" in row}


def until_begun(out, process):
    end = time.monotonic() + 120
    while len(journal(out)) < FIRST:
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.02)


def results(out):
    return json.loads((out / "results.json").read_text())


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL))
def test_an_interrupted_run_keeps_what_was_done_and_goes_on(tmp_path, number):
    out = tmp_path / "out"
    process = start(out, "--jobs", "1")
    until_begun(out, process)
    # To the command itself: the launcher has become it.
    process.send_signal(number)
    status, told, err = finish(process)
    done = journal(out)
    if number == signal.SIGKILL:
        assert status == -signal.SIGKILL
    else:
        assert status == 128 + number
        assert f"interrupted after {len(done)} of " in err and "--resume" in err
        # The command as it was given, with --out: another folder holds another run.
        assert f"--out {out} --jobs 1 --resume goes on." in told
        told = results(out)
        assert told["run"]["complete"] is False
        assert {cell["id"] for cell in told["cells"]} == set(done)
        for name in ("index.html", "summary.md", "junit.xml"):
            assert (out / name).stat().st_size > 0

    status, _, err = finish(start(out, "--resume"))
    assert status == 0, err
    told = results(out)
    cells = {cell["id"]: cell for cell in told["cells"]}
    assert told["run"]["complete"] is True and len(cells) == told["run"]["planned"] > len(done) >= FIRST
    # What was done was not done again.
    assert all(cells[name]["finished"] == row["finished"] for name, row in done.items())


# The command, whose call of an os function of that number sends the command a signal first.
STRUCK = """
import os, sys
sys.path.insert(0, sys.argv[1])
name, call, number = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
kept, calls = getattr(os, name), []
def struck(*words):
    if words and "cells.jsonl" in str(words[0]):
        return kept(*words)
    calls.append(words)
    if len(calls) == call:
        os.kill(os.getpid(), number)
    return kept(*words)
setattr(os, name, struck)
from verbs_abi.cli import main
status = main(sys.argv[5:])
print(len(calls), file=sys.stderr)
sys.exit(status)
"""
REPORTS = ("results.json", "junit.xml", "summary.md", "index.html")


def struck(out, name, call, number, *words):
    """Runs one cell into a folder; a signal comes right before that call of os.NAME."""
    return subprocess.run(
        ["/usr/bin/python3", "-I", "-c", STRUCK, str(paths.SCRIPTS), name, str(call), str(number), "run", "--out", str(out),
         "--cell", "deb-44.0/debian-5.10.223/rxe@journey", "--cell", "deb-44.0/debian-6.1.192/rxe@journey", *words],
        text=True, capture_output=True, timeout=240, stdin=subprocess.DEVNULL, check=False, env={**os.environ, "CI": "true"})


def reports(out):
    return {name: (out / name).read_bytes() for name in REPORTS}


@pytest.mark.parametrize("name, call, number", (("fsync", 1, signal.SIGINT), ("replace", 3, signal.SIGTERM)))
def test_a_signal_while_the_reports_are_written_waits_until_they_are_whole(tmp_path, name, call, number):
    ended = struck(tmp_path, name, call, int(number))
    assert ended.returncode == 128 + number and "interrupted" in ended.stderr, ended.stderr
    told = results(tmp_path)
    assert told["run"]["complete"] is True and len(told["cells"]) == 2
    assert told["generated"] in (tmp_path / "index.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == [".lock"]
    for file in REPORTS:
        (tmp_path / file).unlink()
    ended = struck(tmp_path, "replace", 0, 0, "--resume")
    assert ended.returncode == 0, ended.stderr
    assert set(REPORTS) <= {path.name for path in tmp_path.iterdir()}


def test_reports_of_a_run_that_is_killed_while_it_writes_are_the_old_ones(tmp_path):
    assert struck(tmp_path, "replace", 0, 0).returncode == 0
    old = reports(tmp_path)
    for name, call in (("fsync", 3), ("replace", 1)):
        assert struck(tmp_path, name, call, int(signal.SIGKILL)).returncode == -signal.SIGKILL
        assert reports(tmp_path) == old
        assert list(tmp_path.glob(".results.json.*"))
    ended = struck(tmp_path, "replace", 0, 0, "--resume")
    assert ended.returncode == 0, ended.stderr
    assert reports(tmp_path) != old
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == [".lock"]


def test_two_runs_at_once_do_not_disturb_each_other(tmp_path):
    few = ("--overlay", "no-ioctl")
    processes = [start(tmp_path / name, *few) for name in ("a", "b")]
    ended = [finish(process) for process in processes]
    assert [status for status, _, _ in ended] == [0, 0], ended

    def told(name):
        return {cell["id"]: (cell["outcome"], cell["trace_digest"]) for cell in results(tmp_path / name)["cells"]}

    assert told("a") == told("b") != {}


def test_a_second_run_into_the_same_folder_is_refused_and_harms_nothing(tmp_path):
    out = tmp_path / "out"
    first = start(out, "--jobs", "1")
    until_begun(out, first)
    os.kill(first.pid, signal.SIGSTOP)  # it stays in the middle for as long as the second needs
    try:
        status, _, err = finish(start(out))
        before = journal(out)
    finally:
        os.kill(first.pid, signal.SIGCONT)
    assert status == 2
    assert f"another run has been writing to {out}" in err and ".lock" in err
    status, _, err = finish(first)
    assert status == 0, err
    assert set(before) < {cell["id"] for cell in results(out)["cells"]}


@pytest.mark.parametrize("other", ({"shim": "sha256:other"}, {"userlands": {"deb-44.0": "sha256:other"}},
                                   {"kernels": {SOME[SOME.index("--kernel") + 1]: "sha256:other"}}))
def test_a_run_of_another_build_is_not_gone_on_with(tmp_path, other):
    out = tmp_path / "out"
    out.mkdir()
    (out / "cells.jsonl").write_text(json.dumps({"stamp": other}) + '\n{"id": "x", "verdict": "expected"}\n')
    status, _, err = finish(start(out, "--resume"))
    assert status == 2 and "made with another build or other data" in err and "without --resume" in err


def test_a_run_goes_on_with_more_kernels_than_it_had(tmp_path):
    out = tmp_path / "out"
    cells = [f"deb-44.0/{kernel}/rxe@devinfo" for kernel in ("debian-6.1.192", "debian-6.12.117", "linux-5.8")]

    def start_cells(names, *words):
        cells = [word for name in names for word in ("--cell", name)]
        return finish(subprocess.Popen(
            [str(paths.LAUNCHER), "run", "--out", str(out), *cells, *words], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True, env={**os.environ, "CI": "true"}))

    assert start_cells(cells[:1])[0] == 0
    first = journal(out)
    for names in (cells[:2], cells[1:]):
        status, _, err = start_cells(names, "--resume")
        assert status == 0, err
        assert {cell["id"] for cell in results(out)["cells"]} == set(names)
    assert journal(out).keys() == set(cells)
    assert journal(out)[cells[0]] == first[cells[0]], "what was done is not done again"


@pytest.mark.parametrize("words, told", (
    (("--shard", "5/4"), "--shard 5/4: not a part of a whole"), (("--shard", "x"), "--shard x"),
    (("--jobs", "0"), "--jobs needs at least 1"), (("--cell", "x/y"), "'x/y' is no cell"),
    (("--plan", "quick", "--overlay", "errno@X=EIO"), "plan quick has no such cell")))
def test_wrong_arguments_of_run_are_told(tmp_path, words, told):
    status, out, err = finish(start(tmp_path / "out", *words))
    assert (status, out) == (2, "") and told in err


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    status, _, err = finish(start(tmp_path / "file" / "out"))
    assert status == 2 and "cannot be made" in err and "--out" in err


def _mounted(out, options, *words):
    """A run into a file system of its own."""
    out.mkdir()
    script = f'mount -t tmpfs -o {options} none "$1" && shift && exec "$@"'
    return subprocess.Popen(["unshare", "--mount", "sh", "-c", script, "-", str(out), *argv(out, *words)], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                            start_new_session=True, env={**os.environ, "CI": "true"})


def _may_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], capture_output=True,
                                                check=False).returncode == 0


@pytest.mark.skipif(not _may_mount(), reason="only root can mount")
@pytest.mark.parametrize("options, told", (
    ("size=16k", "cannot be written: No space left on device"),  # a handful of cells
    ("size=256k", "cannot be written: No space left on device"),  # the cells, not the page
    ("ro", "Read-only file system"),
))
def test_a_disk_that_takes_no_more_is_told_in_words(tmp_path, options, told):
    out = tmp_path / "out"
    status, _, err = finish(_mounted(out, options, "--overlay", "no-ioctl", "--overlay", "no-netlink"))
    assert status == 2, err
    line = next(line for line in err.splitlines() if told in line)
    assert line.startswith(f"verbs-abi: {out}")


def test_shards_are_a_partition(tmp_path):
    ids = []
    for index in (1, 2):
        out = tmp_path / str(index)
        status, _, err = finish(start(out, "--overlay", "no-netlink", "--shard", f"{index}/2"))
        assert status == 0, err
        ids += [cell["id"] for cell in results(out)["cells"]]
    status, _, _ = finish(start(tmp_path / "all", "--overlay", "no-netlink"))
    assert status == 0
    assert sorted(ids) == sorted(cell["id"] for cell in results(tmp_path / "all")["cells"])
