# SPDX-License-Identifier: BSD-2-Clause
"""Builds pairs, source by source, and tells what came of each."""

from verbs_abi.facts import tool
from verbs_abi.facts.builds import engine, rows, sources


def build_all(wanted, progress, *, jobs=None, again=False, kernels=None, done=None):
    """Rows of results.json for pairs (source, headers name), in their order. done(rows) is called after each pair.

    Pairs of one source are built one after the other in one folder, where what they share stays built.
    """
    found = []
    by_source = {}
    for source, headers in wanted:
        by_source.setdefault(source, []).append(headers)
    for name, all_headers in by_source.items():
        source = sources.get(name, progress)
        builder = engine.Builder(source, jobs, progress)
        for headers in all_headers:
            with builder.lock():
                pair = builder.pair(tool.headers(headers), again)
            told = rows.rows_of(pair, source, kernels)
            found += told
            if done:
                done(pair, told)
    return found
