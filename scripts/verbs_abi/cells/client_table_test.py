# SPDX-License-Identifier: BSD-2-Clause
"""The table of clients in docs/clients.md says what the baselines say, and every cell of it can be run."""

import pytest

from verbs_abi import matrix
from verbs_abi.cells import baselines, client_table, clients, ids


def test_the_page_holds_what_the_baselines_say():
    text = client_table.PAGE.read_text(encoding="utf-8")
    assert text == client_table.page(text), "cd scripts && python3 -m verbs_abi.cells.client_table"


@pytest.mark.parametrize("name", matrix.names("baselines"))
def test_a_baseline_is_of_a_client_with_these_tests(name):
    scenario, _, userland = name.partition(".")
    assert clients.is_client(scenario)
    ids.check_userland(userland)
    wanted = {test["name"] for test in clients.get(scenario).data.get("tests", [])}
    for world, data in matrix.get("baselines", name).data["worlds"].items():
        ids.devices(world)
        assert not wanted or set(data["tests"]) == wanted, world


def test_a_field_counts_and_gives_reasons(monkeypatch):
    letters = {"perfquery": "s", "ibstat": "p", "ibv_devices": "p", "rdma-dev": "f"}
    monkeypatch.setattr(baselines, "of_cell", lambda cell: letters)
    notes = ["another"]
    text = client_table.field("diags", "deb-44.0", "mlx5,link=roce", "debian-6.12.117", notes)
    assert text == "2 of 4, 1 failed (2)" and "QP0" in notes[1]
    monkeypatch.setattr(baselines, "of_cell", lambda cell: {})
    assert client_table.field("diags", "deb-44.0", "rxe", "linux-4.4", notes) == "–"


def test_the_list_of_what_pyverbs_skips_is_whole():
    """The page's second table: its columns come to what the baseline says is skipped."""
    text = client_table.PAGE.read_text(encoding="utf-8").split("| tests | RoCE | IB | why | on a real one |\n")[1]
    rows = [line.split("|") for line in text.split("\n\n")[0].splitlines()[1:]]
    for column, world in ((2, "mlx5,link=roce"), (3, "mlx5")):
        cell = ids.Cell("deb-44.0", "debian-6.12.117", ids.devices(world), (), "pyverbs")
        skipped = sum(letter == "s" for letter in baselines.of_cell(cell).values())
        assert sum(int(row[column]) for row in rows) == skipped, world
