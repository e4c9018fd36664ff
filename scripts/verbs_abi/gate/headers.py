# SPDX-License-Identifier: BSD-2-Clause
"""The gate's part of ABI facts: what changed between the kernel's headers that two userlands were built with.

Only what `facts diff` calls dangerous is told. It stops no release by itself: a newer release has newer headers, and whether its
libraries make something of a change shows in the cells; it says where to look when they got worse.
"""

from verbs_abi import matrix
from verbs_abi.facts import passed, tool
from verbs_abi.userlands import built, local, releases


def of(name):
    """What vabi-facts reads as the headers of a userland: a snapshot's name or a source tree; None: not known."""
    if built.is_name(name):
        return built.parts(name)[1]
    entry = matrix.get("userlands", name)
    if entry.data["kind"] == "debian":
        return passed.source_of(name)[1]
    place = local.from_entry(entry)
    if place.kind == "source":
        return place.path
    version = releases.number(local.version(place))
    snapshot = f"rdma-core-v{version[0]}" if version else None
    return snapshot if snapshot in tool.names() else None


def findings(old, new):
    """Rows as the gate's "facts" in results.json, of two userlands by name."""
    before, after = of(old), of(new)
    unknown = [name for name, headers in ((old, before), (new, after)) if headers is None]
    if unknown:
        return [{"what": name, "class": "unknown-headers", "detail": "tells no version whose headers are known", "stops": False}
                for name in unknown]
    if before == after:
        return []
    return [{"what": ": ".join(dict.fromkeys((row["header"], row["subject"]))), "class": row["class"],
             "detail": f"{row['before']} → {row['after'] or 'gone'}: {row['why']}", "stops": False}
            for row in tool.between(before, after)["changes"] if row["dangerous"]]
