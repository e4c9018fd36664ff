# SPDX-License-Identifier: BSD-2-Clause
"""Programs of other releases: what they were linked to, what the dynamic linker says, whose objects they are handed."""

import dataclasses
import json

import pytest

from verbs_abi import matrix, userlands
from verbs_abi.cells import applications, expect, ids, outcome, pool, programs, runner
from verbs_abi.symbols import read

RELEASES = ("deb-33.2", "deb-44.0", "deb-56.1", "deb-65.0")
OLDER = RELEASES[:-1]
KERNEL = "debian-6.1.192"


def run(setup, release, scenario, provider="rxe", kernel=KERNEL, overlays=()):
    """The row of results.json of one cell."""
    setup.userlands[release] = userlands.get(release)
    return pool.run_cell(setup, ids.Cell(release, kernel, (ids.Device.parse(provider),), overlays, scenario))


def program(name, release):
    return programs.build(name, userlands.get(release))


def verbs_nodes(path):
    return {node for library, node in applications.needs(path) if library == "libibverbs.so.1"}


# L5-12.
@pytest.mark.parametrize("provider", ("mlx5", "rxe"))
@pytest.mark.parametrize("release", RELEASES)
def test_a_program_of_2006_runs_and_is_handed_its_own_objects(setup, release, provider):
    row = run(setup, release, "compat-1_0", provider)
    assert row["outcome"] == "full", row["message"]
    assert {"event:cq", "event:qp", "event:srq", "event:own", "query_qp:own", "post_send:bad_wr", "send", "write",
            "read"} <= set(row["features"])
    assert "event:port" not in row["features"]


def test_port_events_reach_it_too(setup):
    row = run(setup, "deb-44.0", "compat-1_0", overlays=("event=PKEY_CHANGE@10cmds",))
    assert "event:port" in row["features"], row["message"]


def test_the_program_of_2006_is_one_for_all_and_needs_one_node():
    paths = {program("compat-1_0", release) for release in RELEASES}
    assert len(paths) == 1
    assert verbs_nodes(paths.pop()) == {"IBVERBS_1.0"}


def bytes_beyond(setup, release):
    setup.userlands[release] = userlands.get(release)
    cell = ids.Cell(release, KERNEL, (ids.Device.parse("rxe"),), (), "compat-1_0-query-port")
    ended, _, _ = pool.run_raw(setup, cell)
    rows = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"value": "query_port_beyond"')]
    return rows[0]["is"]


# L1-07. verbs.h: struct ibv_port_attr is 48 bytes without port_cap_flags2 (1.0), 52 with it, 56 with active_speed_ex (55.0).
@pytest.mark.parametrize("release, beyond", zip(RELEASES, (4, 4, 8, 8)))
def test_port_attributes_are_written_beyond_its_structure(setup, release, beyond):
    assert bytes_beyond(setup, release) == beyond
    row = run(setup, release, "compat-1_0-query-port")
    assert (row["outcome"], row["verdict"]) == ("broken", "expected")


@pytest.mark.parametrize("release", RELEASES)
def test_a_queue_pair_without_srq_cannot_be_queried_by_it(setup, release):
    row = run(setup, release, "compat-1_0-query-qp")
    assert (row["outcome"], row["signal"], row["verdict"]) == ("broken", "SIGSEGV", "expected")
    assert row["message"].startswith("crashed: SIGSEGV after step qp:own")


def test_a_release_that_mends_a_known_defect_is_told():
    cell = ids.Cell("deb-65.0", KERNEL, (ids.Device.parse("rxe"),), (), "compat-1_0-query-qp")
    assert expect.verdict(cell, outcome.Outcome("full"))[0] == "fixed"
    assert expect.verdict(cell, outcome.Outcome("degraded"))[0] == "unexpected"


@pytest.mark.parametrize("release", RELEASES)
def test_the_journey_of_65_needs_nothing_new(setup, release):
    assert verbs_nodes(program("journey", "deb-65.0")) == {"IBVERBS_1.0", "IBVERBS_1.1"}
    # On rxe before 44.0 some features are missing (matrix/expectations/rxe-33.json): of the library, not of the program.
    row = run(setup, release, "new-app", "mlx5")
    assert row["outcome"] == "full", row["message"]


