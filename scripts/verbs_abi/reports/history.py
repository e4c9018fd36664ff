# SPDX-License-Identifier: BSD-2-Clause
"""What earlier runs found (SQLite): for "changed since the last run"."""

from __future__ import annotations

import contextlib
import hashlib
import json
import pathlib
import sqlite3

FORMAT = 1
KEEP_RUNS = 100  # of 5,000 cells about 100 MB at most
_WAIT_S = 30.0  # another run may be writing; it holds the lock for a fraction of a second

_TABLES = """
CREATE TABLE IF NOT EXISTS runs (
  run INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,      -- of the results: writing the same run again adds nothing
  generated TEXT,                   -- UTC
  stack TEXT NOT NULL,
  plan TEXT, version TEXT, commit_id TEXT, shim TEXT NOT NULL,
  cells INTEGER NOT NULL, expected INTEGER NOT NULL, unexpected INTEGER NOT NULL,
  fixed INTEGER NOT NULL, not_run INTEGER NOT NULL, unmodelled INTEGER NOT NULL,
  wall_s REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS cells (
  id TEXT NOT NULL,
  run INTEGER NOT NULL REFERENCES runs(run) ON DELETE CASCADE,
  outcome TEXT, verdict TEXT NOT NULL, route TEXT, lost TEXT NOT NULL, rule TEXT, errno TEXT,
  trace_digest TEXT, duration_ms REAL,
  PRIMARY KEY (id, run)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS cells_by_run ON cells(run);
"""


class HistoryError(RuntimeError):
    """A history file that cannot be used; the reports themselves do not need it."""


def digest(results):
    """Of everything but what writing the reports adds."""
    rest = {key: value for key, value in results.items() if key not in ("changes", "generated")}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def _open(path):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = None
    try:
        connection = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, FORMAT):
            raise HistoryError(
                f"{path}: history of format {version}, expected {FORMAT}: "
                "move the file away to begin a new one"
            )
        connection.execute("BEGIN IMMEDIATE")
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        yield connection
        connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        raise HistoryError(f"{path}: {error}: move the file away to begin a new history") from error
    finally:
        if connection is not None:
            connection.close()  # rolls back what was not committed


def changes(path, results):
    """The `changes` object: each cell against the last other run that had it; None when none had.

    Cells of the last run that this one did not select are no change: many runs are partial.
    """
    with _open(path) as connection:
        known = connection.execute(
            "SELECT run FROM runs WHERE digest = ?", (digest(results),)
        ).fetchone()
        before = known[0] if known else (1 << 62)
        since = connection.execute(
            "SELECT generated FROM runs WHERE run < ? AND stack = ? ORDER BY run DESC LIMIT 1",
            (before, results["stack"]),
        ).fetchone()
        if since is None:
            return None
        last = {
            name: (outcome, verdict)
            for name, outcome, verdict, _ in connection.execute(
                # SQLite takes the bare columns from the row that has the maximum.
                "SELECT id, outcome, verdict, MAX(cells.run) FROM cells JOIN runs USING (run)"
                " WHERE run < ? AND stack = ? GROUP BY id",
                (before, results["stack"]),
            )
        }
    changed = []
    compared = 0
    for cell in results["cells"]:
        if cell["id"] not in last:
            continue
        compared += 1
        outcome, verdict = last[cell["id"]]
        if (outcome, verdict) != (cell["outcome"], cell["verdict"]):
            changed.append(
                {
                    "id": cell["id"],
                    "was": {"outcome": outcome, "verdict": verdict},
                    "is": {"outcome": cell["outcome"], "verdict": cell["verdict"]},
                }
            )
    return {
        "since": since[0],
        "compared": compared,
        "new": len(results["cells"]) - compared,
        "cells": changed,
    }


def append(path, results):
    """Adds this run. The same results again change nothing. Returns True when it was new."""
    summary, provenance = results["summary"], results["provenance"]
    with _open(path) as connection:
        row = connection.execute(
            "INSERT OR IGNORE INTO runs (digest, generated, stack, plan, version, commit_id, shim,"
            " cells, expected,"
            " unexpected, fixed, not_run, unmodelled, wall_s) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                digest(results),
                results.get("generated"),
                results["stack"],
                results.get("run", {}).get("plan"),
                provenance.get("version"),
                provenance.get("commit"),
                provenance["shim"],
                summary["cells"],
                summary["expected"],
                summary["unexpected"],
                summary["fixed"],
                summary["not_run"],
                summary["unmodelled"],
                summary["wall_s"],
            ),
        )
        if row.rowcount == 0:
            return False
        run = row.lastrowid
        connection.executemany(
            "INSERT INTO cells VALUES (?,?,?,?,?,?,?,?,?,?)",
            (
                (
                    cell["id"],
                    run,
                    cell["outcome"],
                    cell["verdict"],
                    cell.get("route"),
                    json.dumps(cell.get("lost", [])),
                    cell.get("rule"),
                    cell.get("errno"),
                    cell.get("trace_digest"),
                    cell.get("duration_ms"),
                )
                for cell in results["cells"]
            ),
        )
        connection.execute("DELETE FROM runs WHERE run <= ?", (run - KEEP_RUNS,))
    return True
