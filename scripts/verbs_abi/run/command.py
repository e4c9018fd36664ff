# SPDX-License-Identifier: BSD-2-Clause
"""verbs-abi run: runs the cells of a plan, or those that the arguments name, and writes the reports."""

import contextlib
import fnmatch
import json
import os
import pathlib
import re
import shlex
import signal
import sys
import time

from verbs_abi import children, locks, matrix, progress, userlands
from verbs_abi.cells import expect, ids, plans, pool, programs, worlds
from verbs_abi.errors import EXIT_OK, EXIT_UNEXPECTED, EXIT_USAGE, UserError, printable
from verbs_abi.run import provenance
from verbs_abi.setup import build
from verbs_abi.userlands import built


def register(subparsers):
    parser = subparsers.add_parser(
        "run", help="run cells of the matrix, write the reports",
        description="Runs a plan's cells, or those of its cells that the other arguments name; arguments that name none "
                    "of the plan's cells make cells of their own.",
        epilog="Exit status: 0 all as expected, 1 something unexpected, 2 usage or set-up error, 130 interrupted.")
    parser.add_argument("--plan", help=f"default: {plans.DEFAULT_PLAN}")
    parser.add_argument("--userland", action="append", default=[],
                        help="a name, or prefix:DIR, deb:FILES, rpm:FILES, src:DIR (docs/userlands.md); may be repeated")
    for name in ("kernel", "provider"):
        parser.add_argument(f"--{name}", action="append", default=[], help="may be repeated; see verbs-abi list")
    parser.add_argument("--device", action="append", default=[], metavar="NAME=DRIVER[,link=ib|roce|iw]")
    parser.add_argument("--overlay", action="append", default=[], help="may be repeated")
    parser.add_argument("--scenario", action="append", default=[], help=", ".join(ids.SCENARIOS))
    parser.add_argument("--cell", action="append", default=[], help="one cell by its name")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cells at once; default: %(default)s")
    parser.add_argument("--shard", metavar="I/N", help="only this part of the cells, by a hash of their names")
    parser.add_argument("--resume", action="store_true", help="go on with the run that --out holds")
    parser.add_argument("--out", default="out", metavar="DIR", help="where the reports go; default: %(default)s")
    parser.add_argument("--keep-traces", action="store_true", help="keep each cell's trace in DIR/traces")
    parser.set_defaults(handler=handle)


def pick_built(arguments):
    """The userlands that the plan builds and that --userland names, by name or pattern. It names the others from now on."""
    from verbs_abi.facts.builds import plan

    patterns = [text for text in arguments.userland if built.is_name(text)]
    if not patterns or arguments.cell or arguments.device:
        return []
    picked = plan.named(arguments.plan or plans.DEFAULT_PLAN, patterns)
    arguments.userland = [text for text in arguments.userland if text not in patterns or not fnmatch.filter(picked, text)]
    return picked


def pick_defects(arguments):
    """The userlands with a defect that --userland names, by name or pattern, of a plan that tries defects: it has no others,
    and none is left to name. Empty of another plan."""
    from verbs_abi.sensitivity import check, defects

    source = None if arguments.cell or arguments.device else check.source_of(arguments.plan)
    if source:
        picked = defects.named(source, arguments.userland)
        arguments.userland = []
        return picked
    for text in filter(defects.is_name, arguments.userland):
        raise UserError(f"'{text}': userlands with a defect are those of a plan that tries defects",
                        hint="For example --plan " + ", ".join(check.plans()))
    return []


def choose(arguments, picked=()):
    """(name of the plan or None, cells). picked: userlands that the plan builds, whose cells are known after that."""
    arguments.userland = [userlands.resolve(text) for text in arguments.userland]
    ids.check_names(arguments)
    if picked and not arguments.userland:
        return arguments.plan or plans.DEFAULT_PLAN, []
    if arguments.cell:
        return None, [ids.parse(text) for text in arguments.cell]
    named = (arguments.userland, arguments.kernel, arguments.provider, arguments.overlay, arguments.scenario)
    if arguments.device:
        return None, plans.made(arguments.userland, arguments.kernel, (), arguments.device + arguments.provider,
                                arguments.overlay, arguments.scenario)
    name = arguments.plan or plans.DEFAULT_PLAN
    planned = plans.load(name)
    if arguments.userland and not any(cell.userland in arguments.userland for cell in planned):
        planned = plans.with_userlands(planned, arguments.userland)
    cells = plans.select(planned, *named)
    if cells or not any(named):
        return name, cells
    if arguments.plan:
        raise UserError(f"plan {name} has no such cell", hint="Without --plan, cells are made from what you name.")
    return None, plans.made(arguments.userland, arguments.kernel, arguments.provider, (), arguments.overlay,
                            arguments.scenario)


