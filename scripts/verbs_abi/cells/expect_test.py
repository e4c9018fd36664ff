# SPDX-License-Identifier: BSD-2-Clause
import pytest

from verbs_abi import matrix
from verbs_abi.cells import expect, ids


@pytest.mark.parametrize("source, release", [("src-33.2", "deb-33.2"), ("src-44.0", "deb-44.0"), ("src-56.1", "deb-56.1"),
                                             ("src-65.0", "deb-65.0")])
def test_what_is_built_of_a_releases_source_is_expected_to_be_what_the_release_is(source, release):
    headers = matrix.get("sources", source).data["headers"]
    for rest in ("debian-5.10.223/rxe", "debian-6.1.192/rxe", "debian-7.3.4/hns@control", "debian-6.12.117/mlx5@conformance"):
        assert expect.expectation(ids.parse(f"{source}+headers={headers}/{rest}")) == expect.expectation(
            ids.parse(f"{release}/{rest}"))


def test_a_row_of_one_release_is_not_one_of_another():
    name, row = expect.expectation(ids.parse("src-33.2+headers=debian-6.1.192/debian-6.1.192/rxe"))
    assert (name, row["outcome"]) == ("rxe-33", "degraded")
    name, row = expect.expectation(ids.parse("src-44.0+headers=debian-6.1.192/debian-6.1.192/rxe"))
    assert row["outcome"] == "full"


@pytest.mark.parametrize("cell, rule", [
    ("src-44.0+headers=debian-7.2.13/debian-7.2.13/bnxt_re@control", "bnxt_re.request.comp_mask"),
    ("src-44.0+headers=debian-6.12.117/debian-6.12.117/bnxt_re@control", None),
    ("src-65.0+headers=debian-7.3.4/debian-7.3.4/bnxt_re@control", None),
    ("deb-44.0/debian-7.2.13/bnxt_re@control", None),
    ("src-44.0+headers=debian-7.3.4/debian-7.2.13/irdma@control", "irdma.ucontext.comp_mask"),
    ("src-56.1+headers=debian-7.3.4/debian-7.2.13/irdma@control", None),
])
def test_what_newer_headers_append_and_an_older_library_leaves_as_the_stack_was_is_refused(cell, rule):
    _, row = expect.expectation(ids.parse(cell))
    assert (row["outcome"], row.get("rule")) == (("refused", rule) if rule else ("full", None))
