# SPDX-License-Identifier: BSD-2-Clause
"""Stored recordings: matrix/oracle/KERNEL/{recording.json, answers.txt, …}.

answers.txt holds a line "case NAME" per case and below it a line an answer, "ID ANSWER". Set-up
calls that worked are left out. recording.json says of which kernel
package, when, with which list, cases.json has a digest of every case's calls. A recording is
written beside the old one and takes its place whole.
"""

import datetime
import hashlib
import json
import shutil

from verbs_abi import locks
from verbs_abi.oracle import apt
from verbs_abi.oracle import kernels

WENT_WRONG = ("-1", "skipped", "blocked", "died")
ROOM = kernels.SOURCE_ROOT / "matrix" / "oracle"


OTHER_DRIVERS = ("siw",)

# What is read of recording.json.
ABOUT = {"packages": dict, "seed": int, "date": str, "list": str, "calls": int, "crashes": dict}
MEND = "Take the recording's files from version control again, or record the kernel anew."


def split(name):
    """(kernel, driver) of a recording's name."""
    kernel, _, driver = name.rpartition("-")
    return (kernel, driver) if driver in OTHER_DRIVERS else (name, "rxe")


def names(room=ROOM):
    """Every recording: the kernels in their order, then other drivers'."""
    others = sorted(path.name for driver in OTHER_DRIVERS for path in room.glob(f"*-{driver}"))
    return [name for name in (*kernels.table(), *others) if Recording(name, room).exists()]


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def pack(lines):
    """{CASE:ID: answer} as text."""
    out, current = [], None
    for name, answer in lines.items():
        case, ident = name.split(":", 1)
        if case != current:
            out.append(f"case {case}")
            current = case
        if ident.startswith("setup") and not answer.startswith(WENT_WRONG):
            continue
        out.append(f"{ident} {answer}")
    return "\n".join(out) + "\n"


def unpack(text):
    lines, case = {}, ""
    for line in text.splitlines():
        if line.startswith("case "):
            case = line[5:]
        elif line:
            ident, _, answer = line.partition(" ")
            lines[f"{case}:{ident}"] = answer
    return lines


def counted(lines):
    """How many of the answers are calls', without set-up and ends."""
    return sum(not name.split(":", 1)[1].startswith(("setup", "end")) for name in lines)


def case_digests(list_text):
    """{case: digest of its statements}: whether its calls are still the same calls."""
    return {block.split("\n", 1)[0]: digest(block) for block in list_text.split("case ")[1:]}


class Recording:
    """One kernel's stored answers."""

    def __init__(self, kernel, room=ROOM):
        self.kernel = kernel
        self.folder = room / kernel

    def exists(self):
        return (self.folder / "recording.json").exists()

    def text(self, name):
        """One of its files; OracleError where it cannot be read."""
        path = self.folder / name
        try:
            return path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise kernels.OracleError(f"{self.kernel}: {path} cannot be read: {getattr(error, 'strerror', error)}",
                                      hint=MEND) from error

    def about(self):
        """What recording.json says, whole or OracleError."""
        try:
            about = json.loads(self.text("recording.json"))
            wrong = next((key for key, kind in ABOUT.items() if not isinstance(about[key], kind)), None)
        except (ValueError, KeyError, TypeError) as error:
            wrong = error
        if wrong is not None:
            raise kernels.OracleError(f"{self.kernel}: {self.folder / 'recording.json'} is broken: {wrong}", hint=MEND)
        return about

    def answers(self):
        """{call: answer}; OracleError where there are not as many as were recorded: a part would agree as well."""
        found = unpack(self.text("answers.txt"))
        count = counted(found)
        if count != self.about()["calls"]:
            raise kernels.OracleError(
                f"{self.kernel}: {self.folder / 'answers.txt'} holds the answers of {count} calls, "
                f"{self.about()['calls']} were recorded", hint=MEND)
        return found

    def cases(self, packages):
        """{case: digest} of what is recorded of this very package; empty when nothing is."""
        path = self.folder / "cases.json"
        if not path.exists() or self.about()["packages"] != packages:
            return {}
        return json.loads(path.read_text())

    def lethal(self, digests, packages):
        """Calls that took this very kernel package down before and are still the same calls:
        {call: what is known of the crash}."""
        if not self.exists():
            return {}
        about = self.about()
        if about["packages"] != packages:
            return {}
        return {call: row for call, row in about["crashes"].items()
                if digests.get(call.split(":", 1)[0]) == row["case"]}

    def programs(self, packages):
        """What programs said on this very kernel package, {file name: text}; maybe nothing."""
        if not self.exists() or self.about()["packages"] != packages:
            return {}
        return {path.name: path.read_text() for pattern in ("userland-*.txt", "journey-*.txt", "clients-*.txt",
                                                            "traces.txt", "netlink.txt", "sysfs.txt")
                for path in self.folder.glob(pattern)}

    def replace(self, lines, list_text, seed, packages, files, crashes, driver="rxe"):
        """Stores a complete recording. files: {name: text} beside the answers. Two at once take turns."""
        with locks.exclusive(apt.cache_dir() / "oracle" / "store.lock", "storing a recording"):
            return self._replace(lines, list_text, seed, packages, files, crashes, driver)

    def _replace(self, lines, list_text, seed, packages, files, crashes, driver):
        fresh = self.folder.with_name(f".{self.kernel}.new")
        old = self.folder.with_name(f".{self.kernel}.old")
        for folder in (fresh, old):
            shutil.rmtree(folder, ignore_errors=True)
        fresh.mkdir(parents=True)
        (fresh / "answers.txt").write_text(pack(lines))
        (fresh / "cases.json").write_text(json.dumps(case_digests(list_text), indent=0) + "\n")
        for name, text in files.items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            (fresh / name).write_text(text)
        about = {"kernel": self.kernel, "packages": packages, "driver": driver, "seed": seed,
                 "date": datetime.date.today().isoformat(), "list": digest(list_text),
                 "calls": counted(lines),
                 "crashes": crashes}
        (fresh / "recording.json").write_text(json.dumps(about, indent=1) + "\n")
        if self.folder.exists():
            self.folder.rename(old)
        fresh.rename(self.folder)
        shutil.rmtree(old, ignore_errors=True)
        return about
