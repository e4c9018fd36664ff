# SPDX-License-Identifier: BSD-2-Clause
"""Every public report is shown by a test that names it, or has its reason; the page is of today's data."""

import pytest

from verbs_abi.checks import public_reports

# The reports of the four layers; those that are missing here are of other layers or were merged.
IDS = [f"L1-{n:02}" for n in (1, 2, 3, 5, 6, 7, 8, 9, 10)] + \
    [f"L2-{n:02}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 17, 18)] + \
    [f"L3-{n:02}" for n in (2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)] + [f"L5-{n:02}" for n in range(3, 16)]


def test_no_report_is_forgotten():
    rows = public_reports.load()
    assert [row["id"] for row in rows] == IDS
    assert [row["id"] for row in rows if row["layer"] != int(row["id"][1])] == []
    assert [row["id"] for row in rows if not row.get("shown_by") and not row.get("reason")] == []


@pytest.mark.parametrize("row", public_reports.load(), ids=lambda row: row["id"])
def test_tests_name_what_they_show(row):
    assert [wrong for test in row.get("shown_by", ()) if (wrong := public_reports.named(test, row["id"]))] == []


def test_a_wrong_name_is_told():
    assert public_reports.named("CompMask.NoSuchTest", "L1-08") == "there is no test CompMask.NoSuchTest"
    assert public_reports.named("plan quick: linux-9.9", "L3-13") == "plan quick has no linux-9.9"
    assert public_reports.named("CompMask.Mlx5RefusesQpMasksItself", "L1-99").endswith(
        "the comment of CompMask.Mlx5RefusesQpMasksItself does not name it")


def test_the_page_is_of_todays_data():
    assert public_reports.PAGE.read_text() == public_reports.page(public_reports.load()), \
        "python3 -m verbs_abi.checks.public_reports writes it anew"
