# SPDX-License-Identifier: BSD-2-Clause
"""The conformance suites in a cell: the facts that they select their tests by, and what came of them.

The program (harness/conformance) reads the file that VERBS_ABI_CELL names and writes one JSON object a line:
{"test": "Fallback.EnottyMarksTheWholeContext", "result": "passed"}; a failed one has a "message".
"""

import json

from verbs_abi.cells import features, outcome, trace

SCENARIO = "conformance"
# Of one failed test's text in the results; the exec line shows all of it.
MESSAGE = 4000


def describe(cell, userland, answer, trace_path):
    """The facts of a cell, as harness/conformance/framework/cell.h wants them.

    answer: what vabi-world said of the compiled world, with its model.
    """
    return {"id": cell.id, "kernel": cell.kernel, "userland": cell.userland, "release": release(userland),
            "devices": answer["devices"], "overlays": list(cell.overlays), "trace": str(trace_path),
            "model": answer["model"]}


def release(userland):
    """"44.0" of a userland whose packages are of version 44.0-2."""
    return userland.source_version.partition("-")[0]


def write_facts(folder, cell, userland, answer, trace_path):
    """Writes them into the run folder; the variables that lead the program there."""
    path = folder / "cell.json"
    path.write_text(json.dumps(describe(cell, userland, answer, trace_path)))
    return {"VERBS_ABI_CELL": str(path)}


def rows_of(text):
    """The tests that a program has told of: rows of results.json."""
    rows = []
    for row in outcome.rows_of(text):
        if "test" not in row:
            continue
        message = row.get("message")
        rows.append({"name": row["test"], "result": row["result"],
                     "message": message[:MESSAGE] if message else None})
    return rows


def judge(ended, records):
    """The Outcome of a conformance cell: full when every test that holds in it passed."""
    rows = rows_of(ended.stdout)
    result = outcome.Outcome("broken", route=features.route(records), discovery=features.discovery(records),
                             trace_digest=trace.digest(records), tests=rows)
    failed = [row for row in rows if row["result"] != "passed"]
    missing = next(filter(None, map(trace.unmodelled, records)), None)
    if missing is not None:
        result.outcome = "unmodelled"
        result.message = missing
    elif ended.limit or ended.signal:
        what = {"time": f"no end after {ended.seconds:.0f} s", "output": "too much output"}.get(
            ended.limit, f"crashed: {ended.signal_name}")
        result.message = what + (f" after {rows[-1]['name']}" if rows else " before the first test")
    elif failed:
        first = (failed[0]["message"] or "failed").splitlines()[0]
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        result.message = f"{failed[0]['name']}: {first}{more}"
    elif ended.status != 0:
        told = ended.stderr.strip().splitlines()
        result.message = told[-1] if told else f"exit status {ended.status}"
    elif not rows:
        result.message = "no conformance test holds in this cell"
    else:
        result.outcome = "full"
    return result


def tell(result):
    """The cell step by step: how each suite went, then what failed in it. Rows as steps.tell makes them."""
    suites = {}
    for row in result.tests:
        suites.setdefault(row["name"].partition(".")[0], []).append(row)
    told = []
    for suite, rows in suites.items():
        failed = [row for row in rows if row["result"] != "passed"]
        told.append({"stage": suite, "text": f"{len(rows) - len(failed)} of {len(rows)} tests passed", "by": "program"})
        told += [{"stage": suite, "text": f"{row['name']}: {(row['message'] or 'failed').splitlines()[0]}", "by": "program"}
                 for row in failed]
    return told
