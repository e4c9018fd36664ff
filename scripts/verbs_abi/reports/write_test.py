# SPDX-License-Identifier: BSD-2-Clause
"""The files of a run: JUnit, Markdown, history, and what happens when something is wrong."""

import io
import os
import re
import sqlite3
import stat
import xml.etree.ElementTree as ElementTree

import pytest

from . import history, junit, markdown, model, page, schema, store, terminal
from .conftest import make_cell, make_results
from .write import write_all


def test_all_files_come_from_one_results_json(tmp_path, small):
    paths = write_all(small, tmp_path / "out")
    assert set(paths) == {"results.json", "junit.xml", "summary.md", "index.html"}
    read = store.load(paths["results.json"])
    assert dict(read, changes=None) == dict(small, changes=None)
    assert paths["junit.xml"].read_text() == junit.render(read)
    assert paths["summary.md"].read_text() == markdown.render(read)
    assert (tmp_path / "out" / "history.sqlite").is_file()


def test_what_is_wrong_is_not_written(tmp_path, small):
    write_all(small, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    small["cells"][0]["outcome"] = "fine"
    with pytest.raises(schema.ResultsError):
        write_all(small, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_no_half_file_and_no_rest_when_writing_fails(tmp_path, monkeypatch):
    target = tmp_path / "results.json"
    store.write_atomically(target, "old")

    def full_disk(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        store.write_atomically(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_others_may_read_the_report(tmp_path):
    before = os.umask(0o022)
    try:
        store.write_atomically(tmp_path / "x", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o644


# --- JUnit ----------------------------------------------------------------------------------------


def cases(results):
    root = ElementTree.fromstring(junit.render(results))
    return root, {(case.get("classname"), case.get("name")): case for case in root.iter("testcase")}


def test_a_cell_is_a_test_case_and_so_is_each_test_in_it(small):
    root, found = cases(small)
    tests = sum(len(cell.get("tests", [])) for cell in small["cells"])
    # One more: the gate's answer.
    assert len(found) == len(small["cells"]) + tests + 1
    assert int(root.get("tests")) == len(small["cells"]) + tests + 1
    assert found["gate", "deb-65.0 in place of deb-44.0"].find("failure").get("message") == "provider i40iw is gone"
    for cell in small["cells"]:
        case = found[f"{cell['userland']}.{cell['kernel']}.{cell['provider']}", cell["id"]]
        kinds = {child.tag for child in case} - {"system-out"}
        if cell["verdict"] == "unexpected":
            assert kinds == {"failure"}
            assert case.find("failure").get("type") == cell["outcome"]
            assert cell["exec"] in case.find("failure").text
        elif cell["verdict"] == "not_run" or cell["outcome"] == "absent":
            assert kinds == {"skipped"}
            assert case.find("skipped").get("message") == cell["message"]
        else:
            assert kinds == set()


def test_a_failed_test_fails_only_in_a_cell_that_is_unexpected():
    failing = [{"name": "DataPath.WriteArrives", "result": "failed", "message": "got 0x3f"}]
    known = make_cell(
        "deb-44.0",
        "linux-4.16",
        "mlx5",
        tests=failing,
        outcome="broken",
        expectation={"reason": "known defect", "outcome": "broken"},
    )
    news = make_cell(
        "deb-65.0", "linux-4.16", "mlx5", tests=failing, outcome="broken", verdict="unexpected"
    )
    root, found = cases(make_results([known, news]))
    assert (
        found["deb-44.0.linux-4.16.mlx5", "DataPath.WriteArrives"].find("skipped").get("message")
        == "fails as expected: got 0x3f"
    )
    assert found["deb-65.0.linux-4.16.mlx5", "DataPath.WriteArrives"].find("failure") is not None
    assert root.get("failures") == "2"


def test_what_xml_cannot_say_does_not_break_it():
    cell = make_cell(
        "deb-44.0",
        "linux-4.16",
        "mlx5",
        outcome="broken",
        verdict="unexpected",
        signal="SIGSEGV",
        message="\x1b[31mred\x00 ]]> & <b> \ud800 \uffff",
    )
    _, found = cases(make_results([cell]))
    text = found["deb-44.0.linux-4.16.mlx5", cell["id"]].find("failure").text
    assert "\ufffd[31mred\ufffd ]]> & <b> \ufffd \ufffd" in text


# --- Markdown -------------------------------------------------------------------------------------


def test_the_summary_begins_with_what_is_unexpected(small):
    text = markdown.render(small)
    assert text.startswith(
        "# verbs-abi: No, deb-65.0 may not replace deb-44.0: 1 cell got worse; "
        "3 unexpected, 1 fixed, 2 not run, 186 as expected"
    )
    bad = [cell for cell in small["cells"] if cell["verdict"] == "unexpected"]
    assert text.index("## Not as expected") < text.index("## mlx5")
    for cell in bad:
        assert f"`{cell['id']}`" in text
        assert cell["exec"] in text
    assert "99.6 %" in text and "3311 of 3321" in text


def test_text_of_programs_cannot_leave_its_table_cell():
    cell = make_cell(
        "deb-44.0",
        "linux-4.16",
        "mlx5",
        outcome="broken",
        verdict="unexpected",
        rule=None,
        errno=None,
        message="a | b <img src=x> `c` *d*",
    )
    line = next(
        line
        for line in markdown.render(make_results([cell])).splitlines()
        if "a " in line and "mlx5" in line
    )
    assert len(re.findall(r"(?<!\\)\|", line)) == 6
    assert "\\<img src=x\\>" in line


def test_a_ticket_is_not_flooded():
    cells = [
        make_cell("deb-44.0", f"linux-9.{minor}", "mlx5", outcome="broken", verdict="unexpected")
        for minor in range(500)
    ]
    text = markdown.render(make_results(cells))
    assert "… and 460 more" in text
    tables = re.findall(r"(?m)^\|.*$", text)
    assert all(line.count("|") > 2 for line in tables)


def test_kernels_are_in_the_order_of_release(small):
    order = model.axis_order(small, "kernels")
    assert order == ["linux-4.16", "debian-6.1.192", "gvisor-rdmaproxy"]
    names = [
        "linux-4.4",
        "linux-4.10",
        "linux-4.20",
        "linux-5.10",
        "debian-5.10.223",
        "linux-5.11",
        "linux-6.1",
        "rr-sandbox",
    ]
    results = make_results([make_cell("deb-44.0", name, "mlx5") for name in reversed(names)])
    assert model.axis_order(results, "kernels") == names


# --- terminal -------------------------------------------------------------------------------------


def test_plain_lines_end_with_the_counts_and_where_to_read_on(small):
    stream = io.StringIO()
    terminal.table(small, stream)
    lines = stream.getvalue().splitlines()
    assert lines[-1] == (
        "192 cells in 21 s: 3 unexpected, 1 fixed, 2 not run, 186 as expected, "
        "1 without a model.   "
        "Report: out/index.html   One cell: ./verbs-abi explain CELL"
    )
    assert "\x1b" not in stream.getvalue()
    assert sum(line.startswith("unexpected: ") for line in lines) == 3


def test_the_line_of_a_kernel_says_outcome_why_and_how_it_is_known():
    results = make_results(
        [
            make_cell("deb-44.0", "linux-4.16", "mlx5"),
            make_cell("deb-44.0", "debian-6.1.192", "mlx5"),
        ],
        oracle={"debian-6.1.192": {"rxe": {"cases": 1000, "agree": 997}}},
    )
    lines = terminal.plain(results)
    assert (
        lines[0].split() == "linux-4.16 degraded over write; no dynamic UAR, DevX [source]".split()
    )
    assert lines[1].split() == "debian-6.1.192 full [core calibrated 99.7 %, driver source]".split()
    assert lines[2].startswith("2 cells in 21 s: 2 as expected.   Report: ")


def test_a_person_gets_a_table_with_the_same_last_line(small, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    stream = io.StringIO()
    terminal.table(small, stream, person=True)
    text = stream.getvalue()
    assert "deb-44.0, mlx5" in text and "linux-4.16" in text
    assert text.rstrip().splitlines()[-1].startswith("192 cells in 21 s: 3 unexpected")


@pytest.mark.parametrize("width, ends", ((80, "3 unexpected"), (200, "explain CELL")))
def test_the_last_line_is_parted_where_the_terminal_is_narrower(small, monkeypatch, width, ends):
    monkeypatch.setenv("COLUMNS", str(width))
    stream = io.StringIO()
    terminal.table(small, stream, person=True)
    counts = next(line for line in stream.getvalue().splitlines() if line.startswith("192 cells"))
    assert counts.startswith("192 cells in 21 s: 3 unexpected") and ("Report: " in counts) == (width == 200)
    assert counts.rstrip().endswith("explain CELL") == (width == 200) and ends in counts


@pytest.mark.parametrize("width", (20, 40))
def test_a_narrow_terminal_loses_no_word_of_the_table(small, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    stream = io.StringIO()
    terminal.table(small, stream, person=True)
    lines = stream.getvalue().splitlines()
    blocks, last = lines[:-3], lines[-3:]
    assert last[0].startswith("192 cells in 21 s: 3 unexpected") and last[1].startswith("Report: ")
    listed = next(number for number, line in enumerate(blocks) if line.startswith("unexpected: "))
    # Cells' names stay whole, to be copied; all else keeps within the terminal.
    assert max(map(len, blocks[:listed])) <= width
    words = " ".join(" ".join(blocks[:listed]).split())
    for row in terminal.rows(small):
        assert row[2] in words and model.outcome_word(row[3]) in words
    assert "…" not in "".join(blocks[:listed])


@pytest.mark.parametrize("variables, styled, coloured", (
    ({"TERM": "xterm"}, True, True), ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
    ({"TERM": "dumb"}, False, False), ({}, False, False),
))
def test_colour_goes_to_terminals_that_say_they_have_it(small, monkeypatch, variables, styled, coloured):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for name in ("CI", "TERM", "NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    terminal.table(small, stream)
    assert ("\033[" in stream.getvalue()) == styled
    assert bool(re.search(r"\033\[[0-9;]*3[0-7]m", stream.getvalue())) == coloured
    assert "deb-44.0, mlx5" in stream.getvalue()


def test_cells_with_equal_worlds_are_counted_once_and_said_to_be_left_out():
    results = make_results(
        [
            make_cell("deb-44.0", kernel, "mlx5", world_digest=world)
            for kernel, world in [("linux-4.4", "a"), ("linux-4.10", "a"), ("linux-4.16", "b")]
        ]
    )
    assert terminal.last_lines(results)[-1].startswith("2 cells and 1 alike in 21 s: ")
    assert "2 cells and 1 alike of plan quick in 21 s" in markdown.render(results)
    assert "<b>2</b>cells, 1 alike</p>" in page.render(results)


def test_one_disagreement_in_ten_thousand_is_not_100_percent():
    assert model.percent({"cases": 10000, "agree": 9999}) == "99.9 %"
    assert model.percent({"cases": 10000, "agree": 10000}) == "100 %"
    assert model.percent({"cases": 0, "agree": 0}) == "no cases"


# --- history --------------------------------------------------------------------------------------


def run_of(outcomes, second=0):
    cells = [
        make_cell("deb-44.0", kernel, "mlx5", **changes) for kernel, changes in outcomes.items()
    ]
    return make_results(
        cells,
        generated=f"2026-05-04T03:02:{second:02}Z",
        provenance=dict(make_results([])["provenance"], commit=f"{second:08x}"),
    )


BROKEN = {"outcome": "broken", "verdict": "unexpected"}


def test_what_changed_since_the_last_run_is_told(tmp_path):
    write_all(run_of({"linux-5.4": {}, "linux-5.6": {}}, 1), tmp_path)
    assert store.load(tmp_path / "results.json")["changes"] is None
    # A partial run between them: the cell it did not have is compared with the run before.
    write_all(run_of({"linux-5.4": {}}, 2), tmp_path)
    assert store.load(tmp_path / "results.json")["changes"]["cells"] == []
    write_all(run_of({"linux-5.4": {}, "linux-5.6": BROKEN, "linux-6.2": {}}, 3), tmp_path)
    changes = store.load(tmp_path / "results.json")["changes"]
    assert changes == {
        "since": "2026-05-04T03:02:02Z",
        "compared": 2,
        "new": 1,
        "cells": [
            {
                "id": "deb-44.0/linux-5.6/mlx5",
                "was": {"outcome": "full", "verdict": "expected"},
                "is": {"outcome": "broken", "verdict": "unexpected"},
            }
        ],
    }
    page = (tmp_path / "index.html").read_text()
    assert "Changed since the last run" in page
    assert "#cell=deb-44.0/linux-5.6/mlx5" in page


def test_writing_the_same_run_again_changes_nothing(tmp_path):
    write_all(run_of({"linux-5.4": {}}, 1), tmp_path)
    results = run_of({"linux-5.4": BROKEN}, 2)
    write_all(results, tmp_path)
    before = (tmp_path / "results.json").read_bytes()
    write_all(store.load(tmp_path / "results.json"), tmp_path)
    assert (tmp_path / "results.json").read_bytes() == before
    write_all(dict(results, generated="2026-06-01T00:00:00Z"), tmp_path)  # rendered anew later
    with sqlite3.connect(tmp_path / "history.sqlite") as connection:
        assert connection.execute("SELECT COUNT(*) FROM runs").fetchone() == (2,)
        assert connection.execute(
            "SELECT id, outcome, verdict FROM cells ORDER BY run"
        ).fetchall() == [
            ("deb-44.0/linux-5.4/mlx5", "full", "expected"),
            ("deb-44.0/linux-5.4/mlx5", "broken", "unexpected"),
        ]


def test_the_history_does_not_grow_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "KEEP_RUNS", 3)
    for number in range(6):
        history.append(tmp_path / "history.sqlite", run_of({"linux-5.4": {}}, number))
    with sqlite3.connect(tmp_path / "history.sqlite") as connection:
        assert connection.execute("SELECT COUNT(*) FROM runs").fetchone() == (3,)
        assert connection.execute("SELECT COUNT(*) FROM cells").fetchone() == (3,)


@pytest.mark.parametrize("content", [b"this is no database" * 100, None])
def test_a_history_that_cannot_be_used_costs_only_the_comparison(tmp_path, capsys, content):
    path = tmp_path / "history.sqlite"
    if content is None:
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version = 99")
        content = path.read_bytes()
    else:
        path.write_bytes(content)
    write_all(run_of({"linux-5.4": {}}), tmp_path)
    assert store.load(tmp_path / "results.json")["changes"] is None
    told = capsys.readouterr().err
    assert told.startswith("notice: no comparison with earlier runs: ") and "history.sqlite" in told
    assert path.read_bytes() == content
