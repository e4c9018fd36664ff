# SPDX-License-Identifier: BSD-2-Clause
"""`test --relax`: takes rules of the fake kernel away, one at a time, and asks which unit tests notice.

A rule whose loss nothing notices is a hole: the fake kernel could answer otherwise there and nobody would see it.
First every test runs once and tells which rules it asked for; then, with a rule gone, only those that could notice.
unobservable.json names the rules that no test can offend, each with the reason.
"""

import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib

from verbs_abi.checks import watch
from verbs_abi.errors import UserError, unknown

UNOBSERVABLE = pathlib.Path(__file__).parent / "unobservable.json"


@dataclasses.dataclass
class Answer:
    """Who notices that a rule is gone. asked: tests that came by it at all."""

    rule: dict
    noticed: list
    asked: int
    reason: str = ""  # why nobody can

    @property
    def hole(self):
        return not self.noticed and not self.reason


def unobservable(names, path=UNOBSERVABLE, key="rule"):
    """{rule: reason}, or of what else `key` names. Raises UserError for one that there is not."""
    rows = [row for row in json.loads(path.read_text()) if key in row]
    for row in rows:
        if row[key] not in names:
            raise UserError(f"{path}: {unknown(key, row[key], names)}")
    return {row[key]: row["reason"] for row in rows}


class Search:
    """The tests of a build and the rules that they ask for."""

    def __init__(self, programs, reasons, jobs=None, run=watch.run):
        self._programs = programs
        self._reasons = reasons
        self._jobs = jobs or os.cpu_count() or 1
        self._run = run
        self._tests = collections.defaultdict(dict)  # rule: {program: [test]}

    def notices(self, run):
        """{test: what it asked for}."""
        return run.rules

    def asked_as(self, rule):
        return rule["name"]

    def reason(self, rule):
        """Why no test can notice; "" where some should."""
        return self._reasons.get(rule["name"], "")

    def tried(self, program, tests, rule, stop):
        """Runs these tests without the rule."""
        return self._run(program, tests, relax=rule["name"], stop=stop)

    @staticmethod
    def complaints(program, tests, run):
        """Those of the tests that failed, and how the program ended if it did not end well."""
        failed = [f"{program.name}: {test}" for test in tests if run.results.get(test) == "failed"]
        return failed + ([f"{program.name}: {run.broken}"] if run.broken else [])

    def learn(self, done=lambda text: None):
        """Runs every test once, with all rules in force. Raises UserError when one fails already then."""
        with concurrent.futures.ThreadPoolExecutor(self._jobs) as pool:
            for program, run in zip(self._programs, pool.map(self._run, self._programs)):
                failed = [test for test, result in run.results.items() if result == "failed"]
                if failed or run.broken:
                    raise UserError(f"{program.name} fails with every rule in force: {', '.join(failed) or run.broken}",
                                    hint="Mend that first: verbs-abi test --only unit")
                for test, rules in self.notices(run).items():
                    for rule in rules:
                        self._tests[rule].setdefault(program, []).append(test)
                done(program.name)

    def ask(self, rule, everybody=False):
        """The Answer for one rule; everybody: all who notice, not only the first."""
        asked = self._tests.get(self.asked_as(rule), {})
        noticed = []
        for program, tests in sorted(asked.items(), key=lambda item: len(item[1])):
            noticed += self.complaints(program, tests, self.tried(program, tests, rule, not everybody))
            if noticed and not everybody:
                break
        return Answer(rule, noticed, sum(map(len, asked.values())), self.reason(rule))

    def ask_all(self, rules, done=lambda answer: None):
        """The Answers, in the order of the rules."""
        answers = []
        with concurrent.futures.ThreadPoolExecutor(self._jobs) as pool:
            for answer in pool.map(self.ask, rules):
                answers.append(answer)
                done(answer)
        return answers


def room(rule):
    """"mlx5" of "mlx5.create_cq.length"; the core's rules are told together."""
    first = rule["name"].partition(".")[0]
    return first if first in ("mlx5", "rxe", "netlink") else "core"


def report(answers):
    """Lines about many rules: a row for each room, then the holes and what else is wrong."""
    lines = []
    rooms = collections.defaultdict(list)
    for answer in answers:
        rooms[room(answer.rule)].append(answer)
    for name, rows in rooms.items():
        excused = sum(1 for row in rows if row.reason and not row.noticed)
        lines.append(f"  {name:8} {len(rows):4} rules, {sum(row.hole for row in rows)} holes"
                     + (f", {excused} that no test can offend" if excused else ""))
    for answer in answers:
        if answer.hole:
            asked = f"{answer.asked} tests ask for it" if answer.asked else "no test comes by it"
            lines.append(f"hole: {answer.rule['name']} ({answer.rule['errno']}; {answer.rule['source']}): {asked}")
    lines += [f"{UNOBSERVABLE.name} says that nobody can notice {answer.rule['name']}, but {answer.noticed[0]} does"
              for answer in stale(answers)]
    return lines


def stale(answers):
    """Those that are excused in vain."""
    return [answer for answer in answers if answer.reason and answer.noticed]
