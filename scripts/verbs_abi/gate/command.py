# SPDX-License-Identifier: BSD-2-Clause
"""verbs-abi gate: may one userland be released in place of another? Exit 0: yes, 1: no, 2: no answer."""

import dataclasses
import fnmatch
import os
import pathlib
import sys

from verbs_abi import userlands
from verbs_abi.cells import clients, ids, negotiation, plans, turning
from verbs_abi.errors import EXIT_OK, EXIT_UNEXPECTED, EXIT_USAGE, UserError
from verbs_abi.gate import compare, headers
from verbs_abi.reports import model
from verbs_abi.run import command as run
from verbs_abi.symbols import read

PLAN = "gate"
# Lines of one list on the terminal; the reports have all.
SHOWN = 12


def register(subparsers):
    parser = subparsers.add_parser(
        "gate", help="may one userland be released in place of another",
        description="Runs a plan's cells with both userlands and compares them: exported symbols, ABI facts of the kernel's "
                    "headers, negotiation, and every cell. What got better is told too.",
        epilog="Exit status: 0 yes, 1 no, 2 usage or set-up error, or cells that "
               "could not be run or have no model.")
    parser.add_argument("--old", required=True, metavar="USERLAND", help="a name, or a place as for run --userland")
    parser.add_argument("--new", required=True, metavar="USERLAND", help="the same")
    parser.add_argument("--kernels", metavar="PATTERNS", help="only these, with commas between: debian-*,linux-6.6")
    parser.add_argument("--plan", default=PLAN, help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cells at once; default: %(default)s")
    parser.add_argument("--resume", action="store_true", help="go on with the run that --out holds")
    parser.add_argument("--out", default="out/gate", metavar="DIR", help="where the reports go; default: %(default)s")
    parser.set_defaults(handler=handle, shard=None, keep_traces=False)


def cells_of(plan, kernels, old, new):
    """The plan's cells for both userlands, each scenario once for each of them.

    Not those that run tests which a release brings along: two releases have different ones.
    """
    patterns = ["*"] if kernels is None else [text.strip() for text in kernels.split(",") if text.strip()]
    if not patterns:
        raise UserError(f"--kernels {kernels!r} names no kernel", hint="Without --kernels all of the plan's are run.")
    known = list(ids.kernels())
    for pattern in patterns:
        if not fnmatch.filter(known, pattern):
            ids.check_kernel(pattern)
    scenarios = dict.fromkeys(
        dataclasses.replace(cell, userland="") for cell in plans.load(plan)
        if any(fnmatch.fnmatchcase(cell.kernel, pattern) for pattern in patterns)
        and not clients.brings_tests(cell.scenario))
    if not scenarios:
        raise UserError(f"plan {plan} has no cell that could be compared" + (f" on {kernels}" if kernels else ""),
                        hint="verbs-abi list cells --plan tells a plan's cells.")
    return [dataclasses.replace(cell, userland=name) for name in (old, new) for cell in scenarios]


def _turning(rows, old, new):
    points = list(turning.turning_points(rows, "userland", [old, new]))
    kernels = [name for name in ids.kernels() if ids.release_key(name)[0] is False]
    for name in (old, new):
        points += turning.turning_points([row for row in rows if row["userland"] == name], "kernel", kernels)
    return points


def _print_list(title, rows, text):
    if rows:
        print(f"{title} ({len(rows)})")
    for row in rows[:SHOWN]:
        print("  " + text(row))
    if len(rows) > SHOWN:
        print(f"  and {len(rows) - SHOWN} more")


def _print(gate, results, out):
    for key, title in (("symbols", "symbols"), ("facts", "ABI facts"), ("negotiation", "negotiation")):
        rows = [row for row in gate[key] if row["stops"] or not row["class"].endswith(("-new-node", "-added", "-removed"))]
        _print_list(title, rows, lambda row: f"{row['class']}: {row['what']} ({row['detail']})"
                    + (" [stops the release]" if row["stops"] else ""))
        more = len(gate[key]) - len(rows)
        if more:
            print(f"{title}: {more} that only add or are private")
    for key, title in (("worse", "worse"), ("better", "better"), ("x_unmodelled", "without a model: not compared")):
        _print_list(title, gate[key], lambda row: f"{row['id']}: {row['was']} → {row['is']}"
                    + (f" ({row['detail']})" if row["detail"] else ""))
    groups = turning.grouped(gate["x_turning"])
    _print_list("turning points", list(groups.items()), lambda item: (
        f"{item[0][0]} {item[0][2]} is the first {item[0][1]} of {len(item[1])}: {item[1][0]}"
        f" ({item[0][3]}: {item[0][4]}, then {item[0][5]})"))
    words = {"pass": "Yes", "fail": "No", "not_run": "No answer"}[gate["result"]]
    print(f"May {gate['new']} replace {gate['old']}? {words}." + ("" if not gate["reasons"] else ""))
    for reason in gate["reasons"]:
        print(f"  {reason}")
    print(f"{model.verdict_sentence(results['summary'])}, {results['summary']['distinct_traces']} distinct traces, "
          f"{results['summary']['wall_s']:.0f} s.   Ticket: {out / 'summary.md'}   CI: {out / 'junit.xml'}")


def handle(arguments):
    return run.interruptible(_handle, arguments)


def _handle(arguments, came):
    old, new = (userlands.resolve(text) for text in (arguments.old, arguments.new))
    for name in (old, new):
        ids.check_userland(name)
    if old == new:
        raise UserError(f"{old} cannot replace itself", hint="Name two userlands.")
    cells = cells_of(arguments.plan, arguments.kernels, old, new)
    of_headers = headers.findings(old, new)

    def judge(rows):
        return compare.answer(old, new, rows, (read.facts(old), read.facts(new)),
                              (negotiation.accepted(old), negotiation.accepted(new)), _turning(rows, old, new), of_headers)

    results, complete = run.execute(arguments, arguments.plan, cells, judge)
    if not complete:
        print("interrupted; go on with --resume", file=sys.stderr)
        return 128 + came[0]
    gate = results["gate"]
    _print(gate, results, pathlib.Path(arguments.out))
    return {"pass": EXIT_OK, "fail": EXIT_UNEXPECTED}.get(gate["result"], EXIT_USAGE)
