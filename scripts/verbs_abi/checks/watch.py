# SPDX-License-Identifier: BSD-2-Clause
"""Which rules and knobs each unit test asks for, and which tests fail without a rule or with another knob.

Unit tests are watched by harness/world/test_rules.cc: with VERBS_ABI_TEST_RULES=FILE each test tells there how it
ended and what it asked for; VERBS_ABI_TEST_RELAX=RULE takes a rule away from every world of the program,
VERBS_ABI_TEST_KNOB=NAME=VALUE sets a knob in all of them.
"""

import dataclasses
import os
import pathlib
import signal
import subprocess
import tempfile

from verbs_abi import children, paths

SECONDS = 120  # one program, all its tests or some
# Longest --gtest_filter; the kernel takes 128 KiB as one argument.
FILTER_BYTES = 100_000


@dataclasses.dataclass
class Run:
    """One program's tests: {test: "passed" | "failed" | "skipped"}, {test: rules}, {test: knobs}; why it ended too early,
    or ""."""

    results: dict = dataclasses.field(default_factory=dict)
    rules: dict = dataclasses.field(default_factory=dict)
    knobs: dict = dataclasses.field(default_factory=dict)
    broken: str = ""


def programs(build):
    """The unit test programs of the fake kernel."""
    return sorted(path for path in (build / "shims").rglob("*_test")
                  if path.is_file() and os.access(path, os.X_OK))


def parse(text):
    """A Run of what the watch has written."""
    run = Run()
    for line in text.splitlines():
        test, result, rules, knobs = line.split("\t")
        run.results[test] = result
        run.rules[test] = rules.split()
        run.knobs[test] = knobs.split()
    return run


def _kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run(program, tests=(), relax="", knob="", stop=False, seconds=SECONDS):
    """Runs tests (default: all) of one program; stop: at the first that fails."""
    with tempfile.TemporaryDirectory(prefix="verbs-abi-relax-") as folder:
        log = pathlib.Path(folder) / "rules.txt"
        argv = [str(program), "--gtest_brief=1"]
        chosen = ":".join(tests)
        if chosen and len(chosen) <= FILTER_BYTES:
            argv.append("--gtest_filter=" + chosen)
        if stop:
            argv.append("--gtest_fail_fast")
        env = {**os.environ, "VERBS_ABI_TEST_RULES": str(log), "TMPDIR": folder, "TEST_TMPDIR": folder}
        for name, value in (("VERBS_ABI_TEST_RELAX", relax), ("VERBS_ABI_TEST_KNOB", knob)):
            env.pop(name, None)
            if value:
                env[name] = value
        # A session of its own: what hangs is ended with all its children.
        with children.started(argv, cwd=paths.ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            broken = ""
            try:
                status = process.wait(timeout=seconds)
                if status < 0:
                    broken = f"crashed ({signal.Signals(-status).name})"
            except subprocess.TimeoutExpired:
                broken = f"no end after {seconds} s"
                _kill(process)
        ended = parse(log.read_text()) if log.exists() else Run()
        ended.broken = broken
        return ended