def _shard(text, cells):
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UserError(f"--shard {text}: not a part of a whole", hint="For example --shard 1/4, up to 4/4.")
    return [cell for cell in cells if cell.in_shard(int(match[1]), int(match[2]))]


class Journal:
    """What was done, a line a cell, written at once: an interrupted run loses nothing and can be resumed."""

    def __init__(self, out, resume, stamp):
        self._path = out / "cells.jsonl"
        self.rows = {}
        if resume and self._path.exists():
            self._read(stamp)
        mode = "a" if self.rows else "w"
        try:
            self._file = self._path.open(mode, encoding="utf-8")
        except OSError as error:
            raise _unwritable(self._path, error) from error
        self._write({"stamp": stamp})

    def _read(self, stamp):
        for line in self._path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue  # the run ended in the middle of a line
            if "stamp" in row and _contradict(row["stamp"], stamp):
                raise UserError(f"{self._path}: the run there was made with another build or other data",
                                hint="Start again without --resume.")
            if "id" in row and row["verdict"] != "not_run":
                self.rows[row["id"]] = row

    def _write(self, row):
        try:
            self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            raise _unwritable(self._path, error) from error

    def add(self, row):
        self.rows[row["id"]] = row
        self._write(row)

    def close(self):
        try:
            self._file.close()
        except OSError:
            pass  # what could not be written was told


def _contradict(one, other):
    """Are two runs' provenances of different things? That one of them has cells of more kernels is no difference."""
    def named(stamp):
        return {(key, name): digest for key, value in stamp.items()
                for name, digest in (value.items() if isinstance(value, dict) else [(None, value)])}

    first, second = named(one), named(other)
    return any(first[name] != second[name] for name in first.keys() & second.keys())


def _unwritable(path, error):
    return UserError(f"{path} cannot be written: {error.strerror}",
                     hint="Make room and go on with --resume, or name another folder with --out.")


def _axes(cells):
    kernels = {}
    for name, entry in ids.kernels().items():
        if any(cell.kernel == name for cell in cells):
            kernels[name] = {key: value for key, value in {
                "title": entry.data.get("about"), "kind": entry.data.get("kind"), "version": entry.data.get("version"),
                "known_by": entry.data.get("known_by")}.items() if value}
    return {"kernels": kernels}


def _oracle():
    """The stored agreement with real kernels, when there is any."""
    try:
        from verbs_abi.oracle import agreement
    except ImportError:
        return {}
    return agreement.stored()


def _utc(when):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))


def _userlands(cells, show):
    """({name: Userland}, {name: UserError}): cells of a userland that cannot be had are "not run"."""
    ready, lacking = {}, {}
    for name in dict.fromkeys(cell.userland for cell in cells):
        show.update(f"userland {name}")
        try:
            ready[name] = userlands.get(name)
            build.ensure_shims({ready[name].arch})
        except UserError as error:
            ready.pop(name, None)
            lacking[name] = error
            show.note(f"not run: {error}")
            continue
        wanted = {(pool.built_with(name, cell.scenario), pool.program_of(cell.scenario)) for cell in cells
                  if cell.userland == name}
        for owner, program in sorted((pair for pair in wanted if pair[1]), key=str):
            if owner not in ready and owner not in lacking:
                try:
                    ready[owner] = userlands.get(owner)
                except UserError as error:
                    lacking[owner] = error
                    show.note(f"not run: {error}")
            if owner in ready:
                programs.build(program, ready[owner], show)
    if not ready and lacking:
        raise next(iter(lacking.values()))
    return ready, lacking


def _builds(plan, arguments, picked):
    """(rows, cells) of what the plan builds: of the userlands that were picked, of all when the arguments pick no cells."""
    named = (arguments.userland, arguments.kernel, arguments.provider, arguments.overlay, arguments.scenario)
    if plan is None or (not picked and any(named)):
        return [], []
    from verbs_abi.facts.builds import cells

    with progress.Progress("build") as show:
        rows, found = cells.of_plan(plan, show, arguments.jobs, only=picked or None)
    return rows, plans.select(found, (), *named[1:])


@contextlib.contextmanager
def _signals():
    """SIGTERM and SIGHUP end a run as Ctrl-C does: with the reports of what was done. Yields a list of the signals
    that came."""
    came = []
    own = os.getpid()

    def end(number, _frame):
        if os.getpid() != own:
            return  # a child that is about to become a cell's program: a terminal signals the whole group
        came.append(number)
        children.interrupt(number)

    kept = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield came
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def handle(arguments):
    return interruptible(_handle, arguments)


