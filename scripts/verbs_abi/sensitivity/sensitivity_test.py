# SPDX-License-Identifier: BSD-2-Clause
"""Defects as data, the swap of one token, and what counts as noticed."""

import argparse
import contextlib
import dataclasses
import re
import types

import pytest

from verbs_abi import errors, matrix
from verbs_abi.cells import plans
from verbs_abi.run import command as run_command
from verbs_abi.sensitivity import check, defects, libraries, report

SOURCE = "src-44.0"
TEXT = """#define LOWEST 3
#define BOTH(a, b) \\
	(a >= b && \\
	 b >= 1)

static int other(int x);

static int
bound(struct thing *it,
      int x)
{
	if (it->x >= x || x > 3)
		return -EINVAL;
	return 0;
}

struct thing {
	int x;
	long y;
};

static const struct ops thing_ops = {
	.lowest = 3,
};

NODE_1.0 {
	global:
		thing_open;
} NODE_0.9;
"""


def defect(**row):
    return defects.Defect(**{"name": "d", "layer": "fallback", "file": "f.c", "where": "bound", "old": ">", "new": ">=",
                             "why": "w", **row})


@pytest.mark.parametrize("row, line", [
    ({}, "	if (it->x >= x || x >= 3)"),
    ({"old": ">=", "new": ">"}, "	if (it->x > x || x > 3)"),
    ({"old": "x", "new": "y", "at": 3}, "	if (it->x >= y || x > 3)"),
    ({"old": "EINVAL", "new": "EPERM"}, "		return -EPERM;"),
    ({"where": "thing", "old": "long", "new": "int"}, "	int y;"),
    ({"where": "thing_ops", "old": "3", "new": "4"}, "	.lowest = 4,"),
    ({"where": "LOWEST", "old": "3", "new": "4"}, "#define LOWEST 4"),
    ({"where": "BOTH", "old": ">=", "new": ">", "at": 2}, "	 b > 1)"),
    ({"where": "NODE_1.0", "old": "thing_open", "new": "thing_close"}, "		thing_close;"),
    ({"where": "NODE_1.0", "old": "NODE_1.0", "new": "NODE_1.1"}, "NODE_1.1 {"),
    ({"where": "bound", "old": "||", "new": ""}, "	if (it->x >= x  x > 3)"),
])
def test_one_token_is_swapped(row, line):
    before, after = TEXT.splitlines(), defects.swapped(defect(**row), TEXT).splitlines()
    assert [new for old, new in zip(before, after) if old != new] == [line]


def test_what_is_not_there_is_told():
    with pytest.raises(errors.UserError, match="defect d: f.c has no other"):
        defects.swapped(defect(where="other"), TEXT)  # declared, without a body
    with pytest.raises(errors.UserError, match="bound in f.c has 'EINVAL' 1 times, not 2"):
        defects.swapped(defect(old="EINVAL", at=2), TEXT)


def test_there_are_enough_defects_of_every_layer():
    found = defects.load(SOURCE)
    assert len(found) >= 20
    assert {one.layer for one in found} == set(defects.LAYERS)
    assert plans.load("sensitivity") and check.source_of("sensitivity") == SOURCE
    assert check.source_of("quick") is None


def test_no_line_of_code_stands_in_the_data():
    # One token, or a member of a structure; never a statement.
    token = re.compile(r"[A-Za-z0-9_.]+|[^A-Za-z0-9_\s;{}()]{1,2}|(?:\(void\))?[a-z_]+(?:->[a-z_]+)?|")
    assert [one.name for one in defects.load(SOURCE) if not token.fullmatch(one.old) or not token.fullmatch(one.new)] == []


def test_two_defects_of_one_name_are_told(tmp_path, monkeypatch):
    (tmp_path / "defects").mkdir()
    (tmp_path / "schema").symlink_to(matrix.paths.matrix_dir() / "schema")
    row = '{"name": "a", "layer": "fallback", "file": "f", "in": "i", "from": "x", "to": "y", "why": "w"}'
    (tmp_path / "defects/s.json").write_text(f'{{"name": "s", "defects": [{row}, {row}]}}')
    monkeypatch.setenv("VERBS_ABI_MATRIX", str(tmp_path))
    with pytest.raises(matrix.MatrixError, match="a stands twice"):
        defects.load("s")


