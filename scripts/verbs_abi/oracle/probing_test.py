# SPDX-License-Identifier: BSD-2-Clause
"""Boot after boot until all is answered, with guests that crash where the test wants them to."""

import re

import pytest

from verbs_abi.oracle import cpio, kernels, probing, vm

LIST = """case a
call 1.x close 1
call 2 close 2
case b
call 1 close 1
call 2 close 2
case c
call 1 close 1
"""


PANIC = "BUG: it\nKernel panic - not syncing: Fatal exception"


class Guests:
    """Stands for boot.run: answers every call "0 0", but dies at those in `lethal`."""

    def __init__(self, lethal=(), dies_at_end=(), never_starts=0, ends="crashed", console=PANIC,
                 harmless_after=99):
        self.ends, self.console, self.harmless_after = ends, console, harmless_after
        self.lethal, self.dies_at_end, self.never_starts = set(lethal), set(dies_at_end), never_starts
        self.boots = []

    def run(self, kernel, script, extra, **_):
        del kernel
        self.boots.append(script)
        if len(self.boots) > self.harmless_after:
            self.lethal = set()
        if self.never_starts:
            self.never_starts -= 1
            return vm.Result("timeout", "", b"", {}, 1.0)
        files = dict(re.findall(rb"job/(list|skip)\0+(.*?)\0*070701", extra[0], re.DOTALL))
        skip = set(files[b"skip"].decode().split())
        start = re.search(r"--from (\S+)", script)[1]
        out, begun = "", False
        for block in LIST.split("case ")[1:]:
            lines = block.splitlines()
            begun = begun or lines[0] == start
            if not begun:
                continue
            for line in lines[1:]:
                call = f"{lines[0]}:{line.split(' ')[1]}"
                if call in skip:
                    out += f"{call} oops\n"
                elif call in self.lethal:
                    return vm.Result(self.ends, self.console, (out + call).encode(), {}, 1.0)
                else:
                    out += f"{call} 0 0\n"
            if lines[0] in self.dies_at_end:
                return vm.Result("crashed", PANIC, out.encode(), {}, 1.0)
            out += f"{lines[0]}:end exit 0\n"
        return vm.Result("done", "", (out + "all done\n").encode(), {}, 1.0)


def ask(monkeypatch, guests, **options):
    monkeypatch.setattr(probing.boot, "run", guests.run)
    return probing.run("k", LIST, **options)


def test_one_boot_answers_everything_where_nothing_crashes(monkeypatch):
    answers = ask(monkeypatch, Guests())
    assert list(answers.lines) == ["a:1.x", "a:2", "a:end", "b:1", "b:2", "b:end", "c:1", "c:end"]
    assert answers.boots == 1 and not answers.notes


def test_a_call_that_takes_the_kernel_down_is_answered_and_the_list_goes_on(monkeypatch):
    guests = Guests(lethal={"a:1.x", "b:2"})
    answers = ask(monkeypatch, guests)
    assert answers.lines == {"a:1.x": "oops", "a:2": "0 0", "a:end": "exit 0", "b:1": "0 0",
                             "b:2": "oops", "b:end": "exit 0", "c:1": "0 0", "c:end": "exit 0"}
    assert answers.boots == 3
    assert set(answers.notes) == {"a:1.x", "b:2"} and "BUG: it" in answers.notes["b:2"]
    assert "--from b" in guests.boots[2]


def test_what_is_known_to_crash_is_not_tried_again(monkeypatch):
    answers = ask(monkeypatch, Guests(lethal={"b:2"}), lethal=["b:2"])
    assert answers.boots == 1 and answers.lines["b:2"] == "oops"


def test_a_kernel_that_dies_when_a_case_ends_goes_on_with_the_next(monkeypatch):
    answers = ask(monkeypatch, Guests(dies_at_end={"a"}))
    assert answers.lines["a:end"] == "oops" and answers.lines["a:2"] == "0 0"
    assert answers.lines["c:1"] == "0 0" and answers.boots == 2


def test_a_guest_that_ran_out_of_time_blames_no_call(monkeypatch):
    answers = ask(monkeypatch, Guests(lethal={"b:2"}, ends="timeout", harmless_after=3))
    assert answers.lines["b:2"] == "0 0" and not answers.notes and answers.boots == 4


def test_a_guest_that_vanished_blames_the_call_only_the_second_time(monkeypatch):
    once = ask(monkeypatch, Guests(lethal={"b:2"}, console="", harmless_after=1))
    assert once.lines["b:2"] == "0 0" and not once.notes
    twice = ask(monkeypatch, Guests(lethal={"b:2"}, ends="stalled", console=""))
    assert twice.lines["b:2"] == "oops" and "stalled" in twice.notes["b:2"]


def test_a_guest_that_does_not_start_is_tried_twice(monkeypatch):
    assert ask(monkeypatch, Guests(never_starts=1)).boots == 2
    with pytest.raises(kernels.OracleError, match="k: the probe did not start"):
        ask(monkeypatch, Guests(never_starts=2))


def test_an_archive_can_be_followed_by_another():
    archive = cpio.Archive()
    archive.file("a/b/c", b"text", 0o755)
    data = archive.data()
    assert len(data) % 512 == 0
    names = re.findall(rb"070701.{104}([^\0]+)\0", data, re.DOTALL)
    assert names == [b"a", b"a/b", b"a/b/c", b"TRAILER!!!"]
