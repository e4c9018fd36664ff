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


def test_each_test_that_ends_otherwise_is_told(tmp_path):
    recording = store.Recording("k", tmp_path)
    recording.replace({"a:b": "0 0"}, "list", 0, {"p": "1"}, {clients.FILE: clients.pack(ROWS)}, {})
    told = []
    found = {**ROWS, "test_b.B.test_3": ("passed", ""), "test_c.C.more": ("failed", "")}
    assert clients.compare("k", tmp_path, told.append, found) == (2, 3)
    assert told[0] == "  test_b.B.test_3: real failed (AssertionError: 1 != 2), fake passed"
    del found["test_a.A.test_1"]
    assert clients.compare("k", tmp_path, told.append, found) == (1, 3)
    assert "test_a.A.test_1: real passed, fake absent" in told[2]
    # It stays when the calls are recorded anew.
    assert clients.FILE in recording.programs({"p": "1"})


def test_without_a_recording_it_is_told_how_to_make_one(tmp_path):
    with pytest.raises(UserError, match="oracle record --journey pyverbs --kernel k"):
        clients.compare("k", tmp_path)


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
