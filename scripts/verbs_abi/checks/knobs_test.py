# SPDX-License-Identifier: BSD-2-Clause
"""Who notices that a knob has another value, with programs that only pretend."""

import json
import pathlib

import pytest

from verbs_abi.checks import knobs, watch
from verbs_abi.errors import UserError

ONE, BELOW = pathlib.Path("/x/one_test"), pathlib.Path("/x/below_test")
MODELS = [{"knobs": {"same": 7, "two": 1, "many": 0, "below": 5}},
          {"knobs": {"same": 7, "two": 0, "many": 3, "below": 6}},
          {"knobs": {"same": 7, "two": 1, "many": 9, "below": 6}}]


class Fake:
    """Stands for watch.run. A test that holds two kernels to their values notices either; one that knows only the
    first kernel notices what differs from that."""

    def __init__(self):
        self.calls = []

    def __call__(self, program, tests=(), relax="", knob="", stop=False):
        assert not relax
        self.calls.append((program.name, tuple(tests), knob))
        run = watch.Run()
        if program == BELOW:  # asks nothing in its own process
            run.results = {"B.Shim": "failed" if knob == "below=6" else "passed"}
            run.knobs = {"B.Shim": []}
            return run
        wrong = {"A.Both": ("two=0", "two=1"), "A.First": ("many=3", "many=9")}
        for test in tests or wrong:
            run.results[test] = "failed" if knob in wrong[test] else "passed"
        run.knobs = {"A.Both": ["two"], "A.First": ["many", "two"]}
        return run


def search(reasons=None):
    found = knobs.Search([ONE, BELOW], reasons or {}, jobs=1, run=Fake())
    found.learn()
    return found


def asked(reasons=None):
    return {answer.rule["name"]: answer
            for answer in search(reasons).ask_all(knobs.questions(knobs.values(MODELS)))}


def test_each_value_that_some_kernel_has_is_a_question():
    found = knobs.values(MODELS)
    assert found == {"below": [5, 6], "many": [0, 3, 9], "same": [7], "two": [0, 1]}
    assert [row["name"] for row in knobs.questions(found)] == [
        "below=5", "below=6", "many=0", "many=3", "many=9", "same", "two=0", "two=1"]


def test_a_value_that_no_test_tells_from_another_is_a_hole():
    answers = asked()
    assert answers["two=0"].noticed and answers["two=1"].noticed
    assert answers["many=3"].noticed == ["one_test: A.First"]
    assert answers["many=0"].hole, "the one test knows only the kernel that has it anyway"


def test_programs_that_tell_nothing_of_themselves_are_run_before_it_is_called_a_hole():
    answers = asked()
    assert answers["below=6"].noticed == ["below_test: B.Shim"]
    assert answers["below=5"].hole


def test_a_knob_that_no_kernel_turns_is_a_hole_unless_it_is_said_to_be_constant():
    assert asked()["same"].hole
    assert not asked({"same": "a page has 4096 bytes"})["same"].hole


def test_the_report_names_holes_and_vain_excuses():
    lines = knobs.report(asked({"two=0": "nobody can", "below": "only below the shim"}).values())
    assert lines == [
        "  8 values of knobs, 2 holes, 1 that no test can tell apart",
        "hole: many=0: 1 tests ask for it",
        "hole: same: the same in every kernel",
        "unobservable.json says that nobody can notice below=6, but below_test: B.Shim does",
        "unobservable.json says that nobody can notice two=0, but one_test: A.Both does",
    ]


def test_an_excuse_for_no_knob_is_an_error(tmp_path):
    path = tmp_path / "unobservable.json"
    path.write_text(json.dumps([{"rule": "x", "reason": "of another kind"}, {"knob": "two=2", "reason": "none"}]))
    with pytest.raises(UserError, match="unknown knob 'two=2'"):
        knobs.unobservable(knobs.values(MODELS), path)
    path.write_text(json.dumps([{"knob": "two", "reason": "none"}, {"knob": "many=3", "reason": "none"}]))
    assert set(knobs.unobservable(knobs.values(MODELS), path)) == {"two", "many=3"}
