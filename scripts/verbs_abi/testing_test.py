# SPDX-License-Identifier: BSD-2-Clause
"""Counting test results."""

import argparse
import signal

import pytest

from verbs_abi import testing
from verbs_abi.errors import UserError


def count(tmp_path, text):
    path = tmp_path / "junit.xml"
    path.write_text(text)
    return str(testing.count(path))


def test_what_ctest_writes_is_counted_by_status(tmp_path):
    assert (
        count(
            tmp_path,
            """<testsuite>
        <testcase name="a" status="run"><system-out>hello</system-out></testcase>
        <testcase name="b" status="fail"><failure message=""/><system-out/></testcase>
        <testcase name="c" status="notrun"><skipped
        message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
        <testcase name="d" status="disabled"/></testsuite>""",
        )
        == "1 passed, 1 failed, 2 skipped"
    )


def test_what_pytest_writes_is_counted_by_children(tmp_path):
    assert (
        count(
            tmp_path,
            """<testsuites><testsuite>
        <testcase name="a"/><testcase name="b"><failure message="x"/></testcase>
        <testcase name="c"><error message="x"/></testcase><testcase name="d"><skipped/></testcase>
        </testsuite></testsuites>""",
        )
        == "1 passed, 2 failed, 1 skipped"
    )


def test_a_whole_googletest_program_counts_its_cases(tmp_path):
    assert (
        count(
            tmp_path,
            """<testsuite><testcase name="whole" status="run"><system-out>
[==========] 5 tests from 2 test suites ran. (2 ms total)
[  PASSED  ] 4 tests.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] A.Skipped
</system-out></testcase><testcase name="bad" status="fail"><failure message=""/><system-out>
[  PASSED  ] 2 tests.
[  FAILED  ] 1 test, listed below:
[  FAILED  ] A.Bad
</system-out></testcase></testsuite>""",
        )
        == "6 passed, 1 failed, 1 skipped"
    )


def test_a_program_that_crashed_or_lies_about_its_end_is_one_failure(tmp_path):
    assert (
        count(
            tmp_path,
            """<testsuite><testcase name="crash" status="fail"><failure message=""/><system-out>
[ RUN      ] A.Crash
</system-out></testcase><testcase name="after" status="fail"><failure message=""/><system-out>
[  PASSED  ] 3 tests.
</system-out></testcase></testsuite>""",
        )
        == "0 passed, 2 failed, 0 skipped"
    )


def test_results_that_are_cut_off_are_an_error(tmp_path):
    with pytest.raises(UserError, match="no usable results"):
        count(tmp_path, "<testsuite><testcase")
    with pytest.raises(UserError, match="no usable results"):
        testing.count(tmp_path / "missing.xml")


def run_pytest(tmp_path, text):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/some_test.py").write_text(text)
    counted, status = testing.run_pytest(tmp_path / "junit.xml", root=tmp_path)
    return str(counted), status


def test_python_tests_are_run_and_counted(tmp_path):
    assert run_pytest(
        tmp_path,
        "import pytest\ndef test_a(): pass\ndef test_b(): assert 0\n"
        "@pytest.mark.skip\ndef test_c(): pass\n",
    ) == ("1 passed, 1 failed, 1 skipped", 1)


def test_tests_hear_signals_also_where_the_caller_ignores_them(tmp_path):
    old = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for what it starts with &
    try:
        assert run_pytest(tmp_path, "import subprocess\ndef test_a():\n"
                          "    assert subprocess.run(['sh', '-c', 'kill -INT $$; sleep 1']).returncode == -2\n"
                          ) == ("1 passed, 0 failed, 0 skipped", 0)
    finally:
        signal.signal(signal.SIGINT, old)


def test_a_file_that_cannot_be_imported_is_a_failure(tmp_path):
    assert run_pytest(tmp_path, "import nowhere\n") == ("0 passed, 1 failed, 0 skipped", 2)


def test_no_tests_are_no_failure(tmp_path):
    assert run_pytest(tmp_path, "") == ("0 passed, 0 failed, 0 skipped", 0)


def parts(*argv):
    parser = argparse.ArgumentParser()
    testing.register(parser.add_subparsers())
    return [part[0] for part in testing._chosen(parser.parse_args(["test", *argv]))]


def test_parts_are_chosen_by_name():
    assert parts() == ["unit", "python", "oracle", "relax", "style"]
    assert parts("--only", "relax,unit") == ["unit", "relax"]
    assert parts("--all") == [name for name, *_ in testing.PARTS]
    assert parts("--preset", "asan") == ["unit", "python"]
    with pytest.raises(UserError, match="unknown part of the test suite 'unti'\nNearest: unit"):
        parts("--only", "unti")


def test_a_rule_that_there_is_not_waits_for_no_whole_build(monkeypatch):
    asked = []
    monkeypatch.setattr(testing.build, "ensure", lambda preset, targets=(): asked.append(targets))
    monkeypatch.setattr(testing.worlds, "rules", lambda _folder: [{"name": "write.masked"}])
    with pytest.raises(UserError, match="unknown rule 'no.such.rule'"):
        testing.relax_one("no.such.rule")
    assert asked == [("vabi-world",)]
