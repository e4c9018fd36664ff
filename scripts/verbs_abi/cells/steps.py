# SPDX-License-Identifier: BSD-2-Clause
"""A cell told step by step: what was asked, what the kernel side answered, and what the library made of it."""

from verbs_abi.cells import features

# Commands by stage of a program's life; everything before the context exists belongs to the open.
OPEN = ("DEVICE.INVOKE_WRITE", "DEVICE.GET_CONTEXT", "GET_CONTEXT", "QUERY_DEVICE", "open", "mmap")
# More refusals of one kind than this are summed up.
SHOWN = 6


def _stage(record, has_context):
    via = record.get("via")
    if via == "netlink":
        return "discovery"
    if via in ("open",) or not has_context:
        return "open"
    return "data path" if via == "doorbell" else "control path"


def _text(record):
    name = record.get("name", "?")
    words = [{"write": "write", "write_ex": "extended write"}.get(record.get("via"), record.get("via", "")), name]
    if record.get("inner"):
        words.append(f"of {record['inner']}")
    if record.get("uhw_in", -1) >= 0:
        words.append(f"with {record['uhw_in']} bytes for the driver")
    if record.get("flags"):
        words.append(f"(flags {record['flags']})")
    return " ".join(words) + f": {record.get('errno', 'ok')}"


def _refusals(records):
    has_context = False
    for record in records:
        if record.get("result", 0) < 0 and "name" in record:
            yield _stage(record, has_context), record
        if record.get("name") in ("GET_CONTEXT", "DEVICE.GET_CONTEXT") and record.get("result", -1) >= 0:
            has_context = True


def tell(records, outcome, ended, steps):
    """Rows {stage, text, effect, by, rule, errno} in order."""
    told = [{"stage": "discovery", "by": "libibverbs",
             "text": {"netlink": "netlink told of the device and its node",
                      "netlink+sysfs": "netlink told of the device, sysfs of its node",
                      "sysfs": "the device was looked for in sysfs"}[features.discovery(records)]}]
    instead = {id(record): (feature, text) for feature, text, record in features.lost(records)}
    counts = {}
    for stage, record in _refusals(records):
        key = (record.get("name"), record.get("inner"), record.get("errno"), record.get("rule"))
        counts[key] = counts.get(key, 0) + 1
        if counts[key] > 1 and id(record) not in instead:
            continue
        row = {"stage": stage, "text": _text(record), "by": "overlay" if "fault" in record else "kernel"}
        if record.get("rule"):
            row["rule"] = record["rule"]
        if record.get("errno"):
            row["errno"] = record["errno"]
        if id(record) in instead:
            feature, text = instead[id(record)]
            row["effect"] = f"{text}; lost: {feature}"
        elif "unmodelled" in record:
            row["effect"] = f"unmodelled: {record['unmodelled']}"
        told.append(row)
    for line in dict.fromkeys(line for line in ended.stderr.splitlines() if line.strip()):
        told.append({"stage": "messages", "text": line[:400], "by": "libibverbs" if "libibverbs" in line else "program"})
        if sum(row["stage"] == "messages" for row in told) >= SHOWN:
            break
    failed = [step for step in steps if not step["ok"] and not step.get("optional")]
    for step in failed[:SHOWN]:
        row = {"stage": "program", "text": f"{step['step']} failed" + (f": {step['note']}" if step.get("note") else ""),
               "by": "program"}
        if step.get("errno"):
            row["errno"] = step["errno"]
        told.append(row)
    moved = [step for step in steps if step["step"].startswith("data:")]
    if moved:
        good = sum(step["ok"] for step in moved)
        told.append({"stage": "data path", "by": "program",
                     "text": f"{good} of {len(moved)} kinds of transfer with every byte right"})
    if ended.signal or ended.limit:
        told.append({"stage": "end", "text": outcome.message, "by": "verbs-abi"})
    return told
