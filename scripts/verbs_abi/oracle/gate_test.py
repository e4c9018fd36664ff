# SPDX-License-Identifier: BSD-2-Clause
"""The check as a test: it is red for a rule that is wrong, and the fake kernel is nobody's pupil."""

import contextlib
import io
import json
import shutil

import pytest

from verbs_abi import errors, paths, testing
from verbs_abi.oracle import check, clients, gate, kernels

KERNEL = "debian-6.12.117"
# What an answer of the recordings could be told by: their folder and their files' names.
RECORDINGS = (b"matrix/oracle", b"oracle/", b"answers.txt", b"agreement.json")


def told(names, results=None, error=None):
    """What gate.run says and returns when these are the comparisons' results."""
    lines = []

    def compare(*_, **__):
        if error:
            raise error
        return results

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "compare_all", compare)
        patch.setattr(check.agreement, "stored", lambda *_: {})
        patch.setattr(gate, "chosen", lambda *_: names)
        patch.setattr(gate, "chosen_clients", lambda *_: [])
        return gate.run("build", out=lines.append), "\n".join(lines)


def agreement_of(kernel, agree):
    return gate.check.agreement.Agreement(kernel, 1000, agree)


def test_every_kernel_is_a_test_and_a_low_one_fails():
    counted, said = told(["a"], [agreement_of(KERNEL, 1000), agreement_of("debian-6.1.192", 500)])
    assert counted == (1, 1)
    assert "FAILED oracle.debian-6.1.192: 50.00 % is below" in said
    assert "oracle check --kernel debian-6.1.192" in said and f"FAILED oracle.{KERNEL}" not in said


def test_what_cannot_be_compared_is_a_failure_of_every_kernel():
    counted, said = told(["a", "b"], error=errors.UserError("the probe is gone"))
    assert counted == (0, 2) and "the probe is gone" in said


def test_the_suite_runs_those_whose_name_the_filter_has(monkeypatch):
    assert gate.chosen("") == [*kernels.table(), "debian-6.12.117-siw"]
    assert gate.chosen("oracle.debian-6.1.") == ["debian-6.1.192"]
    assert gate.chosen("wraps") == []
    assert gate.chosen_clients("") == ["debian-6.1.192", KERNEL]
    assert gate.chosen_clients("12.117.pyverbs") == [KERNEL] and gate.chosen(".pyverbs") == []
    monkeypatch.setattr(gate, "run", lambda build, text: (3, 2))
    assert testing.run_oracle("build") == (testing.Count(3, 2), 1)


def test_a_test_of_pyverbs_that_ends_otherwise_without_a_reason_fails(monkeypatch):
    rows = [{"test": "test_a.A.test_1", "real": "passed", "fake": "failed", "reason": reason}
            for reason in ("", "because it is slow")]
    monkeypatch.setattr(gate, "chosen", lambda *_: [])
    monkeypatch.setattr(gate, "chosen_clients", lambda *_: ["a", "b", "c"])
    monkeypatch.setattr(check, "FakeMachine", lambda _: io.StringIO())

    def compare(name, *_):
        if name == "c":
            raise errors.UserError("c: no word")
        return clients.Compared(name, 2, 3, [rows["ab".index(name)]])

    monkeypatch.setattr(clients, "compare", compare)
    lines = []
    assert gate.run("build", out=lines.append) == (1, 2)
    failed = [line for line in lines if line.startswith("FAILED")]
    assert len(failed) == 1 and "oracle.a.pyverbs: test_a.A.test_1 ended passed on the real kernel, failed" in failed[0]
    assert "oracle clients: c: no word" in lines


def wrong_matrix(folder, changes):
    """A project's data in which one kernel has these changes."""
    shutil.copytree(paths.ROOT / "matrix", folder / "matrix",
                    ignore=shutil.ignore_patterns("oracle"))
    (folder / "reference-headers").symlink_to(paths.ROOT / "reference-headers")
    path = folder / "matrix" / "kernels" / f"{KERNEL}.json"
    data = json.loads(path.read_text())
    data["changes"] = data.get("changes", []) + changes
    path.write_text(json.dumps(data))
    return folder / "matrix"


@pytest.mark.skipif(not (paths.build_dir() / "harness/probe/vabi-probe").exists(),
                    reason="needs the release build")
def test_a_rule_with_the_wrong_errno_turns_the_check_red(tmp_path, monkeypatch):
    # A probe reads EPROTONOSUPPORT as "this kernel has not got it".
    monkeypatch.setenv("VERBS_ABI_MATRIX", str(wrong_matrix(tmp_path, [
        {"rule": name, "errno": "EINVAL", "why": "wrong on purpose"}
        for name in ("ioctl.method.unknown", "ioctl.attr.unknown_mandatory")])))
    result, = check.compare_all([KERNEL], paths.build_dir())
    assert check.too_low([result]) != []
    wrong = [item for item in result.disagreements if item.real.startswith("-1 EPROTONOSUPPORT")
             and item.fake.startswith("-1 EINVAL")]
    assert len(wrong) > 1000


@pytest.mark.skipif(not (paths.build_dir() / "harness/probe/vabi-probe").exists(),
                    reason="needs the release build")
@pytest.mark.parametrize("changes, otherwise", (
    ([], []),
    ([{"driver": "rxe", "op": "create_user_ah", "served": False, "why": "wrong on purpose"}],
     ["test_addr.AHTest.test_create_ah", "test_addr.AHTest.test_create_ah_roce", "test_addr.AHTest.test_destroy_ah"])))
def test_a_wrong_rule_turns_pyverbs_results_red(tmp_path, monkeypatch, changes, otherwise):
    monkeypatch.setenv("VERBS_ABI_MATRIX", str(wrong_matrix(tmp_path, changes)))
    with contextlib.closing(check.FakeMachine(paths.build_dir())) as fake:
        compared = clients.compare(KERNEL, fake, only="test_addr.AHTest.*")
    assert [row["test"] for row in compared.unexplained] == otherwise


def test_the_fake_kernel_does_not_know_the_recordings():
    seen = 0
    for room in ("shims", "harness/world"):
        for path in (kernels.SOURCE_ROOT / room).rglob("*"):
            if path.is_file() and path.suffix in (".cc", ".h", ".def", ".inc", ".txt", ".py", ""):
                data, seen = path.read_bytes(), seen + 1
                assert not any(word in data for word in RECORDINGS), path
    assert seen > 100
