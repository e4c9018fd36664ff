# SPDX-License-Identifier: BSD-2-Clause
"""Reading what GoogleTest programs say of themselves."""

from verbs_abi.checks import programs


def counts(status, output):
    ended = programs.read("x_test", status, output)
    return ended.passed, ended.failed, ended.skipped


def test_what_a_program_counts_is_taken():
    assert counts(0, "[  PASSED  ] 12 tests.\n[  SKIPPED ] 1 test, listed below:\n") == (12, 0, 1)
    assert counts(1, "[  PASSED  ] 3 tests.\n[  FAILED  ] 2 tests, listed below:\n") == (3, 2, 0)


def test_a_program_that_a_sanitizer_ended_has_failed():
    assert counts(1, "==1==ERROR: AddressSanitizer: heap-use-after-free\n") == (0, 1, 0)
    assert counts(66, "[  PASSED  ] 3 tests.\nWARNING: ThreadSanitizer: data race\n") == (3, 1, 0)


def test_programs_are_run_and_a_hang_is_ended(tmp_path):
    good, hangs = tmp_path / "good_test", tmp_path / "hangs_test"
    good.write_text("#!/bin/sh\necho '[  PASSED  ] 2 tests.'\n")
    hangs.write_text("#!/bin/sh\nsleep 600\n")
    for program in (good, hangs):
        program.chmod(0o755)
    (tmp_path / "data_test").write_text("no program")
    assert programs.found(tmp_path) == [good, hangs]
    assert programs.run(good).passed == 2
    ended = programs.run(hangs, seconds=0.2)
    assert ended.failed == 1 and "no end after 0.2 s" in ended.output
