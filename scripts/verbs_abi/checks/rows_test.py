# SPDX-License-Identifier: BSD-2-Clause
"""The tables of rules tell what the fake kernel does: no row that nothing refuses with."""

import re

from verbs_abi import paths
from verbs_abi.checks import style

ROW = re.compile(r"VABI_RULE\((\w+),")


def unused(files):
    """The ids of rows, in {name: text} of .def and source files, that no source names."""
    rows = [row for name, text in files.items() if name.endswith(".def") for row in ROW.findall(text)]
    named = set(re.findall(r"\w+", "".join(text for name, text in files.items() if not name.endswith(".def"))))
    return [row for row in rows if row not in named]


def test_a_row_that_nothing_refuses_with_is_found():
    files = {"a.def": 'VABI_RULE(used, "a.used",\nVABI_RULE(idle, "a.idle",', "a.cc": "return Refuse(RuleId::used);"}
    assert unused(files) == ["idle"]


def test_every_row_is_refused_with_somewhere():
    names = [name for name in style.files((".def", ".cc", ".h"))
             if name.startswith("shims/") and not name.endswith("_test.cc")]
    files = {name: (paths.ROOT / name).read_text() for name in names}
    assert sum(map(len, map(ROW.findall, files.values()))) > 400
    assert unused(files) == []