@pytest.mark.parametrize("file, library", [
    ("providers/mlx5/cq.c", ["libmlx5.so.1.24.44.0"]), ("providers/rxe/rxe.c", ["librxe-rdmav34.so"]),
    ("libibverbs/cmd.c", ["libibverbs.so.1.14.44.0", "libmlx5.so.1.24.44.0", "librxe-rdmav34.so"]),
    ("kernel-headers/rdma/rdma_user_rxe.h", ["libibverbs.so.1.14.44.0", "libmlx5.so.1.24.44.0", "librxe-rdmav34.so"])])
def test_only_the_libraries_concerned_are_built(file, library):
    all_of_them = ["lib/libefa.so.1.2.44.0", "lib/libibverbs.so.1.14.44.0", "lib/libmlx4.so.1.0.44.0",
                   "lib/libmlx5.so.1.24.44.0", "lib/librxe-rdmav34.so", "lib/librdmacm.so.1.3.44.0"]
    assert [target for target in all_of_them if libraries.concerns(file, target)] == [f"lib/{name}" for name in library]


def row(userland, outcome="full", failed=(), scenario="conformance", message=None):
    tests = [{"name": name, "result": "failed" if name in failed else "passed"} for name in ("A.a", "A.b")]
    return {"id": f"{userland}/k/rxe@{scenario}", "userland": userland, "kernel": "k", "provider": "rxe", "overlays": [],
            "scenario": scenario, "outcome": outcome, "verdict": "expected", "message": message, "lost": [], "tests": tests}


def test_a_failing_test_and_a_worse_cell_are_noticed():
    sound = [row("s"), row("s", scenario="journey")]
    broken = [row("b", "broken", ["A.b"]), row("b", "broken", scenario="journey", message="crashed: SIGSEGV")]
    assert check.noticed(sound, broken) == ["A.b (k/rxe@conformance)",
                                            "k/rxe@journey: full → broken (crashed: SIGSEGV)"]


def test_what_fails_in_the_sound_source_too_is_not_noticed():
    failing = [row("s", "broken", ["A.b"])]
    assert check.noticed(failing, [row("b", "broken", ["A.b"])]) == []
    assert check.noticed([row("s")], [row("b")]) == []


def test_what_has_no_model_any_more_is_noticed():
    assert check.noticed([row("s")], [row("b", "unmodelled", message="method A")]) == [
        "k/rxe@conformance: full → unmodelled (method A)"]
    assert check.noticed([row("s", "unmodelled")], [row("b", "unmodelled")]) == []


def test_another_range_of_abi_versions_is_noticed():
    def swept(userland, *versions):
        return {**row(userland, scenario="abi-sweep"), "features": [f"ABI {version}" for version in versions]}

    assert check.noticed([swept("s", 1)], [swept("b", 1, 2)]) == ["k/rxe@abi-sweep: takes ABI 2"]
    assert check.noticed([swept("s", 1, 2)], [swept("b", 1)]) == ["k/rxe@abi-sweep: full → full (refuses: ABI 2)"]
    assert check.noticed([swept("s", 1)], [swept("b", 1)]) == []


def pick(*words):
    parser = argparse.ArgumentParser()
    run_command.register(parser.add_subparsers())
    arguments = parser.parse_args(["run", *words])
    return run_command.pick_defects(arguments), run_command.choose(arguments)


def test_defects_are_picked_by_name_or_pattern():
    plan = ("--plan", "sensitivity")
    whole = plans.load("sensitivity")
    assert pick(*plan) == ([], ("sensitivity", whole))
    one = f"{SOURCE}+defect=owner-bit"
    assert pick(*plan, "--userland", one) == ([one], ("sensitivity", whole))
    assert pick(*plan, "--userland", f"{SOURCE}+defect=owner*")[0] == [one]
    found, (_, cells) = pick(*plan, "--userland", f"{SOURCE}+defect=rxe-*", "--userland", one, "--provider", "mlx5")
    assert found == [f"{SOURCE}+defect={each.name}" for each in defects.load(SOURCE)
                     if each.name.startswith("rxe-") or each.name == "owner-bit"] and len(found) > 2
    assert 0 < len(cells) < len(whole)


