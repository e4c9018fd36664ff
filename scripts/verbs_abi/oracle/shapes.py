# SPDX-License-Identifier: BSD-2-Clause
"""Traces as data: what a program asked of a kernel and what it answered, a short line a command, with runs of
commands that only count on written once. Made of docs/trace.md's records, whoever wrote them."""

import difflib
import re

# Values that differ from run to run, by (name, attribute id); the rule says why.
FD = "descriptor numbers depend on what else is open"
VOLATILE = {
    ("ASYNC_EVENT.ALLOC", 0): FD,
    ("CQ.CREATE", 3): FD, ("CQ.CREATE", 7): FD,  # COMP_CHANNEL, EVENT_FD
    ("QP.CREATE", 12): FD, ("SRQ.CREATE", 10): FD, ("WQ.CREATE", 5): FD,  # EVENT_FD
}

# From here on an inline value is an address of the program.
ADDRESSES = 1 << 32

# Longest run of commands that is looked for, and how often it has to come to be written as one.
LONGEST, LEAST = 6, 3

_VALUE = re.compile(r"(?<==)\d+\b")


def line(record):
    """One command in words. Left out: who and when, the device (there is one), which rule refused (a real kernel does
    not tell), offsets of mappings (rxe counts them on for as long as the device lives), and what the fake kernel
    knows and a real one does not say: what a mapping is of, the driver's flags."""
    via, name = record["via"], record["name"]
    words = [via]
    if via == "mmap":
        pass
    elif via != "open":
        words.append(f"{name}/{record['inner']}" if "inner" in record else name)
    if "object" in record:
        words.append(f"{record['object']}.{record['method']}")
    elif "command" in record:
        words.append(str(record["command"]))
    for key, driver, word in (("core_in", "uhw_in", "in"), ("core_out", "uhw_out", "out")):
        if key in record or driver in record:
            words.append(f"{word}={record.get(key, 0)}/{record.get(driver, 0)}")
    # A method that is not there: nobody has read the attributes.
    if "attrs" in record and record.get("errno") != "EPROTONOSUPPORT":
        words += [_attribute(name, attribute) for attribute in record["attrs"]]
    words.append(record.get("errno") or str(record["result"]))
    return " ".join(words)


def _attribute(name, attribute):
    text = f"{attribute['id']}:{attribute['len']}"
    if attribute["flags"] != 1:  # MANDATORY
        text += f":{attribute['flags']:#x}"
    if (name, attribute["id"]) in VOLATILE:
        return f"{text}=[fd]"
    value = attribute.get("value", ADDRESSES)
    return f"{text}={value}" if value < ADDRESSES else text


def lines(records):
    """The commands of a trace."""
    return [line(record) for record in records if "via" in record]


def _counts_on(first, later, step):
    """Is `later` the same as `first` but for values that are higher by `step`? The pattern ("N+" for those), or None."""
    if first == later:
        return first
    if _VALUE.sub("", first) != _VALUE.sub("", later):
        return None
    at = iter(_VALUE.findall(later))
    ok = True

    def mark(match):
        nonlocal ok
        value, other = int(match[0]), int(next(at))
        ok = ok and other - value in (0, step)
        return match[0] if value == other else f"{match[0]}+"

    pattern = _VALUE.sub(mark, first)
    return pattern if ok else None


def _run(all_lines, start, period):
    """(how often the block of `period` lines comes from `start` on, its lines with what counts marked)."""
    block, marked, count = all_lines[start:start + period], None, 1
    while True:
        at = start + count * period
        following = all_lines[at:at + period]
        if len(following) < period:
            break
        found = [_counts_on(one, other, count) for one, other in zip(block, following)]
        if None in found or (marked is not None and found != marked):
            break
        marked, count = found, count + 1
    return count, marked or block


def pack(all_lines):
    """The lines with runs written as "N times:" and the block, indented; in it "=V+" counts on from V."""
    packed, at = [], 0
    while at < len(all_lines):
        best = max(((count * period, -period, count, block)
                    for period in range(1, LONGEST + 1)
                    for count, block in [_run(all_lines, at, period)] if count >= LEAST), default=None)
        if best is None:
            packed.append(all_lines[at])
            at += 1
            continue
        length, _, count, block = best
        packed.append(f"{count} times:")
        packed += [f"  {one}" for one in block]
        at += length
    return packed


def store(traces):
    """{program: records} as text."""
    return "".join(f"== {program}\n" + "".join(f"{one}\n" for one in pack(lines(records)))
                   for program, records in traces.items())


def load(text):
    """{program: packed lines}."""
    traces = {}
    for part in text.split("== ")[1:]:
        title, *rest = part.rstrip("\n").split("\n")
        traces[title] = rest
    return traces


def aligned(title, real, fake):
    """Two packed traces as answers, {"trace:TITLE N": line} each. N is the line's number in the real one; what only
    the fake one has is put behind it as N+1, N+2 …, where the real one says "nothing"."""
    sides = {}, {}

    def put(key, *said):
        for side, text in zip(sides, said):
            if text is not None:
                side[f"trace:{title} {key}"] = text

    matcher = difflib.SequenceMatcher(None, real, fake, autojunk=False)
    for _, start, end, other, last in matcher.get_opcodes():
        for at in range(max(end - start, last - other)):
            one = real[start + at] if start + at < end else "nothing"
            two = fake[other + at] if other + at < last else None
            key = f"{start + at + 1:03}" if start + at < end else f"{end:03}+{at - (end - start) + 1}"
            put(key, one, two)
    return sides
