# SPDX-License-Identifier: BSD-2-Clause
"""Which cells two releases are compared by."""

from verbs_abi.cells import plans
from verbs_abi.gate import command


def test_both_releases_run_the_same_cells_but_no_tests_of_their_own():
    cells = command.cells_of("gate", "debian-6.12.117", "deb-44.0", "deb-56.1")
    old = {(cell.provider, cell.overlays, cell.scenario) for cell in cells if cell.userland == "deb-44.0"}
    new = {(cell.provider, cell.overlays, cell.scenario) for cell in cells if cell.userland == "deb-56.1"}
    assert old == new and len(cells) == len(old) + len(new)
    scenarios = {scenario for _, _, scenario in old}
    assert "diags" in scenarios and "pyverbs" not in scenarios
    assert any(cell.scenario == "pyverbs" for cell in plans.load("gate")), "run --plan gate has them"
