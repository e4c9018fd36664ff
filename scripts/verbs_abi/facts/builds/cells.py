# SPDX-License-Identifier: BSD-2-Clause
"""What a plan builds, as rows of results.json, and the cells that run what was built.

    "gate": [{"sources": "*", "headers": ["own", "nearest"],
              "run": {"providers": ["mlx5", "rxe"], "scenarios": ["journey", "conformance"]}}]

Which cells there are is known only after the builds: a pair without libibverbs, or without the library of a provider,
runs nothing there; its row of the builds says why.
"""

from verbs_abi import matrix
from verbs_abi.cells import ids
from verbs_abi.facts.builds import layout, plan, run
from verbs_abi.userlands import built


def of_plan(name, progress, jobs=None, only=None):
    """(rows, cells) of a plan, or of `only` these of its userlands; both empty when it builds nothing."""
    groups = plan.groups_of(name)
    wanted = [pair for pair in plan.pairs(groups) if only is None or built.name_of(*pair) in only]
    if not wanted:
        return [], []
    pairs = {}

    def done(pair, told):
        pairs[(pair.source, pair.headers)] = pair
        bad = sum(1 for row in told if row["verdict"] == "unexpected")
        if bad:
            progress.note(f"{pair.source} + {pair.headers}: {bad} libraries unexpected")

    rows = run.build_all(wanted, progress, jobs=jobs, done=done, keep_going=True)
    cells = {}
    for group in groups:
        for wanted_pair in plan.pairs([group]):
            if wanted_pair in pairs:
                for cell in cells_of(pairs[wanted_pair], group.get("run")):
                    cells.setdefault(cell.id, cell)
    return rows, list(cells.values())


def cells_of(pair, how):
    """The cells of one pair: the kernel of its headers and its neighbours, where libibverbs and the provider build.

    how: {"providers": […], "scenarios": […]}, or None: it is not run.
    """
    there = {library.name for library in pair.libraries if library.file}
    if not how or "libibverbs" not in there:
        return
    name = built.name_of(pair.source, pair.headers)
    data = matrix.get("sources", pair.source).data
    for kernel in layout.kernels_near(pair.headers, data["kernels"]):
        for provider in how["providers"]:
            devices = tuple(ids.Device.parse(part) for part in provider.split("+"))
            if any(f"lib{device.provider}" not in there for device in devices):
                continue
            for scenario in how.get("scenarios", [ids.USUAL]):
                yield ids.Cell(name, kernel, devices, (), scenario)
