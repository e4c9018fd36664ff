# SPDX-License-Identifier: BSD-2-Clause
"""What explain tells of a refusal beyond the rule's source."""

import pytest

from verbs_abi.cells import ids
from verbs_abi.run import explain

ROW = {"outcome": "broken", "verdict": "expected", "exec": "exec line", "steps": [
    {"stage": "control path", "text": "ioctl SRQ.CREATE: EINVAL", "by": "kernel", "rule": "ioctl.method.unknown"},
    {"stage": "control path", "text": "ioctl DM.ALLOC: EINVAL", "by": "kernel", "rule": "ioctl.method.unknown"},
]}


def _lines(kernel):
    return [line.strip() for line in explain._lines(ROW, {"ioctl.method.unknown": "f.c:g"}, explain.reasons(kernel))]


def test_a_kernels_own_reason_stands_below_the_rule_once():
    lines = _lines("gvisor-rdmaproxy")
    assert lines.count("source: f.c:g") == 2
    assert sum(line.startswith("in gvisor-rdmaproxy: ") and "rdmaproxy" in line for line in lines) == 2
    assert any("lookupSchema" in line for line in lines)


def test_the_nearest_file_of_the_chain_tells():
    whys = explain.reasons("gvisor-rdmaproxy")
    assert whys["ioctl.method.unknown"].startswith("gvisor-rdmaproxy: ")
    assert "gvisor" not in (explain.reasons("debian-6.12.117").get("ioctl.method.unknown") or "")


def test_a_method_that_is_served_needs_no_reason():
    assert explain.reasons("debian-6.12.117")["PD.DESTROY"] is None


@pytest.mark.parametrize("width", (20, 40, 60, 80))
def test_a_terminal_of_any_width_gets_the_same_words(width):
    sources = {"ioctl.method.unknown": "core/uverbs_ioctl.c:ib_uverbs_cmd_verbs, uapi_get_method (5.0..7.3)"}
    whys = explain.reasons("gvisor-rdmaproxy")
    whole, narrow = ["\n".join(explain._lines(ROW, sources, whys, one)) for one in (None, width)]
    assert "".join(narrow.split()) == "".join(whole.split())
    assert max(map(len, narrow.splitlines())) <= width


@pytest.mark.parametrize("cell, names, told", (
    ("deb-44.0/debian-6.1.192/efa", None, ["No plan has this cell", "no expectation names it",
                                           "Of the same world there are: deb-44.0/debian-6.1.192/efa@control"]),
    ("deb-44.0/debian-6.1.192/rxe/errno@REG_MR=EPERM", "faults", ["No plan has this cell, so nobody looked into it."]),
    ("deb-44.0/debian-6.1.192/efa@control", None, None),
    ("deb-44.0/debian-6.1.192/mlx5", None, None),
    ("deb-44.0/debian-6.1.192/rxe/errno@ALLOC_PD=ENOMEM", None, None),
))
def test_a_cell_that_no_plan_has_is_told_as_such(cell, names, told):
    expectation = {"outcome": "full", "reason": "x"} | ({"name": names} if names else {})
    found = explain._text_unplanned(ids.parse(cell), {"expectation": expectation})
    assert found is None if told is None else all(text in found for text in told)
    assert told is None or ("no expectation" in found) == (names is None)
