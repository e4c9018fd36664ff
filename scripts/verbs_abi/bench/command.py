# SPDX-License-Identifier: BSD-2-Clause
"""verbs-abi bench: all measurements in one run."""

import json
import sys

from verbs_abi import progress
from verbs_abi.bench import measures
from verbs_abi.cells import worlds
from verbs_abi.errors import unknown
from verbs_abi.setup import build


def register(subparsers):
    parser = subparsers.add_parser("bench", help="the benchmarks, each beside its baseline",
                                   description="Exit status 1 when a goal is not met.")
    parser.add_argument("--json", action="store_true", help="a list of {name, value, unit, baseline, ratio, goal, met}")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="one of " + ", ".join(measures.MEASURES) + "; may be repeated")
    parser.set_defaults(handler=handle)


def _line(row):
    parts = [f"{row['name']:28}", f"{row['value']:>14,.2f} {row['unit']:7}"]
    if row["baseline"] is not None:
        parts.append(f"baseline {row['baseline']:>14,.2f}  {row['ratio']:6.2f} x")
    if row["goal"] is not None:
        parts.append(f"goal {row['goal']}: {'met' if row['met'] else 'NOT MET'}")
    return "  ".join(parts)


def handle(arguments):
    for name in arguments.only:
        if name not in measures.MEASURES:
            raise unknown("measurement", name, measures.MEASURES)
    folder = build.ensure()
    rows = []
    with progress.Progress("bench") as show, worlds.Compiler(folder) as compiler:
        bench = measures.Bench(folder, compiler)
        for name, measure in measures.MEASURES.items():
            if arguments.only and name not in arguments.only:
                continue
            show.update(name)
            for row in measure(bench):
                rows.append(row)
                if not arguments.json:
                    show.output(_line(row) + "\n") if progress.for_people() else print(_line(row), flush=True)
    if arguments.json:
        json.dump(rows, sys.stdout, indent=1)
        print()
    return 0 if all(row["met"] is not False for row in rows) else 1
