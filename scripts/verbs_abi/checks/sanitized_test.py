# SPDX-License-Identifier: BSD-2-Clause
"""Sanitizers on machines that hinder them: another way, or a reason; never silence."""

import pytest

from verbs_abi.checks import sanitized
from verbs_abi.errors import UserError

STILL = ("/usr/bin/setarch", "-R")


def program(tmp_path, text):
    path = tmp_path / "some_test"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def test_thread_sanitizer_runs_without_random_addresses():
    assert sanitized.ways("tsan", STILL[0], spread=True) == [sanitized.Way(STILL)]
    assert sanitized.ways("tsan", STILL[0], spread=False) == [sanitized.Way(STILL), sanitized.Way()]
    assert sanitized.ways("tsan", None, spread=True) == []


def test_the_usual_way_comes_first_and_what_sees_less_last():
    found = sanitized.ways("asan", STILL[0], spread=False)
    assert found[0] == sanitized.Way()
    assert [bool(way.lacks) for way in found] == [False, False, True, True]
    assert all("detect_leaks=0" in dict(way.environment)["ASAN_OPTIONS"] for way in found if way.lacks)


def test_address_sanitizer_never_meets_addresses_that_are_spread_widely():
    assert {way.prefix for way in sanitized.ways("asan", STILL[0], spread=True)} == {STILL}
    assert sanitized.ways("asan", None, spread=True) == []


def test_where_nothing_may_be_debugged_leaks_are_not_looked_for_and_that_is_told(tmp_path):
    strict = program(tmp_path, 'case "$ASAN_OPTIONS" in *detect_leaks=0*) exit 0 ;; esac\n'
                               "echo '==1==LeakSanitizer has encountered a fatal error.'; exit 1\n")
    way = sanitized.find("asan", strict)
    assert way.lacks == sanitized.NO_LEAKS
    assert sanitized.find("asan", program(tmp_path, "exit 0\n")).lacks == ""


def test_where_the_shadow_finds_no_room_there_is_a_reason(tmp_path):
    full = program(tmp_path, "echo 'FATAL: ThreadSanitizer: unexpected memory mapping 0x5e0000000000'; exit 66\n")
    with pytest.raises(sanitized.Impossible, match="unexpected memory mapping"):
        sanitized.find("tsan", full, [sanitized.Way()])
    with pytest.raises(sanitized.Impossible, match="no setarch"):
        sanitized.find("tsan", full, [])


def test_a_machine_that_forbids_every_way_is_told_with_all_reasons(tmp_path):
    full = program(tmp_path, "echo 'FATAL: ThreadSanitizer: unexpected memory mapping 0x5e0000000000'; exit 66\n")
    setarch = tmp_path / "setarch"
    setarch.write_text("#!/bin/sh\necho 'setarch: failed to set personality to x: Operation not permitted'; exit 1\n")
    setarch.chmod(0o755)
    with pytest.raises(sanitized.Impossible, match="failed to set personality.*; FATAL: ThreadSanitizer"):
        sanitized.find("tsan", full, [sanitized.Way((str(setarch), "-R")), sanitized.Way()])


def test_a_program_that_is_at_fault_is_no_reason_to_skip(tmp_path):
    forbidden = sanitized.Way(("/bin/sh", "-c", "echo failed to set personality; exit 1"))
    wrong = program(tmp_path, "echo 'error while loading shared libraries: libx.so'; exit 127\n")
    with pytest.raises(UserError, match="does not begin\n  error while loading"):
        sanitized.find("asan", wrong)
    with pytest.raises(UserError, match="does not begin"):
        sanitized.find("asan", wrong, [forbidden, sanitized.Way()])
