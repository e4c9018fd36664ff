# SPDX-License-Identifier: BSD-2-Clause
import json

import pytest

from verbs_abi.cells import ids, negotiation, outcome, runner

# As matrix/negotiation has them, with numbers of the test's own.
TABLE = {
    "efa": {"name": "efa", "min": 1, "max": 2, "by": ["driver_id", "pci"], "where": "efa.c:1"},
    "siw": {"name": "siw", "min": 1, "max": 1, "by": ["driver_id"], "where": "siw.c:1"},
    "hns": {"name": "hns", "min": 0, "max": 2**31 - 1, "by": ["pci"], "where": "hns.c:1"},
    "vmw_pvrdma": {"name": "pvrdma", "min": 3, "max": 3, "by": ["driver_id", "pci"], "where": "pvrdma.c:1"},
}


def device(driver="efa", abi=1, name="efa_0", **more):
    return {"driver": driver, "abi": abi, "name": name, "node": "uverbs0", "node_guid": 0x0200C0FFFE000100,
            "node_type": 7, "pci": True, **more}


def found(name="efa_0", provider="efa", library="libefa-rdmav34.so", **more):
    return {"device": name, "node": "uverbs0", "provider": provider, "library": library, "node_type": 7, "transport": 4,
            "guid": "0200c0fffe000100", **more}


def warning(name="efa_0", provider="efa", abi=9):
    return (f"libibverbs: Warning: Driver {provider} does not support the kernel ABI of {abi} (supports 1 to 2) for "
            f"device /sys/class/infiniband/{name}\n")


def ended(*rows, count=None, stderr="", status=0, signal=None, limit=None):
    count = len(rows) if count is None else count
    text = "".join(json.dumps(row) + "\n" for row in (*rows, {"count": count}))
    return runner.Ended(status=status, signal=signal, limit=limit, stdout=text, stderr=stderr, seconds=0.1)


NETLINK = [{"via": "netlink", "name": "GET", "result": 0}, {"via": "netlink", "name": "GET_CHARDEV", "result": 0}]
CELL = ids.Cell("deb-44.0", "debian-6.12.117", (ids.Device("efa"),), (), "negotiate")
SWEEP = ids.Cell("deb-44.0", "debian-6.12.117", (ids.Device("efa"),), (), "abi-sweep")


@pytest.fixture(autouse=True)
def _table(monkeypatch):
    monkeypatch.setattr(negotiation, "accepted", lambda _userland: TABLE)


# libibverbs/init.c (44.0): try_drivers asks drivers that match by id first and then all of them again.
@pytest.mark.parametrize("what, route, provider, warnings", [
    (device(abi=1), "netlink", "efa", 0),
    (device(abi=2), "sysfs", "efa", 0),
    (device(abi=3), "netlink", None, 2),
    (device(abi=3), "sysfs", None, 1),
    (device("siw", 1), "netlink", "siw", 0),
    (device("siw", 9), "netlink", None, 2),
    (device("siw", 1), "sysfs", None, 0),
    (device("hns", 2**31 - 1), "netlink", "hns", 0),
    (device("hns", 2**31), "netlink", None, 1),
    (device("vmw_pvrdma", 3), "sysfs", "pvrdma", 0),
    (device("ionic", 1), "netlink", None, 0),
])
def test_what_the_source_says(what, route, provider, warnings):
    want = negotiation.expected(what, TABLE, route)
    assert (want.provider, want.warnings) == (provider, warnings)


# The table's ranges: efa 1 to 2, hns any, vmw_pvrdma 3 alone.
@pytest.mark.parametrize("driver, overlays, taken", [
    ("efa", (), True), ("efa", ("provider-abi=2",), True), ("efa", ("provider-abi=3",), False),
    ("efa", ("provider-abi=0",), False), ("efa", ("provider-abi@efa_0=9",), False), ("efa", ("provider-abi@rxe0=9",), True),
    ("efa", ("no-netlink", "provider-abi=empty"), False), ("hns", ("no-netlink", "provider-abi=empty"), True),
    ("efa", ("provider-abi=no-newline",), True), ("vmw_pvrdma", ("provider-abi=no-newline",), False),
    ("hns", (f"provider-abi={2**31}",), False)])
def test_a_told_abi_is_taken_as_the_source_says(driver, overlays, taken):
    device = ids.Device(driver, name="efa_0")
    assert negotiation.takes_told_abi(ids.Cell("deb-44.0", "debian-6.12.117", (device,), overlays, "negotiate")) == taken


@pytest.mark.parametrize("records, warned", [(NETLINK, 2), ([], 1)])
def test_text_in_sysfs_counts_where_sysfs_is_read(records, warned):
    cell = ids.Cell("deb-44.0", "debian-6.12.117", (ids.Device("efa"),), ("provider-abi=empty",), "negotiate")
    taken = negotiation.judge(cell, ended(found()), records, {"devices": [device()]})
    refused = negotiation.judge(cell, ended(stderr=warning(abi=0) * warned), records, {"devices": [device()]})
    assert (taken.outcome, refused.outcome) == (("full", "broken") if records else ("broken", "refused"))


def test_full_when_every_device_is_taken():
    result = negotiation.judge(CELL, ended(found()), NETLINK, {"devices": [device()]})
    assert (result.outcome, result.lost) == ("full", [])
    assert result.features == ["efa_0 by efa"]


