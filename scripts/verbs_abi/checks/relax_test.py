# SPDX-License-Identifier: BSD-2-Clause
"""Who notices that a rule is gone, with programs that only pretend."""

import json
import pathlib

import pytest

from verbs_abi.checks import relax, watch
from verbs_abi.errors import UserError

ONE, TWO = pathlib.Path("/x/one_test"), pathlib.Path("/x/two_test")
# Which rules a test asks for, and of those the ones that it looks at.
TESTS = {
    ONE: {"A.First": (["a", "b"], ["a"]), "A.Second": (["a"], [])},
    TWO: {"B.Only": (["a", "c"], ["a", "c"]), "B.Dies": (["d"], [])},
}


def rule(name):
    return {"name": name, "errno": "EINVAL", "kind": "check", "source": "x.c:f"}


class Fake:
    """Stands for watch.run; remembers what was run."""

    def __init__(self):
        self.calls = []

    def __call__(self, program, tests=(), relax="", stop=False):
        self.calls.append((program.name, tuple(tests), relax))
        run = watch.Run()
        for test in tests or TESTS[program]:
            asked, looked_at = TESTS[program][test]
            if relax == "d" and test == "B.Dies":
                run.broken = "crashed (SIGSEGV)"
                break
            run.results[test] = "failed" if relax in looked_at else "passed"
            run.rules[test] = asked
            if stop and run.results[test] == "failed":
                break
        return run


@pytest.fixture(name="fake")
def _fake():
    return Fake()


def search(fake, reasons=None):
    found = relax.Search([ONE, TWO], reasons or {}, jobs=1, run=fake)
    found.learn()
    del fake.calls[:]
    return found


def test_only_tests_that_ask_for_the_rule_are_run(fake):
    answer = search(fake).ask(rule("b"))
    assert answer.hole and answer.asked == 1
    assert fake.calls == [("one_test", ("A.First",), "b")]


def test_the_first_who_notices_is_enough_and_all_are_told_when_asked(fake):
    found = search(fake)
    assert found.ask(rule("a")).noticed == ["two_test: B.Only"], "the program with the fewest tests goes first"
    assert found.ask(rule("a"), everybody=True).noticed == ["two_test: B.Only", "one_test: A.First"]


def test_a_crash_is_noticed(fake):
    assert search(fake).ask(rule("d")).noticed == ["two_test: crashed (SIGSEGV)"]


def test_a_rule_that_nobody_asks_for_is_a_hole_unless_excused(fake):
    assert search(fake).ask(rule("z")).hole
    assert not fake.calls
    assert not search(fake, {"z": "cannot be offended"}).ask(rule("z")).hole


def test_the_report_names_holes_and_vain_excuses(fake):
    lines = relax.report(search(fake, {"c": "nobody can"}).ask_all([rule("a"), rule("b"), rule("c"), rule("mlx5.z")]))
    assert lines == [
        "  core        3 rules, 1 holes",
        "  mlx5        1 rules, 1 holes",
        "hole: b (EINVAL; x.c:f): 1 tests ask for it",
        "hole: mlx5.z (EINVAL; x.c:f): no test comes by it",
        "unobservable.json says that nobody can notice c, but two_test: B.Only does",
    ]


def test_tests_that_fail_anyway_say_nothing_about_rules(fake):
    def failing(program, tests=(), relax="", stop=False):
        run = fake(program, tests, relax, stop)
        run.results["A.First"] = "failed"
        return run

    with pytest.raises(UserError, match="one_test fails with every rule in force: A.First"):
        relax.Search([ONE], {}, jobs=1, run=failing).learn()


def test_an_excuse_for_no_rule_is_an_error(tmp_path):
    path = tmp_path / "unobservable.json"
    path.write_text(json.dumps([{"rule": "aa", "reason": "none"}]))
    with pytest.raises(UserError, match="unknown rule 'aa'"):
        relax.unobservable(["aaa"], path)


def test_what_the_watch_writes_is_read():
    run = watch.parse("A.B\tpassed\tx y \tk \nA.C\tskipped\t\t\n")
    assert run.results == {"A.B": "passed", "A.C": "skipped"}
    assert run.rules == {"A.B": ["x", "y"], "A.C": []}
    assert run.knobs == {"A.B": ["k"], "A.C": []}
