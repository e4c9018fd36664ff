# SPDX-License-Identifier: BSD-2-Clause
"""Compares answers: how far the fake kernel says what the real one said, and where it does not."""

import dataclasses
import fnmatch
import json

from verbs_abi.oracle import store

REASONS = "reasons.json"  # in the oracle's room: disagreements that are meant
STORED = "agreement.json"


@dataclasses.dataclass
class Disagreement:
    """One call that is answered otherwise."""

    call: str
    real: str
    fake: str
    reason: str = ""


@dataclasses.dataclass
class Agreement:
    """One kernel's figures. groups: {"front_end"|"class": {name: [agreeing, all]}}."""

    kernel: str
    cases: int = 0
    agree: int = 0
    groups: dict = dataclasses.field(default_factory=lambda: {"front_end": {}, "class": {}})
    disagreements: list = dataclasses.field(default_factory=list)

    @property
    def percent(self):
        return 100.0 * self.agree / self.cases if self.cases else 0.0

    def count(self, call, same):
        self.cases += 1
        self.agree += same
        for group, name in (("front_end", front_end(call)), ("class", class_of(call))):
            pair = self.groups[group].setdefault(name, [0, 0])
            pair[0] += same
            pair[1] += 1


def front_end(call):
    """write, invoke, ioctl, qp, …: the first word of the case."""
    return call.split(":", 1)[0].split(".", 1)[0]


def class_of(call):
    """length, field, attribute, order, …: what the case is about."""
    words = call.split(":", 1)[0].split(".")
    if words[0] in ("write", "invoke"):
        return words[-1]
    if words[0] == "ioctl":
        last = words[-1]
        return "attribute" if last.startswith("attr_") else last
    return words[0] if words[0] != "qp" else f"qp_{words[2].split('_')[0]}"


def counts(call):
    """Set-up calls are no cases of their own, nor is a child process's uneventful end."""
    ident = call.split(":", 1)[1]
    return not ident.startswith("setup") and ident != "end"


class Reasons:
    """Disagreements that are meant: [{"kernel": GLOB, "call": GLOB, "reason": TEXT}]."""

    def __init__(self, room=store.ROOM):
        path = room / REASONS
        self.rows = json.loads(path.read_text()) if path.exists() else []

    def find(self, kernel, call):
        for row in self.rows:
            if fnmatch.fnmatchcase(kernel, row["kernel"]) and \
                    fnmatch.fnmatchcase(call, row["call"]):
                return row["reason"]
        return ""


def compare(kernel, real, fake, reasons=None):
    """The Agreement of two sets of answers ({call: answer}); real decides which calls count."""
    result = Agreement(kernel)
    for call, answer in real.items():
        same = fake.get(call) == answer
        if counts(call):
            result.count(call, same)
        elif call.split(":", 1)[1] != "end" or same:
            continue
        if not same:
            result.disagreements.append(Disagreement(
                call, answer, fake.get(call, "no answer"),
                reasons.find(kernel, call) if reasons else ""))
    return result


def save(agreements, date, room=store.ROOM):
    """Keeps the figures for the reports."""
    table = {agreement.kernel: {"rxe": {"cases": agreement.cases, "agree": agreement.agree,
                                        "date": date}} for agreement in agreements}
    (room / STORED).write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")


def stored(room=store.ROOM):
    """The kept figures, {kernel: {driver: {"cases", "agree"}}}; empty where none were kept."""
    path = room / STORED
    if not path.exists():
        return {}
    return {kernel: {driver: {"cases": row["cases"], "agree": row["agree"]}
                     for driver, row in drivers.items()}
            for kernel, drivers in json.loads(path.read_text()).items()}
