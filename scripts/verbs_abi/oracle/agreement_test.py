# SPDX-License-Identifier: BSD-2-Clause
"""The comparison: what counts, why calls differ, figures that are kept, thresholds that are held."""

import json

import pytest

from verbs_abi import matrix
from verbs_abi.oracle import agreement, check, store

ANSWERS = {"write.a.length:setup": "fd 0", "write.a.length:exact": "16 0 r+0=00",
           "write.a.length:setup~2": "-1 EBUSY", "write.a.length:in+4.x": "-1 EINVAL",
           "write.a.length:end": "exit 0", "ioctl.b.c.attr_d:len=1": "-1 EINVAL",
           "ioctl.b.c.attr_d:end": "exit 0"}
WRONG = {**ANSWERS, "ioctl.b.c.attr_d:len=1": "0 0"}


def put(room, name, data):
    (room / name).write_text(json.dumps(data))


def test_agreement_counts_calls_per_front_end_and_class():
    fake = dict(ANSWERS)
    fake["write.a.length:in+4.x"] = "-1 ENOSPC"
    del fake["ioctl.b.c.attr_d:len=1"]
    result = agreement.compare("k", ANSWERS, fake)
    assert (result.agree, result.cases) == (1, 3)
    assert result.groups["front_end"] == {"write": [1, 2], "ioctl": [0, 1]}
    assert result.groups["class"] == {"length": [1, 2], "attribute": [0, 1]}
    assert [(item.call, item.real, item.fake) for item in result.disagreements] == [
        ("write.a.length:in+4.x", "-1 EINVAL", "-1 ENOSPC"),
        ("ioctl.b.c.attr_d:len=1", "-1 EINVAL", "no answer")]


def test_answers_that_only_the_fake_gives_do_not_help_it():
    assert agreement.compare("k", ANSWERS, {**ANSWERS, "more:x": "0 0"}).cases == 3


def test_disagreements_of_one_kind_are_told_once():
    rows = [agreement.Disagreement(f"a.b:{number}", "-1 EINVAL", f"16 0 r+0=0{number}")
            for number in range(3)] + [agreement.Disagreement("a.b:x", "0 0", "-1 EINVAL")]
    kinds = check.grouped(rows)
    assert [(kind, len(items)) for kind, items in kinds] == [
        (("a.b", "-1 EINVAL", "16 0"), 3), (("a.b", "0 0", "-1 EINVAL"), 1)]


def test_a_disagreement_carries_its_reason_and_counts_all_the_same(tmp_path):
    put(tmp_path, agreement.REASONS, {"reasons": [
        {"kernel": "k*", "call": "ioctl.*:len=1", "real": "-1 EINVAL", "fake": "0 *",
         "reason": "because of this and that"}]})
    reasons = agreement.Reasons(tmp_path)
    result = agreement.compare("k1", ANSWERS, WRONG, reasons)
    assert result.disagreements[0].reason == "because of this and that"
    assert (result.agree, result.cases) == (2, 3)
    for kernel, fake in (("z", WRONG), ("k1", {**WRONG, "ioctl.b.c.attr_d:len=1": "-1 EFAULT"})):
        assert agreement.compare(kernel, ANSWERS, fake, reasons).disagreements[0].reason == ""


def test_a_trace_that_follows_from_more_than_the_kernel_is_not_compared(tmp_path):
    put(tmp_path, agreement.REASONS, {"reasons": [], "apart": [
        {"kernel": "k*", "trace": "* tool *", "reason": "because of this and that"}]})
    reasons = agreement.Reasons(tmp_path)
    assert reasons.apart("k1", "deb-1 tool client") == "because of this and that"
    assert reasons.apart("z", "deb-1 tool client") == reasons.apart("k1", "deb-1 other client") == ""


def test_disagreements_are_counted_by_reason_and_the_rest_is_called_unexplained():
    rows = [agreement.Disagreement("a:1", "0 0", "1 0", "why"), agreement.Disagreement("a:2", "", ""),
            agreement.Disagreement("a:3", "0 0", "1 0", "why")]
    assert agreement.by_reason(rows) == [("why", 2), ("unexplained", 1)]
    said = []
    check.show(agreement.Agreement("k", 4, 1, disagreements=rows), 20, said.append)
    assert [" ".join(line.split()) for line in said if "because" in line] == [
        "because 2 why", "because 1 unexplained"]


