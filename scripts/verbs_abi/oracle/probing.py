# SPDX-License-Identifier: BSD-2-Clause
"""Runs a call list on a real kernel, boot after boot, until every call has its answer."""

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


def run(kernel, list_text, report=lambda text: None, limit=None, lethal=(), driver=None):
    """Answers of one kernel. A call that takes it down is answered "oops" and left out in the
    next boot, which goes on with the case in which it happened. lethal: calls of which that is
    known already. driver: (script that makes its device, archive) where it is not rxe."""
    from verbs_abi.oracle import cpio
    cases = [line.split(" ")[1] for line in list_text.splitlines() if line.startswith("case ")]
    answers, start, retried, suspect = Answers(), 0, False, ""
    answers.lethal = list(lethal)
    deadline = time.monotonic() + limit if limit else None
    while start < len(cases):
        if answers.boots >= MAX_BOOTS or (deadline and time.monotonic() > deadline):
            raise kernels.OracleError(f"{kernel}: not done after {answers.boots} boots, at case "
                                      f"{cases[start]}; nothing was stored")
        archive = cpio.Archive()
        archive.file("job/list", list_text.encode())
        archive.file("job/skip", "".join(f"{call}\n" for call in answers.lethal).encode())
        script, extra = SCRIPT.format(start=f"--from {cases[start]}"), [archive.data()]
        if driver:
            script, extra = f"{driver[0]}{script}", [*extra, driver[1]]
        result = boot.run(kernel, script, extra=extra, timeout=900, stall=STALL_SECONDS,
                          rxe=not driver)
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
        answers.lines.update(line for line in lines if case_of(line[0]) not in (broken, "all"))
        start = cases.index(broken)
        call = under_way if under_way and not under_way.endswith(":end") else f"{broken}:end"
        panic = [line for line in result.console.splitlines()
                 if "BUG" in line or "RIP: 0010" in line or "Kernel panic" in line]
        crashed = result.ended == "crashed" and any("Kernel panic" in line for line in panic)
        if not crashed and (result.ended == "timeout" or suspect != call):
            # A slow machine, or an accident of ours: the case is run again. A call that ends a
            # second guest without a word is to blame.
            suspect = call if result.ended != "timeout" else suspect
            report(f"{kernel}: the guest {result.ended} at {call}; once more")
            continue
        if call.endswith(":end"):
            # Closing took the kernel down, or something that the case left behind.
            answers.lines.update(line for line in lines if case_of(line[0]) == broken)
            answers.lines[call] = "oops"
            start += 1
        else:
            answers.lethal.append(call)
        answers.notes[call] = f"{result.ended}: {' | '.join(panic[:3])}"
        report(f"{kernel}: {call} {answers.notes[call]}")
    return answers
