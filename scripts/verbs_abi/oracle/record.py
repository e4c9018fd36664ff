# SPDX-License-Identifier: BSD-2-Clause
"""`verbs-abi oracle record`: boots the kernels, asks them, stores what they say."""

import concurrent.futures
import re
import subprocess
import time

from verbs_abi import children, errors
from verbs_abi.oracle import boot
from verbs_abi.oracle import clients
from verbs_abi.oracle import generate
from verbs_abi.oracle import journey
from verbs_abi.oracle import kernels
from verbs_abi.oracle import machine
from verbs_abi.oracle import probing
from verbs_abi.oracle import siw
from verbs_abi.oracle import store
from verbs_abi.reports.store import write_together


def crash_note(note):
    """A crash in one line without what differs from run to run."""
    note = re.sub(r"\[ *\d+\.\d+\] ", "", note)
    note = re.sub(r" \| RIP: 0033.*", "", note)
    return re.sub(r"0x[0-9a-f]{6,}|\b[0-9a-f]{12,}\b", "…", note)


def record(name, seed=0, report=print, programs=True, afresh=False, changed=False, room=store.ROOM):
    """Records one kernel; returns what recording.json says of it. Calls that took the same kernel
    package down when it was recorded last are not made again, unless afresh. changed: only cases
    whose calls are others than those recorded; every case has a process and files of its own, so
    the others' answers stay as they are."""
    began = time.monotonic()
    unpacked = kernels.Unpacked(kernels.find(name)).prepare()
    packages = unpacked.package_versions()
    text = generate.call_list(name, seed)
    digests = store.case_digests(text)
    recording = store.Recording(name, room)
    known = {} if afresh else recording.lethal(digests, packages)
    kept = recording.cases(packages) if changed else {}
    wanted = [case for case, digest in digests.items() if kept.get(case) != digest]
    answers = probing.run(name, only_cases(text, wanted), report, lethal=known)
    lines = answers.lines if not kept else merged(digests, wanted, recording.answers(),
                                                  answers.lines)
    files = {**recording.programs(packages),
             **({} if kept and not programs else machine.record(name, programs, report))}
    crashes = dict(known)
    for call, note in answers.notes.items():
        crashes[call] = {"case": digests[probing.case_of(call)], "console": crash_note(note)}
    about = recording.replace(lines, text, seed, packages, files, crashes)
    report(f"{name}: {about['calls']} calls in {len(wanted)} of {len(digests)} cases made, "
           f"{len(crashes)} crashes, {answers.boots} boots, {time.monotonic() - began:.0f} s")
    return about


def record_siw(name, seed=0, report=print, room=store.ROOM):
    """Records what siw answers, as room/NAME-siw. Nothing is compared with it: it tells which
    answers are the core's."""
    began = time.monotonic()
    unpacked = kernels.Unpacked(kernels.find(name)).prepare()
    text = generate.call_list(name, seed, driver="siw")
    digests = store.case_digests(text)
    answers = probing.run(name, text, report, driver=(siw.ADD_SIW, siw.archive(unpacked)))
    crashes = {call: {"case": digests[probing.case_of(call)], "console": crash_note(note)}
               for call, note in answers.notes.items()}
    packages = {**unpacked.package_versions(), **siw.packages(unpacked.kernel)}
    about = store.Recording(f"{name}-siw", room).replace(answers.lines, text, seed, packages, {},
                                                         crashes, "siw")
    report(f"{name}: {about['calls']} calls of siw made, {len(crashes)} crashes, {answers.boots} "
           f"boots, {time.monotonic() - began:.0f} s")
    return about


def each(names, make, report=print, room=store.ROOM):
    """Calls make(name) for each kernel, as many at once as there may be guests. One that fails is told
    with what stays stored of it, and the others still have their turn; then the command ends with
    exit status 2."""
    def attempt(name):
        try:
            make(name)
            return True
        except (errors.UserError, subprocess.SubprocessError, OSError) as error:
            recording = store.Recording(name, room)
            kept = (f"the recording of {recording.about()['date']} is kept" if recording.exists()
                    else "nothing is stored of it")
            text = kernels.full(error) if isinstance(error, OSError) else str(error)
            report(f"{text if text.startswith(f'{name}:') else f'{name}: {text}'}; {kept}")
            return False

    with concurrent.futures.ThreadPoolExecutor(max_workers=boot.MOST_GUESTS) as pool:
        with children.undisturbed():  # a thread that is not known yet would not be waited for
            making = pool.map(attempt, names)
        made = list(making)
    failed = [name for name, ok in zip(names, made) if not ok]
    if failed:
        raise kernels.OracleError(f"not recorded: {', '.join(failed)}",
                                  hint="What was stored before is as it was.")


def only_cases(text, wanted):
    """The list with those cases alone."""
    wanted = set(wanted)
    return "".join(f"case {block}" for block in text.split("case ")[1:]
                   if block.split("\n", 1)[0] in wanted)


def merged(digests, wanted, old, new):
    """Answers in the list's order: of the wanted cases the new ones, of the others the old."""
    wanted, groups = set(wanted), {}
    for answers, fresh in ((old, False), (new, True)):
        for call, answer in answers.items():
            case = probing.case_of(call)
            if case in digests and (case in wanted) == fresh:
                groups.setdefault(case, {})[call] = answer
    return {call: answer for case in digests for call, answer in groups.get(case, {}).items()}


def record_beside(name, what, report=print, room=store.ROOM):
    """Adds files to a recording of the same package. what: (kernel, report) -> {name: text}, for
    example what discovery and programs say."""
    began = time.monotonic()
    unpacked = kernels.Unpacked(kernels.find(name)).prepare()
    recording = store.Recording(name, room)
    if not recording.exists() or recording.about()["packages"] != unpacked.package_versions():
        raise kernels.OracleError(f"{name}: its calls are not recorded with this package; record "
                                  "it whole first")
    files = what(name, report)
    write_together({recording.folder / file: text for file, text in files.items()})
    report(f"{name}: {', '.join(files)}, {time.monotonic() - began:.0f} s")


def programs(kernel, report):
    return machine.record(kernel, True, report)


JOURNEYS = {"nvmeof": journey.nvmeof, "pyverbs": clients.pyverbs}
