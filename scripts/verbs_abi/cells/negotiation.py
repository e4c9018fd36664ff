# SPDX-License-Identifier: BSD-2-Clause
"""Who takes which device: scenarios that list devices and open none (harness/cells/negotiate).

negotiate   the devices of the cell's world, as they are: full when a provider of the userland takes each
abi-sweep   one device for each ABI version of SWEEP: full when the provider takes those, and warns of the others as
            often, as its source says (matrix/negotiation/USERLAND.json, made by userlands/ranges.py)

Programs that open a device tell of the list that they took it from, too: `hold` judges that by the same facts.
"""

import dataclasses
import functools
import re

from verbs_abi import matrix, paths
from verbs_abi.cells import features, outcome, trace
from verbs_abi.errors import UserError
from verbs_abi.userlands import built, ranges, releases

NEGOTIATE, SWEEP_SCENARIO = "negotiate", "abi-sweep"
SCENARIOS = (NEGOTIATE, SWEEP_SCENARIO)
PROGRAM = "negotiate"

# Around the versions that ever were, and where a signed number ends.
SWEEP = (*range(11), 2**31 - 1, 2**31, 2**32 - 1)
# What a provider takes, among a sweep's features.
TAKEN = "ABI "

# libibverbs/init.c: match_device
WARNING = re.compile(r"^libibverbs: Warning: Driver (?P<provider>\S+) does not support the kernel ABI of (?P<abi>\d+) "
                     r"\(supports (?P<min>\d+) to (?P<max>\d+)\) for device \S*/(?P<device>[^/\s]+)$", re.M)
STRANGER = "there is a device {}, which this world has not"
# RDMA_NODE_RNIC, RDMA_NODE_UNSPECIFIED: enum ibv_transport_type (libibverbs/init.c: try_driver); others are InfiniBand.
TRANSPORTS = {4: 1, 7: 4}


def widened(cell):
    """The cell whose world is made: for a sweep, one device of the provider for each version."""
    if cell.scenario != SWEEP_SCENARIO:
        return cell
    device = cell.devices[0]
    prefix = matrix.get("providers", device.provider).data["device_prefix"]
    names = [f"{prefix}{index}" for index in range(len(SWEEP))]
    devices = tuple(dataclasses.replace(device, name=name) for name in names)
    overlays = tuple(f"provider-abi@{name}={version}" for name, version in zip(names, SWEEP))
    return dataclasses.replace(cell, devices=devices, overlays=(*cell.overlays, *overlays))


@functools.cache
def _of_tree(path):
    try:
        return ranges.of_source(path)
    except (OSError, UserError):
        return {}  # a tree that says it in another way: nobody has read it


def accepted(userland):
    """{provider: row} of matrix/negotiation, or of a source tree as it is; empty for a userland whose source nobody has
    read. What is built from a release's source has the release's ranges."""
    if built.is_name(userland):
        return _stored(releases.of(userland))
    table = _stored(userland)
    if not table and userland in matrix.names("userlands"):
        data = matrix.get("userlands", userland).data
        table = _of_tree(data["path"]) if data["kind"] == "source" else table
    return table


def _stored(release):
    path = paths.matrix_dir() / "negotiation" / f"{release}.json"
    return matrix.read_json(path)["providers"] if path.exists() else {}


_TOLD_ABI = re.compile(r"provider-abi(?:@(?P<device>[^=]+))?=(?P<abi>.*)")

# What matrix/overlays/provider-abi.json writes into sysfs reads as these (libibverbs/init.c: setup_sysfs_uverbs:
# strtoul of the text, 0 without one).
_READ_AS = {"missing": 0, "empty": 0, "garbage": 0, "unreadable": 0, "no-newline": 1}


def _told_abis(cell):
    """(device name or None for all, ABI version as libibverbs reads it, whether sysfs alone tells it) by overlays."""
    for told in filter(None, map(_TOLD_ABI.fullmatch, cell.overlays)):
        text = told["abi"]
        if text in _READ_AS:
            yield told["device"], _READ_AS[text], True
        elif text.isdecimal():
            yield told["device"], int(text), False


