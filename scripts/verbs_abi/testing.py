# SPDX-License-Identifier: BSD-2-Clause
"""`verbs-abi test`: builds, then runs the parts of the test suite one after another, and counts all
they say.

A part is one row of PARTS. The last line is "N passed, N failed, N skipped" over all; the exit
status is 1 when anything failed.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from pathlib import Path

from verbs_abi import children, errors, paths, progress
from verbs_abi.cells import worlds
from verbs_abi.checks import fuzz, knobs, programs, relax, sanitized, style, watch
from verbs_abi.setup import build

# GoogleTest's last words, where one ctest entry is a whole program: "[  PASSED  ] 12 tests."
GTEST_ENDS = {
    word: re.compile(rf"^\[ {{1,2}}{word} {{1,2}}\] (\d+) tests?[.,]", re.M)
    for word in ("PASSED", "FAILED", "SKIPPED")
}
CTEST_TAIL_BYTES = 65536
# One in so many files is what `test --sample` gives to clang-tidy: a minute and a half on two cores.
TIDY_SHARE = 4
# Rooms whose tests are built and run at 32 bits too.
NARROW = ("harness/world", "shims/sys", "shims/fabric", "shims/umad", "shims/netlink", "shims/rdma_cm", "shims/uverbs",
          "shims/nodes", *(f"shims/providers/{name}" for name in ("common", "bnxt_re", "efa", "erdma", "hns", "irdma", "mlx4",
                                                                  "mlx5", "rxe", "siw", "vmw_pvrdma")))


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
    result = children.run(command, env=_environment(), stdin=subprocess.DEVNULL, preexec_fn=children.listen)
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
    result = children.run(command, cwd=root, env=_environment(), stdin=subprocess.DEVNULL,
                          preexec_fn=children.listen)
    if result.returncode == 5:  # pytest's word for "no tests"
        return Count(), 0
    return count(junit), result.returncode


def run_oracle(folder, text=""):
    """Compares the fake kernel with the recorded ones, a kernel a test; (Count, exit status)."""
    from verbs_abi.oracle import gate  # needs packages that are not there before set-up is done

    passed, failed = gate.run(folder, text)
    return Count(passed, failed), 1 if failed else 0


@dataclasses.dataclass
class Setup:
    """What the parts share."""

    build: Path  # folder of the preset that is tested
    results: Path  # a folder for what runners write
    filter: str = ""  # only tests whose name has it
    sample: bool = False  # of tidy's files a share that changes with the commit


def _checked(counted, status):
    # A runner that failed with every test passed (a collection error, say) must not look like
    # success.
    if status and not counted.failed:
        counted.failed += 1
    return counted


def unit(setup):
    extra = ["-R", setup.filter] if setup.filter else []
    return _checked(*run_ctest(setup.build, setup.results / "ctest.xml", extra))


def python(setup):
    extra = ["-k", setup.filter] if setup.filter else []
    return _checked(*run_pytest(setup.results / "pytest.xml", extra=extra))


def oracle(setup):
    return _checked(*run_oracle(setup.build, setup.filter))


def relax_all(setup):
    """Every rule, or those whose name has the filter; each is a test case."""
    rules = [rule for rule in worlds.rules(setup.build) if setup.filter in rule["name"]]
    answers = relaxed(setup.build, rules)
    for line in relax.report(answers):
        print(line)
    failed = sum(answer.hole for answer in answers) + len(relax.stale(answers))
    excused = sum(1 for answer in answers if answer.reason and not answer.noticed)
    return Count(len(answers) - failed - excused, failed, excused)


def knobs_all(setup):
    """Every value of every knob, or of those whose name has the filter; each is a test case."""
    found = knobs.values(knobs.models(setup.build))
    questions = [row for row in knobs.questions(found) if setup.filter in row["name"]]
    search = knobs.Search(watch.programs(setup.build), knobs.unobservable(found))
    answers = _asked("knobs", search, questions)
    for line in knobs.report(answers):
        print(line)
    failed = sum(answer.hole for answer in answers) + len(relax.stale(answers))
    excused = sum(1 for answer in answers if answer.reason and not answer.noticed)
    return Count(len(answers) - failed - excused, failed, excused)


def _report(what, lines):
    """One check as one test case; its findings are printed."""
    for line in lines:
        print(line)
    print(f"{what}: {'FAILED' if lines else 'passed'}", flush=True)
    return Count(failed=1) if lines else Count(passed=1)


def check_style(setup):
    """clang-format over the C++ files, pyflakes over the Python files."""
    del setup
    total = _report("clang-format", [f"{name}: not as .clang-format says; clang-format -i {name}"
                                     for name in style.unformatted(style.files(style.CXX))])
    total.add(_report("pyflakes", style.flakes(style.files((".py",)))))
    return total


def tidy(setup):
    """clang-tidy over what is built, but for the tests; each file is a test case."""
    names = style.tidied(style.files((".cc",)), setup.build)
    names = [name for name in names if setup.filter in name]
    if setup.sample:
        chosen = style.sample(names, TIDY_SHARE)
        print(f"clang-tidy: {len(chosen)} of {len(names)} files, by the commit; --all takes all of them", flush=True)
        names = chosen
    seen = []
    with progress.Progress("clang-tidy") as shown:

        def done(name, output):
            seen.append(name)
            shown.update(f"{len(seen)}/{len(names)} {name}")
            if output:
                shown.output(output)

        wrong = style.tidy(names, setup.build, done)
    return Count(len(names) - len(wrong), len(wrong))


def _sanitized(preset, rooms, text):
    """The unit tests of these rooms below shims/, in a build of their own; text: of programs with it in their names."""
    folder = build.ensure(preset, [f"shims/{room}/all" if room else "shims/all" for room in rooms])
    found = [program for room in rooms for program in programs.found(folder / "shims" / room) if text in program.name]
    if not found:
        raise errors.UserError(f"there is no test program to run below {folder / 'shims'}",
                               hint=f"--filter {text} chooses none" if text else None)
    total = Count()
    try:
        way = sanitized.find(preset, found[0])
    except sanitized.Impossible as reason:
        print(f"{preset}: SKIPPED, {len(found)} programs: {reason}", flush=True)
        return Count(skipped=len(found))
    if way.lacks:
        print(f"{preset}: SKIPPED, in part: {way.lacks}", flush=True)
        total.skipped += 1
    total.add(_ran(preset, found, way))
    return total


def _ran(preset, found, way):
    """The Count of test programs, each run whole in that Way."""
    total = Count()
    with progress.Progress(preset) as shown:

        def done(ended):
            total.add(Count(ended.passed, ended.failed, ended.skipped))
            shown.note(f"{ended.name}: {ended.passed} passed, {ended.failed} failed, {ended.skipped} skipped")
            if ended.failed:
                shown.output(ended.output)

        programs.run_all(found, done, way.prefix, way.environment)
    return total


def asan(setup):
    return _sanitized("asan", [""], setup.filter)


def tsan(setup):
    """The rooms in which threads meet."""
    return _sanitized("tsan", ["fabric", "providers/mlx5", "providers/rxe"], setup.filter)


def narrow(setup):
    """The rooms that know how wide a pointer is, in the build for i386 userlands."""
    lacking = build.lacks_multilib()
    if lacking:
        print(f"i386: SKIPPED: {lacking} (g++-multilib)", flush=True)
        return Count(skipped=1)
    folder = build.ensure("i386", [build.SHIM, *(f"{room}/all" for room in NARROW)])
    found = [program for room in NARROW for program in programs.found(folder / room) if setup.filter in program.name]
    return _ran("i386", found, sanitized.Way())


def fuzzed(setup):
    folder = build.ensure("fuzz", [pathlib.PurePath(fuzz.PROGRAM).name])
    place = setup.results / "fuzz"
    place.mkdir()
    executions, covered, kept, output = fuzz.run(folder, place)
    print(f"uverbs_fuzz: {executions} executions in {fuzz.SECONDS} s, {covered} edges covered")
    if kept is None and executions:
        return Count(passed=1)
    print(output)
    if kept is not None:
        print(f"uverbs_fuzz: {folder / fuzz.PROGRAM} {kept} shows it again")
    return Count(failed=1)


# name, what it does, function from Setup to Count, does every call of `test` run it?
PARTS = (
    ("unit", "the C++ tests (ctest)", unit, True),
    ("python", "the Python tests (pytest), conformance suites and report pages included", python, True),
    ("oracle", "the fake kernel's answers beside those of real kernels, as recorded", oracle, True),
    ("relax", "takes each rule of the fake kernel away: does a unit test notice?", relax_all, True),
    ("knobs", "sets each knob of the fake kernel otherwise: does a unit test notice?", knobs_all, False),
    ("style", "clang-format and pyflakes", check_style, True),
    ("tidy", "clang-tidy over all C++ files but tests", tidy, False),
    ("asan", "unit tests of the fake kernel with AddressSanitizer and UBSan", asan, False),
    ("tsan", "unit tests of the rooms with threads, with ThreadSanitizer", tsan, False),
    ("i386", "unit tests of the fake kernel as i386 userlands have it, built with -m32", narrow, False),
    ("fuzz", f"libFuzzer on ioctl and write input, {fuzz.SECONDS} s", fuzzed, False),
)
# `test --relax` of them: the parts that it runs.
RELAX_PARTS = {"all": "relax,knobs", "rules": "relax", "knobs": "knobs"}
# Of other builds than the release one these hold.
EVERY_PRESET = ("unit", "python")


def relaxed(folder, rules):
    """The relax.Answers of these rules."""
    reasons = relax.unobservable([rule["name"] for rule in worlds.rules(folder)])
    return _asked("relax", relax.Search(watch.programs(folder), reasons), rules)


def _asked(what, search, questions):
    """What the search answers to these questions."""
    with progress.Progress(what) as shown:
        search.learn(lambda program: shown.update(f"what {program} asks for"))
        answered = []

        def done(answer):
            answered.append(answer)
            shown.update(f"{len(answered)}/{len(questions)} {answer.rule['name']}")

        return search.ask_all(questions, done)


def relax_one(name):
    """`test --relax RULE`: who notices?"""
    # The rules stand in a small part of the build: a wrong name need not wait for the rest.
    rules = {rule["name"]: rule for rule in worlds.rules(build.ensure("release", ("vabi-world",)))}
    if name not in rules:
        raise errors.unknown("rule", name, rules)
    folder = build.ensure("release")
    search = relax.Search(watch.programs(folder), relax.unobservable(rules))
    with progress.Progress("relax") as shown:
        search.learn(lambda program: shown.update(f"which rules {program} asks for"))
    answer = search.ask(rules[name], everybody=True)
    rule = answer.rule
    print(f"{name}: {rule['errno']}, {rule['kind']}, {rule['source']}")
    print(f"without it {len(answer.noticed)} of the {answer.asked} tests that ask for it fail:")
    for line in answer.noticed or ["nobody" + (f" can: {answer.reason}" if answer.reason else "")]:
        print(f"  {line}")
    return errors.EXIT_UNEXPECTED if answer.hole or relax.stale([answer]) else errors.EXIT_OK


def _chosen(arguments):
    """The parts that these arguments ask for, in the order of PARTS."""
    names = [name for name, *_ in PARTS]
    if arguments.only:
        wanted = arguments.only.split(",")
        for name in wanted:
            if name not in names:
                raise errors.unknown("part of the test suite", name, names)
    else:
        wanted = [name for name, _, _, usual in PARTS if usual or arguments.all]
    if arguments.preset != "release":
        wanted = [name for name in wanted if name in EVERY_PRESET]
    return [part for part in PARTS if part[0] in wanted]


def _run(arguments):
    if arguments.relax and arguments.relax not in RELAX_PARTS:
        return relax_one(arguments.relax)
    if arguments.relax:
        arguments.only = RELAX_PARTS[arguments.relax]
    parts, total = _chosen(arguments), Count()
    folder = build.ensure(arguments.preset)
    with tempfile.TemporaryDirectory(prefix="verbs-abi-test-") as results:
        setup = Setup(folder, Path(results), arguments.filter or "", arguments.sample)
        for name, what, function, _ in parts:
            print(f"== {name}: {what}", flush=True)
            begin = time.monotonic()
            try:
                counted = function(setup)
            except errors.UserError as error:
                print(f"{name}: {error}", file=sys.stderr, flush=True)
                counted = Count(failed=1)
            sys.stdout.flush()
            print(f"== {name}: {counted}, {time.monotonic() - begin:.0f} s", flush=True)
            total.add(counted)
    print(total, flush=True)
    return errors.EXIT_UNEXPECTED if total.failed else errors.EXIT_OK


def register(subparsers):
    """Adds `test` to the command line."""
    width = max(len(name) for name, *_ in PARTS)
    parts = "\n".join(f"  {name:{width}}  {what}{'' if usual else ' [--all]'}"
                      for name, what, _, usual in PARTS)
    parser = subparsers.add_parser(
        "test",
        help="build and run the whole test suite",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Builds, then runs the parts of the test suite; the last line counts all.\n\n"
        f"parts ([--all]: only with --all or --only):\n{parts}",
        epilog="Exit status: 0 all passed, 1 something failed, 2 usage or set-up error.",
    )
    parser.add_argument("--only", metavar="PART[,PART]", help="these parts")
    parser.add_argument("--all", action="store_true", help="every part")
    parser.add_argument(
        "--filter", metavar="TEXT", help="only tests whose name has TEXT (ctest -R, pytest -k, rules)"
    )
    parser.add_argument(
        "--sample", action="store_true",
        help="tidy: only the files of the last commit and a share of the others that changes with the commit"
    )
    parser.add_argument(
        "--relax", metavar="RULE|rules|knobs|all",
        help="take a rule of the fake kernel away, or set a knob otherwise, and tell which unit tests notice; exit 1 when "
        "nobody does",
    )
    parser.add_argument(
        "--preset",
        default="release",
        choices=("release", "asan", "tsan"),
        help="which build the parts 'unit' and 'python' test (default: release)",
    )
    parser.set_defaults(handler=_run)
