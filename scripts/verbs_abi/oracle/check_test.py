# SPDX-License-Identifier: BSD-2-Clause
"""How a list is asked: in parts at once, of which none may be missing."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from verbs_abi import children
from verbs_abi.oracle import check, kernels

LIST = "".join(f"case c{number}\nmem q case 00\ncall x{number} close 1\n" for number in range(7))


class Probe:
    """Stands for a machine: answers each call of the list it is given with the list's first case."""

    def __init__(self, broken=""):
        self.lists = []
        self.broken = broken

    def probe(self, _kernel, _program, list_path, answers_path):
        text = pathlib.Path(list_path).read_text(encoding="ascii")
        self.lists.append(text)
        cases = [line.split()[1] for line in text.splitlines() if line.startswith("case ")]
        said = "".join(f"{case}:x{case[1:]} 0 0 o={cases[0]}\n" for case in cases)
        ended = self.broken not in cases
        pathlib.Path(answers_path).write_text(said + ("all done\n" if ended else f"{self.broken}:x"), encoding="ascii")
        return (0 if ended else -11), "out of order"


def test_the_parts_hold_every_case_once_and_neighbours_apart():
    dealt = check.parts(LIST, 3)
    assert [part.count("case c") for part in dealt] == [3, 2, 2]
    assert dealt[1] == "".join(f"case c{number}\nmem q case 00\ncall x{number} close 1\n" for number in (1, 4))
    assert sorted("".join(dealt).split("case c")) == sorted(LIST.split("case c"))


def test_a_short_list_has_no_empty_part():
    assert check.parts("case a\ncall x close 1\n", 12) == ["case a\ncall x close 1\n"]


def test_each_part_is_asked_and_all_answers_come_back():
    probe = Probe()
    answers = check.ask_fake("k", LIST, probe)
    assert sorted(probe.lists) == sorted(check.parts(LIST))
    assert answers == {f"c{number}:x{number}": f"0 0 o=c{number}" for number in range(7)}


def test_one_part_without_an_end_is_told():
    with pytest.raises(kernels.OracleError, match=r"k: the probe did not come to its end .*-11, at c4:x\): out of order"):
        check.ask_fake("k", LIST, Probe(broken="c4"))


# Two kernels whose programs do not end by themselves.
SIGNALLED = """
import io, pathlib, sys
from verbs_abi import children
from verbs_abi.oracle import check

def ask(name, *_):
    with children.started(["sleep", "600"]) as process:
        (pathlib.Path(sys.argv[1]) / name).write_text(str(process.pid))
        (pathlib.Path(sys.argv[1]) / name).rename(pathlib.Path(sys.argv[1]) / f"{name}.pid")
        process.wait()

check.FakeMachine = lambda *_: io.StringIO()
check.check_kernel = ask
with children.interruptible():
    check.compare_all(["a", "b"], None)
"""


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM))
def test_a_signal_to_the_command_alone_ends_what_its_kernels_run(tmp_path, number):
    def begun():
        return sorted(tmp_path.glob("*.pid"))

    with subprocess.Popen([sys.executable, "-c", SIGNALLED, str(tmp_path)], cwd=kernels.SOURCE_ROOT / "scripts",
                          stderr=subprocess.DEVNULL, preexec_fn=children.listen) as command:
        limit = time.monotonic() + 60
        while len(begun()) < 2 and time.monotonic() < limit:
            time.sleep(0.05)
        command.send_signal(number)
        try:
            status = command.wait(timeout=60)
        finally:
            command.kill()
            left = [pid for pid in (int(path.read_text()) for path in begun()) if os.path.exists(f"/proc/{pid}")]
            for pid in left:
                os.kill(pid, signal.SIGKILL)
    assert len(begun()) == 2 and left == [] and status != 0
