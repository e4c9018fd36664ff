# SPDX-License-Identifier: BSD-2-Clause
import argparse
import contextlib

import pytest

from verbs_abi import matrix
from verbs_abi.errors import UserError
from verbs_abi.facts import tool
from verbs_abi.cells import ids
from verbs_abi.facts.builds import cells, engine, layout, plan, run, sources
from verbs_abi.run import command as run_command

DEBIANS = ["debian-5.10.223", "debian-6.1.192", "debian-6.12.117", "debian-7.2.13", "debian-7.3.4"]


def test_a_sources_own_headers_and_its_nearest_kernels():
    assert plan.headers_of("src-44.0", ["own", "nearest"]) == ["rdma-core-v44", "debian-6.1.192", "debian-6.12.117"]
    assert plan.headers_of("src-44.0", ["nearest", "debian-6.1*"]) == ["debian-6.1.192", "debian-6.12.117"]
    assert len(plan.headers_of("src-44.0", "*")) == len(tool.names()) >= 56


def test_every_registered_source_names_headers_and_kernels_that_there_are():
    for entry in matrix.load("sources").values():
        assert entry.data["headers"] in tool.names()
        assert set(entry.data["kernels"]) <= set(DEBIANS)


def test_pairs_are_named_once():
    groups = [{"sources": ["src-44.0"], "headers": ["own"]}, {"sources": "src-4*", "headers": ["own", "nearest"]}]
    assert plan.pairs(groups) == [("src-44.0", "rdma-core-v44"), ("src-44.0", "debian-6.1.192"),
                                  ("src-44.0", "debian-6.12.117")]


def test_unknown_names_are_told():
    with pytest.raises(UserError, match="src-4.0"):
        plan.pairs([{"sources": ["src-4.0"]}])
    with pytest.raises(UserError, match="debian-9"):
        plan.headers_of("src-44.0", ["debian-9"])


def test_a_pair_is_held_against_its_kernel_and_the_neighbours():
    source = sources.Source("s", "44.0", None, "d", "rdma-core-v44", ("debian-6.1.192",))
    assert layout.kernels_of(source, "debian-6.12.117") == ["debian-6.12.117", "debian-6.1.192", "debian-7.2.13"]
    assert layout.kernels_of(source, "debian-5.10.223") == ["debian-5.10.223", "debian-6.1.192"]
    assert layout.kernels_of(source, "rdma-core-v44") == ["debian-6.1.192"]


def test_headers_of_a_kernel_are_those_of_its_model():
    assert tool.headers("linux-5.6").name == tool.of_kernel("linux-5.6")
    assert tool.headers("debian-6.1.192").name == "debian-6.1.192"
    with pytest.raises(UserError, match="debian-6.1.193.*"):
        tool.headers("debian-6.1.193")


@pytest.mark.parametrize("subject, name", [("struct rxe_av", "rxe_av"), ("union u", "u"), ("rxe_av.a.b", "rxe_av")])
def test_a_subject_names_its_struct(subject, name):
    assert layout.struct_of(subject) == name


def test_the_plans_build_what_they_say():
    gate, nightly = plan.of("gate"), plan.of("nightly")
    for source in ("src-33.2", "src-44.0", "src-56.1", "src-65.0"):
        own = matrix.get("sources", source).data
        assert [headers for name, headers in gate if name == source] == [own["headers"], *own["kernels"]]
        assert {headers for name, headers in nightly if name == source} == {own["headers"], *DEBIANS}
    assert plan.of("quick") == []


def pair_of(**files):
    libraries = tuple(engine.Library(name, file) for name, file in files.items())
    return engine.Pair("src-44.0", "debian-6.12.117", "d", None, libraries, 1.0, "rdmav34", True)


def test_what_was_built_runs_on_its_kernel_and_the_neighbours():
    how = {"providers": ["mlx5", "rxe"], "scenarios": ["journey", "conformance"]}
    pair = pair_of(libibverbs="a", libmlx5="b", librxe=None)
    names = [cell.id for cell in cells.cells_of(pair, how)]
    assert names == [f"src-44.0+headers=debian-6.12.117/{kernel}/mlx5{scenario}"
                     for kernel in ("debian-6.12.117", "debian-6.1.192", "debian-7.2.13")
                     for scenario in ("", "@conformance")]
    assert list(cells.cells_of(pair, None)) == []
    assert list(cells.cells_of(pair_of(libibverbs=None, libmlx5="b"), how)) == []


