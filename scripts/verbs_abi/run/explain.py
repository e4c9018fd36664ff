# SPDX-License-Identifier: BSD-2-Clause
"""verbs-abi explain CELL: runs the cell once more and tells why it ends as it does, step by step."""

import dataclasses
import json
import sys

from verbs_abi import matrix, screen, userlands
from verbs_abi.cells import ids, plans, pool, worlds
from verbs_abi.setup import build
from verbs_abi.userlands import releases


def register(subparsers):
    parser = subparsers.add_parser(
        "explain", help="why a cell ended as it did, step by step",
        description="Runs one cell and tells its steps: what was asked, which rule of the kernel refused it with which "
                    "errno, and what the library did then. Exit status as of run.",
        epilog="For example: verbs-abi explain deb-44.0/linux-4.16/mlx5/no-ioctl")
    parser.add_argument("cell", help="as run prints it: USERLAND/KERNEL/PROVIDER[/OVERLAY…][@SCENARIO]")
    parser.add_argument("--json", action="store_true", help="the cell's row of results.json")
    parser.set_defaults(handler=handle)


def _headline(row):
    words = row["outcome"] or row["verdict"]
    if row.get("route"):
        words += f", by {row['route']}"
    if row.get("lost"):
        words += "; lost: " + ", ".join(row["lost"])
    elif row.get("message"):
        words += f": {row['message']}"
    return words


def reasons(kernel):
    """What the kernel's file, or the nearest file it descends from, says of a rule or a method: {name: "KERNEL: why"}."""
    found = {}
    for entry in matrix.lineage(kernel):
        for change in entry.data.get("changes", ()):
            name = change.get("rule") or change.get("method")
            if name and change.get("why"):
                found.setdefault(name, None if change.get("served") else f"{entry.name}: {change['why']}")
    return found


def _whys(step, whys):
    """Of a step: that its rule differs there, that its method is not served."""
    names = [step.get("rule"), *(word.rstrip(":") for word in step["text"].split())]
    return [whys[name] for name in names if whys.get(name)]


# Where the words of a step begin; nearer to the edge where the terminal is narrow.
STAGE, NARROW = 13, 60


def _lines(row, sources, whys, width=None):
    limit = min(100, width or 100)
    stage, deep = (STAGE, " " * (STAGE + 4)) if limit >= NARROW else (0, " " * 4)
    yield from screen.wrap(_headline(row), width)
    told = set()
    for step in row.get("steps", ()):
        effect = f" → {step['effect']}" if step.get("effect") else ""
        by = step.get("by") or ""
        if step.get("rule"):
            by += f", rule {step['rule']}"
        if stage:
            first = f"  {step['stage']:{stage}}"
        else:
            yield f"  {step['stage']}"
            first = deep
        yield from screen.wrap(f"{step['text']}{effect}", limit, first, deep)
        if by:
            yield from screen.wrap(by, width, deep, deep)
        if step.get("rule") in sources:
            yield from screen.wrap("source: " + sources[step["rule"]], width, deep, deep)
            for why in _whys(step, whys):
                if why not in told:
                    yield from screen.wrap("in " + why, limit, deep, deep + "  ")
                told.add(why)
    meant = row.get("expectation")
    if meant:
        yield from screen.wrap(f"verdict: {row['verdict']} (expected: {meant['outcome']}; {meant['reason']})", width)
    known = row.get("known_by")
    if isinstance(known, dict):
        yield from screen.wrap(f"known: core {known['core']}, driver {known['driver']}", width)
    yield f"reproduce: {row['exec']}"  # whole, to be copied


def _text_unplanned(cell, row):
    """Of a cell that is not as expected: a sentence when no plan has it, since nobody looked into it then; else None. Many
    drivers are run without a data path, so that nothing is said of their journey: the cells of the same world are named."""
    def world(one):
        return one.userland, one.kernel, one.devices, one.overlays

    release = dataclasses.replace(cell, userland=releases.of(cell.userland) or cell.userland)
    names = []
    for plan in ("quick", "gate", "negotiation", "nightly"):
        found = [one.id for one in plans.load(plan) if world(one) == world(release)]
        if release.id in found:
            return None
        names = names or found
    text = "No plan has this cell, so nobody looked into it"
    if "name" not in (row.get("expectation") or {}):
        text += ", and no expectation names it: 'full' is only what a cell is held to that nothing is known of"
    return text + ("." if not names else ". Of the same world there are: " + ", ".join(names))


def handle(arguments):
    cell = ids.parse(arguments.cell)
    folder = build.ensure(targets=build.RUNTIME)
    build.ensure_shims({userlands.arch(cell.userland)})
    with worlds.Compiler(folder) as compiler:
        row = pool.run_cell(pool.Setup(folder, compiler, {}), cell)
    if arguments.json:
        json.dump(row, sys.stdout, indent=1, ensure_ascii=False)
        print()
    else:
        sources = {rule["name"]: rule["source"] for rule in worlds.rules(folder)}
        for line in _lines(row, sources, reasons(cell.kernel), screen.columns()):
            print(line)
        text = _text_unplanned(cell, row) if row["verdict"] == "unexpected" else None
        if text:
            print("\n".join(screen.wrap(text, screen.columns())))
    return {"unexpected": 1, "not_run": 2}.get(row["verdict"], 0)
