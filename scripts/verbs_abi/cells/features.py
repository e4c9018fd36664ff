# SPDX-License-Identifier: BSD-2-Clause
"""What a trace says about the way that was taken: the route, and what a fallback cost.

A row of LOSSES reads: when such a command was answered so, this feature is lost, and that is what the library does
instead. Sources are libibverbs' and the providers' own files.
"""

import dataclasses

# Errnos by which libibverbs learns that an ioctl cannot serve (libibverbs/cmd_fallback.c).
ABSENT = ("ENOTTY", "EPROTONOSUPPORT", "ENOSYS")


@dataclasses.dataclass(frozen=True)
class Loss:
    """name: exact trace name, or a prefix ending in *; errnos: answers that mean the loss."""

    name: str
    errnos: tuple
    feature: str
    instead: str
    source: str

    def holds(self, record):
        name = name_of(record)
        matches = name.startswith(self.name[:-1]) if self.name.endswith("*") else name == self.name
        return matches and record.get("errno") in self.errnos


# Methods by (object, method) that a kernel without them cannot name in its trace (rdma/ib_user_ioctl_cmds.h,
# rdma/mlx5_user_ioctl_cmds.h).
NAMES = {
    (0, 0): "DEVICE.INVOKE_WRITE", (0, 2): "DEVICE.QUERY_PORT", (0, 3): "DEVICE.GET_CONTEXT",
    (0, 4): "DEVICE.QUERY_CONTEXT", (0, 5): "DEVICE.QUERY_GID_TABLE", (0, 6): "DEVICE.QUERY_GID_ENTRY",
    (1, 0): "PD.DESTROY", (3, 0): "CQ.CREATE", (3, 1): "CQ.DESTROY", (4, 0): "QP.CREATE", (4, 1): "QP.DESTROY",
    (5, 0): "SRQ.CREATE", (5, 1): "SRQ.DESTROY", (6, 0): "AH.DESTROY", (7, 1): "MR.MR_DESTROY",
    (7, 2): "MR.ADVISE_MR", (7, 3): "MR.QUERY_MR", (8, 0): "MW.DESTROY", (9, 0): "FLOW.DESTROY",
    (10, 0): "XRCD.DESTROY", (11, 0): "RWQ_IND_TBL.DESTROY", (12, 0): "WQ.CREATE", (12, 1): "WQ.DESTROY",
    (14, 0): "DM.ALLOC", (15, 0): "COUNTERS.CREATE", (16, 0): "ASYNC_EVENT.ALLOC",
    (0x1000, 0x1000): "DEVX.OTHER", (0x1006, 0x1000): "VAR.OBJ_ALLOC", (0x1008, 0x1000): "UAR.OBJ_ALLOC",
}


def name_of(record):
    """The trace's name of a command, or the one that the newest headers have for its numbers."""
    name = record.get("name", "")
    if record.get("via") == "ioctl":
        return NAMES.get((record.get("object"), record.get("method")), name)
    return name


LOSSES = (
    Loss("ioctl 0x*", ("ENOTTY",), "ioctl", "write() for every command",
         "libibverbs/cmd_fallback.c: ENOTTY marks the whole context"),
    Loss("DEVICE.INVOKE_WRITE", ("ENOTTY",), "ioctl", "write() for every command",
         "libibverbs/cmd_fallback.c: ENOTTY marks the whole context"),
    Loss("DEVICE.INVOKE_WRITE", ("EPROTONOSUPPORT",), "invoke-write", "write() for commands without a method",
         "libibverbs/cmd_device.c: the probe at open"),
    Loss("GET_CHARDEV", ("EINVAL", "EOPNOTSUPP", "ENOENT"), "netlink device nodes", "sysfs for the device node",
         "libibverbs/ibdev_nl.c"),
    Loss("socket", ("EPROTONOSUPPORT", "EAFNOSUPPORT"), "netlink discovery", "sysfs for discovery",
         "libibverbs/init.c: find_sysfs_devs"),
    Loss("GET", ("EINVAL", "EOPNOTSUPP", "EPROTONOSUPPORT"), "netlink discovery", "sysfs for discovery",
         "libibverbs/init.c: find_sysfs_devs"),
    Loss("DEVX*", ABSENT, "DevX", "nothing", "providers/mlx5/verbs.c"),
    Loss("UAR.OBJ_ALLOC", ABSENT, "dynamic UAR", "the UARs of the context", "providers/mlx5/mlx5.c"),
)


def lost(records):
    """[(feature, instead, record)] in the order of the trace, each feature once."""
    found = {}
    for record in records:
        row = next((row for row in LOSSES if row.holds(record)), None)
        if row is not None:
            found.setdefault(row.feature, (row.instead, record))
        elif record.get("via") == "ioctl" and record.get("errno") in ABSENT and "fault" not in record:
            name = name_of(record)
            if not _went_on_by_ioctl(records, name):
                found.setdefault(f"method {name}", ("its older form", record))
    if discovery(records) == "sysfs" and records:
        found.setdefault("netlink discovery", ("sysfs for discovery", {}))
    for name, before, after in _shortened(records):
        same = before.get("uhw_in") == after.get("uhw_in")
        found.setdefault(f"{name}: full request", ("one with other flags" if same else "a shorter one", before))
    return [(feature, instead, record) for feature, (instead, record) in found.items()]


def _went_on_by_ioctl(records, name):
    return any(record.get("name") == name and record.get("via") == "ioctl" and record.get("result", -1) >= 0
               for record in records)


def _shortened(records):
    """Commands whose driver request was refused and then taken with another length or other flags."""
    refused = {}
    for record in records:
        name = record.get("inner") or record.get("name")
        if name not in ("GET_CONTEXT", "DEVICE.GET_CONTEXT"):
            continue
        if record.get("result", 0) < 0 and record.get("errno") == "EINVAL":
            refused.setdefault(name, record)
        elif record.get("result", -1) >= 0 and name in refused:
            before = refused.pop(name)
            if (before.get("uhw_in"), before.get("flags")) != (record.get("uhw_in"), record.get("flags")):
                yield name, before, record


def route(records):
    """"ioctl", "ioctl+write", "invoke-write", "write", or None when no command came through."""
    ways = set()
    for record in records:
        if record.get("result", -1) < 0 or record.get("via") not in ("ioctl", "write", "write_ex"):
            continue
        name = record.get("name", "")
        if name == "POST_SEND":
            continue  # the doorbell of rxe and siw, whatever the route
        if record["via"] != "ioctl":
            ways.add("write")
        elif name == "DEVICE.INVOKE_WRITE":
            ways.add("invoke-write")
        else:
            ways.add("ioctl")
    if not ways:
        return None
    if "write" not in ways:
        return "ioctl" if "ioctl" in ways else "invoke-write"
    return "write" if ways == {"write"} else "ioctl+write"


def discovery(records):
    """"netlink", "netlink+sysfs" or "sysfs": how the device was found."""
    answered = {record.get("name") for record in records
                if record.get("via") == "netlink" and record.get("result", -1) >= 0}
    if "GET_CHARDEV" in answered:
        return "netlink"
    return "netlink+sysfs" if "GET" in answered else "sysfs"
