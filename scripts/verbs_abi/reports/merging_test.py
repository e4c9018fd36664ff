# SPDX-License-Identifier: BSD-2-Clause
"""Merging: idempotent, in any order, in any grouping; and never over a failure."""

import itertools
import random

import pytest

from . import merging, model, schema
from .conftest import digest, make_cell, make_results, many_cells, spoil


def shards(count=4):
    cells = many_cells(("deb-44.0", "deb-65.0"), kernels=["linux-4.16", "debian-6.1.192"])
    spoil(cells)
    random.Random(3).shuffle(cells)
    whole = make_results(cells)
    parts = []
    for index in range(count):
        part = make_results(cells[index::count])
        part["provenance"] = whole["provenance"]
        part["generated"] = f"2026-05-04T03:02:0{index}Z"
        part["run"].update(
            shards=[f"{index + 1}/{count}"],
            planned=len(part["cells"]),
            finished=f"2026-05-04T03:03:0{index}Z",
        )
        part["summary"]["wall_s"] = 10.0 + index
        parts.append(part)
    # What two shards both bring, with different answers.
    parts[0]["oracle"] = {
        "debian-6.1.192": {"rxe": {"cases": 100, "agree": 97, "recorded": "2026-01-01"}}
    }
    parts[1]["oracle"] = {
        "debian-6.1.192": {"rxe": {"cases": 100, "agree": 98, "recorded": "2026-02-01"}}
    }
    parts[0]["bench"] = [{"name": "x", "value": 1, "unit": "us", "met": True}]
    parts[2]["bench"] = [{"name": "x", "value": 9, "unit": "us", "met": False}]
    return parts, whole


def test_all_cells_are_there_and_counted():
    parts, whole = shards()
    merged = merging.merge(parts)
    schema.validate(merged)
    assert sorted(cell["id"] for cell in merged["cells"]) == sorted(
        cell["id"] for cell in whole["cells"]
    )
    assert merged["summary"] == dict(whole["summary"], wall_s=13.0)
    assert merged["run"]["shards"] == ["1/4", "2/4", "3/4", "4/4"]
    assert model.missing_part(merged) is None
    # The newer recording, and the benchmark that misses its goal.
    assert merged["oracle"]["debian-6.1.192"]["rxe"]["recorded"] == "2026-02-01"
    assert [one["met"] for one in merged["bench"]] == [False]


def test_order_does_not_matter():
    parts, _ = shards()
    wanted = merging.merge(parts)
    for order in itertools.permutations(parts):
        assert merging.merge(order) == wanted


def test_grouping_does_not_matter():
    a, b, c, d = shards()[0]
    wanted = merging.merge([a, b, c, d])
    assert merging.merge([merging.merge([a, b]), merging.merge([c, d])]) == wanted
    assert merging.merge([merging.merge([merging.merge([d, b]), a]), c]) == wanted


def test_merging_again_changes_nothing():
    parts, _ = shards()
    merged = merging.merge(parts)
    assert merging.merge([merged]) == merged
    assert merging.merge([merged, merged]) == merged
    assert merging.merge([merged, *parts]) == merged


def test_the_parts_stay_as_they_were(copy_of):
    parts, _ = shards()
    before = copy_of(parts)
    merging.merge(parts)
    assert parts == before


def test_a_missing_shard_is_told():
    parts, _ = shards()
    merged = merging.merge([parts[0], parts[2]])
    assert model.missing_part(merged) == "Only a part of the run: shards 2/4, 4/4 are not in it."


def one_cell(**changes):
    return make_results([make_cell("deb-44.0", "debian-6.1.192", "mlx5", **changes)])


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        ({"outcome": "broken", "verdict": "unexpected"}, {}),
        (
            {"duration_ms": 3.0},
            {"outcome": None, "verdict": "not_run", "message": "gone"},
        ),  # what ran beats what did not
        (
            {"verdict": "expected", "finished": "2026-05-04T03:00:02Z"},
            {"outcome": "broken", "verdict": "unexpected", "finished": "2026-05-04T03:00:01Z"},
        ),  # run again: the later one
    ],
)
def test_of_two_answers_for_a_cell_the_right_one_stays(worse, better):
    first, second = one_cell(**worse), one_cell(**better)
    assert first["cells"] != second["cells"]
    for order in ([first, second], [second, first]):
        assert merging.merge(order)["cells"] == first["cells"]


@pytest.mark.parametrize(
    ("pointer", "change"),
    [
        ("/provenance/shim", lambda r: r["provenance"].update(shim=digest("another shim"))),
        (
            "/provenance/kernels/debian-6.1.192",
            lambda r: r["provenance"]["kernels"].update({"debian-6.1.192": digest("x")}),
        ),
        ("/provenance/facts", lambda r: r["provenance"].update(facts=digest("x"))),
        ("/stack", lambda r: r.update(stack="umdk")),
        ("/run/plan", lambda r: r["run"].update(plan="gate")),
    ],
)
def test_parts_of_different_runs_are_not_put_together(pointer, change):
    first, second = one_cell(), one_cell()
    change(second)
    with pytest.raises(merging.MergeError, match=f"^{pointer}: "):
        merging.merge([first, second])


def test_nothing_to_merge_is_said():
    with pytest.raises(merging.MergeError, match="nothing to merge"):
        merging.merge([])