def takes_told_abi(cell):
    """Does the userland take every ABI version that the cell's overlays tell, by its source or by that of the release that
    it is expected to be like?"""
    table = accepted(cell.userland) or _stored(releases.of(cell.userland))
    for name, abi, _ in _told_abis(cell):
        for device in cell.devices:
            if name not in (None, device.name):
                continue
            rows = [table[library] for library in matrix.get("providers", device.provider).data["libraries"]
                    if library in table]
            if not any(row["min"] <= abi <= row["max"] for row in rows):
                return False
    return True


def _as_read(device, cell, route):
    """A device of the world with the ABI version that libibverbs reads: text in sysfs is none of the world's numbers."""
    for name, abi, only_sysfs in _told_abis(cell):
        if only_sysfs and route != "netlink" and name in (None, device["name"]):
            device = {**device, "abi": abi}
    return device


@dataclasses.dataclass(frozen=True)
class Expected:
    """What libibverbs does with one device, by its own source. provider: who takes it, or None."""

    provider: str | None
    library: str | None
    warnings: int
    why: str


def expected(device, table, route):
    """The Expected of one device of the world (a row of vabi-world's answer).

    route: "netlink" tells the driver's id; "netlink+sysfs" and "sysfs" do not, and need a parent for PCI ids.
    """
    known = matrix.get("providers", device["driver"]).data["libraries"]
    warnings, reasons = 0, []
    for library, kinds in known.items():
        row = table.get(library)
        if row is None:
            reasons.append(f"the release has no provider {library}")
            continue
        usable = [kind for kind in kinds if kind in row["by"] and (kind != "driver_id" or route == "netlink")]
        if not usable:
            reasons.append(f"{library} knows it by {', '.join(kinds)} only")
            continue
        if row["min"] <= device["abi"] <= row["max"]:
            return Expected(row["name"], library, warnings, f"{row['min']} to {row['max']} ({row['where']})")
        # try_drivers asks those that match by driver id first, then all of them again.
        warnings += 2 if "driver_id" in usable else 1
        reasons.append(f"{row['min']} to {row['max']} ({row['where']})")
    return Expected(None, None, warnings, "; ".join(reasons))


def found_of(text):
    """({device: row}, the row with the count, or None) of the program's report."""
    devices, count = {}, None
    for row in outcome.rows_of(text):
        if "device" in row:
            devices[row["device"]] = row
        elif "count" in row:
            count = row
    return devices, count


def _wrong(device, row):
    """What the library tells otherwise than the kernel showed it, or None."""
    transport = TRANSPORTS.get(device["node_type"], 0)
    for key, want in (("node", device["node"]), ("guid", f"{device['node_guid']:016x}"),
                      ("node_type", device["node_type"]), ("transport", transport)):
        if row[key] != want:
            return f"{key} is {row[key]}, the kernel showed {want}"
    return None


def _check(device, row, warned, want):
    """(result, message) of one device against what the library's source says."""
    told = f"ABI {device['abi']}: "
    if row is not None:
        wrong = _wrong(device, row)
        if wrong:
            return "failed", told + wrong
        if want.provider is None:
            return "failed", f"{told}taken by {row['provider']}; its source says no: {want.why}"
        if row["provider"] != want.provider or not row["library"].startswith(f"lib{want.library}"):
            return "failed", f"{told}taken by {row['provider']} ({row['library']}), not by {want.provider}"
    elif want.provider is not None:
        return "failed", f"{told}not taken; {want.provider} accepts {want.why}"
    if len(warned) != want.warnings:
        return "failed", f"{told}{len(warned)} warnings instead of {want.warnings}"
    return "passed", told + (f"taken by {row['provider']} ({row['library']})" if row is not None
                             else f"not taken, {len(warned)} warnings; {want.why}")


def judge(cell, ended, records, told):
    """The Outcome of a negotiation; told: what vabi-world said of the world."""
    route = features.discovery(records)
    result = outcome.Outcome("broken", discovery=route, trace_digest=trace.digest(records))
    found, count = found_of(ended.stdout)
    if ended.limit or ended.signal:
        result.message = ended.limit or f"crashed: {ended.signal_name}"
        return result
    messages = [line for line in ended.stderr.splitlines() if line.startswith("libibverbs: ")]
    if count is None or count["count"] < 0:
        result.errno = count and (count["errno"] or None)
        result.message = (messages or ["no list of devices"])[0]
        result.outcome, result.by = ("refused", "libibverbs") if messages or result.errno else ("broken", None)
        return result
    for device, row, verdict, message in _held(cell, ended, route, told, found):
        result.tests.append({"name": device["name"], "result": verdict, "message": message})
        if row is None:
            result.lost.append(f"device {device['name']}")
        else:
            result.features.append(f"{device['name']} by {row['provider']}")
    return _decide(result, cell, told, found, messages)