@pytest.mark.parametrize("words, message", [
    (("--plan", "sensitivity", "--userland", f"{SOURCE}+defect=owner-bti"), f"Nearest: {SOURCE}\\+defect=owner-bit"),
    (("--plan", "sensitivity", "--userland", f"{SOURCE}+defect=ownr*"), "unknown userland with a defect"),
    (("--plan", "sensitivity", "--userland", "deb-44.0"), "unknown userland with a defect 'deb-44.0'"),
    (("--plan", "sensitivity", "--userland", f"{SOURCE}+defect=rxe-*", "--userland", f"{SOURCE}+defect=x*"), "defect=x"),
    (("--userland", f"{SOURCE}+defect=owner-bit"), "--plan sensitivity"),
    (("--plan", "gate", "--userland", f"{SOURCE}+defect=owner-bit"), "--plan sensitivity")])
def test_what_is_no_defect_is_told(words, message):
    with pytest.raises(errors.UserError) as caught:
        pick(*words)
    assert re.search(message, str(caught.value))


class Tree:
    """A source that needs no building."""

    def __init__(self, *_arguments):
        self.source, self.restored = types.SimpleNamespace(digest="d"), None

    def lock(self):
        return contextlib.nullcontext()


def test_only_defects_that_were_picked_are_tried(tmp_path, monkeypatch):
    tried, restored, ran = [], [], []

    class Run(check.Run):
        def sound(self, wanted):
            restored.extend(wanted)
            ran.extend(self.cells)
            return None, []

        def one(self, defect, sound, sound_rows):
            tried.append(defect.name)
            return check.Finding(defect, ["A.a"], 1)

    (tmp_path / "shim").write_text("")
    monkeypatch.setattr(check, "Run", Run)
    monkeypatch.setattr(check.libraries, "Tree", Tree)
    monkeypatch.setattr(check.build, "ensure", lambda **_targets: tmp_path)
    monkeypatch.setattr(check.worlds, "Compiler", lambda _folder: contextlib.nullcontext())
    monkeypatch.setattr(check.worlds, "shim", lambda folder: folder / "shim")
    arguments = argparse.Namespace(out=tmp_path / "out", jobs=1, resume=False)
    cells = plans.load("sensitivity")
    assert check.run("sensitivity", cells, arguments, [f"{SOURCE}+defect=owner-bit"]) == 0
    # Any file may have been left with its defect by a run that was killed.
    assert tried == ["owner-bit"] and restored == defects.load(SOURCE)
    assert ran == [cell for cell in cells if cell.drivers == ("mlx5",)] and len(ran) < len(cells)
    tried.clear()
    assert check.run("sensitivity", cells, arguments) == 0
    assert tried == [each.name for each in defects.load(SOURCE)]


def test_the_report_tells_of_holes(tmp_path, capsys):
    found = [check.Finding(defect(name="seen"), ["A.a (2 cells)"], 2), check.Finding(defect(name="unseen"), [], 2),
             check.Finding(defect(name="odd"), [], 0, "does not build: error")]
    told = report.data("sensitivity", SOURCE, [row("s")], found, 1.5)
    assert told["holes"] == ["unseen", "odd"]
    report.write(told, tmp_path)
    report.show(told, tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3:-1] == ["hole: nothing noticed unseen", "hole: nothing noticed odd"]
    assert lines[-1].startswith("1 of 3 defects noticed, 1 cells each, 2 s.")
    assert "| **nothing** |" in (tmp_path / "sensitivity.md").read_text()


def test_only_cells_of_a_defects_provider_are_run():
    cells = plans.load("sensitivity")
    mine = check.concerned(defect(file="providers/mlx5/cq.c"), cells)
    assert 0 < len(mine) < len(cells) and {cell.drivers for cell in mine} == {("mlx5",)}
    assert check.concerned(defect(file="libibverbs/cmd.c"), cells) == cells
    assert check.concerned(defect(file="kernel-headers/rdma/mlx5-abi.h"), cells) == cells


def test_an_interrupted_run_is_resumed_with_the_same_build_only(tmp_path):
    path = tmp_path / "findings.jsonl"
    journal = check.Journal(path, False, "one")
    journal.add(check.Finding(defect(name="seen"), ["A.a"], 3))
    assert check.Journal(path, True, "two").get(defect(name="seen")) is None
    journal = check.Journal(path, False, "one")
    journal.add(check.Finding(defect(name="seen"), ["A.a"], 3))
    resumed = check.Journal(path, True, "one")
    assert resumed.get(defect(name="seen")).by == ["A.a"]
    assert resumed.get(defect(name="seen", at=2)) is None
    assert check.Journal(path, False, "one").get(defect(name="seen")) is None


def test_each_defect_is_another_build():
    one = defect()
    assert one != dataclasses.replace(one, at=2)