def test_degraded_without_netlink():
    result = negotiation.judge(CELL, ended(found()), [], {"devices": [device()]})
    assert (result.outcome, result.lost) == ("degraded", ["netlink discovery"])


def test_refused_with_the_librarys_own_words():
    result = negotiation.judge(CELL, ended(stderr=warning() * 2), NETLINK, {"devices": [device(abi=9)]})
    assert result.outcome == "refused" and "supports 1 to 2" in result.message


@pytest.mark.parametrize("rows, stderr, devices, message", [
    # taken although its source says no, and the reverse
    ([found()], "", [device(abi=9)], "its source says no"),
    ([], "", [device()], "not taken; efa accepts 1 to 2 (efa.c:1)"),
    # warned of too rarely, too often
    ([], warning(), [device(abi=9)], "1 warnings instead of 2"),
    ([found()], warning(abi=1), [device()], "1 warnings instead of 0"),
    # another provider, another plug-in
    ([found(provider="mlx5", library="libmlx5.so.1")], "", [device()], "not by efa"),
    ([found(library="libmlx5.so.1")], "", [device()], "not by efa"),
    # told otherwise than the kernel showed it
    ([found(node="uverbs1")], "", [device()], "node is uverbs1, the kernel showed uverbs0"),
    ([found(guid="0")], "", [device()], "guid is 0"),
    ([found(node_type=1)], "", [device()], "node_type is 1"),
    ([found(transport=0)], "", [device()], "transport is 0"),
    ([found(), found("efa_9")], "", [device()], "there is a device efa_9"),
])
@pytest.mark.parametrize("cell", [CELL, SWEEP])
def test_broken_when_it_differs(cell, rows, stderr, devices, message):
    result = negotiation.judge(cell, ended(*rows, stderr=stderr), NETLINK, {"devices": devices})
    assert result.outcome == "broken" and message in result.message


def test_broken_by_a_crash_or_a_hang():
    for end in (ended(signal=11, status=None), ended(limit="time", status=None)):
        assert negotiation.judge(CELL, end, NETLINK, {"devices": [device()]}).outcome == "broken"


def test_no_list_at_all_is_refused():
    end = runner.Ended(3, None, None, '{"count": -1, "errno": "ENOSYS"}\n', "libibverbs: Fatal: kernel ABI version 7\n", 0.1)
    result = negotiation.judge(CELL, end, [], {"devices": [device()]})
    assert (result.outcome, result.errno) == ("refused", "ENOSYS")


def test_a_sweep_tells_the_range():
    devices = [device(abi=abi, name=f"efa_{index}") for index, abi in enumerate(negotiation.SWEEP)]
    rows = [found(name=one["name"]) for one in devices if 1 <= one["abi"] <= 2]
    stderr = "".join(warning(one["name"], abi=one["abi"]) * 2 for one in devices if not 1 <= one["abi"] <= 2)
    result = negotiation.judge(SWEEP, ended(*rows, stderr=stderr), NETLINK, {"devices": devices})
    assert (result.outcome, result.message, result.features) == ("full", "accepted: 1 to 2", ["ABI 1", "ABI 2"])
    row = {"scenario": SWEEP.scenario, "features": result.features}
    assert negotiation.versions_taken(row) == {1, 2}
    assert negotiation.versions_taken({**row, "scenario": "negotiate"}) == set()


def test_a_sweep_has_a_device_for_each_version():
    cell = negotiation.widened(SWEEP)
    assert len(cell.devices) == len(negotiation.SWEEP) == 14
    assert cell.devices[13].name == "efa_13" and cell.overlays[13] == f"provider-abi@efa_13={2**32 - 1}"
    assert negotiation.widened(CELL) is CELL


CONTROL = ids.Cell("deb-44.0", "debian-6.12.117", (ids.Device("efa"),), (), "control")


def opened(*rows, devices=(device(),), **more):
    """The Outcome of a program that opened a device and went well, after its list was held to the facts."""
    result = outcome.Outcome("full", features=["open_device"])
    negotiation.hold(CONTROL, ended(*rows, **more), NETLINK, {"devices": list(devices)}, result)
    return result


def test_a_program_that_opens_a_device_tells_who_took_it():
    result = opened(found())
    assert (result.outcome, result.features) == ("full", ["open_device", "efa_0 by efa"])


@pytest.mark.parametrize("rows, more, message", [
    ([found(provider="mlx5", library="libmlx5.so.1")], {}, "not by efa"),
    ([found()], {"devices": [device(abi=9)]}, "its source says no"),
    ([found()], {"stderr": warning(abi=1)}, "1 warnings instead of 0"),
    ([found(node="uverbs1")], {}, "node is uverbs1, the kernel showed uverbs0"),
    ([found(), found("efa_9")], {}, "there is a device efa_9, which this world has not"),
])
def test_a_list_that_differs_breaks_what_went_well(rows, more, message):
    result = opened(*rows, **more)
    assert (result.outcome, result.by) == ("broken", None) and message in result.message


def test_a_program_that_came_to_no_list_is_left_to_its_steps():
    result = outcome.Outcome("refused", message="device_list: ENOSYS")
    end = runner.Ended(1, None, None, '{"step": "device_list", "ok": false}\n', "", 0.1)
    negotiation.hold(CONTROL, end, NETLINK, {"devices": [device()]}, result)
    assert (result.outcome, result.message, result.features) == ("refused", "device_list: ENOSYS", [])
