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
        name = record.get("name", "")
        matches = name.startswith(self.name[:-1]) if self.name.endswith("*") else name == self.name
        return matches and record.get("errno") in self.errnos


LOSSES = (
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
            name = record.get("name", "")
            if not _went_on_by_ioctl(records, name):
                found.setdefault(f"method {name}", ("write() or INVOKE_WRITE for it", record))
    for name, before in _shortened(records):
        found.setdefault(f"{name}: full request", ("a shorter one", before))
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
                yield name, before


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
