# SPDX-License-Identifier: BSD-2-Clause
"""Runs the tests that rdma-core ships with pyverbs, each in a process of its own, and tells of each in one line.

    python3 run_pyverbs.py TESTS_FOLDER [--dev NAME] [--only PATTERN] [--alone PATTERN] [--seconds N] [--jobs N]

TESTS_FOLDER is the package's documentation folder with them; files there may be gzipped. For each test a JSON object:
{"test": "test_qp.QPTest.test_create_rc_qp", "result": "passed|failed|skipped|crashed|hung", "message": …, "seconds": …,
 "pids": processes of the test, "expects_error": it waited for an error and got it}
Exit status 0: all were run, whatever came of them. A test that crashes or hangs harms no other: it is forked off
before any device is open.
"""

import argparse
import fnmatch
import gzip
import importlib
import json
import os
import pathlib
import select
import signal
import sys
import tempfile
import time
import unittest


def unpack(source, target):
    for path in pathlib.Path(source).iterdir():
        if path.suffix == ".gz":
            (target / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        elif path.suffix == ".py":
            (target / path.name).write_bytes(path.read_bytes())


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


class Result(unittest.TestResult):
    """Keeps the one outcome of the one test that it is used for."""

    def __init__(self):
        super().__init__()
        self.outcome, self.text = "passed", ""

    def _bad(self, error):
        if self.outcome != "failed":
            self.outcome = "failed"
            self.text = self._last_line(error)

    @staticmethod
    def _last_line(error):
        kind, value, trace = error
        while trace.tb_next is not None and "tests" in trace.tb_next.tb_frame.f_code.co_filename:
            trace = trace.tb_next
        place = f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
        return f"{kind.__name__}: {str(value).strip()[:300]} ({place})"

    def addFailure(self, test, err):  # pylint: disable=invalid-name
        self._bad(err)

    def addError(self, test, err):  # pylint: disable=invalid-name
        self._bad(err)

    def addSubTest(self, test, subtest, err):  # pylint: disable=invalid-name
        if err is not None:
            self._bad(err)

    def addSkip(self, test, reason):  # pylint: disable=invalid-name
        if self.outcome == "passed":
            self.outcome, self.text = "skipped", reason


def note_expected_errors(noted):
    """Tells in noted["count"] how often assertRaises caught what it was there for."""
    context = unittest.case._AssertRaisesContext  # pylint: disable=protected-access
    leave = context.__exit__

    def counting(self, kind, value, trace):
        caught = leave(self, kind, value, trace)
        noted["count"] += bool(caught and kind is not None)
        return caught

    context.__exit__ = counting


def run_here(test, pipe):
    """In the child: the outcome goes into the pipe."""
    os.setpgid(0, 0)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    result, noted = Result(), {"count": 0}
    note_expected_errors(noted)
    os.register_at_fork(after_in_child=lambda: os.write(pipe, f"{os.getpid()}\n".encode()))
    test.run(result)
    os.write(pipe, json.dumps([result.outcome, result.text, noted["count"] > 0]).encode() + b"\n")
    os._exit(0)  # no destructors of a library that a test may have left in any state


def run_one(test, seconds):
    reading, writing = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            run_here(test, writing)
        finally:
            os._exit(1)
    os.close(writing)
    told, expects_error = b"", False
    while True:
        left = start + seconds - time.monotonic()
        ready = select.select([reading], [], [], max(0, left))[0]
        if not ready:
            outcome, text = "hung", f"no end after {seconds} s"
            break
        data = os.read(reading, 1 << 16)
        if not data:
            outcome = None
            break
        told += data
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    status = os.waitpid(child, 0)[1]
    os.close(reading)
    lines = [json.loads(line) for line in told.decode().splitlines()]
    ends = [line for line in lines if isinstance(line, list)]
    if outcome is None:
        if ends:
            outcome, text, expects_error = ends[0]
        else:
            sign = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            outcome = "crashed"
            text = signal.Signals(sign).name if sign else f"exit status {os.WEXITSTATUS(status)}"
    return {"test": test.id(), "result": outcome, "message": text or None,
            "seconds": round(time.monotonic() - start, 3), "expects_error": expects_error,
            "pids": [child, *(line for line in lines if isinstance(line, int))]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--dev")
    parser.add_argument("--only", default="*")
    parser.add_argument("--alone", default="", help="tests that cannot run at the same time as others of this pattern")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        tests = pathlib.Path(scratch) / "tests"
        tests.mkdir()
        unpack(args.folder, tests)
        # Modules import each other both as tests.X and as X.
        sys.path[:0] = [str(tests), scratch]
        sys.argv[1:] = ["--dev", args.dev] if args.dev else []
        importlib.import_module("args_parser").parser.parse_args()
        found = []
        for path in sorted(tests.glob("test_*.py")):
            try:
                module = importlib.import_module(path.stem)
            except Exception as error:  # pylint: disable=broad-except
                print(json.dumps({"test": path.stem, "result": "failed", "message": f"import: {error}", "seconds": 0}))
                continue
            found += flatten(unittest.defaultTestLoader.loadTestsFromModule(module))
        chosen = {test.id(): test for test in found if fnmatch.fnmatch(test.id(), args.only)}
        shares = share(chosen, args.jobs, args.alone)
        workers = []
        for tests in shares[1:]:
            worker = os.fork()
            if worker == 0:
                work(tests, args.seconds)
                os._exit(0)
            workers.append(worker)
        work(shares[0], args.seconds)
        for worker in workers:
            os.waitpid(worker, 0)


def share(chosen, jobs, alone):
    """The tests of each of the workers: every n-th, and those of the pattern `alone` all to the first."""
    together = [test for name, test in chosen.items() if not fnmatch.fnmatch(name, alone)]
    shares = [together[number::jobs] for number in range(jobs)]
    shares[0] += [test for name, test in chosen.items() if fnmatch.fnmatch(name, alone)]
    return shares


def work(tests, seconds):
    for test in tests:
        line = json.dumps(run_one(test, seconds)) + "\n"
        os.write(1, line.encode())


if __name__ == "__main__":
    main()
