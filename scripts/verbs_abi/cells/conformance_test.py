# SPDX-License-Identifier: BSD-2-Clause
import json

import pytest

from verbs_abi.cells import conformance, runner


def ended(stdout="", status=0, signal=None, limit=None, stderr=""):
    return runner.Ended(status=status, signal=signal, limit=limit, stdout=stdout, stderr=stderr, seconds=20.0)


def told(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


PASSED = {"test": "Fallback.A", "result": "passed"}
FAILED = {"test": "Fallback.B", "result": "failed", "message": "fallback_test.cc:7: wrong errno\nthe trace"}


def test_full_when_all_passed():
    result = conformance.judge(ended(told(PASSED)), [])
    assert result.outcome == "full"
    assert result.tests == [{"name": "Fallback.A", "result": "passed", "message": None}]


@pytest.mark.parametrize("end, message", [
    (ended(told(PASSED, FAILED), status=1), "Fallback.B: fallback_test.cc:7: wrong errno"),
    (ended(told(FAILED, PASSED, FAILED), status=1), "Fallback.B: fallback_test.cc:7: wrong errno (and 1 more)"),
    (ended(told(PASSED), status=None, signal=6), "crashed: SIGABRT after Fallback.A"),
    (ended(status=None, signal=11), "crashed: SIGSEGV before the first test"),
    (ended(told(PASSED), status=None, limit="time"), "no end after 20 s after Fallback.A"),
    (ended(status=2, stderr="conformance: no rule 'x'\n"), "conformance: no rule 'x'"),
    (ended(), "no conformance test holds in this cell"),
])
def test_broken_otherwise(end, message):
    result = conformance.judge(end, [])
    assert (result.outcome, result.message) == ("broken", message)


def test_what_is_not_modelled_is_never_full():
    record = {"via": "ioctl", "name": "DM.ALLOC", "unmodelled": "device memory", "result": -95}
    result = conformance.judge(ended(told(PASSED)), [record])
    assert (result.outcome, result.message) == ("unmodelled", "DM.ALLOC: device memory")


def test_other_lines_are_no_tests():
    assert conformance.rows_of('libibverbs: Warning\n[1]\n{"step": "x"}\n{"test": "A.B", "result": "passed"}\n') == [
        {"name": "A.B", "result": "passed", "message": None}]


def test_a_long_message_is_cut():
    rows = conformance.rows_of(told({"test": "A.B", "result": "failed", "message": "x" * 10000}))
    assert len(rows[0]["message"]) == conformance.MESSAGE


def test_the_story_of_a_cell_is_its_suites_and_what_failed():
    result = conformance.judge(ended(told(PASSED, FAILED, {"test": "Routes.C", "result": "passed"}), status=1), [])
    assert [(row["stage"], row["text"]) for row in conformance.tell(result)] == [
        ("Fallback", "1 of 2 tests passed"),
        ("Fallback", "Fallback.B: fallback_test.cc:7: wrong errno"),
        ("Routes", "1 of 1 tests passed")]
