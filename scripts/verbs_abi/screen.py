# SPDX-License-Identifier: BSD-2-Clause
"""Text for the width at which a person looks at it. In a pipe nothing is wrapped: lines stay whole for other programs."""

import os
import shutil
import sys
import textwrap

# Narrower than this, a column of words is harder to read than words below their heading.
READABLE = 24


def columns(stream=None):
    """The columns of the terminal behind a stream (standard output), at least 1; None where no person looks."""
    stream = sys.stdout if stream is None else stream
    if not stream.isatty() or os.environ.get("CI") == "true":
        return None
    return max(1, shutil.get_terminal_size().columns)


def wrap(text, width, first="", rest=""):
    """The lines of a text behind an indentation, at most `width` long where that leaves a readable rest; None: one line."""
    if width is None:
        return [first + text]
    # A word that is too long is broken: the terminal would do so without indentation.
    return textwrap.wrap(text, max(width, len(rest) + 8, len(first) + 8), initial_indent=first,
                         subsequent_indent=rest, break_on_hyphens=False) or [first.rstrip()]


def _blocks(heads, rows, width):
    """For what does not fit side by side: each row's first cell alone, the others below it."""
    for row in rows:
        yield from wrap(row[0], width, "", "  ")
        for head, text in zip(heads[1:], row[1:]):
            if text:
                yield from wrap(text if head in ("", "about", "reason") else f"{head}: {text}", width, "  ", "    ")


def table(heads, rows, width=None):
    """Lines of a table of texts, columns aligned, no trailing spaces. Where it is wider than `width`, its last column is
    wrapped; where that leaves too little, each row becomes a block."""
    rows = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *rows)]
    before = sum(widths[:-1]) + 2 * (len(widths) - 1)
    if width is not None and before + widths[-1] > width:
        if width - before < READABLE and len(heads) > 1:
            return list(_blocks(heads, rows, width))
        last = width - before
    else:
        last = None
    lines = []
    for row in [list(heads), *rows]:
        start = "".join(text.ljust(size) + "  " for text, size in zip(row, widths[:-1]))
        for text in wrap(row[-1], last):
            lines.append((start + text).rstrip())
            start = " " * before
    return lines
