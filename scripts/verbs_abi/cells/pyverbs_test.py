# SPDX-License-Identifier: BSD-2-Clause
"""pyverbs as a scenario: rows, the baseline, what a cell comes to. No fake kernel."""

import pytest

from verbs_abi import matrix
from verbs_abi.cells import baselines, clients, ids, plans, pyverbs
from verbs_abi.cells.runner import Ended

CELL = ids.Cell("deb-44.0", "linux-9.9", (ids.Device("mlx5"),))
ENDED = Ended(status=0, signal=None, limit=None, stdout="", stderr="", seconds=1.0)


def _line(test, result="passed", message=None, pid=1, **more):
    return {"test": test, "result": result, "message": message, "seconds": 0.1, "pids": [pid], **more}


@pytest.fixture(name="judge")
def _judge(monkeypatch):
    """judge(lines, known, records=(), ended=ENDED): the outcome against a baseline {test: letter}."""
    def judge(lines, known, records=(), ended=ENDED):
        monkeypatch.setattr(baselines, "of_cell", lambda cell: known)
        return pyverbs.outcome_of(CELL, lines, ended, list(records))

    return judge


def test_what_ends_as_it_did_is_full(judge):
    outcome = judge([_line("a.A.test_x"), _line("a.A.test_y", "skipped", "no such card")],
                    {"a.A.test_x": "p", "a.A.test_y": "s"})
    assert outcome.outcome == "full"
    assert outcome.message.startswith("1 of 2 passed (1 move data or make objects, 0 only expect an error), 1 skipped")


@pytest.mark.parametrize("now", ["skipped", "failed", "crashed", "hung"])
def test_a_test_that_is_lost_breaks_the_cell_whatever_it_says(judge, now):
    outcome = judge([_line("a.A.test_x"), _line("a.A.test_y", now, "not supported")],
                    {"a.A.test_x": "p", "a.A.test_y": "p"})
    assert outcome.outcome == "broken"
    assert "1 worse than the baseline; a.A.test_y: passed when the baseline was written; now" in outcome.message
    assert {row["name"]: row["result"] for row in outcome.tests} == {"a.A.test_x": "passed", "a.A.test_y": "failed"}


def test_a_test_that_is_told_no_more_breaks_the_cell(judge):
    assert judge([_line("a.A.test_x")], {"a.A.test_x": "p", "a.A.test_gone": "s"}).outcome == "broken"


def test_what_failed_before_is_told_and_lost(judge):
    outcome = judge([_line("a.A.test_x"), _line("a.A.test_y", "failed", "why")], {"a.A.test_x": "p", "a.A.test_y": "f"})
    assert outcome.outcome == "degraded" and outcome.lost == ["a.A.test_y"]
    worse = judge([_line("a.A.test_x"), _line("a.A.test_y", "hung", "why")], {"a.A.test_x": "p", "a.A.test_y": "f"})
    assert worse.outcome == "broken"
    new = judge([_line("a.A.test_x"), _line("a.A.test_y", "failed", "why")], {})
    assert new.outcome == "broken" and "no baseline for this kernel" in new.message


def test_better_than_the_baseline_is_full(judge):
    assert judge([_line("a.A.test_x")], {"a.A.test_x": "f"}).outcome == "full"


def test_what_only_expects_an_error_is_counted_apart_and_proves_nothing(judge):
    outcome = judge([_line("a.A.test_x", expects_error=True), _line("a.A.test_bad_flow")], {})
    assert outcome.outcome == "broken", "no positive test passed"
    assert "(0 move data or make objects, 2 only expect an error)" in outcome.message


def test_what_is_not_modelled_is_skipped_even_where_the_test_passes(judge):
    gap = {"name": "DEVX_OBJ.CREATE", "unmodelled": "objects", "pid": 7}
    outcome = judge([_line("a.A.test_x"), _line("a.A.test_y", pid=7)], {"a.A.test_x": "p"}, [gap])
    row = next(row for row in outcome.tests if row["name"] == "a.A.test_y")
    assert row["result"] == "skipped" and row["message"].startswith("not modelled: DEVX_OBJ.CREATE: objects")
    assert outcome.outcome == "full"
    assert judge([_line("a.A.test_x")], {}, [gap | {"pid": 99}]).outcome == "unmodelled", "of no test: the cell's"


def test_a_runner_that_does_not_end_is_broken(judge):
    hung = Ended(status=None, signal=None, limit="time", stdout="", stderr="", seconds=400.0)
    assert judge([_line("a.A.test_x")], {}, ended=hung).outcome == "broken"


@pytest.mark.parametrize("name", matrix.names("baselines"))
def test_baselines_have_a_letter_for_each_kernel(name):
    for world in matrix.get("baselines", name).data["worlds"].values():
        assert all(kernel in matrix.names("kernels") for kernel in world["kernels"])
        assert all(len(letters) == len(world["kernels"]) for letters in world["tests"].values())


@pytest.mark.parametrize("plan", ["gate", "nightly"])
def test_the_plans_cells_have_a_baseline(plan):
    """So that no kernel model loses a client's tests unseen."""
    cells = [cell for cell in plans.load(plan) if clients.is_client(cell.scenario)
             and f"{cell.scenario}.{cell.userland}" in matrix.names("baselines")]
    assert cells
    absent = ("linux-4.4", "rxe")  # drivers/infiniband/sw/rxe came with 4.8
    assert [cell.id for cell in cells
            if not baselines.of_cell(cell) and (cell.kernel, cell.provider) != absent] == []
