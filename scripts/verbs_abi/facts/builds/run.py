# SPDX-License-Identifier: BSD-2-Clause
"""Builds pairs, source by source, and tells what came of each."""

from verbs_abi.errors import UserError
from verbs_abi.facts import tool
from verbs_abi.facts.builds import engine, rows, sources


def build_all(wanted, progress, *, jobs=None, again=False, kernels=None, done=None, keep_going=False):
    """Rows of results.json for pairs (source, headers name), in their order. done(pair, rows) is called after each pair.

    keep_going: a source that cannot be had gives rows "not run" instead of an error.

    Pairs of one source are built one after the other in one folder, where what they share stays built.
    """
    found = []
    by_source = {}
    for source, headers in wanted:
        by_source.setdefault(source, []).append(headers)
    for name, all_headers in by_source.items():
        try:
            source = sources.get(name, progress)
        except UserError as error:
            if not keep_going:
                raise
            progress.note(f"not built: {error.what}")
            found += [_not_run(name, headers, error) for headers in all_headers]
            continue
        builder = engine.Builder(source, jobs, progress)
        for headers in all_headers:
            with builder.lock():
                pair = builder.pair(tool.headers(headers), again)
            told = rows.rows_of(pair, source, kernels)
            found += told
            if done:
                done(pair, told)
    return found


def _not_run(source, headers, error):
    """The row of a pair whose source cannot be had."""
    return {"source": source, "headers": headers, "library": "libibverbs", "arch": "x86_64", "result": "not_run",
            "verdict": "not_run", "cause": error.what, "exec": f"./verbs-abi facts build --source {source} --headers {headers}"}
