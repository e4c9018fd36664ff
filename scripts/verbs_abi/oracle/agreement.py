# SPDX-License-Identifier: BSD-2-Clause
"""Compares answers: how far the fake kernel says what the real one said, and where it does not."""

import collections
import dataclasses
import fnmatch
import json
import math

from verbs_abi import matrix
from verbs_abi.oracle import store
from verbs_abi.reports.store import write_together

# In the oracle's room:
REASONS = "reasons.json"  # why calls are answered otherwise, as far as that is known
THRESHOLDS = "thresholds.json"  # {kernel: least percentage of agreement}
STORED = "agreement.json"
UNEXPLAINED = "unexplained"

MARGIN = 0.1  # percent: answers that depend on the machine's speed


@dataclasses.dataclass
class Disagreement:
    """One call that is answered otherwise."""

    call: str
    real: str
    fake: str
    reason: str = ""


@dataclasses.dataclass
class Agreement:
    """One recording's figures. groups: {"front_end"|"class": {name: [agreeing, all]}}."""

    kernel: str  # the recording's name: the kernel's, or KERNEL-siw
    cases: int = 0
    agree: int = 0
    groups: dict = dataclasses.field(default_factory=lambda: {"front_end": {}, "class": {}})
    disagreements: list = dataclasses.field(default_factory=list)

    @property
    def driver(self):
        return store.split(self.kernel)[1]

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


def _read(room, name):
    """A table of the oracle's room, held against matrix/schema/oracle-NAME; {} where it has none."""
    path = room / name
    if not path.exists():
        return {}
    data = matrix.read_json(path)
    matrix.check(path, data, matrix.read_json(store.ROOM.parent / "schema" / f"oracle-{name}"))
    return data


class Reasons:
    """Why calls are answered otherwise. Rows {"kernel": GLOB, "call": GLOB, "reason": TEXT}, with
    "real" and "fake" globs of the answers where the call alone does not tell; the first row that
    fits is taken."""

    def __init__(self, room=store.ROOM):
        table = _read(room, REASONS)
        self.rows = table.get("reasons", [])
        self._apart = table.get("apart", [])
        self._tests = table.get("tests", [])

    def apart(self, kernel, title):
        """Why that recorded trace is not compared; "" when it is."""
        return next((row["reason"] for row in self._apart if fnmatch.fnmatchcase(kernel, row["kernel"]) and
                     fnmatch.fnmatchcase(title, row["trace"])), "")

    def of_test(self, kernel, test):
        """Why that test of pyverbs ends otherwise on the fake kernel; "" when nothing is known."""
        return next((row["reason"] for row in self._tests if fnmatch.fnmatchcase(kernel, row["kernel"]) and
                     fnmatch.fnmatchcase(test, row["test"])), "")

    def find(self, kernel, call, real="", fake=""):
        said = {"kernel": kernel, "call": call, "real": real, "fake": fake}
        for row in self.rows:
            if all(fnmatch.fnmatchcase(said[key], row.get(key, "*")) for key in said):
                return row["reason"]
        return ""


def by_reason(disagreements):
    """[(reason or "unexplained", how many)], the most frequent first."""
    counted = collections.Counter(item.reason or UNEXPLAINED for item in disagreements)
    return counted.most_common()


def thresholds(room=store.ROOM):
    """{kernel: percent} below which a check is red."""
    return _read(room, THRESHOLDS)


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
            said = fake.get(call, "no answer")
            result.disagreements.append(Disagreement(
                call, answer, said, reasons.find(kernel, call, answer, said) if reasons else ""))
    return result


def down(percent, digits):
    """Never rounded up: what is not all is not 100 %."""
    return math.floor(percent * 10**digits) / 10**digits


def save(agreements, date, room=store.ROOM, commit=None):
    """Keeps the figures for the reports; kernels that were not checked keep theirs. What was
    reached, in tenths of a percent and with a margin, is the least from now on."""
    path = room / STORED
    table = matrix.read_json(path) if path.exists() else {}
    least = thresholds(room)
    for one in agreements:
        row = {"cases": one.cases, "agree": one.agree, "date": date,
               "meant": sum(bool(item.reason) for item in one.disagreements)}
        if commit:
            row["commit"] = commit
        table[one.kernel] = {one.driver: row}
        least[one.kernel] = max(least.get(one.kernel, 0), down(max(one.percent - MARGIN, 0), 1))
    write_together({place: json.dumps(data, indent=1, sort_keys=True) + "\n"
                    for place, data in ((path, table), (room / THRESHOLDS, least))})


def stored(room=store.ROOM):
    """The kept figures as results.json has them, {kernel: {driver: {"cases", "agree", …}}}; empty
    where none were kept."""
    path = room / STORED
    if not path.exists():
        return {}
    result = {}
    for kernel, drivers in matrix.read_json(path).items():
        recording = store.Recording(kernel, room)
        recorded = {"recorded": recording.about()["date"]} if recording.exists() else {}
        for driver, row in drivers.items():
            kept = {key: row[key] for key in ("cases", "agree", "meant", "commit") if key in row}
            result.setdefault(kernel, {})[driver] = {**kept, **recorded, "checked": row["date"]}
    return result
