# SPDX-License-Identifier: BSD-2-Clause
"""Which cells two releases are compared by."""

from verbs_abi import matrix
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
