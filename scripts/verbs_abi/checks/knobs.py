# SPDX-License-Identifier: BSD-2-Clause
"""`test --relax knobs`: sets each knob of the fake kernel to each value that some kernel has, in every kernel at once,
and asks which unit tests notice: those on the kernels that have another value.

A value that nothing notices is a hole: no test holds the other kernels to theirs. So is a knob that no kernel turns:
either nobody has said in which it differs, or it is a constant; unobservable.json says of which it is so.
"""

import collections

from verbs_abi import matrix
from verbs_abi.cells import worlds
from verbs_abi.checks import relax

NEVER_TURNED = "the same in every kernel"


def values(models):
    """{knob: its values, in order}, of what vabi-world says of all kernels."""
    found = collections.defaultdict(set)
    for model in models:
        for name, value in model["knobs"].items():
            found[name].add(value)
    return {name: sorted(all_values) for name, all_values in sorted(found.items())}


def models(build):
    """What each kernel's model comes to."""
    return [worlds.model(name, build) for name, entry in matrix.load("kernels").items()
            if not entry.data.get("abstract")]


def questions(found):
    """What to ask, as relax.Search takes it: a row for each value, and one without for a knob that is never turned."""
    rows = []
    for name, all_values in found.items():
        if len(all_values) == 1:
            rows.append({"name": name, "knob": name, "value": None})
        rows += [{"name": f"{name}={value}", "knob": name, "value": value}
                 for value in all_values if len(all_values) > 1]
    return rows


def unobservable(found, path=relax.UNOBSERVABLE):
    """{"KNOB" or "KNOB=VALUE": reason}. Raises UserError for what there is not."""
    names = [row["name"] for row in questions(found)] + list(found)
    return relax.unobservable(names, path, key="knob")


class Search(relax.Search):
    """The tests of a build and the knobs that they ask for."""

    def notices(self, run):
        return run.knobs

    def tried(self, program, tests, question, stop):
        return self._run(program, tests, knob=question["name"], stop=stop)

    def asked_as(self, question):
        return question["knob"]

    def reason(self, question):
        return self._reasons.get(question["name"], self._reasons.get(question["knob"], ""))

    def ask(self, question, everybody=False):
        if question["value"] is None:
            return relax.Answer(question, [], 0, self.reason(question))
        answer = super().ask(question, everybody)
        if not answer.noticed:
            # What a world asks for while it is made, only the first test that has it is known to ask; and what runs in
            # other processes of a test, below the shim, tells nobody.
            for program in [*self._tests.get(question["knob"], ()), *self.silent]:
                run = self.tried(program, (), question, not everybody)
                answer.noticed += self.complaints(program, run.results, run)
                if answer.noticed:
                    break
        return answer


def report(answers):
    """Lines about all: how many, then the holes."""
    holes = [answer for answer in answers if answer.hole]
    excused = sum(1 for answer in answers if answer.reason and not answer.noticed)
    lines = [f"  {len(answers)} values of knobs, {len(holes)} holes, {excused} that no test can tell apart"]
    for answer in holes:
        why = NEVER_TURNED if answer.rule["value"] is None else f"{answer.asked} tests ask for it"
        lines.append(f"hole: {answer.rule['name']}: {why}")
    lines += [f"{relax.UNOBSERVABLE.name} says that nobody can notice {answer.rule['name']}, but {answer.noticed[0]} does"
              for answer in relax.stale(answers)]
    return lines
