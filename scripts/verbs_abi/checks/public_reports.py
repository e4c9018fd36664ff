# SPDX-License-Identifier: BSD-2-Clause
"""Public reports of version mismatches, as data: matrix/cases/public-reports.json, and the page that is made of it.

Each has an id, a layer, a sentence, and `shown_by` (tests: "Suite.Test" of C++, "file_test.test_name" of Python, or
"plan NAME: KERNEL") or `reason` (why no test shows it, or what of it none shows). `python3 -m
verbs_abi.checks.public_reports` (in scripts/) writes docs/public-reports.md.
"""

import re

from verbs_abi import matrix, paths

LAYERS = {1: "Layout", 2: "Negotiation", 3: "Fallback", 5: "Symbols and versions"}
# How far above a test its comment may begin.
COMMENT_LINES = 14
PAGE = paths.ROOT / "docs" / "public-reports.md"


def load():
    """The rows."""
    return matrix.read_json(paths.matrix_dir() / "cases" / "public-reports.json")["reports"]


def _sources():
    for pattern in ("harness/**/*_test.cc", "shims/**/*_test.cc", "scripts/**/*_test.py"):
        yield from sorted(paths.ROOT.glob(pattern))


def _definition(test):
    """A regular expression for the line that defines a test."""
    suite, _, name = test.partition(".")
    if suite.endswith("_test"):
        return re.compile(rf"^def {re.escape(name)}\(")
    return re.compile(rf"^(?:ABI_)?TEST(?:_F|_P)?\({re.escape(suite)}, {re.escape(name)}\b")


def named(test, report):
    """What is wrong with naming this test for that report, or None."""
    if test.startswith("plan "):
        from verbs_abi.cells import plans

        plan, _, kernel = test.removeprefix("plan ").partition(": ")
        return None if any(cell.kernel == kernel for cell in plans.load(plan)) else f"plan {plan} has no {kernel}"
    definition = _definition(test)
    for path in _sources():
        if test.partition(".")[0].endswith("_test") and path.stem != test.partition(".")[0]:
            continue
        lines = path.read_text().splitlines()
        for index, line in enumerate(lines):
            if not definition.match(line):
                continue
            above = []
            for text in reversed(lines[max(0, index - COMMENT_LINES):index]):
                if not text.strip() or text.startswith(("}", "    return", "  EXPECT")):
                    break
                above.append(text)
            return None if any(report in text for text in above) else f"{path.name}: the comment of {test} does not name it"
    return f"there is no test {test}"


def page(rows):
    """docs/public-reports.md."""
    shown = [row for row in rows if row.get("shown_by") and not row.get("reason")]
    partly = [row for row in rows if row.get("shown_by") and row.get("reason")]
    lines = ["# Public reports", "",
             "Version mismatches that people reported in public, of the layers layout, negotiation, fallback and symbols: which",
             "test or cell shows each, with the report's id in its comment, or why none does. Made of matrix/cases/public-reports.json",
             "by `python3 -m verbs_abi.checks.public_reports` (in scripts/).", "",
             f"{len(shown)} of {len(rows)} are shown, {len(partly)} in part, {len(rows) - len(shown) - len(partly)} not yet."]
    for layer, title in LAYERS.items():
        lines += ["", f"## {title}", "", "| id | what happens | shown by | not shown, and why |", "|---|---|---|---|"]
        for row in rows:
            if row["layer"] == layer:
                tests = ", ".join(f"`{test}`" for test in row.get("shown_by", ()))
                lines.append(f"| {row['id']} | {row['about']} | {tests} | {row.get('reason', '')} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(load()))
