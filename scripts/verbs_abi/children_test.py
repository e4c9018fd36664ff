# SPDX-License-Identifier: BSD-2-Clause
"""What we start does not outlive us, whichever signal ends us and wherever we wait."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from verbs_abi import children, paths

# A runner whose child has a process group of its own, as ninja's compilers have, or a session, as what tests start has;
# both tell their ids.
RUNNER = ("import os, subprocess, sys, time\n"
          "child = subprocess.Popen(['sleep', '600'], preexec_fn=OWN)\n"
          "open(sys.argv[1], 'w').write(f'{os.getpid()} {child.pid}')\n"
          "%s\ntime.sleep(600)\n")
US = ("import sys\nsys.path.insert(0, sys.argv[1])\n"
      "from concurrent.futures import ThreadPoolExecutor\n"
      "from verbs_abi import children\n"
      "argv = [sys.executable, '-c', sys.argv[2], sys.argv[3]]\n"
      "with children.interruptible():\n"
      "    try:\n"
      "        with ThreadPoolExecutor(1) as pool:\n"
      "            %s\n"
      "    except KeyboardInterrupt as asked:\n"
      "        sys.exit(40 + asked.number)\n")


def _alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _wait_for(condition, what):
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit, what
        time.sleep(0.02)


@pytest.mark.parametrize("own", ("os.setpgrp", "os.setsid"))
@pytest.mark.parametrize("wait, number, deaf", (
    ("children.run(argv)", signal.SIGINT, ""),
    ("children.run(argv)", signal.SIGTERM, "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"),
    ("pool.submit(children.run, argv).result()", signal.SIGTERM, ""),
    ("pool.submit(children.run, argv).result()", signal.SIGHUP, ""),
))
def test_a_signal_leaves_no_orphan(tmp_path, wait, number, deaf, own):
    told = tmp_path / "told"
    with subprocess.Popen([sys.executable, "-c", US % wait, str(paths.SCRIPTS),
                           RUNNER.replace("OWN", own) % deaf, str(told)],
                          start_new_session=True) as process, contextlib.ExitStack() as ends:
        ends.callback(process.kill)  # a test that fails must not wait for what it started
        _wait_for(lambda: told.exists() and told.read_text().count(" ") == 1, "the runner starts")
        started = list(map(int, told.read_text().split()))
        assert all(map(_alive, started))
        process.send_signal(number)
        assert process.wait(timeout=60) == 40 + number
    _wait_for(lambda: not any(map(_alive, started)), "nothing is left")


def test_after_the_signal_nothing_new_is_started(tmp_path):
    mark = tmp_path / "mark"
    with pytest.raises(children.Interrupted):
        with children.interruptible():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            except children.Interrupted:
                pass
            children.run(["touch", str(mark)])
    assert not mark.exists()
    children.run(["touch", str(mark)])
    assert mark.exists()


def test_a_signal_that_is_ignored_stays_ignored():
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with children.interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, old)


def test_a_signal_waits_for_what_must_not_stay_half_done():
    done = []
    with children.interruptible(), pytest.raises(children.Interrupted) as asked:
        with children.undisturbed():
            for number in (signal.SIGTERM, signal.SIGTERM):
                os.kill(os.getpid(), number)
                done.append(number)
    assert len(done) == 2 and asked.value.number == signal.SIGTERM
    with children.interruptible(), pytest.raises(OSError, match="full"):
        with children.undisturbed():
            os.kill(os.getpid(), signal.SIGTERM)
            raise OSError("full")
    with children.interruptible():
        assert children.run(["true"]).returncode == 0


def test_a_body_that_fails_ends_what_it_started():
    with pytest.raises(ZeroDivisionError):
        with children.started(["sleep", "600"]) as process:
            raise ZeroDivisionError
    assert process.returncode is not None


def test_output_and_status_come_back():
    ended = children.run(["sh", "-c", "echo out; echo err >&2; exit 3"], text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT)
    assert (ended.returncode, ended.stdout) == (3, "out\nerr\n")
    with pytest.raises(subprocess.CalledProcessError):
        children.run(["false"], check=True)
