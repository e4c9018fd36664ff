# SPDX-License-Identifier: BSD-2-Clause
"""index.html: one self-contained page with the matrix."""

from __future__ import annotations

import json
import urllib.parse

import jinja2
import markupsafe

from . import model
from .schema import REPORTS_DIR

_MAX_LISTED = 8  # of the cells to look at; the matrix has all

# What the page shows of a cell; tests and the constant stack go another way.
_FIELDS = (
    "id",
    "userland",
    "kernel",
    "provider",
    "overlays",
    "scenario",
    "arch",
    "page_size",
    "devices",
    "outcome",
    "verdict",
    "expectation",
    "route",
    "lost",
    "features",
    "rule",
    "errno",
    "by",
    "message",
    "known_by",
    "unmodelled",
    "signal",
    "limit",
    "exit_status",
    "steps",
    "trace_digest",
    "duration_ms",
    "exec",
)


# What the other reports say of a cell, in the same words.
_TOLD = ("variant", "why")


class _Table:
    """Distinct values and their indexes: most fields repeat in thousands of cells."""

    def __init__(self):
        self.values = []
        self._index = {}

    def add(self, value):
        key = json.dumps(value, sort_keys=True)
        if key not in self._index:
            self._index[key] = len(self.values)
            self.values.append(value)
        return self._index[key]


def page_data(results):
    """What the script needs, small: each field as its distinct values and one index per cell."""
    order = {
        axis: model.axis_order(results, axis) for axis in ("kernels", "userlands", "providers")
    }
    tests = _Table()
    columns = {field: (_Table(), []) for field in (*_FIELDS, *_TOLD, "tests")}
    for cell in results["cells"]:
        told = {"variant": model.variant(cell), "why": model.detail(cell)}
        for field in (*_FIELDS, *_TOLD):
            table, at = columns[field]
            at.append(table.add(told[field] if field in told else cell.get(field)))
        table, at = columns["tests"]
        at.append(
            table.add(
                [
                    tests.add([test["name"], test["result"], test.get("message")])
                    for test in cell.get("tests", [])
                ]
            )
        )
    about = results.get("axes", {})
    return {
        "order": order,
        "titles": {
            axis: {
                name: entry["title"]
                for name, entry in about.get(axis, {}).items()
                if entry.get("title")
            }
            for axis in about
        },
        "agreement": {
            kernel: share
            for kernel in order["kernels"]
            if (share := model.kernel_agreement(results, kernel)) is not None
        },
        "words": {
            "outcome": {
                model.outcome_word(key): text for key, text in model.OUTCOME_MEANING.items()
            },
            "verdict": model.VERDICT_WORDS,
            "verdict_meaning": model.VERDICT_MEANING,
            "known": model.KNOWN_MEANING,
        },
        "severity": {"outcome": model.OUTCOMES, "verdict": model.VERDICTS},
        "tests": tests.values,
        "columns": {
            field: {"values": table.values, "at": at}
            for field, (table, at) in columns.items()
            if table.values != [None] and table.values != []
        },
        "count": len(results["cells"]),
    }


def _script_json(value):
    """JSON that no text in it can end the script element with."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return markupsafe.Markup(
        text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )


def _number(value):
    """1234567 as '1 234 567' (thin spaces), 1.5 with at most three digits behind the point."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    text = f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:.3g}"
    return text.replace(",", "\u202f")


def _seconds(value):
    if value < 120:
        return f"{value:.0f} s"
    return f"{int(value) // 60} min {int(value) % 60:02d} s"


def _digests(provenance):
    """(kind, name, digest) rows."""
    yield "shim", "", provenance["shim"]
    if isinstance(provenance["facts"], str):
        yield "facts", "", provenance["facts"]
    else:
        yield from (("facts", name, value) for name, value in sorted(provenance["facts"].items()))
    for kind in ("userlands", "kernels"):
        for name, value in sorted(
            provenance[kind].items(), key=lambda item: model.axis_key(item[0], {})
        ):
            yield kind[:-1], name, value


def render(results):
    """The text of index.html."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(REPORTS_DIR),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        number=_number,
        seconds=_seconds,
        cell_link=lambda name: "#cell=" + urllib.parse.quote(name, safe="/@="),
    )
    cells = results["cells"]
    attention = sorted(
        (cell for cell in cells if cell["verdict"] in ("unexpected", "fixed")),
        key=lambda cell: (tuple(-part for part in model.severity(cell)), cell["id"]),
    )
    outcomes = [
        (outcome, model.OUTCOME_MEANING[outcome], sum(cell["outcome"] == outcome for cell in cells))
        for outcome in ("full", "degraded", "refused", "broken", "unmodelled", "absent", None)
    ]
    return environment.get_template("index.html.j2").render(
        results=results,
        summary=results["summary"],
        run=results.get("run", {}),
        model=model,
        provenance=results["provenance"],
        digests=list(_digests(results["provenance"])),
        attention=attention[:_MAX_LISTED],
        attention_count=len(attention),
        outcomes=outcomes,
        kernels_by_release=sorted(
            results.get("oracle", {}),
            key=lambda name: model.axis_key(
                name, results.get("axes", {}).get("kernels", {}).get(name, {})
            ),
        ),
        missing=model.missing_part(results),
        data=_script_json(page_data(results)),
        style=markupsafe.Markup((REPORTS_DIR / "style.css").read_text(encoding="utf-8")),
        script=markupsafe.Markup((REPORTS_DIR / "page.js").read_text(encoding="utf-8")),
    )
