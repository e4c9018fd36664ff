# SPDX-License-Identifier: BSD-2-Clause
"""Pairs as rows of results.json, one a library, each with its verdict."""

import fnmatch
import shlex

from verbs_abi import matrix, paths
from verbs_abi.facts import tool
from verbs_abi.facts.builds import causes, layout


def rows_of(pair, source, kernels=None):
    """The rows of a pair. kernels: whose facts the layouts are held against; default: layout.kernels_of()."""
    kernels = layout.kernels_of(source, pair.headers) if kernels is None else kernels
    drift = layout.drift(pair, kernels)
    renamed = None
    rows = []
    for library in pair.libraries:
        row = {"source": pair.source, "headers": pair.headers, "library": library.name, "arch": "x86_64",
               "duration_ms": round(pair.seconds * 1000),
               "exec": "./verbs-abi " + shlex.join(["facts", "build", "--source", pair.source, "--headers", pair.headers])}
        if library.file is None:
            # Anew where there are words: the table of causes may know more than when it was built.
            cause = (library.error and causes.cause_of(library.error)) or library.cause
            if cause and cause.startswith("missing field") and renamed is None:
                renamed = _renames(source, pair)
            cause = renamed_cause(cause, renamed or {})
            rows.append({**row, "result": "failed", "error": library.error, "cause": cause,
                         "verdict": _verdict_of_failure(pair, source, cause)})
        elif library.name in drift:
            rows.append({**row, "result": "drift", **_verdict_of_drift(drift[library.name])})
        else:
            rows.append({**row, "result": "built", "verdict": "expected", "x_kernels": list(kernels)})
    return rows


def renamed_cause(cause, renames):
    """"missing field s.m" → "renamed field s.m: these headers call it n", where the facts say so."""
    name = (cause or "").removeprefix("missing field ")
    now = renames.get(name) or renames.get(_key(name))
    return f"renamed field {name}: these headers call it {now}" if now else cause


def _key(name):
    """"efa_alloc_ucontext.comp_mask" → "efa.comp_mask": rdma-core wraps the kernel's structs in ones of its own, which gcc
    names instead."""
    return f"{name.partition('_')[0]}.{name.rpartition('.')[2]}"


def _renames(source, pair):
    """{struct.member of the source's own headers: its name in the pair's}."""
    if source.headers is None or source.headers == pair.headers:
        return {}
    found = {}
    # From these headers to the source's own: `before` is what these call it.
    for change in tool.diff(tool.headers(pair.headers), tool.headers(source.headers))["changes"]:
        if change["class"] in ("renamed", "other_meaning") and "." in change["subject"]:
            old = change["before"].split(" @")[0].split()[-1]
            found[change["subject"]] = old
            found[_key(change["subject"])] = old
    return found


def _verdict_of_failure(pair, source, cause):
    """A library may not build with headers that lack what it needs; with its own it must, and no failure may be strange."""
    if pair.headers == source.headers or cause is None:
        return "unexpected"
    return "expected"


def _known():
    return matrix.read_json(paths.matrix_dir() / "builds" / "known-drift.json")["rows"]


def _holds(row, one):
    kernels = all(any(fnmatch.fnmatchcase(name, wanted) for wanted in row["kernels"]) for name in one["x_kernels"])
    return row["member"] == one["type"] and one["class"] in row["classes"] and kernels


def _verdict_of_drift(drift):
    """Verdict, cause and the drift itself; what was looked into has its reason."""
    told, verdict = [], "expected"
    for one in drift:
        reason = next((row["reason"] for row in _known() if _holds(row, one)), None)
        if reason is None:
            verdict = "unexpected"
        told.append({**one, "x_reason": reason} if reason else one)
    kernels = sorted({kernel for one in drift for kernel in one["x_kernels"]})
    cause = f"silent drift against {', '.join(kernels)}"
    if verdict == "expected":
        cause += "; looked into: " + "; ".join(dict.fromkeys(one["x_reason"] for one in told))
    return {"verdict": verdict, "cause": cause, "drift": told}


def summary(rows):
    """{result: count}."""
    found = {"built": 0, "failed": 0, "drift": 0, "not_run": 0}
    for row in rows:
        found[row["result"]] += 1
    return found
