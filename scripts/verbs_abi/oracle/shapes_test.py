# SPDX-License-Identifier: BSD-2-Clause
"""Traces as short lines, and runs of them written once."""

from verbs_abi.oracle import shapes

QUERY = {"via": "ioctl", "device": "rxe0", "name": "DEVICE.QUERY_GID_ENTRY", "object": 0, "method": 6,
         "attrs": [{"id": 1, "len": 8, "flags": 1, "value": 3}, {"id": 3, "len": 32, "flags": 1}],
         "result": -61, "errno": "ENODATA", "pid": 1, "tid": 1, "t": 5, "ns": 7}


def test_a_command_is_told_without_who_when_and_which_device():
    assert shapes.line(QUERY) == "ioctl DEVICE.QUERY_GID_ENTRY 0.6 1:8=3 3:32 ENODATA"
    assert shapes.line({"via": "open", "name": "open", "device": "x", "result": 0}) == "open 0"
    assert shapes.line({"via": "write", "name": "CREATE_CQ", "command": 18, "core_in": 32, "core_out": 8,
                        "uhw_out": 16, "result": 40}) == "write CREATE_CQ 18 in=32/0 out=8/16 40"
    assert shapes.line({"via": "mmap", "name": "mmap:CQ", "flags": "0x1000", "result": 0}) == "mmap 0"
    assert shapes.line({"via": "ioctl", "name": "DEVICE.INVOKE_WRITE", "inner": "ALLOC_PD", "object": 0, "method": 0,
                        "command": 3, "core_in": 8, "core_out": 4, "attrs": [], "result": 0}) == \
        "ioctl DEVICE.INVOKE_WRITE/ALLOC_PD 0.0 in=8/0 out=4/0 0"


def test_what_differs_from_run_to_run_is_masked():
    made = {"via": "ioctl", "name": "CQ.CREATE", "object": 3, "method": 0, "result": 0, "attrs": [
        {"id": 7, "len": 0, "flags": 1, "value": 5}, {"id": 2, "len": 8, "flags": 3, "value": 0x5581_0000_0000},
        {"id": 0, "len": 0, "flags": 1, "value": 4}]}
    assert shapes.line(made) == "ioctl CQ.CREATE 3.0 7:0=[fd] 2:8:0x3 0:0=4 0"
    unserved = {**QUERY, "errno": "EPROTONOSUPPORT", "result": -93}
    assert shapes.line(unserved) == "ioctl DEVICE.QUERY_GID_ENTRY 0.6 EPROTONOSUPPORT"


def test_runs_are_written_once_and_may_count_on():
    run = [text for i in range(4) for text in (f"get 1:8={i} 2:4=0 0", f"get 1:8={i} ENODATA")]
    assert shapes.pack(["open 0", *run, "close 0"]) == [
        "open 0", "4 times:", "  get 1:8=0+ 2:4=0 0", "  get 1:8=0+ ENODATA", "close 0"]
    assert shapes.pack(["a", "b"] * 2) == ["a", "b"] * 2  # not worth it
    assert shapes.pack(["x 1=0", "x 1=0", "x 1=0"]) == ["3 times:", "  x 1=0"]


def test_a_run_ends_where_something_else_changes():
    assert shapes.pack(["g =0 0", "g =1 0", "g =2 0", "g =3 ENODATA", "g =5 0"]) == [
        "3 times:", "  g =0+ 0", "g =3 ENODATA", "g =5 0"]
    assert shapes.pack(["g =0", "g =2", "g =4"]) == ["g =0", "g =2", "g =4"]  # counts on by more than one


def test_stored_traces_come_back():
    traces = {"deb-1 tool -v": [QUERY] * 3 + [{"event": "recording", "text": "x"}], "deb-1 other": []}
    text = shapes.store(traces)
    assert text == ("== deb-1 tool -v\n3 times:\n  ioctl DEVICE.QUERY_GID_ENTRY 0.6 1:8=3 3:32 ENODATA\n"
                    "== deb-1 other\n")
    assert shapes.load(text) == {"deb-1 tool -v": ["3 times:", "  ioctl DEVICE.QUERY_GID_ENTRY 0.6 1:8=3 3:32 ENODATA"],
                                 "deb-1 other": []}


def test_two_traces_are_compared_line_by_line_as_they_belong_together():
    real, fake = shapes.aligned("p", ["a", "b", "c", "d"], ["a", "c", "x", "y", "d"])
    assert real == {"trace:p 001": "a", "trace:p 002": "b", "trace:p 003": "c", "trace:p 003+1": "nothing",
                    "trace:p 003+2": "nothing", "trace:p 004": "d"}
    assert fake == {"trace:p 001": "a", "trace:p 003": "c", "trace:p 003+1": "x", "trace:p 003+2": "y",
                    "trace:p 004": "d"}
    real, fake = shapes.aligned("p", ["a", "b"], ["a", "x"])
    assert (real["trace:p 002"], fake["trace:p 002"]) == ("b", "x")
    assert shapes.aligned("p", ["a"], []) == ({"trace:p 001": "a"}, {})
