# SPDX-License-Identifier: BSD-2-Clause
"""The table at the end of a run: colour where a person looks, plain lines in a pipe or CI."""

from __future__ import annotations

import os
import sys

from verbs_abi import screen

from . import model

_STYLE = {
    "full": "green",
    "degraded": "yellow",
    "refused": "magenta",
    "broken": "bold red",
    "unmodelled": "bold cyan",
    "absent": "dim",
    None: "dim",
}
_MAX_LISTED = 20
# A terminal with fewer columns than this gets the table's rows as blocks, one below the other.
_NARROW = 72


def rows(results):
    """The table as data: (userland, provider, kernel, outcome, words, how it is known, unexpected
    cells, all cells), ordered by userland, provider and release."""
    kernels = model.axis_order(results, "kernels")
    groups = model.groups(results)
    for userland in model.axis_order(results, "userlands"):
        for provider in model.axis_order(results, "providers"):
            for kernel in kernels:
                cells = groups.get((provider, kernel, userland))
                if not cells:
                    continue
                head = model.headline(cells)
                unexpected = sum(cell["verdict"] == "unexpected" for cell in cells)
                known = model.known_words(
                    head.get("known_by"), model.kernel_agreement(results, kernel)
                )
                yield (
                    userland,
                    provider,
                    kernel,
                    head["outcome"],
                    model.detail(head),
                    known,
                    unexpected,
                    len(cells),
                )


def _builds(builds):
    """Libraries that drifted or failed unexpectedly, then how many were built."""
    if not builds:
        return []
    lines = []
    for one in builds:
        if one.get("verdict") == "unexpected":
            words = one.get("cause") or one.get("error") or ""
            name = f"{one['source']} + {one['headers']}: {one['library']}"
            lines.append(f"unexpected build: {name}: {one['result']}" + (f" ({words})" if words else ""))
    counts = {word: sum(1 for one in builds if one["result"] == word) for word in ("built", "drift", "failed")}
    pairs = len({(one["source"], one["headers"]) for one in builds})
    lines.append(
        f"{pairs} builds: {counts['built']} of {len(builds)} libraries as their kernels, "
        f"{counts['drift']} with silent drift, {counts['failed']} do not build"
    )
    return lines


def last_lines(results, report="out/index.html"):
    """What a run ends with: first the cells to look at, then the counts and where to read on."""
    bad = sorted(
        (cell for cell in results["cells"] if cell["verdict"] == "unexpected"),
        key=lambda cell: (tuple(-part for part in model.severity(cell)), cell["id"]),
    )
    lines = []
    for cell in bad[:_MAX_LISTED]:
        expected = (cell.get("expectation") or {}).get("outcome")
        words = model.outcome_word(cell["outcome"]) + (
            f" instead of {expected}" if expected else ""
        )
        more = model.detail(cell)
        lines.append(f"unexpected: {cell['id']}: {words}" + (f" ({more})" if more else ""))
    if len(bad) > _MAX_LISTED:
        lines.append(f"unexpected: … and {len(bad) - _MAX_LISTED} more")
    for cell in results["cells"]:
        if cell["verdict"] == "fixed":
            lines.append(f"fixed: {cell['id']}: its expectation can go")
    missing = model.missing_part(results)
    if missing:
        lines.append(missing)
    lines += _builds(results.get("builds") or [])
    summary = results["summary"]
    alike = len(results["cells"]) - summary["cells"]
    lines.append(
        f"{summary['cells']} cell{'s' if summary['cells'] != 1 else ''}{f' and {alike} alike' if alike > 0 else ''} "
        f"in {summary['wall_s']:.0f} s: "
        f"{model.verdict_sentence(summary)}.   "
        f"Report: {report}   One cell: ./verbs-abi explain CELL"
    )
    return lines


def _columns(results):
    table = list(rows(results))
    several = len({row[0] for row in table}) > 1, len({row[1] for row in table}) > 1
    return table, several


def _words(row):
    words = row[4]
    if row[6]:
        note = f"{row[6]} of {row[7]} unexpected"
        words = f"{note}; {words}" if words else note
    return words


