# SPDX-License-Identifier: BSD-2-Clause
"""Which cells two releases are compared by."""

import argparse

import pytest

from verbs_abi import errors, matrix
from verbs_abi.cells import ids, plans
from verbs_abi.gate import command


def test_both_releases_run_the_same_cells_but_no_tests_of_their_own():
    cells = command.cells_of("gate", "debian-6.12.117", "deb-44.0", "deb-56.1")
    old = {(cell.provider, cell.overlays, cell.scenario) for cell in cells if cell.userland == "deb-44.0"}
    new = {(cell.provider, cell.overlays, cell.scenario) for cell in cells if cell.userland == "deb-56.1"}
    assert old == new and len(cells) == len(old) + len(new)
    scenarios = {scenario for _, _, scenario in old}
    assert "diags" in scenarios and "pyverbs" not in scenarios
    assert any(cell.scenario == "pyverbs" for cell in plans.load("gate")), "run --plan gate has them"


def test_every_driver_stands_in_the_plan_with_every_route_of_each_release_and_kernel():
    """Routes of discovery of drivers that negotiate only; of those that open, each with every route of commands."""
    cells = {(cell.userland, cell.kernel, cell.provider, cell.overlays, cell.scenario) for cell in plans.load("gate")}
    discovery, commands = ((), ("no-netlink",)), ((), ("no-ioctl",))
    lacking = []
    for provider, entry in matrix.load("providers").items():
        opens = entry.data.get("opens")
        scenarios = ("journey", "control") if opens else ("negotiate",)
        routes = [(*command, *found) for found in discovery for command in (commands if opens else ((),))]
        lacking += [(userland, kernel, provider, route)
                    for userland in ("deb-33.2", "deb-44.0", "deb-56.1", "deb-65.0") for kernel in ids.kernels() for route in routes
                    if not any((userland, kernel, provider, route, scenario) in cells for scenario in scenarios)]
    assert lacking == []


def test_every_provider_is_swept_by_both_routes_of_each_release():
    cells = {(cell.userland, cell.provider, cell.overlays) for cell in plans.load("gate") if cell.scenario == "abi-sweep"}
    assert cells == {(userland, provider, route) for userland in ("deb-33.2", "deb-44.0", "deb-56.1", "deb-65.0")
                     for provider in matrix.names("providers") for route in ((), ("no-netlink",))}


@pytest.mark.parametrize("result, status, said", [("pass", 0, "Yes."), ("fail", 1, "No."), ("not_run", 2, "No answer.")])
def test_each_answer_has_its_exit_status(result, status, said, monkeypatch, capsys):
    gate = {"old": "deb-44.0", "new": "deb-56.1", "result": result, "reasons": ["1 cells have no model: a"], "worse": [],
            "better": [], "symbols": [], "facts": [], "negotiation": [], "x_turning": [],
            "x_unmodelled": [{"id": "a", "was": "full", "is": "unmodelled", "detail": "method A"}]}
    summary = {"unexpected": 0, "fixed": 0, "not_run": 0, "expected": 2, "unmodelled": 1, "distinct_traces": 1, "wall_s": 1}
    monkeypatch.setattr(command.run, "execute", lambda *_arguments: ({"gate": gate, "summary": summary}, True))
    monkeypatch.setattr(command.headers, "findings", lambda *_names: [])
    parser = argparse.ArgumentParser()
    command.register(parser.add_subparsers())
    arguments = parser.parse_args(["gate", "--old", "deb-44.0", "--new", "deb-56.1"])
    assert command._handle(arguments, []) == status
    told = capsys.readouterr().out
    assert f"May deb-56.1 replace deb-44.0? {said}" in told
    assert "without a model: not compared (1)\n  a: full → unmodelled (method A)" in told


@pytest.mark.parametrize("kernels, message", [
    ("", "names no kernel"), (",,", "names no kernel"), (" , ", "names no kernel"), ("nope", "unknown kernel 'nope'"),
    ("debian-6.1.192,nope", "unknown kernel 'nope'"), ("linux-6.1", "'linux-6.1' is no kernel to run on")])
def test_no_kernel_is_no_yes(kernels, message):
    with pytest.raises(errors.UserError, match=message):
        command.cells_of("gate", kernels, "deb-44.0", "deb-56.1")


def test_a_plan_without_cells_to_compare_is_no_yes(monkeypatch):
    monkeypatch.setattr(command.plans, "load", lambda _name: [])
    with pytest.raises(errors.UserError, match="has no cell that could be compared on debian-6.1.192"):
        command.cells_of("gate", "debian-6.1.192", "deb-44.0", "deb-56.1")
