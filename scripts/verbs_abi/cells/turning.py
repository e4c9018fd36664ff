# SPDX-License-Identifier: BSD-2-Clause
"""Where along the userlands or the kernels something begins to work, or ceases to."""

from verbs_abi.reports import model

GOOD = ("full", "degraded")
BAD = ("refused", "broken")


def _state(row):
    if row["outcome"] in GOOD:
        return "good"
    return "bad" if row["outcome"] in BAD else None


def turning_points(rows, axis, order):
    """Rows {"cell", "axis", "first": "good" | "bad", "at", "was", "is", "after"} for each scenario that turns.

    axis: "userland" or "kernel"; order: its names from the oldest to the newest. Cells that say nothing (absent,
    unmodelled, not run) are passed over. "cell" is the scenario's name with * in the axis' place.
    """
    places = {name: index for index, name in enumerate(order)}
    lines = {}
    for row in rows:
        if row[axis] in places and _state(row):
            lines.setdefault(_key(row, axis), []).append(row)
    for key, cells in lines.items():
        cells.sort(key=lambda row: places[row[axis]])
        for before, after in zip(cells, cells[1:]):
            if _state(before) != _state(after):
                yield {"cell": key, "axis": axis, "first": _state(after), "at": after[axis], "was": before["outcome"],
                       "is": after["outcome"], "after": before[axis]}


def _key(row, axis):
    plain = model.plain_id({**row, axis: "*"})
    return plain + (f"@{row['scenario']}" if row.get("scenario") else "")


def sentence(one):
    """"first bad" or "first good" in words."""
    return f"{one['cell']}: first {one['first']} is {one['at']} ({one['is']}; {one['after']}: {one['was']})"


def grouped(points):
    """{(axis, first, at, after, was, is): [cells]}: what turns at one place together."""
    found = {}
    for one in points:
        key = (one["axis"], one["first"], one["at"], one["after"], one["was"], one["is"])
        found.setdefault(key, []).append(one["cell"])
    return found