@pytest.mark.parametrize("release", RELEASES)
def test_what_33_was_compiled_to_runs_beside_every_release(setup, release):
    assert run(setup, release, "old-app", "mlx5")["outcome"] == "full"
    suites = run(setup, release, "old-suites")
    assert suites["outcome"] == "full" and len(suites["tests"]) > 20, suites["message"]


# L5-09. matrix/symbols: 33.2 ends at IBVERBS_1.11, 44.0 and 56.1 at 1.14.
@pytest.mark.parametrize("release, first", zip(OLDER, (12, 15, 15)))
def test_the_dynamic_linker_names_every_version_that_is_missing(setup, release, first):
    row = run(setup, release, "newest")
    assert (row["outcome"], row["by"], row["verdict"]) == ("refused", "ld.so", "expected")
    assert row["message"] == "not found: " + ", ".join(f"IBVERBS_1.{number}" for number in range(first, 19))


def test_beside_its_own_release_the_newest_runs(setup):
    assert run(setup, "deb-65.0", "newest")["outcome"] == "full"


def ended(stderr, status=1, stdout=""):
    return runner.Ended(status=status, signal=None, limit=None, stdout=stdout, stderr=stderr, seconds=0.1)


def missing(*nodes):
    return "".join(f"p: /x/libibverbs.so.1: version `{node}' not found (required by p)\n" for node in nodes)


def test_another_answer_of_the_dynamic_linker_is_broken():
    release, path = userlands.get("deb-56.1"), program("newest", "deb-65.0")
    nodes = [f"IBVERBS_1.{number}" for number in range(15, 19)]
    assert applications.refused(ended(missing(*nodes)), path, release).outcome == "refused"
    for wrong in (ended(missing(*nodes[1:])), ended(missing("IBVERBS_1.14", *nodes)), ended(""), ended(missing(*nodes), 0),
                  ended(missing(*nodes), stdout='{"step": "symbols", "ok": true}\n')):
        told = applications.refused(wrong, path, release)
        assert told.outcome == "broken"
        assert told.message.startswith("deb-56.1 has not got IBVERBS_1.15, IBVERBS_1.16, IBVERBS_1.17, IBVERBS_1.18; ")


def test_a_symbol_that_went_from_its_node_is_named(monkeypatch):
    release, path = userlands.get("deb-65.0"), program("newest", "deb-65.0")
    facts = read.stored("deb-65.0")
    facts["libraries"]["libibverbs.so.1"]["symbols"]["ibv_alloc_dmah"] = ["IBVERBS_1.14@"]
    monkeypatch.setattr(applications, "facts", lambda _: facts)
    assert applications.lacking(path, release) == ([], ["ibv_alloc_dmah@IBVERBS_1.15"])
    text = "p: symbol lookup error: p: undefined symbol: ibv_alloc_dmah, version IBVERBS_1.15\n"
    told = applications.refused(ended(text, 127), path, release)
    assert (told.outcome, told.message) == ("refused", "not found: ibv_alloc_dmah@IBVERBS_1.15")
    assert applications.refused(ended(text.replace("1.15", "1.16"), 127), path, release).outcome == "broken"


# L5-10: a node that only a vendor's libraries have is named like any other; those of other libraries are none of ours.
def test_a_vendors_node_is_lacking_everywhere(monkeypatch):
    wanted = {("libmlx5.so.1", "MLX5_OFED"): {"mlx5dv_x"}, ("libmlx5.so.1", "MLX5_1.0"): {"mlx5dv_init_obj"},
              ("libc.so.6", "GLIBC_9.9"): {"f"}}
    monkeypatch.setattr(applications, "needs", lambda _: wanted)
    for release in RELEASES:
        assert applications.lacking("program", userlands.get(release)) == (["MLX5_OFED"], [])


# libibverbs/verbs.c of 65.0: providers without an operation of their own get reg_mr behind it (in 59 to 63 EOPNOTSUPP). L3-04.
@pytest.mark.parametrize("provider", ("mlx5", "rxe"))
def test_the_newest_registration_works_on_each_provider(setup, provider):
    assert "reg_mr_ex" in run(setup, "deb-65.0", "newest", provider)["features"]


def test_a_release_that_cannot_be_had_leaves_its_programs_not_run(setup):
    lacking = dataclasses.replace(setup, lacking={"deb-33.2": matrix.MatrixError("x", "/", "gone", "")})
    row = run(lacking, "deb-44.0", "old-app")
    assert row["verdict"] == "not_run"
