# SPDX-License-Identifier: BSD-2-Clause
"""Results of pyverbs' tests: stored, read back, compared."""

import json

import pytest

from verbs_abi.errors import UserError
from verbs_abi.oracle import clients, kernels, store, vm

ROWS = {"test_a.A.test_1": ("passed", ""), "test_a.A.test_2": ("skipped", "no such\n  thing"),
        "test_b.B.test_3": ("failed", "AssertionError: 1 != 2")}


def lines(rows):
    return "noise\n" + "".join(json.dumps({"test": test, "result": result, "message": message or None,
                                           "seconds": 1.5}) + "\n" for test, (result, message) in rows.items())


def test_results_are_stored_a_line_a_test_without_times():
    text = clients.pack(clients.results(lines(ROWS)))
    assert text == ("test_a.A.test_1 passed\ntest_a.A.test_2 skipped no such thing\n"
                    "test_b.B.test_3 failed AssertionError: 1 != 2\n")
    assert clients.unpack(text) == {**ROWS, "test_a.A.test_2": ("skipped", "no such thing")}


class Fake:
    """Stands for the machine with the fake kernel; `alone`: how a test ends that is run by itself."""

    def __init__(self, rows, alone=None):
        self.rows, self.alone = rows, alone or {}
        self.asked = []

    def run(self, _kernel, _userland, *words):
        only = words[words.index("--only") + 1]
        self.asked.append(only)
        alone = {only: self.alone.get(only, self.rows.get(only))}
        return 0, lines(alone if only in self.rows else self.rows), []


@pytest.fixture(name="room")
def _room(tmp_path):
    store.Recording("k", tmp_path).replace({"a:b": "0 0"}, "list", 0, {"p": "1"}, {clients.FILE: clients.pack(ROWS)}, {})
    return tmp_path


def told(compared):
    said = []
    clients.tell(compared, said.append)
    return said


def test_each_test_that_ends_otherwise_is_told(room):
    found = {**ROWS, "test_b.B.test_3": ("passed", ""), "test_c.C.more": ("failed", "")}
    fake = Fake(found)
    compared = clients.compare("k", fake, room)
    assert (compared.same, compared.count) == (2, 3) and compared.unexplained
    assert told(compared) == ["  test_b.B.test_3: real failed (AssertionError: 1 != 2), fake passed",
                              "k: 2 of 3 tests of pyverbs end as on the real kernel, 66.7 %"]
    assert fake.asked == ["*", "test_b.B.test_3"], "it was given another chance"
    del found["test_a.A.test_1"]
    assert told(clients.compare("k", Fake(found), room))[0] == "  test_a.A.test_1: real passed, fake absent"
    # It stays when the calls are recorded anew.
    assert clients.FILE in store.Recording("k", room).programs({"p": "1"})


def test_a_test_that_ends_alike_when_run_by_itself_counts(room):
    fake = Fake({**ROWS, "test_a.A.test_1": ("hung", "no end")}, alone={"test_a.A.test_1": ("passed", "")})
    assert clients.compare("k", fake, room).otherwise == []


def test_a_reason_is_told_and_the_test_counts_as_other(room):
    (room / "reasons.json").write_text(json.dumps({"reasons": [], "tests": [
        {"kernel": "k*", "test": "test_b.*", "reason": "it counts what the real kernel counts otherwise"}]}))
    compared = clients.compare("k", Fake({**ROWS, "test_b.B.test_3": ("passed", "")}), room)
    assert compared.same == 2 and not compared.unexplained
    assert "    why it counts what the real kernel counts otherwise" in told(compared)


def test_without_a_recording_it_is_told_how_to_make_one(tmp_path):
    with pytest.raises(UserError, match="oracle record --journey pyverbs --kernel k"):
        clients.compare("k", None, tmp_path)


def test_a_pattern_chooses_tests(room):
    assert told(clients.compare("k", Fake(ROWS), room, "test_a.*"))[-1].startswith("k: 2 of 2 tests")
    with pytest.raises(UserError, match="k: none of pyverbs' tests is called test_z"):
        clients.compare("k", Fake(ROWS), room, "test_z*")


def test_no_word_from_the_tests_is_an_error(room):
    with pytest.raises(UserError, match=r"k: pyverbs did not run on the fake kernel \(exit status 0\)"):
        clients.compare("k", Fake({}), room)


@pytest.mark.parametrize("ends, boots", ((["done"], 1), (["timeout", "done"], 2), (["crashed", "crashed"], 2)))
def test_a_guest_is_tried_twice(monkeypatch, ends, boots):
    made = []

    def run(*_, **__):
        made.append(ends[len(made)])
        files = {"pyverbs.jsonl": lines(ROWS).encode()} if made[-1] == "done" else {}
        return vm.Result(made[-1], "VFS: no root", b"", files, 1.0)

    monkeypatch.setattr(clients.boot, "run", run)
    monkeypatch.setattr(clients, "_archive", lambda: b"")
    monkeypatch.setattr(clients.machine, "userland_archive", lambda *_: b"")
    if "done" in ends:
        assert clients.pyverbs("k") == {clients.FILE: clients.pack(ROWS)}
    else:
        with pytest.raises(kernels.OracleError, match="k: pyverbs did not run in the guest .crashed.; console: VFS"):
            clients.pyverbs("k")
    assert len(made) == boots
