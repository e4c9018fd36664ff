# SPDX-License-Identifier: BSD-2-Clause
"""results.json: what is refused, where, and that the quick way refuses what the schema refuses."""

import json

import jsonschema
import pytest

from . import model, schema, store
from .conftest import make_cell, make_results, many_cells, spoil


def broken(results, pointer):
    with pytest.raises(schema.ResultsError) as caught:
        schema.validate(results, "out/results.json")
    found = [where for where, _ in caught.value.problems]
    assert pointer in found, caught.value
    assert f"{pointer}: " in str(caught.value)
    assert "out/results.json" in str(caught.value)
    return caught.value


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(schema.schema())


def test_every_field_of_a_cell_that_cells_do_not_share_by_name_is_described():
    properties = schema.schema()["$defs"]["cell"]["properties"]
    obvious = {
        "userland",
        "kernel",
        "provider",
        "stack",
        "arch",
        "verdict",
        "known_by",
        "tests",
        "duration_ms",
    }
    assert [
        name for name, one in properties.items() if "description" not in one and name not in obvious
    ] == []


def test_good_results_pass(small):
    assert schema.validate(small) is small


@pytest.mark.parametrize(
    ("pointer", "spoil_it"),
    [
        ("/cells/1/outcome", lambda r: r["cells"][1].update(outcome="fine")),
        ("/cells/2/verdict", lambda r: r["cells"][2].update(verdict="ok")),
        ("/cells/0/errno", lambda r: r["cells"][0].update(errno="22")),
        ("/cells/0", lambda r: r["cells"][0].pop("exec")),
        ("/cells/0", lambda r: r["cells"][0].update(lots="a field that nobody knows")),
        ("/cells/3/arch", lambda r: r["cells"][3].update(arch="x86-64")),
        ("/cells/0/duration_ms", lambda r: r["cells"][0].update(duration_ms="12")),
        ("/cells/0/tests/4/result", lambda r: r["cells"][0]["tests"][4].update(result="green")),
        ("/cells/0/kernel", lambda r: r["cells"][0].update(kernel="/usr/src/linux")),
        ("/cells/0/known_by/core", lambda r: r["cells"][0].update(known_by={"core": "guessed"})),
        ("/summary/expected", lambda r: r["summary"].update(expected=-1)),
        ("/summary/expected", lambda r: r["summary"].update(expected=999)),
        (
            "/oracle/debian-6.1.192/rxe/agree",
            lambda r: r["oracle"]["debian-6.1.192"]["rxe"].update(agree=3322),
        ),
        ("/provenance/shim", lambda r: r["provenance"].update(shim="latest")),
        ("/provenance", lambda r: r["provenance"].pop("kernels")),
        ("/stack", lambda r: r.update(stack="verbs")),
        ("/generated", lambda r: r.update(generated="yesterday")),
        ("/schema_version", lambda r: r.update(schema_version=2)),
        ("/schema_version", lambda r: r.update(schema_version="1")),
        ("/cells/5/id", lambda r: r["cells"][5].update(id=r["cells"][4]["id"])),
        (
            "/cells/0/id",
            lambda r: r["cells"][0].update(id="deb-44.0/linux-4.16/mlx5/no-ioctl@pyverbs"),
        ),
        ("/bench/0/value", lambda r: r["bench"][0].update(value=None)),
        ("/gate/result", lambda r: r["gate"].update(result="maybe")),
    ],
)
def test_a_wrong_place_is_named_by_its_json_pointer(small, pointer, spoil_it):
    spoil_it(small)
    broken(small, pointer)


@pytest.mark.parametrize(
    ("pointer", "changes"),
    [
        # What is not modelled is never a pass.
        ("/cells/0/verdict", {"outcome": "unmodelled", "verdict": "expected"}),
        ("/cells/0/verdict", {"outcome": "unmodelled", "verdict": "fixed"}),
        # full rests on a trace and loses nothing.
        ("/cells/0/trace_digest", {"outcome": "full", "trace_digest": None}),
        ("/cells/0/lost", {"outcome": "full", "lost": ["DevX"]}),
        # No outcome, no verdict; and a reason.
        ("/cells/0/verdict", {"outcome": None, "message": "gone", "verdict": "expected"}),
        ("/cells/0/message", {"outcome": None, "message": "", "verdict": "not_run"}),
        # A refusal has words.
        ("/cells/0/message", {"outcome": "refused", "message": None}),
    ],
)
def test_a_cell_that_contradicts_itself_is_refused(pointer, changes):
    good = make_cell("deb-44.0", "debian-6.1.192", "mlx5")
    schema.validate(make_results([good]))
    broken(make_results([dict(good, **changes)]), pointer)


