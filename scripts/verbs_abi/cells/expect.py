# SPDX-License-Identifier: BSD-2-Clause
"""From outcome to verdict: matrix/expectations/*.json.

    {"name": "no-ioctl", "order": 20, "rows": [
      {"overlays": ["no-ioctl"], "outcome": "degraded", "reason": "…", "link": "https://…"}]}

A row holds for a cell when each axis that it names does: userlands, kernels, providers, scenarios (lists of patterns,
or a range {"from": NAME, "to": NAME} in release order; a userland that is no release of the matrix is expected to be what
the release at or below its version is, and the expectation says so: userlands/releases.py), overlays (all of these
patterns are matched by the cell's; "exactly": true: and the cell has no others), takes_abi (false: the userland's provider does not take the ABI version
that an overlay tells, by matrix/negotiation), ioctl_mode (the userland is built with that IOCTL_MODE of rdma-core). The
rows of all files are tried by "order", then by file name, and the first that holds decides; a cell for which none holds
is expected to be full. A row may also say "rule", "errno" or "lost" (a list): then these must be right too. An overlay
with an errno for a step that the program never asked for (errno@CREATE_CQ=EIO where it asks for CQ.CREATE) is left out
of account, and the expectation says so. `"defect": true` marks a known defect, with a link to where it is: when such a
cell comes to what would be expected without it, the verdict is "fixed".
"""

import dataclasses
import fnmatch
import functools
import re

from verbs_abi import matrix
from verbs_abi.cells import ids, negotiation
from verbs_abi.errors import nearest
from verbs_abi.userlands import built, releases

DEFAULT = {"outcome": "full", "reason": "no expectation names this cell, so that nothing should be missing in it"}


def _check_names(entry):
    """A range runs between names that there are, and a pattern is one of some name: else its row never holds."""
    for index, row in enumerate(entry.data["rows"]):
        for axis in ("userlands", "kernels", "providers", "scenarios", "overlays"):
            wanted = row.get(axis, [])
            named = wanted.items() if isinstance(wanted, dict) else enumerate(wanted)
            for place, name in named:
                if not _is_known(axis, name, whole=isinstance(wanted, dict)):
                    raise matrix.MatrixError(
                        entry.path, f"/rows/{index}/{axis}/{place}", f"'{name}' is none of the {axis}",
                        "one of " + ", ".join(nearest(name, _order(axis)) or _order(axis)))


def _is_known(axis, name, whole):
    if whole:
        return name in _order(axis)
    if axis == "userlands":
        return True  # also those that are built or only here
    if axis == "overlays":
        name = re.split("[=@]", name)[0]  # its value or step may be anything
    return any(fnmatch.fnmatchcase(known, name) for known in _order(axis))


@functools.cache
def _rows():
    entries = sorted(matrix.load("expectations").values(), key=lambda entry: (entry.data.get("order", 50), entry.name))
    for entry in entries:
        _check_names(entry)
    return [(entry.name, row) for entry in entries for row in entry.data["rows"]]


@functools.cache
def _order(axis):
    if axis == "kernels":
        return list(ids.kernels())
    # Of userlands the matrix's own: what is registered here stands in no order.
    return list(ids.SCENARIOS) if axis == "scenarios" else matrix.shipped(axis)


def check():
    """MatrixError when a file of the expectations is broken."""
    _rows()


def _matches(axis, wanted, name):
    if isinstance(wanted, dict):
        order = _order(axis)
        if name not in order:
            return False
        place = order.index(name)
        first = order.index(wanted["from"]) if "from" in wanted else 0
        last = order.index(wanted["to"]) if "to" in wanted else len(order) - 1
        return first <= place <= last
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted)


@functools.cache
def _ioctl_mode(userland):
    return "both" if built.is_name(userland) else matrix.get("userlands", userland).data.get("ioctl_mode", "both")


