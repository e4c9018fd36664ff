# SPDX-License-Identifier: BSD-2-Clause
"""summary.md: short enough for a release ticket."""

from __future__ import annotations

import jinja2

from . import model
from .schema import REPORTS_DIR

_MAX_LISTED = 40  # a ticket is no log; the page has all


def _escape(text):
    """Text from programs, in a table cell: no cell, line, HTML or emphasis of its own."""
    text = " ".join(str(text).split())
    for character in "\\`*_[]<>|":
        text = text.replace(character, "\\" + character)
    return text


def _code(text):
    text = " ".join(str(text).split()).replace("`", "'").replace("|", "\\|")
    return f"`{text}`"


def _group_text(cells):
    best = model.headline(cells)
    text = model.outcome_word(best["outcome"])
    if best["outcome"] == "degraded" and best.get("route"):
        text += f" ({_escape(best['route'])})"
    unexpected = sum(cell["verdict"] == "unexpected" for cell in cells)
    if unexpected:
        text = f"**{text}, {unexpected} of {len(cells)} unexpected**"
    return text


def render(results):
    """The text of summary.md."""
    groups = model.groups(results)
    kernels = model.axis_order(results, "kernels")
    userlands = model.axis_order(results, "userlands")
    blocks = []
    for provider in model.axis_order(results, "providers"):
        here = {
            (kernel, userland): cells
            for (name, kernel, userland), cells in groups.items()
            if name == provider
        }
        columns = [userland for userland in userlands if any(key[1] == userland for key in here)]
        rows = [
            (
                kernel,
                [
                    _group_text(here[kernel, userland]) if (kernel, userland) in here else ""
                    for userland in columns
                ],
            )
            for kernel in kernels
            if any(key[0] == kernel for key in here)
        ]
        blocks.append({"provider": provider, "columns": columns, "rows": rows})
    attention = sorted(
        (cell for cell in results["cells"] if cell["verdict"] in ("unexpected", "fixed")),
        key=lambda cell: (tuple(-part for part in model.severity(cell)), cell["id"]),
    )
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(REPORTS_DIR),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters.update(md=_escape, code=_code)
    return environment.get_template("summary.md.j2").render(
        results=results,
        summary=results["summary"],
        blocks=blocks,
        model=model,
        attention=attention[:_MAX_LISTED],
        more=max(0, len(attention) - _MAX_LISTED),
        oracle=sorted(
            results.get("oracle", {}).items(), key=lambda item: model.axis_key(item[0], {})
        ),
        missing=model.missing_part(results),
    )