def test_a_degraded_cell_without_loss_and_route_is_refused():
    cell = make_cell("deb-44.0", "linux-4.16", "mlx5", lost=[], route=None)
    assert cell["outcome"] == "degraded"
    with pytest.raises(schema.ResultsError, match="/cells/0"):
        schema.validate(make_results([cell]))


def test_the_quick_check_refuses_what_the_schema_refuses():
    """Cells are checked by their shape once; each value that the shape leaves out is made wrong
    here, behind a good cell of the same shape."""
    good = make_cell("deb-44.0", "debian-6.1.192", "mlx5")
    reference = jsonschema.Draft202012Validator(schema.schema())
    values = [
        None,
        5,
        -1,
        True,
        "",
        " ",
        "a b",
        "a/b",
        "a//b",
        "/a/b",
        "a/b/c",
        "x\n",
        "sha256:zz",
        "sha256:12",
        "sha256:" + "A" * 64,
        [],
        {},
        "\u00a0",
        "./x",
        1e400,
    ]
    wrong = 0
    for field in schema._VARYING:
        for value in values:
            cell = dict(make_cell("deb-44.0", "debian-5.10.223", "mlx5"), **{field: value})
            results = make_results([good])
            results["cells"].append(cell)
            by_schema = not reference.is_valid(results)
            quick = bool(list(schema._schema_problems(results)))
            assert quick == by_schema, (field, value)
            wrong += by_schema
    assert wrong > 50


def test_not_json_says_line_and_column(tmp_path):
    path = tmp_path / "results.json"
    path.write_text('{\n  "schema_version": 1,\n  oops\n}')
    with pytest.raises(schema.ResultsError, match=r"results\.json.*\n.*line 3, column 3"):
        store.load(path)


def test_numbers_that_are_not_json_are_refused(tmp_path, small):
    path = tmp_path / "results.json"
    path.write_text(json.dumps(small).replace("21.4", "NaN"))
    with pytest.raises(schema.ResultsError, match="NaN"):
        store.load(path)
    small["summary"]["wall_s"] = float("nan")
    with pytest.raises(ValueError):
        store.dumps(small)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "results.json"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(schema.ResultsError, match="not UTF-8 at byte 7"):
        store.load(path)


def test_what_is_written_is_read_back(tmp_path, small):
    path = tmp_path / "results.json"
    store.write_atomically(path, store.dumps(small))
    assert store.load(path) == small


def test_thousands_of_wrong_cells_give_a_short_answer():
    cells = [dict(cell, outcome="fine") for cell in many_cells()]
    results = make_results([])
    results["cells"] = cells
    with pytest.raises(schema.ResultsError) as caught:
        schema.validate(results)
    assert len(str(caught.value).splitlines()) < 30
    assert "more" in str(caught.value)


def test_equal_worlds_count_once_with_the_worst_verdict():
    one = make_cell("deb-44.0", "linux-4.4", "mlx5", tests=[])
    same = make_cell(
        "deb-44.0",
        "linux-4.4",
        "mlx5",
        ["no-netlink"],
        world_digest=one["world_digest"],
        verdict="unexpected",
    )
    other = make_cell("deb-65.0", "linux-4.4", "mlx5", world_digest=one["world_digest"])
    counted = model.summarise([one, same, other], 1.0)
    assert (counted["cells"], counted["expected"], counted["unexpected"]) == (2, 1, 1)
    assert counted["distinct_traces"] == 3


def test_spoiled_cells_are_still_valid_results():
    cells = many_cells(("deb-44.0",))
    spoil(cells)
    schema.validate(make_results(cells))
