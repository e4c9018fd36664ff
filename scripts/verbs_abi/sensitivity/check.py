# SPDX-License-Identifier: BSD-2-Clause
"""Runs a plan's cells with each defect, and tells what noticed it: a worse cell, or a symbol that went."""

import dataclasses
import hashlib
import json
import pathlib
import time

from verbs_abi import matrix, progress, userlands
from verbs_abi.cells import negotiation, pool, programs, worlds
from verbs_abi.errors import EXIT_OK, EXIT_UNEXPECTED
from verbs_abi.gate import compare
from verbs_abi.sensitivity import defects, libraries, report
from verbs_abi.setup import build
from verbs_abi.symbols import compare as symbols
from verbs_abi.symbols import read


@dataclasses.dataclass
class Finding:
    """What became of one defect. by: what noticed it, in words; error: why it could not be tried."""

    defect: defects.Defect
    by: list
    cells: int
    error: str | None = None

    @property
    def caught(self):
        return bool(self.by)


def source_of(plan):
    """The source whose defects a plan tries, or None."""
    return matrix.get("plans", plan).data.get("defects") if plan else None


def plans():
    """The plans that try defects."""
    return [name for name in matrix.names("plans") if source_of(name)]


def noticed(sound, broken):
    """Texts of what the rows of cells tell of a defect: "test NAME (in N cells)", "CELL: was → is (message)"."""
    failing, found = {}, []
    for before, after in compare.pairs([*sound, *broken], sound[0]["userland"], broken[0]["userland"]):
        good = {test["name"] for test in before.get("tests") or () if test["result"] == "passed"}
        bad = [test["name"] for test in after.get("tests") or () if test["result"] == "failed" and test["name"] in good]
        for name in bad:
            failing.setdefault(name, []).append(after)
        # No gain, as it is in the gate: the source as it is says which versions it takes. Those that it takes no more are
        # told as worse.
        more = negotiation.versions_taken(after) - negotiation.versions_taken(before)
        if more:
            found.append(f"{after['id'].partition('/')[2]}: takes {negotiation.TAKEN}{negotiation.versions_text(more)}")
    worse, _, unknown = compare.cells([*sound, *broken], sound[0]["userland"], broken[0]["userland"])
    worse += [row for row in unknown if row["was"] not in (compare.UNMODELLED, "broken")]
    for name, rows in failing.items():
        places = f"{len(rows)} cells" if len(rows) > 1 else rows[0]["id"].partition("/")[2]
        found.append(f"{name} ({places})")
    told = {row["id"] for rows in failing.values() for row in rows}
    found += [f"{row['id'].partition('/')[2]}: {row['was']} → {row['is']}" + (f" ({row['detail'][:80]})" if row["detail"] else "")
              for row in worse if row["id"] not in told]
    return found


def exported(sound, broken):
    """Texts of what went from the libraries that programs link to."""
    found = symbols.compare(read.of_userland(sound), read.of_userland(broken))
    return [f"symbols: {one}" for one in found if one.severity == "breaks"]


def concerned(defect, cells):
    """The cells that a defect can change: those of a provider whose own files it is in, or all."""
    folder, _, rest = defect.file.partition("/")
    return [cell for cell in cells if folder != "providers" or rest.partition("/")[0] in cell.drivers]


class Journal:
    """What was found, a line a defect, written at once: an interrupted run loses nothing and can be resumed."""

    def __init__(self, path, resume, stamp):
        self.path, self.found = path, {}
        if resume and path.exists():
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            self.found = {row["defect"]: row for row in rows if row["stamp"] == stamp}
        path.write_text("".join(json.dumps(row) + "\n" for row in self.found.values()))
        self.stamp = stamp

    def get(self, defect):
        row = self.found.get(repr(defect))
        return Finding(defect, row["by"], row["cells"], row["error"]) if row else None

    def add(self, finding):
        row = {"defect": repr(finding.defect), "stamp": self.stamp, "by": finding.by, "cells": finding.cells,
               "error": finding.error}
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")


class Run:
    """All of one run: the tree, and what cells share."""

    def __init__(self, tree, setup, cells, jobs, show):
        self.tree, self.setup, self.cells, self.jobs, self.show = tree, setup, cells, jobs, show

    def rows(self, userland, cells):
        """The rows of cells in a userland."""
        self.setup.userlands[userland.name] = userland
        cells = [dataclasses.replace(cell, userland=userland.name) for cell in cells]
        rows = []

        def done(row):
            rows.append(row)
            self.show.update(f"{userland.name}: {len(rows)}/{len(cells)}")

        pool.run_cells(self.setup, cells, self.jobs, done)
        return rows

    def sound(self, wanted):
        userland = self.tree.sound(wanted)
        for name in sorted({(pool.built_with(userland.name, cell.scenario), pool.program_of(cell.scenario))
                            for cell in self.cells}):
            owner = userland if name[0] == userland.name else self.setup.userlands.setdefault(name[0], userlands.get(name[0]))
            programs.build(name[1], owner, self.show)
        return userland, self.rows(userland, self.cells)

    def one(self, defect, sound, sound_rows):
        try:
            broken = self.tree.broken(defect, sound)
        except libraries.DoesNotBuild as error:
            return Finding(defect, [], 0, f"does not build: {'; '.join(error.details)[:200]}")
        rows = self.rows(broken, concerned(defect, self.cells))
        return Finding(defect, exported(sound, broken) + (noticed(sound_rows, rows) if rows else []), len(rows))


def run(plan, cells, arguments, picked=()):
    """The plan's exit status: 0 every defect was noticed, 1 some was not. picked: userlands of the defects to try, none
    for all."""
    source = source_of(plan)
    known = defects.load(source)
    wanted = [defect for defect in known if not picked or defects.userland(source, defect) in picked]
    # What none of them can change needs no run of the source as it is.
    cells = [cell for cell in cells if any(cell in concerned(defect, [cell]) for defect in wanted)]
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    folder = build.ensure(targets=build.RUNTIME)
    findings = []
    with progress.Progress("sensitivity") as show, worlds.Compiler(folder) as compiler:
        tree = libraries.Tree(source, show)
        setup = pool.Setup(folder, compiler, {})
        everything = Run(tree, setup, cells, arguments.jobs, show)
        stamp = hashlib.sha256(worlds.shim(folder).read_bytes())
        stamp.update(f"{tree.source.digest} {sorted(cell.id for cell in cells)}".encode())
        journal = Journal(out / "findings.jsonl", arguments.resume, stamp.hexdigest()[:16])
        with tree.lock():
            sound, rows = everything.sound(known)
            for defect in wanted:
                last = journal.get(defect)
                if last is None:
                    last = everything.one(defect, sound, rows)
                    journal.add(last)
                findings.append(last)
                show.note(f"{len(findings)}/{len(wanted)} {defect.name}: " + (
                    f"noticed by {len(last.by)}, first {last.by[0]}" if last.caught else last.error or "NOTHING noticed it"))
    told = report.data(plan, source, rows, findings, time.monotonic() - start)
    report.write(told, out)
    report.show(told, out)
    return EXIT_OK if all(finding.caught for finding in findings) else EXIT_UNEXPECTED
