# SPDX-License-Identifier: BSD-2-Clause
"""All reports of one run."""

from __future__ import annotations

import datetime
import pathlib
import sys

from . import history, junit, markdown, page, store
from .schema import validate

FILES = {
    "results.json": store.dumps,
    "junit.xml": junit.render,
    "summary.md": markdown.render,
    "index.html": page.render,
}


def write_all(results, out_dir, *, keep_history=True):
    """Validates `results`, writes results.json, junit.xml, summary.md, index.html into `out_dir`,
    and adds the run to history.sqlite there. Returns the paths by file name.

    `results` may lack `generated` and `changes`; they are filled in. Raises ResultsError before
    anything is written. A history that cannot be used costs only "changed since the last run": the
    reason goes to standard error.
    """
    out_dir = pathlib.Path(out_dir)
    results = dict(results)
    if not results.get("generated"):
        results["generated"] = datetime.datetime.now(datetime.timezone.utc).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        )
    validate(results)
    past = out_dir / "history.sqlite"
    if keep_history:
        try:
            results["changes"] = history.changes(past, results)
        except history.HistoryError as error:
            results["changes"] = None
            print(f"notice: no comparison with earlier runs: {error}", file=sys.stderr)
            keep_history = False
    texts = {name: render(results) for name, render in FILES.items()}
    store.write_together({out_dir / name: text for name, text in texts.items()})
    if keep_history:
        try:
            history.append(past, results)
        except history.HistoryError as error:
            print(f"notice: this run is not in the history: {error}", file=sys.stderr)
    return {name: out_dir / name for name in texts}


def sweep(out_dir):
    """Removes what a run that was killed while it wrote has left in its folder."""
    store.sweep(out_dir, FILES)
