# SPDX-License-Identifier: BSD-2-Clause
"""`verbs-abi oracle record`: boots the kernels, asks them, stores what they say."""

import re
import time

from verbs_abi.oracle import generate
from verbs_abi.oracle import kernels
from verbs_abi.oracle import machine
from verbs_abi.oracle import probing
from verbs_abi.oracle import store


def crash_note(note):
    """A crash in one line without what differs from run to run."""
    note = re.sub(r"\[ *\d+\.\d+\] ", "", note)
    return re.sub(r"0x[0-9a-f]{6,}|\b[0-9a-f]{12,}\b", "…", note)


def record(name, seed=0, report=print, programs=True, room=store.ROOM):
    """Records one kernel; returns what recording.json says of it."""
    began = time.monotonic()
    unpacked = kernels.Unpacked(kernels.find(name)).prepare()
    text = generate.call_list(name, seed)
    files = machine.record(name, programs, report)
    answers = probing.run(name, text, report)
    about = store.Recording(name, room).replace(
        answers.lines, text, seed, unpacked.package_versions(), files,
        [crash_note(note) for note in answers.notes])
    report(f"{name}: {about['calls']} calls, {answers.boots} boots, "
           f"{time.monotonic() - began:.0f} s")
    return about
