# SPDX-License-Identifier: BSD-2-Clause
"""Messages for users."""

from verbs_abi import errors


def test_an_unknown_name_brings_the_nearest_ones():
    known = ["linux-5.6", "linux-5.16", "debian-6.1.192", "gvisor-rdmaproxy"]
    assert str(errors.unknown("kernel", "linux-5.66", known)) == (
        "unknown kernel 'linux-5.66'\nNearest: linux-5.6, linux-5.16"
    )
    assert errors.nearest("GVISOR", known) == ["gvisor-rdmaproxy"]


def test_a_name_like_none_brings_the_list_shortened():
    known = [f"name{number}" for number in range(20)]
    text = str(errors.unknown("plan", "###", known))
    assert text.endswith("There are: " + ", ".join(known[:12]) + ", …")
    assert str(errors.unknown("plan", "x", [])) == "unknown plan 'x'\nThere is no plan at all"


def test_details_stand_between_what_happened_and_what_to_do():
    error = errors.UserError("what", details=["one", "two"], hint="Do this.")
    assert str(error) == "what\n  one\n  two\nDo this."
