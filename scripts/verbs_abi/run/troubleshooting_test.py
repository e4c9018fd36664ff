# SPDX-License-Identifier: BSD-2-Clause
"""docs/troubleshooting.md: every command is run, and says each line that is quoted below it."""

import re
import shlex
import subprocess

import pytest

from verbs_abi import paths

PAGE = paths.ROOT / "docs/troubleshooting.md"


def blocks():
    """[(command, quoted lines)] of the page."""
    found = []
    for text in re.findall(r"^```\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S):
        command, *quoted = text.rstrip("\n").split("\n")
        assert command.startswith("$ ./verbs-abi "), command
        found.append((command[2:], quoted))
    return found


def test_each_fault_has_what_programs_say_and_what_explain_makes_of_it():
    text = PAGE.read_text(encoding="utf-8")
    faults = text.split("\n## ")[1:]
    assert len(faults) == 7
    for fault in faults:
        assert "./verbs-abi exec " in fault and "./verbs-abi explain " in fault, fault.splitlines()[0]


@pytest.mark.parametrize("command,quoted", blocks(), ids=[command[10:90] for command, _ in blocks()])
def test_the_page_says_what_happens(command, quoted):
    assert quoted
    ended = subprocess.run(shlex.split(command), cwd=paths.ROOT, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=120, check=False)
    said = " ".join(ended.stdout.split())  # explain wraps at words
    for line in quoted:
        assert " ".join(line.split()) in said, f"{line!r} is not said:\n{ended.stdout}"
