# SPDX-License-Identifier: BSD-2-Clause
"""`test --relax knobs`: sets a knob of the fake kernel to a value that some kernel has, in every kernel at once, and asks
which unit tests notice: those on kernels that have another value.

A knob of which no value is noticed is a hole: no test holds any kernel to its value. So is a knob that no kernel turns:
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
    """What to ask, as relax.Search takes it."""
    return [{"name": name, "values": all_values} for name, all_values in found.items()]


def unobservable(found, path=relax.UNOBSERVABLE):
    """{knob: reason}. Raises UserError for one that there is not."""
    return relax.unobservable(list(found), path, key="knob")


class Search(relax.Search):
    """The tests of a build and the knobs that they ask for."""

    def notices(self, run):
        return run.knobs

    def tried(self, program, tests, rule, stop):
        return self._run(program, tests, knob=rule["setting"], stop=stop)

    def ask(self, rule, everybody=False):
        """The Answer for one knob: who notices the first value that anybody does."""
        answer = relax.Answer(rule, [], 0, self.reason(rule))
        settings = [{**rule, "setting": f"{rule['name']}={value}"} for value in rule["values"] if len(rule["values"]) > 1]
        for setting in settings:
            known = super().ask(setting, everybody)
            answer.noticed, answer.asked = known.noticed, known.asked
            if answer.noticed:
                return answer
        for setting in settings if not answer.reason else ():
            answer.noticed = self._ask_whole_programs(setting, everybody)
            if answer.noticed:
                return answer
        return answer

    def _ask_whole_programs(self, setting, everybody):
        """What a world asks for while it is made, only the first test that has it is known to ask; and what runs in
        other processes of a test, below the shim, tells nobody: those programs that ask for it, then the others."""
        asking = list(self._tests.get(setting["name"], ()))
        for program in [*asking, *(program for program in self._programs if program not in asking)]:
            run = self.tried(program, (), setting, not everybody)
            noticed = self.complaints(program, run.results, run)
            if noticed:
                return noticed
        return []


def report(answers):
    """Lines about all: how many, then the holes."""
    holes = [answer for answer in answers if answer.hole]
    excused = sum(1 for answer in answers if answer.reason and not answer.noticed)
    lines = [f"  {len(answers)} knobs, {len(holes)} holes, {excused} that no test can turn"]
    lines += [f"hole: {answer.rule['name']}: "
              + (f"nobody notices {', '.join(map(str, answer.rule['values']))}" if len(answer.rule["values"]) > 1
                 else NEVER_TURNED) for answer in holes]
    lines += [f"{relax.UNOBSERVABLE.name} says that nobody can notice {answer.rule['name']}, but {answer.noticed[0]} does"
              for answer in relax.stale(answers)]
    return lines
