# SPDX-License-Identifier: BSD-2-Clause
"""`verbs-abi test`: builds, runs the C++ tests (ctest), the Python tests (pytest), compares the fake
kernel with the recorded ones (oracle check), and counts all three.

The last line is "N passed, N failed, N skipped" over all; the exit status is 1 when anything
failed.
"""

import dataclasses
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

from verbs_abi import errors, paths, progress
from verbs_abi.setup import build

# GoogleTest's last words, where one ctest entry is a whole program: "[  PASSED  ] 12 tests."
GTEST_ENDS = {
    word: re.compile(rf"^\[ {{1,2}}{word} {{1,2}}\] (\d+) tests?[.,]", re.M)
    for word in ("PASSED", "FAILED", "SKIPPED")
}
CTEST_TAIL_BYTES = 65536


@dataclasses.dataclass
class Count:
    """Test cases by result."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def _gtest_cases(text):
    """What a GoogleTest program counted itself, or None when it did not come to its end."""
    ends = {word: expression.findall(text) for word, expression in GTEST_ENDS.items()}
    if not ends["PASSED"]:
        return None
    last = {word: int(found[-1]) if found else 0 for word, found in ends.items()}
    return Count(last["PASSED"], last["FAILED"], last["SKIPPED"])


def _case(element):
    """One <testcase>; ctest writes its status as an attribute, pytest as a child."""
    status = element.get("status")
    bad = element.find("failure") is not None or element.find("error") is not None
    output = element.findtext("system-out") or ""
    inner = _gtest_cases(output)
    if inner is not None and bad == bool(inner.failed):
        return inner
    if bad or status == "fail":
        return Count(failed=1)
    if element.find("skipped") is not None or status in ("notrun", "disabled"):
        return Count(skipped=1)
    return Count(passed=1)


def count(junit):
    """The Count of a JUnit file. Raises UserError when there is none or it is cut off."""
    try:
        tree = xml.etree.ElementTree.parse(junit)
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        raise errors.UserError(f"the test runner left no usable results: {error}") from error
    total = Count()
    for element in tree.iter("testcase"):
        total.add(_case(element))
    return total


def _environment():
    """Tests must not hear of the caller's matrix."""
    kept = {key: value for key, value in os.environ.items() if key != "VERBS_ABI_MATRIX"}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1"}


def run_ctest(folder, junit, extra=()):
    """Runs the C++ tests of a build folder; (Count, exit status)."""
    command = [
        "ctest",
        "--test-dir",
        str(folder),
        "--output-on-failure",
        "--no-tests=ignore",
        "--output-junit",
        str(junit),
        "--test-output-truncation",
        "head",
        "--test-output-size-passed",
        str(CTEST_TAIL_BYTES),
        "--test-output-size-failed",
        str(16 * CTEST_TAIL_BYTES),
        "--parallel",
        str(os.cpu_count() or 1),
        *extra,
    ]
    if progress.for_people(sys.stdout):
        command.append("--progress")
    result = subprocess.run(command, env=_environment(), stdin=subprocess.DEVNULL, check=False)
    # With no tests at all ctest writes no file.
    return (count(junit) if junit.exists() else Count()), result.returncode


def run_pytest(junit, root=paths.ROOT, extra=()):
    """Runs the Python tests below scripts/; (Count, exit status)."""
    start = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import pytest; sys.exit(pytest.main())"
    )
    command = [
        sys.executable,
        "-I",
        "-c",
        start,
        str(root / "scripts"),
        "-q",
        "-p",
        "no:cacheprovider",
        f"--junitxml={junit}",
        str(root / "scripts"),
        *extra,
    ]
    result = subprocess.run(
        command, cwd=root, env=_environment(), stdin=subprocess.DEVNULL, check=False
    )
    if result.returncode == 5:  # pytest's word for "no tests"
        return Count(), 0
    return count(junit), result.returncode


def run_oracle(folder, text=""):
    """Compares the fake kernel with the recorded ones, a kernel a test; (Count, exit status)."""
    from verbs_abi.oracle import gate  # needs packages that are not there before set-up is done

    passed, failed = gate.run(folder, text)
    return Count(passed, failed), 1 if failed else 0


def _run(arguments):
    total, statuses = Count(), []
    folder = build.ensure(arguments.preset)
    with tempfile.TemporaryDirectory(prefix="verbs-abi-test-") as results:
        results = Path(results)
        ctest_extra = ["-R", arguments.filter] if arguments.filter else []
        pytest_extra = ["-k", arguments.filter] if arguments.filter else []
        for runner in (
            lambda: run_ctest(folder, results / "ctest.xml", ctest_extra),
            lambda: run_pytest(results / "pytest.xml", extra=pytest_extra),
        ):
            counted, status = runner()
            total.add(counted)
            statuses.append(status)
    if arguments.preset == "release":
        sys.stdout.flush()
        counted, status = run_oracle(folder, arguments.filter)
        total.add(counted)
        statuses.append(status)
    # A runner that failed with every test passed (a collection error, say) must not look like
    # success.
    if any(statuses) and not total.failed:
        total.failed += 1
    sys.stdout.flush()
    print(total, flush=True)
    return errors.EXIT_UNEXPECTED if total.failed else errors.EXIT_OK


def register(subparsers):
    """Adds `test` to the command line."""
    parser = subparsers.add_parser(
        "test",
        help="build and run the whole test suite",
        description="Builds, runs the C++ tests, the Python tests, and compares the fake kernel "
        "with the recorded ones. The last line counts all.",
    )
    parser.add_argument(
        "--preset",
        default="release",
        choices=("release", "asan", "tsan"),
        help="which build to test (default: release)",
    )
    parser.add_argument(
        "--filter", metavar="TEXT", help="only tests whose name has TEXT (ctest -R, pytest -k)"
    )
    parser.set_defaults(handler=_run)
