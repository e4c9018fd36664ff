# SPDX-License-Identifier: BSD-2-Clause
"""Runs a call list on a real kernel, boot after boot, until every call has its answer."""

import hashlib
import time

from verbs_abi.oracle import boot
from verbs_abi.oracle import kernels

MAX_BOOTS = 60
STALL_SECONDS = 45
SCRIPT = 'vabi-probe-static --skip /job/skip {start} /job/list "$VABI_SHM"'


class Answers:
    """Answers in the list's order: {"CASE:ID": "answer"}."""

    def __init__(self):
        self.lines = {}
        self.lethal = []
        self.boots = 0
        self.notes = {}

    def text(self):
        return "".join(f"{name} {answer}\n" for name, answer in self.lines.items())


def split(text):
    """Complete lines of an answers area, and the call that was under way ("" if none)."""
    whole, _, rest = text.rpartition("\n")
    lines = [line.partition(" ") for line in whole.splitlines()]
    return [(name, answer) for name, _, answer in lines], rest.strip().split(" ")[0]


def case_of(call):
    return call.split(":", 1)[0]


def case_digests(list_text):
    """{case: digest of its statements}: whether a call is still the same call."""
    return {block.split("\n", 1)[0]: hashlib.sha256(block.encode()).hexdigest()[:16]
            for block in list_text.split("case ")[1:]}


def run(kernel, list_text, report=lambda text: None, limit=None, lethal=()):
    """Answers of one kernel. A call that takes it down is answered "oops" and left out in the
    next boot, which goes on with the case in which it happened. lethal: calls of which that is
    known already."""
    from verbs_abi.oracle import cpio
    cases = [line.split(" ")[1] for line in list_text.splitlines() if line.startswith("case ")]
    answers, start, retried = Answers(), 0, False
    answers.lethal = list(lethal)
    deadline = time.monotonic() + limit if limit else None
    while start < len(cases):
        if answers.boots >= MAX_BOOTS or (deadline and time.monotonic() > deadline):
            raise kernels.OracleError(f"{kernel}: not done after {answers.boots} boots, at case "
                                      f"{cases[start]}; nothing was stored")
        archive = cpio.Archive()
        archive.file("job/list", list_text.encode())
        archive.file("job/skip", "".join(f"{call}\n" for call in answers.lethal).encode())
        result = boot.run(kernel, SCRIPT.format(start=f"--from {cases[start]}"),
                          extra=[archive.data()], timeout=900, stall=STALL_SECONDS)
        answers.boots += 1
        lines, under_way = split(result.answers.decode(errors="replace"))
        if result.ended == "done" and ("all", "done") in lines:
            answers.lines.update(line for line in lines if line != ("all", "done"))
            return answers
        if not lines and not under_way:
            if retried:
                raise kernels.OracleError(
                    f"{kernel}: the probe did not start in the guest ({result.ended}); console: "
                    f"{result.console[-1500:]} {result.text('stderr')}")
            retried = True
            continue
        broken = case_of(under_way or lines[-1][0])
        done = [line for line in lines if line != ("all", "done") and
                (case_of(line[0]) != broken)]
        answers.lines.update(done)
        start = cases.index(broken)
        if under_way and not under_way.endswith(":end"):
            culprit = under_way
        elif lines[-1][0].endswith(":end"):
            # The kernel died between two cases: something that the last one left behind.
            answers.lines[lines[-1][0]] = "oops"
            answers.lines.update(lines)
            answers.lines[lines[-1][0]] = "oops"
            culprit = ""
            start += 1
        else:
            # While the case's process ended: closing took the kernel down.
            answers.lines.update(lines)
            answers.lines[f"{broken}:end"] = "oops"
            culprit = ""
            start += 1
        if culprit:
            answers.lethal.append(culprit)
        why = [line for line in result.console.splitlines() if "BUG" in line or "RIP:" in line
               or "panic" in line]
        call = culprit or f"{broken}:end"
        answers.notes[call] = f"{result.ended}: {' | '.join(why[:3])}"
        report(f"{kernel}: {call} {answers.notes[call]}")
    return answers
