# SPDX-License-Identifier: BSD-2-Clause
"""Reading traces: JSON lines, one for each command that crossed the user/kernel border (docs/trace.md)."""

import hashlib
import json
import pathlib

# What differs between two runs of the same cell.
VOLATILE = ("time", "t", "ns", "pid", "tid", "seq", "fd", "us")

# Inline values from here on are addresses, which differ from run to run.
POINTERS = 1 << 32


def read(path):
    """The records of a trace file; a half-written last line is left out. There are none where there is no file to
    read: a pipe was read by others, a device has no end."""
    path = pathlib.Path(path)
    return parse(path.read_text(errors="replace")) if path.is_file() else []


def parse(text):
    """The records of a trace's text."""
    records = []
    for line in text.splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return records


def stable(record):
    """The record without what differs between two runs of the same cell: who, when, addresses."""
    kept = {key: value for key, value in record.items() if key not in VOLATILE}
    if "attrs" in kept:
        kept["attrs"] = [{key: value for key, value in attribute.items() if key != "value" or value < POINTERS}
                         for attribute in kept["attrs"]]
    return kept


def unmodelled(record):
    """What went past the fake kernel or beyond what it models, in words; None for a record of what it did answer."""
    if "unmodelled" in record:
        return f"{record['name']}: {record['unmodelled']}"
    if record.get("event") in ("unmodelled", "not_intercepted"):
        return f"{record['event'].replace('_', ' ')}: {record.get('text', '')}"
    return None


def faults_reached(records):
    """The steps that overlays let fail and that the program came to, by the names that overlays have for them."""
    steps = set()
    for record in records:
        if record.get("event") == "fault":
            steps.add(record["text"])
        elif "fault" in record:
            steps |= {record["name"], record.get("inner"), f"{record['via']}:{record['name']}", record["via"]}
    return steps


def digest(records):
    """Equal for two runs that asked the kernel the same things and got the same answers."""
    total = hashlib.sha256()
    for record in records:
        total.update(json.dumps(stable(record), sort_keys=True).encode() + b"\n")
    return "sha256:" + total.hexdigest()[:32]


def digest_of_kinds(records):
    """The same for processes that run side by side: which kinds of commands were answered how, in no order."""
    kinds = {json.dumps({key: record.get(key) for key in ("front_end", "name", "device", "errno", "rule", "event")},
                        sort_keys=True) for record in records}
    total = hashlib.sha256("\n".join(sorted(kinds)).encode())
    return "sha256:" + total.hexdigest()[:32]
