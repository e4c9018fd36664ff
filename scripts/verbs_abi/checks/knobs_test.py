# SPDX-License-Identifier: BSD-2-Clause
"""Who notices that a knob has another value, with programs that only pretend."""

import json
import pathlib

import pytest

from verbs_abi.checks import knobs, watch
from verbs_abi.errors import UserError

ONE, BELOW = pathlib.Path("/x/one_test"), pathlib.Path("/x/below_test")
MODELS = [{"knobs": {"same": 7, "two": 1, "many": 0, "made": 1, "below": 5, "none": 1}},
          {"knobs": {"same": 7, "two": 0, "many": 3, "made": 2, "below": 6, "none": 2}},
          {"knobs": {"same": 7, "two": 1, "many": 9, "made": 2, "below": 6, "none": 2}}]


class Fake:
    """Stands for watch.run. {test: (knobs that it is known to ask for, settings that it notices)}."""

    TESTS = {ONE: {"A.First": (["two", "made", "none"], ["two=0"]), "A.Second": ([], ["made=1"]),
                   "A.Third": (["many"], ["many=3", "many=9"])},
             BELOW: {"B.Shim": ([], ["below=6"])}}  # it asks in another process

    def __init__(self):
        self.calls = []

    def __call__(self, program, tests=(), relax="", knob="", stop=False):
        assert not relax
        self.calls.append((program.name, tuple(tests), knob))
        run = watch.Run()
        for test in tests or self.TESTS[program]:
            asks, notices = self.TESTS[program][test]
            run.results[test] = "failed" if knob in notices else "passed"
            run.knobs[test] = asks
        return run


def search(reasons=None):
    found = knobs.Search([ONE, BELOW], reasons or {}, jobs=1, run=Fake())
    found.learn()
    return found


def asked(reasons=None):
    return {answer.rule["name"]: answer
            for answer in search(reasons).ask_all(knobs.questions(knobs.values(MODELS)))}


def test_the_values_are_those_of_all_kernels():
    assert knobs.values(MODELS) == {"below": [5, 6], "many": [0, 3, 9], "made": [1, 2], "none": [1, 2], "same": [7],
                                    "two": [0, 1]}


def test_one_value_that_is_noticed_is_enough():
    answers = asked()
    assert answers["two"].noticed == ["one_test: A.First"]
    assert answers["many"].noticed == ["one_test: A.Third"], "the second value; the first is the one test's own"


def test_a_knob_of_which_no_value_is_noticed_is_a_hole():
    assert asked()["none"].hole
    assert not asked({"none": "nobody can"})["none"].hole


def test_tests_that_are_not_known_to_ask_are_run_before_it_is_called_a_hole():
    answers = asked()
    assert answers["made"].noticed == ["one_test: A.Second"]
    assert answers["below"].noticed == ["below_test: B.Shim"]


def test_tests_that_are_known_to_ask_are_run_first():
    found = search()
    del found._run.calls[:]
    found.ask({"name": "two", "values": [0, 1]})
    assert found._run.calls == [("one_test", ("A.First",), "two=0")]


def test_a_knob_that_no_kernel_turns_is_a_hole_unless_it_is_said_to_be_constant():
    assert asked()["same"].hole
    assert not asked({"same": "a page has 4096 bytes"})["same"].hole


def test_the_report_names_holes_and_vain_excuses():
    lines = knobs.report(asked({"two": "nobody can", "same": "a page has 4096 bytes"}).values())
    assert lines == [
        "  6 knobs, 1 holes, 1 that no test can turn",
        "hole: none: nobody notices 1, 2",
        "unobservable.json says that nobody can notice two, but one_test: A.First does",
    ]
    assert "hole: same: the same in every kernel" in knobs.report(asked().values())


def test_an_excuse_for_no_knob_is_an_error(tmp_path):
    path = tmp_path / "unobservable.json"
    path.write_text(json.dumps([{"rule": "x", "reason": "of another kind"}, {"knob": "tow", "reason": "none"}]))
    with pytest.raises(UserError, match="unknown knob 'tow'"):
        knobs.unobservable(knobs.values(MODELS), path)
    path.write_text(json.dumps([{"knob": "two", "reason": "none"}]))
    assert knobs.unobservable(knobs.values(MODELS), path) == {"two": "none"}