def _holds(row, cell, release):
    if "userlands" in row and not any(_matches("userlands", row["userlands"], name) for name in {cell.userland, release}):
        return False
    for axis, value in (("kernels", cell.kernel), ("scenarios", cell.scenario)):
        if axis in row and not _matches(axis, row[axis], value):
            return False
    if "providers" in row and not any(_matches("providers", row["providers"], name) for name in cell.drivers):
        return False
    wanted = row.get("overlays", [])
    if any(not fnmatch.filter(cell.overlays, pattern) for pattern in wanted):
        return False
    if "ioctl_mode" in row and row["ioctl_mode"] != _ioctl_mode(cell.userland):
        return False
    if "takes_abi" in row and row["takes_abi"] != negotiation.takes_told_abi(cell):
        return False
    return not row.get("exactly") or all(any(fnmatch.fnmatchcase(text, pattern) for pattern in wanted)
                                         for text in cell.overlays)


def expectation(cell, release=None, defects=True):
    """(name of the file, row) that decides for this cell; (None, DEFAULT): no row holds. release: held to this one;
    defects: False: what would hold if the known defects were mended."""
    release = release or releases.of(cell.userland) or cell.userland
    for name, row in _rows():
        if (defects or not row.get("defect")) and _holds(row, cell, release):
            return name, row
    return None, DEFAULT


_ERRNO = re.compile(r"(?P<fault>errno(?:-once)?)@(?P<step>[^=]+)=(?P<errno>.+)")
_MAPPING = re.compile(r"(?P<fault>mmap)-fails=(?P<step>.+)")


def idle(cell, records):
    """The overlays that make a step or mapping fail which the cell's program never asked for, by its trace: as if they were
    not there."""
    met = {(record["fault"], step) for record in records if "fault" in record
           for name, errno in ((record.get(key), record.get("errno")) for key in ("name", "inner")) if name
           for step in (f"{name}={errno}", name.removeprefix("mmap:"))}

    def wanted(text):
        told = _ERRNO.fullmatch(text)
        if told:
            return told["fault"], f"{told['step']}={told['errno']}"
        told = _MAPPING.fullmatch(text)
        return told and (told["fault"], told["step"])

    return tuple(text for text in cell.overlays if wanted(text) and wanted(text) not in met)


def verdict(cell, outcome, without=()):
    """(verdict, expectation as results.json holds it) of an Outcome; without: overlays that met nothing (idle())."""
    cell = dataclasses.replace(cell, overlays=tuple(text for text in cell.overlays if text not in without))
    release = releases.of(cell.userland)
    found = _held(cell, outcome, without, release)
    newer = releases.above(cell.userland) if found[0] != "expected" else None
    if newer:
        other = _held(cell, outcome, without, newer)
        found = other if other[0] == "expected" else found
    return found


def _outcomes(row):
    return row["outcome"] if isinstance(row["outcome"], list) else [row["outcome"]]


def _held(cell, outcome, without, release):
    """The verdict when the cell's userland is taken for this release."""
    name, row = expectation(cell, release)
    told = {"outcome": _outcomes(row)[0], "reason": row["reason"]}
    if name:
        told["name"] = name
    if release not in (None, cell.userland) and ("userlands" in row or release != releases.of(cell.userland)):
        told["reason"] = f"As {release}: {row['reason']}"
    if without:
        told["reason"] += f"; what {', '.join(without)} makes fail is never asked for here"
    if row.get("link"):
        told["link"] = row["link"]
    if _is_as(row, outcome):
        return "expected", told
    if row.get("defect") and _is_as(expectation(cell, release, defects=False)[1], outcome):
        return "fixed", told
    return "unexpected", told


def _is_as(row, outcome):
    """Is the Outcome what the row says? What the fake kernel does not model is never as expected."""
    return (outcome.outcome != "unmodelled" and outcome.outcome in _outcomes(row)
            and all(row[key] == getattr(outcome, key) for key in ("rule", "errno") if key in row)
            and ("lost" not in row or sorted(row["lost"]) == sorted(outcome.lost)))
