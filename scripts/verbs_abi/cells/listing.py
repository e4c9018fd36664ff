# SPDX-License-Identifier: BSD-2-Clause
"""`verbs-abi list cells` and `list scenarios`."""

from verbs_abi import userlands
from verbs_abi.cells import ids, plans


def add_arguments(parser):
    """Which cells to list: the arguments that `run` takes to choose them."""
    group = parser.add_argument_group("cells")
    group.add_argument("--plan", help=f"of this plan; default: {plans.DEFAULT_PLAN}")
    for name in ("userland", "kernel", "provider", "overlay", "scenario"):
        group.add_argument(f"--{name}", action="append", default=[],
                           help=f"only with this {name}; may be repeated")


def rows(arguments):
    """(columns, rows) of the cells that a run with these arguments would run."""
    arguments.userland = [userlands.resolve(text) for text in arguments.userland]
    ids.check_names(arguments)
    named = (arguments.userland, arguments.kernel, arguments.provider, arguments.overlay,
             arguments.scenario)
    cells = plans.select(plans.load(arguments.plan or plans.DEFAULT_PLAN), *named)
    if not cells and any(named) and not arguments.plan:
        cells = plans.made(arguments.userland, arguments.kernel, arguments.provider, (),
                           arguments.overlay, arguments.scenario)
    return ("id",), [
        {"id": cell.id, "userland": cell.userland, "kernel": cell.kernel,
         "provider": cell.provider, "overlays": list(cell.overlays), "scenario": cell.scenario}
        for cell in cells
    ]


def scenarios(_arguments):
    """(columns, rows) of what can be run in a cell."""
    return ("name", "about"), [{"name": name, "about": text} for name, text in ids.SCENARIOS.items()]