def interruptible(body, arguments):
    """body(arguments, signals that came), its exit status; a signal before the first cell ends it with a word."""
    for axis in ("expectations", "kernels", "overlays", "providers"):
        matrix.load(axis)  # a broken file ends the run before its first cell
    expect.check()
    with _signals() as came:
        try:
            return body(arguments, came)
        except children.Interrupted as asked:
            print("verbs-abi: interrupted", file=sys.stderr)
            return 128 + (came or [asked.number])[0]


def execute(arguments, plan, cells, gate=lambda rows: None, builds=()):
    """Runs the cells and writes the reports; returns (results, whether all were run).

    gate: from all rows to the gate object of results.json. builds: rows of what was built before.
    """
    from verbs_abi import reports
    from verbs_abi.reports import model

    started = time.time()
    planned = len(cells)
    if arguments.shard:
        cells = _shard(arguments.shard, cells)
        planned = len(cells)
    if arguments.jobs < 1:
        raise UserError("--jobs needs at least 1")
    out = pathlib.Path(arguments.out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"the folder {out} cannot be made: {error.strerror}", hint="Name another with --out.") from error
    folder = build.ensure(targets=build.RUNTIME)
    with locks.exclusive(out / ".lock", f"writing to {out}", seconds=5):
        reports.sweep(out)
        with progress.Progress("run") as show, worlds.Compiler(folder) as compiler:
            ready, lacking = _userlands(cells, show)
            found = provenance.of(cells, ready, folder)
            journal = Journal(out, arguments.resume, {key: found[key] for key in ("shim", "facts", "kernels", "userlands")})
            traces = None
            if arguments.keep_traces:
                traces = out / "traces"
                traces.mkdir(exist_ok=True)
            setup = pool.Setup(folder, compiler, ready, traces, lacking)
            todo = [cell for cell in cells if cell.id not in journal.rows]
            begin = time.monotonic()
            complete = True

            def done(row):
                journal.add(row)
                mark = "" if row["verdict"] == "expected" else f"  {row['verdict']}: {row['outcome']}"
                show.update(f"{len(journal.rows)}/{len(cells)} {row['id']}{mark}")
                if mark and not progress.for_people():
                    show.note(f"{row['id']}{mark} {row.get('message') or ''}")

            try:
                pool.run_cells(setup, todo, arguments.jobs, done)
            except KeyboardInterrupt:
                complete = False
            journal.close()
        # Reports are whole or the old ones, whenever we are asked to end.
        with children.undisturbed():
            order = {cell.id: index for index, cell in enumerate(cells)}
            rows = sorted((row for row in journal.rows.values() if row["id"] in order),
                          key=lambda row: order[row["id"]])
            rows = plans.absent_once(plan, rows)
            results = {
                "schema_version": 1, "stack": "rdma-core", "provenance": found, "axes": _axes(cells), "cells": rows,
                "run": {"plan": plan, "command": printable(shlex.join(["./verbs-abi", *sys.argv[1:]])), "started": _utc(started),
                        "finished": _utc(time.time()), "jobs": arguments.jobs, "complete": complete, "planned": planned,
                        **({"shards": [arguments.shard]} if arguments.shard else {})},
                "summary": model.summarise(rows, round(time.monotonic() - begin, 2)), "oracle": _oracle(),
                "gate": gate(rows) if complete else None, "builds": list(builds)}
            try:
                reports.write_all(results, out)
            except OSError as error:
                raise _unwritable(error.filename or out, error) from error
    return results, complete


def _handle(arguments, came):
    from verbs_abi.reports import terminal

    broken = pick_defects(arguments)
    picked = pick_built(arguments)
    plan, cells = choose(arguments, picked)
    if plan is not None and matrix.get("plans", plan).data.get("defects"):
        from verbs_abi.sensitivity import check

        return check.run(plan, cells, arguments, broken)
    builds, more = _builds(plan, arguments, picked)
    cells = list({cell.id: cell for cell in [*cells, *more]}.values())
    results, complete = execute(arguments, plan, cells, builds=builds)
    rows, planned = results["cells"], results["run"]["planned"]
    terminal.table(results, report=str(pathlib.Path(arguments.out) / "index.html"))
    if not complete:
        print(f"interrupted after {len(rows)} of {planned} cells; go on with --resume", file=sys.stderr)
        return 128 + came[0]
    # An expected failure that passes is good news, told in the report; it fails no release.
    if any(row["verdict"] == "unexpected" for row in [*rows, *builds]):
        return EXIT_UNEXPECTED
    return EXIT_USAGE if any(row["verdict"] == "not_run" for row in rows) else EXIT_OK
