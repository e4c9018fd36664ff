# SPDX-License-Identifier: BSD-2-Clause
"""Which cells a plan has: matrix/plans/NAME.json.

    {"name": "quick", "about": "…", "groups": [
      {"userlands": ["deb-44.0"], "kernels": "*", "providers": ["mlx5", "rxe"],
       "overlays": [[], ["no-ioctl"]], "scenarios": ["journey"]}]}

"absent": "once" keeps one absent cell of a userland, kernel and driver. "*" is everything on that axis; a list may hold patterns ("debian-*").
Patterns of userlands mean those of x86-64; one of another architecture has to be named. Cells that several groups name count once.
"""

import dataclasses
import fnmatch

from verbs_abi import matrix, userlands as known_userlands
from verbs_abi.cells import ids, negotiation
from verbs_abi.errors import UserError, unknown
from verbs_abi.userlands import built

DEFAULT_USERLAND = "deb-44.0"
DEFAULT_PLAN = "quick"


def _pick(kind, wanted, names, shipped=None):
    """The names that the patterns match; of userlands that were registered here only those named in full."""
    patterns = [wanted] if isinstance(wanted, str) else list(wanted)
    picked = []
    for pattern in patterns:
        found = [pattern] if pattern in names else fnmatch.filter(shipped or names, pattern)
        if not found:
            raise unknown(kind, pattern, names)
        picked += [name for name in found if name not in picked]
    return picked


def _userlands(wanted):
    """Names that are built (src-44.0+headers=…) are taken as they are: no list holds them all."""
    patterns = [wanted] if isinstance(wanted, str) else list(wanted)
    picked = []
    for pattern in patterns:
        if built.is_name(pattern):
            ids.check_userland(pattern)
            picked.append(pattern)
        else:
            picked += _pick("userland", pattern, matrix.names("userlands"), known_userlands.usual(matrix.shipped("userlands")))
    return list(dict.fromkeys(picked))


def _providers(wanted):
    names = matrix.names("providers")
    if wanted == "*":
        return names
    return [wanted] if isinstance(wanted, str) else list(wanted)


def cells_of(group):
    """The cells of one group, in the order kernel, provider, overlay, scenario."""
    userlands = _userlands(group.get("userlands", [DEFAULT_USERLAND]))
    kernels = _pick("kernel", group.get("kernels", "*"), list(ids.kernels()))
    for userland in userlands:
        for kernel in kernels:
            for provider in _providers(group.get("providers", "*")):
                devices = ids.devices(provider)
                for overlays in group.get("overlays", [[]]):
                    ids.check_overlays(overlays)
                    for scenario in group.get("scenarios", [ids.USUAL]):
                        if scenario not in ids.SCENARIOS:
                            raise unknown("scenario", scenario, ids.SCENARIOS)
                        yield ids.Cell(userland, kernel, devices, tuple(overlays), scenario)


def load(name):
    """All cells of a plan, each once."""
    entry = matrix.get("plans", name)
    groups = entry.data.get("groups")
    if not isinstance(groups, list) or not groups:
        raise matrix.MatrixError(entry.path, "/groups", "is missing or empty", "a list of groups of cells")
    found = {}
    for index, group in enumerate(groups):
        try:
            for cell in cells_of(group):
                found.setdefault(cell.id, cell)
        except UserError as error:
            raise matrix.MatrixError(entry.path, f"/groups/{index}", error.what, "names that there are",
                                     hint=error.hint) from error
    return list(found.values())


def absent_once(name, rows):
    """The rows without further absent ones of a userland, kernel and driver, where the plan wants that ("absent": "once")."""
    if name is None or matrix.get("plans", name).data.get("absent") != "once":
        return rows
    seen, kept = set(), []
    for row in rows:
        if row["outcome"] == "absent":
            key = (row["userland"], row["kernel"], row["provider"].partition(",")[0])
            if key in seen:
                continue
            seen.add(key)
        kept.append(row)
    return kept


def select(cells, userlands=(), kernels=(), providers=(), overlays=(), scenarios=()):
    """The cells that hold one of each given axis."""
    def holds(cell):
        return ((not userlands or cell.userland in userlands) and (not kernels or cell.kernel in kernels)
                and (not providers or any(name in cell.drivers or name == cell.provider for name in providers))
                and (not overlays or any(text in cell.overlays for text in overlays))
                and (not scenarios or cell.scenario in scenarios))
    return [cell for cell in cells if holds(cell)]


def with_userlands(cells, userlands):
    """A plan's cells with other userlands: those of the userland that it names first, for each of these."""
    if not cells:
        return []
    mine = [cell for cell in cells if cell.userland == cells[0].userland]
    return [dataclasses.replace(cell, userland=name) for name in userlands for cell in mine]


def _opening():
    """The providers whose devices can be opened here; of the others only negotiation is modelled."""
    return [name for name, entry in matrix.load("providers").items() if entry.data.get("opens")]


def made(userlands, kernels, providers, devices, overlays, scenarios):
    """Cells that no plan holds: the product of what the command line names."""
    listing = scenarios and all(name in negotiation.SCENARIOS for name in scenarios)
    every = matrix.names("providers") if listing else _opening()
    group = {"userlands": list(userlands) or [DEFAULT_USERLAND], "kernels": list(kernels) or "*",
             "providers": ["+".join(devices)] if devices else list(providers) or every,
             "overlays": [list(overlays)], "scenarios": list(scenarios) or [ids.USUAL]}
    return list(cells_of(group))
