# SPDX-License-Identifier: BSD-2-Clause
"""junit.xml: one test case per cell, and one per test inside a cell."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from . import model

# XML 1.0 has no way to say these, not even escaped; program output holds them (colour codes).
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _clean(text):
    return _NOT_XML.sub("\ufffd", text)


def _sentence(cell):
    words = model.outcome_word(cell["outcome"])
    expected = (cell.get("expectation") or {}).get("outcome")
    if expected:
        words += f", expected {expected}"
    more = model.detail(cell)
    return f"{words}: {more}" if more else words


def _body(cell):
    lines = []
    for label, key in (
        ("message", "message"),
        ("rule", "rule"),
        ("errno", "errno"),
        ("by", "by"),
        ("route", "route"),
    ):
        if cell.get(key):
            lines.append(f"{label}: {cell[key]}")
    if cell.get("lost"):
        lines.append("lost: " + ", ".join(cell["lost"]))
    if cell.get("unmodelled"):
        lines.append("unmodelled: " + ", ".join(cell["unmodelled"]))
    lines.append(f"reproduce: {cell['exec']}")
    return "\n".join(lines)


def _case(suite, name, classname, duration_ms):
    return ElementTree.SubElement(
        suite,
        "testcase",
        name=_clean(name),
        classname=_clean(classname),
        time=f"{(duration_ms or 0) / 1000:.3f}",
    )


def _add(case, tag, message, kind, text):
    child = ElementTree.SubElement(case, tag, message=_clean(message))
    if kind:
        child.set("type", kind)
    child.text = _clean(text)


def _add_cell(suite, cell):
    classname = f"{cell['userland']}.{cell['kernel']}.{cell['provider']}"
    case = _case(suite, cell["id"], classname, cell.get("duration_ms"))
    if cell["verdict"] == "unexpected":
        _add(case, "failure", _sentence(cell), cell["outcome"], _body(cell))
    elif cell["verdict"] == "not_run" or cell["outcome"] == "absent":
        _add(
            case, "skipped", cell.get("message") or model.OUTCOME_MEANING[cell["outcome"]], None, ""
        )
    else:
        known = cell.get("expectation") or {}
        lines = [_sentence(cell)]
        if cell["verdict"] == "fixed":
            lines.append("fixed: a known defect no longer shows, take its expectation out")
        if known.get("reason"):
            lines.append(
                f"expectation: {known['reason']}"
                + (f" ({known['link']})" if known.get("link") else "")
            )
        ElementTree.SubElement(case, "system-out").text = _clean("\n".join(lines))
    for test in cell.get("tests", []):
        variant = model.variant(cell)
        inner = _case(
            suite,
            test["name"],
            classname + (f".{variant}" if variant else ""),
            test.get("duration_ms"),
        )
        message = test.get("message") or ""
        if test["result"] == "failed" and cell["verdict"] == "unexpected":
            _add(
                inner,
                "failure",
                message.split("\n", 1)[0] or "failed",
                None,
                f"{message}\nreproduce: {cell['exec']}",
            )
        elif test["result"] == "failed":
            # The expectations know of it: CI must not turn red, nor may it look as if it passed.
            _add(inner, "skipped", f"fails as expected: {message}".rstrip(": "), None, "")
        elif test["result"] == "skipped":
            _add(inner, "skipped", message or "skipped", None, "")


def render(results):
    """The text of junit.xml."""
    root = ElementTree.Element(
        "testsuites", name="verbs-abi", time=f"{results['summary']['wall_s']:.3f}"
    )
    suites = {}
    spent_ms = {}  # of whole cells: a cell's time has its tests' in it
    for cell in results["cells"]:
        name = f"{cell['userland']} {cell['provider']}"
        if name not in suites:
            suites[name] = ElementTree.SubElement(root, "testsuite", name=name)
        spent_ms[name] = spent_ms.get(name, 0) + (cell.get("duration_ms") or 0)
        _add_cell(suites[name], cell)
    gate = results.get("gate")
    if gate:
        suites["gate"] = ElementTree.SubElement(root, "testsuite", name="gate")
        spent_ms["gate"] = 0
        case = _case(suites["gate"], f"{gate['new']} in place of {gate['old']}", "gate", 0)
        if gate["result"] == "fail":
            reasons = gate.get("reasons", [])
            worse = [f"{one['id']}: {one['was']} to {one['is']}" for one in gate.get("worse", [])]
            _add(case, "failure", "; ".join(reasons[:3]) or "no", "gate", "\n".join([*reasons, *worse]))
        elif gate["result"] == "not_run":
            _add(case, "skipped", "; ".join(gate.get("reasons", [])[:1]) or "not run", None, "")
    for suite in [*suites.values(), root]:
        suite.set("tests", str(sum(1 for _ in suite.iter("testcase"))))
        suite.set("failures", str(sum(1 for _ in suite.iter("failure"))))
        suite.set("skipped", str(sum(1 for _ in suite.iter("skipped"))))
        suite.set("errors", "0")
    for name, suite in suites.items():
        suite.set("time", f"{spent_ms[name] / 1000:.3f}")
        if results.get("generated"):
            suite.set("timestamp", results["generated"].rstrip("Z"))
    ElementTree.indent(root)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        + ElementTree.tostring(root, encoding="unicode")
        + "\n"
    )