@pytest.mark.parametrize("name,data,where", [
    (agreement.REASONS, {"reasons": [{"kernel": "k", "call": "c"}]}, "/reasons/0"),
    (agreement.REASONS, {"reasons": [{"kernel": "k", "call": "c", "reason": "short"}]},
     "/reasons/0/reason"),
    (agreement.THRESHOLDS, {"debian-6.1.192": "99"}, "/debian-6.1.192"),
    (agreement.THRESHOLDS, {"linux-6.1": 99}, "debian")])
def test_broken_tables_are_told_with_their_place(tmp_path, name, data, where):
    put(tmp_path, name, data)
    with pytest.raises(matrix.MatrixError) as error:
        agreement.Reasons(tmp_path)
        agreement.thresholds(tmp_path)
    assert name in str(error.value) and where in str(error.value)


def test_the_stored_tables_are_as_their_schemas_say():
    assert set(agreement.thresholds()) == set(store.names())
    for row in agreement.Reasons().rows:
        assert any(name for name in store.names() if agreement.fnmatch.fnmatchcase(
            name, row["kernel"])), row


def test_the_kept_figures_are_what_results_take(tmp_path):
    recording = store.Recording("debian-6.1.192", tmp_path)
    about = recording.replace(ANSWERS, "list", 0, {"p": "1"}, {}, {})
    result = agreement.compare("debian-6.1.192", ANSWERS, ANSWERS)
    agreement.save([result], "2026-01-01", tmp_path, "abcdef123456")
    assert agreement.stored(tmp_path) == {"debian-6.1.192": {"rxe": {
        "cases": 3, "agree": 3, "meant": 0, "checked": "2026-01-01", "commit": "abcdef123456",
        "recorded": about["date"]}}}
    assert agreement.stored(tmp_path / "nowhere") == {}


def test_keeping_one_kernels_figures_leaves_the_others(tmp_path):
    for kernel in ("debian-1", "debian-2"):
        agreement.save([agreement.compare(kernel, ANSWERS, ANSWERS)], "2026-01-01", tmp_path)
    assert list(agreement.stored(tmp_path)) == ["debian-1", "debian-2"]


def test_what_was_reached_is_the_least_from_now_on(tmp_path):
    put(tmp_path, agreement.THRESHOLDS, {"debian-1": 60.5})
    for fake, least in ((WRONG, 66.5), (ANSWERS, 99.9), (WRONG, 99.9)):
        agreement.save([agreement.compare("debian-1", ANSWERS, fake)], "2026-01-01", tmp_path)
        assert agreement.thresholds(tmp_path) == {"debian-1": least}


def test_a_kernel_below_its_threshold_is_named(tmp_path):
    results = [agreement.compare("debian-1", ANSWERS, WRONG)]
    assert check.too_low(results, room=tmp_path) == []
    put(tmp_path, agreement.THRESHOLDS, {"debian-1": 66.6})
    assert check.too_low(results, room=tmp_path) == []
    put(tmp_path, agreement.THRESHOLDS, {"debian-1": 66.7})
    assert check.too_low(results, room=tmp_path) == ["debian-1: 66.66 % is below 66.7 %"]
    assert check.too_low(results, 50, tmp_path) == []


def test_fewer_calls_than_when_the_figures_were_kept_are_not_enough(tmp_path):
    agreement.save([agreement.compare("debian-1", ANSWERS, ANSWERS)], "2026-01-01", tmp_path)
    part = {call: answer for call, answer in ANSWERS.items() if not call.startswith("ioctl")}
    line, = check.too_low([agreement.compare("debian-1", part, ANSWERS)], room=tmp_path)
    assert "debian-1: 2 calls were compared, 3 when the figures were kept" in line and str(tmp_path) in line
    assert check.too_low([agreement.compare("debian-1", ANSWERS, ANSWERS)], room=tmp_path) == []


@pytest.mark.parametrize("call,front,kind", [
    ("write.create_cq.field:cqe=0", "write", "field"),
    ("invoke.all.no_context:alloc_pd", "invoke", "no_context"),
    ("ioctl.cq.cq_create.attr_create_cq_cqe:len=0", "ioctl", "attribute"),
    ("ioctl.unknown.object_method:0x1.0x2", "ioctl", "object_method"),
    ("qp.rc.from_init:rtr.bit3", "qp", "qp_from"), ("netlink:chardev.by_name", "netlink", "netlink"),
    ("sysfs:/sys/class/infiniband/rxe0/node_guid file", "sysfs", "sysfs")])
def test_the_front_end_and_class_of_a_call(call, front, kind):
    assert agreement.front_end(call) == front
    assert agreement.class_of(call) == kind


def test_one_call_in_twenty_thousand_is_not_100_percent():
    assert agreement.down(100 * 19999 / 20000, 2) == 99.99
    assert agreement.down(100, 2) == 100
