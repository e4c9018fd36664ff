# SPDX-License-Identifier: BSD-2-Clause
"""results.json on disk."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile

from .schema import ResultsError, validate


def dumps(results):
    """The text of results.json: one cell a line, so that a difference of two runs can be read."""

    def one_line(value):
        return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)

    parts = []
    for key, value in results.items():
        if isinstance(value, list) and value:
            body = "[\n" + ",\n".join("    " + one_line(item) for item in value) + "\n  ]"
        else:
            body = one_line(value)
        parts.append(f"  {json.dumps(key)}: {body}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _no_constant(name):
    raise ValueError(f"{name} is not JSON")


def load(path):
    """Reads and validates a results.json. Raises ResultsError, or OSError when there is none."""
    path = pathlib.Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ResultsError(path, [("", f"not UTF-8 at byte {error.start}")]) from error
    try:
        results = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ResultsError(
            path, [("", f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}")]
        ) from error
    except ValueError as error:
        raise ResultsError(path, [("", str(error))]) from error
    return validate(results, path)


def _temporary(path, text):
    """A file beside `path` that holds the text and can take its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp's 0600 would hide the report from others
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def write_together(texts):
    """{path: text}: whoever reads a path sees the old text or the new one, never a part. All are on the disk before the
    first takes its place."""
    ready = {}
    try:
        for path, text in texts.items():
            ready[path] = _temporary(pathlib.Path(path), text)
        for path in texts:
            os.replace(ready[path], path)
            del ready[path]
    finally:
        for temporary in ready.values():
            os.unlink(temporary)


def write_atomically(path, text):
    """The same for one file."""
    write_together({path: text})


def sweep(folder, names):
    """Removes what a writer of these files that was killed has left. Nobody else may be writing there."""
    for name in names:
        for left in pathlib.Path(folder).glob(f".{name}.*"):
            left.unlink(missing_ok=True)