def test_names_of_what_is_built_stand_in_cells():
    cell = ids.parse("src-44.0+headers=debian-6.12.117/debian-6.12.117/mlx5@conformance")
    assert (cell.userland, cell.scenario) == ("src-44.0+headers=debian-6.12.117", "conformance")
    for wrong in ("src-44.1+headers=debian-6.12.117", "src-44.0+headers=debian-6.12"):
        with pytest.raises(UserError, match="44|6.12"):
            ids.parse(f"{wrong}/debian-6.12.117/mlx5")


def test_a_source_that_cannot_be_had_is_not_run_and_stops_nothing(monkeypatch):
    def gone(name, _progress):
        raise UserError(f"source {name} cannot be fetched")
    monkeypatch.setattr(run.sources, "get", gone)
    notes = type("P", (), {"note": lambda *_: None})()
    (row,) = run.build_all([("src-44.0", "debian-6.1.192")], notes, keep_going=True)
    assert (row["result"], row["verdict"]) == ("not_run", "not_run") and "cannot be fetched" in row["cause"]
    with pytest.raises(UserError, match="cannot be fetched"):
        run.build_all([("src-44.0", "debian-6.1.192")], notes)


def test_userlands_that_a_plan_builds_are_named_or_matched():
    assert plan.named("gate", ["src-44.0+headers=debian-6.1.192"]) == ["src-44.0+headers=debian-6.1.192"]
    assert plan.named("gate", ["src-44.0+headers=debian-7.2.13"]) == plan.named("quick", ["*"]) == []
    assert plan.named("nightly", ["src-33.2+headers=debian-7.*", "src-65.0+headers=*v65"]) == [
        "src-33.2+headers=debian-7.2.13", "src-33.2+headers=debian-7.3.4", "src-65.0+headers=rdma-core-v65"]
    assert len(plan.named("nightly", ["src-*+headers=*"])) == len(plan.of("nightly")) == 24


def pick(*words):
    parser = argparse.ArgumentParser()
    run_command.register(parser.add_subparsers())
    arguments = parser.parse_args(["run", *words])
    picked = run_command.pick_built(arguments)
    return picked, run_command.choose(arguments, picked)


def test_of_a_plan_that_builds_its_own_cells_of_a_pair_are_run():
    pair = "src-44.0+headers=debian-6.1.192"
    assert pick("--plan", "gate", "--userland", pair) == ([pair], ("gate", []))
    assert pick("--plan", "gate", "--userland", "src-44.0+headers=debian-6.1*", "--kernel", "debian-6.1.192")[0] == [
        pair, "src-44.0+headers=debian-6.12.117"]
    # Beside other userlands, and where the plan does not build it: the plan's cells with it.
    picked, (_, found) = pick("--plan", "gate", "--userland", pair, "--userland", "deb-56.1")
    assert picked == [pair] and {cell.userland for cell in found} == {"deb-56.1"}
    picked, (_, found) = pick("--userland", pair)
    assert picked == [] and {cell.userland for cell in found} == {pair}
    with pytest.raises(UserError, match=r"src-44\.\*"):
        pick("--userland", "src-44.*+headers=debian-6.1.192")


def test_only_the_cells_that_were_asked_for_are_taken_of_a_pair(monkeypatch):
    def built(wanted, _progress, jobs, done, keep_going):
        assert wanted == [("src-44.0", "debian-6.12.117")]
        done(pair_of(libibverbs="a", libmlx5="b", librxe="c"), [])
        return ["row"]
    monkeypatch.setattr(cells.run, "build_all", built)
    monkeypatch.setattr(run_command.progress, "Progress", lambda _: contextlib.nullcontext())
    arguments = argparse.Namespace(userland=[], kernel=["debian-6.1.192"], provider=["rxe"], overlay=[], scenario=[], jobs=1)
    rows, found = run_command._builds("nightly", arguments, ["src-44.0+headers=debian-6.12.117"])
    assert rows == ["row"] and [cell.id for cell in found] == [
        f"src-44.0+headers=debian-6.12.117/debian-6.1.192/rxe{scenario}" for scenario in ("", "@conformance")]
    assert run_command._builds("nightly", arguments, []) == ([], [])