def plain(results, report="out/index.html"):
    """The whole table as plain lines, for a pipe or CI: one group of cells a line, greppable."""
    table, (userlands, providers) = _columns(results)
    lines = []
    widths = [max((len(row[column]) for row in table), default=0) for column in (0, 1, 2)]
    for row in table:
        parts = [row[2].ljust(widths[2])]
        if providers:
            parts.insert(0, row[1].ljust(widths[1]))
        if userlands:
            parts.insert(0, row[0].ljust(widths[0]))
        parts.append(model.outcome_word(row[3]).ljust(10))
        words = _words(row)
        if row[5]:
            words = f"{words}   [{row[5]}]" if words else f"[{row[5]}]"
        lines.append(("  " + "  ".join(parts) + "  " + words).rstrip())
    return lines + last_lines(results, report)


def _stacked(title, block, width):
    """A block of the table for a narrow terminal: what the columns hold, one below the other."""
    from rich.text import Text

    def lines(text, style):
        return [Text(line, style=style) for line in screen.wrap(text, width, "  ", "  ")]

    yield Text(title, style="bold")
    for row in block:
        outcome = Text(model.outcome_word(row[3]), style=_STYLE[row[3]])
        if len(row[2]) + 1 + len(outcome) <= width:
            yield Text(row[2] + " ") + outcome
        else:
            yield Text(row[2])
            yield Text("  ") + outcome
        if row[6]:
            yield from lines(f"{row[6]} of {row[7]} unexpected", "bold red")
        if row[4]:
            yield from lines(row[4], "")
        if row[5]:
            yield from lines(row[5], "dim")
    yield Text("")


def _rich(results, stream, report):
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # A terminal that says nothing of itself gets plain text.
    plain_text = os.environ.get("TERM", "dumb") == "dumb"
    console = Console(file=stream, highlight=False, soft_wrap=False, color_system=None if plain_text else "auto")
    narrow = console.width < _NARROW
    table, _ = _columns(results)
    blocks = {}
    for row in table:
        blocks.setdefault((row[0], row[1]), []).append(row)
    for (userland, provider), block in blocks.items():
        if narrow:
            for text in _stacked(f"{userland}, {provider}", block, console.width):
                console.print(text, soft_wrap=True)
            continue
        view = Table(
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            title=Text(f"{userland}, {provider}"),
            title_justify="left",
            title_style="bold",
        )
        view.add_column("kernel", no_wrap=True)
        view.add_column(provider, no_wrap=True)
        view.add_column("", ratio=1, overflow="fold")
        view.add_column("how it is known", style="dim", overflow="fold")
        for row in block:
            words = Text(row[4])
            if row[6]:
                words = Text(f"{row[6]} of {row[7]} unexpected", style="bold red") + Text(
                    "; " + row[4] if row[4] else ""
                )
            view.add_row(
                Text(row[2]),
                Text(model.outcome_word(row[3]), style=_STYLE[row[3]]),
                words,
                Text(row[5]),
            )
        console.print(view)
    lines = last_lines(results, report)
    for line in lines[:-1]:
        console.print(
            Text(line, style="red" if line.startswith("unexpected") else "yellow"), soft_wrap=True
        )
    good = results["summary"]["unexpected"] == 0
    for line in lines[-1].split("   ") if len(lines[-1]) > console.width else lines[-1:]:
        console.print(Text(line, style="bold green" if good else "bold red"), soft_wrap=True)


def table(results, stream=None, report="out/index.html", person=None):
    """Prints the table to `stream` (standard output). `person`: colour and boxes; when None, only
    on a terminal without CI=true."""
    stream = stream or sys.stdout
    if person is None:
        person = stream.isatty() and os.environ.get("CI", "").lower() not in ("true", "1")
    if person:
        try:
            _rich(results, stream, report)
            return
        except ImportError:
            pass  # before set-up has brought in python3-rich
    for line in plain(results, report):
        print(line, file=stream)
