# SPDX-License-Identifier: BSD-2-Clause
"""Runs whole GoogleTest programs, each once: a process for each case, as ctest does, costs sanitizers minutes."""

import concurrent.futures
import dataclasses
import os
import re
import signal
import subprocess

from verbs_abi import children, paths

SECONDS = 600  # one program
ENDS = {word: re.compile(rf"^\[ {{1,2}}{word} {{1,2}}\] (\d+) tests?[.,]", re.M)
        for word in ("PASSED", "FAILED", "SKIPPED")}


@dataclasses.dataclass
class Ended:
    """What a program said of its tests. failed is at least 1 where it did not come to its end."""

    name: str
    passed: int
    failed: int
    skipped: int
    output: str


def found(folder):
    """The test programs below a folder of the build."""
    return sorted(path for path in folder.rglob("*_test") if path.is_file() and os.access(path, os.X_OK))


def read(name, status, output):
    """An Ended of what a program printed."""
    counts = {word: [int(number) for number in expression.findall(output)] for word, expression in ENDS.items()}
    passed, failed, skipped = (counts[word][-1] if counts[word] else 0 for word in ("PASSED", "FAILED", "SKIPPED"))
    if (status != 0 or not counts["PASSED"]) and failed == 0:
        failed = 1
    return Ended(name, passed, failed, skipped, output)


def run(program, seconds=SECONDS, prefix=(), environment=()):
    """Runs all tests of one program, behind the words of prefix. A hang is ended with all its children."""
    with children.started([*prefix, str(program), "--gtest_brief=1"], cwd=paths.ROOT, stdin=subprocess.DEVNULL,
                          env={**os.environ, **dict(environment)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace") as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            output += f"\nno end after {seconds} s\n"
    return read(program.name, process.returncode, output)


def run_all(programs, done=lambda ended: None, prefix=(), environment=()):
    """All of them, side by side; done(Ended) as each ends."""
    def one(program):
        return run(program, prefix=prefix, environment=environment)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for ended in pool.map(one, programs):
            done(ended)