def _held(cell, ended, route, told, found):
    """(device of the world, its row or None, result, message) of each; takes the rows out of `found`."""
    warnings = list(WARNING.finditer(ended.stderr))
    table = accepted(cell.userland)
    plain = not [text for text in cell.overlays if not text.startswith(("no-netlink", "provider-abi"))]
    for device in (_as_read(device, cell, route) for device in told["devices"]):
        row = found.pop(device["name"], None)
        warned = [warning for warning in warnings if warning["device"] == device["name"]]
        if table and plain and _reaches(device, route):
            verdict, message = _check(device, row, warned, expected(device, table, route))
        elif row is not None:
            wrong = _wrong(device, row)
            verdict, message = ("failed", wrong) if wrong else ("passed", f"taken by {row['provider']} ({row['library']})")
        else:
            verdict, message = "skipped", f"not taken, {len(warned)} warnings"
        yield device, row, verdict, message


def hold(cell, ended, records, told, result):
    """Of a program that opens one of the devices that it lists: who takes each is a feature of its Outcome, and one that is
    taken or refused otherwise than the library's source says makes the cell broken, whatever came of it later."""
    found, count = found_of(ended.stdout)
    if count is None or count["count"] < 0:
        return  # it came to no list: the steps tell why
    wrong = []
    for device, row, verdict, message in _held(cell, ended, features.discovery(records), told, found):
        if row is not None:
            result.features.append(f"{device['name']} by {row['provider']}")
        if verdict == "failed":
            wrong.append(f"{device['name']}: {message}")
    wrong += [STRANGER.format(name) for name in found]
    if wrong:
        result.outcome, result.by, result.message = "broken", None, wrong[0]


def _reaches(device, route):
    """Can the device's node be found at all? On netlink without nodes a device needs a parent in sysfs."""
    return route != "netlink+sysfs" or device["pci"]


def _decide(result, cell, told, strangers, messages):
    failed = [row for row in result.tests if row["result"] == "failed"]
    if strangers:
        result.message = STRANGER.format(next(iter(strangers)))
    elif failed:
        result.message = f"{failed[0]['name']}: {failed[0]['message']}"
    elif cell.scenario == SWEEP_SCENARIO:
        result.outcome = "full"
        result.lost = []
        taken = [device["abi"] for device in told["devices"]
                 if any(text.startswith(f"{device['name']} by ") for text in result.features)]
        result.features = [f"{TAKEN}{version}" for version in taken]
        result.message = "accepted: " + (versions_text(taken) or "none")
    elif len(result.lost) == len(told["devices"]):
        result.outcome, result.by = "refused", "libibverbs"
        result.message = messages[0] if messages else result.tests[0]["message"]
    else:
        if result.discovery != "netlink":
            result.lost.append("netlink discovery")
            result.fallbacks.append({"lost": "netlink discovery", "instead": "sysfs for discovery", "rule": None,
                                     "errno": None, "command": None})
        result.outcome = "degraded" if result.lost else "full"
        result.message = "; ".join(result.lost) or None
    return result


def versions_taken(row):
    """The ABI versions that were taken in a sweep, of its row of results.json; empty of another scenario's."""
    if row.get("scenario") != SWEEP_SCENARIO:
        return set()
    return {int(text.removeprefix(TAKEN)) for text in row.get("features", ()) if text.startswith(TAKEN)}


def versions_text(versions):
    """"0 to 5, 8" of versions of SWEEP; empty of none."""
    parts, last = [], None
    for version in SWEEP:
        if version not in versions:
            last = None
        elif last is None:
            parts.append([version, version])
            last = version
        else:
            parts[-1][1] = last = version
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in parts)


def tell(result):
    """The cell device by device. Rows as steps.tell makes them."""
    return [{"stage": "discovery", "text": f"{row['name']}: {row['message']}", "by": "libibverbs"}
            for row in result.tests]
