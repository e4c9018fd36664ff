# SPDX-License-Identifier: BSD-2-Clause
"""Scenario pyverbs: the tests that a release of rdma-core ships, each in a process of its own, against a baseline.

    {"name": "pyverbs", "about": "…", "runner": "pyverbs", "seconds": 300, "test_seconds": 10, "alone": "test_rdmacm*"}

What a test's process asked that the fake kernel does not model makes that test skipped, never passed. A test that
passes because it waited for an error and got it, or whose name says that it does, is marked (x_expects: "error") and
counted apart.

Against the baseline (baselines.py), a test that did not end well there either is told as it is, and the cell is degraded.
"""

import json
import re
import sys

from verbs_abi import paths
from verbs_abi.cells import baselines, features, runner, trace
from verbs_abi.cells.outcome import Outcome
from verbs_abi.errors import UserError

RUNNER = "pyverbs"
# Tests that only want to be refused, by name.
WANTS_ERROR = re.compile(r"bad|invalid|illegal|wrong|unsupported|fail|negative|without_|no_", re.I)
# Processes at a time.
JOBS = 2


def python_of(userland):
    """The Python that fits the userland's pyverbs: its own, or this machine's."""
    modules = sorted((userland.python_path or paths.build_dir() / "none").glob("pyverbs/base.cpython-3*.so"))
    if not modules:
        raise UserError(f"userland '{userland.name}' has no pyverbs")
    version = re.search(r"cpython-3(\d+)", modules[0].name)[1]
    own = userland.root / f"usr/bin/python3.{version}"
    if own.exists():
        return str(own)
    if sys.version_info[:2] == (3, int(version)):
        return sys.executable
    raise UserError(f"pyverbs of userland '{userland.name}' needs Python 3.{version}, which is not there",
                    hint="The userland brings it along as package python3.N-minimal.")


def tests_of(userland):
    """The folder with the tests that the release ships."""
    found = sorted(userland.root.glob("usr/share/doc/*/tests/test_qp.py*"))
    if not found:
        raise UserError(f"userland '{userland.name}' ships no tests of pyverbs")
    return found[0].parent


def argv(data, userland):
    return [python_of(userland), str(paths.ROOT / "harness/clients/run_pyverbs.py"), str(tests_of(userland)),
            "--jobs", str(JOBS), "--seconds", str(data["test_seconds"]), "--alone", data["alone"]]


def exec_words(data):
    """How to run the tests by hand, in the project's folder."""
    return (f'python3 harness/clients/run_pyverbs.py "$PYTHONPATH/../../../share/doc/rdma-core/tests" --jobs {JOBS} '
            f"--seconds {data['test_seconds']} --alone '{data['alone']}'")


def rows_of(lines, records):
    """Rows of results.json, with the test's letter in x_letter, from the runner's lines and the world's trace."""
    gaps = {}
    for record in records:
        words = trace.unmodelled(record)
        if words:
            gaps.setdefault(record.get("pid"), words)
    rows = []
    for line in lines:
        gap = next(filter(None, [gaps.pop(pid, None) for pid in line.get("pids", ())]), None)
        result, message = line["result"], line["message"]
        if gap is not None and result != "crashed":
            result, message = "skipped", f"not modelled: {gap}" + (f" ({message})" if message else "")
        row = {"name": line["test"], "result": result if result in ("passed", "skipped") else "failed",
               "message": f"{result}: {message}" if result in ("crashed", "hung") else message,
               "duration_ms": round(line["seconds"] * 1000, 1), "x_letter": baselines.LETTERS[result]}
        if line.get("expects_error") or WANTS_ERROR.search(line["test"].rpartition(".")[2]):
            row["x_expects"] = "error"
        rows.append(row)
    return sorted(rows, key=lambda row: row["name"]), gaps


def run(data, cell, userland, shim, environment, folder):
    """(the runner's lines, runner.Ended) of the tests in a world that is compiled."""
    words, env = userland.command(argv(data, userland), shim)
    ended = runner.run(words, environment(env), seconds=data["seconds"], cwd=folder)
    lines = []
    for line in ended.stdout.splitlines():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return lines, ended


def outcome_of(cell, lines, ended, records):
    rows, gaps = rows_of(lines, records)
    known = baselines.of_cell(cell)
    worse, as_before = baselines.compare(rows, known)
    passed = [row for row in rows if row["result"] == "passed"]
    positive = [row for row in passed if "x_expects" not in row]
    count = {letter: sum(row["x_letter"] == letter for row in rows) for letter in baselines.LETTERS.values()}
    result = Outcome("full", tests=rows, route=features.route(records), discovery=features.discovery(records),
                     trace_digest=trace.digest_of_kinds(records))
    result.message = (f"{len(passed)} of {len(rows)} passed ({len(positive)} move data or make objects, "
                      f"{len(passed) - len(positive)} only expect an error), {count['s']} skipped, {count['f']} failed, "
                      f"{count['c']} crashed, {count['h']} hung" + ("" if known else "; no baseline for this kernel"))
    if ended.limit or ended.signal or ended.status:
        result.outcome = "broken"
        result.message = f"the runner did not end well ({ended.limit or ended.signal_name or ended.status}): " + \
            result.message
    elif gaps:
        result.outcome, result.message = "unmodelled", next(iter(gaps.values()))
    elif worse or not positive:
        result.outcome = "broken"
        first = next((row for row in rows if row["name"] in worse), None)
        result.message = f"{len(worse)} worse than the baseline" + (f"; {first['name']}: {first['message']}" if first else "") \
            + "; " + result.message
    elif as_before:
        result.outcome, result.lost = "degraded", as_before
    return result
