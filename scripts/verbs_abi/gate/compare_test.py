# SPDX-License-Identifier: BSD-2-Clause
import pytest

from verbs_abi.cells import turning
from verbs_abi.gate import compare


def row(userland, outcome="full", kernel="linux-6.1", provider="mlx5", overlays=(), scenario=None, lost=(), tests=(),
        verdict="expected", message=None, features=()):
    name = "/".join([userland, kernel, provider, *overlays]) + (f"@{scenario}" if scenario else "")
    return {"id": name, "userland": userland, "kernel": kernel, "provider": provider, "overlays": list(overlays),
            "scenario": scenario, "outcome": outcome, "lost": list(lost), "tests": list(tests), "verdict": verdict,
            "message": message, "features": list(features)}


def facts(symbols=None, private="P_1", providers=("mlx5",)):
    return {"name": "u", "private_abi": private, "providers": list(providers),
            "libraries": {"libx.so.1": {"nodes": ["V_1"], "symbols": symbols or {"f": ["V_1@"]}}}}


def answer(rows, old_facts=None, new_facts=None, accepted=({}, {})):
    return compare.answer("old", "new", rows, (old_facts or facts(), new_facts or facts()), accepted)


def test_equal_userlands_pass():
    gate = answer([row("old"), row("new")])
    assert (gate["result"], gate["reasons"], gate["worse"], gate["better"]) == ("pass", [], [], [])


@pytest.mark.parametrize("was, now, worse", [
    ("full", "degraded", True), ("full", "refused", True), ("full", "broken", True), ("degraded", "refused", True),
    ("refused", "broken", True), ("refused", "full", False), ("broken", "refused", False), ("degraded", "full", False)])
def test_outcomes_are_ranked(was, now, worse):
    gate = answer([row("old", was), row("new", now)])
    assert (len(gate["worse"]), len(gate["better"])) == ((1, 0) if worse else (0, 1))
    assert gate["result"] == ("fail" if worse else "pass")
    assert (gate["worse"] or gate["better"])[0]["id"] == "new/linux-6.1/mlx5"


def test_only_the_same_scenario_is_compared():
    gate = answer([row("old", kernel="linux-5.6"), row("new", "broken"), row("old", overlays=["no-ioctl"]),
                   row("new", "broken", scenario="negotiate")])
    assert gate["worse"] == [] and gate["result"] == "pass"


def test_a_loss_within_an_outcome_is_worse():
    gate = answer([row("old", "degraded", lost=["DevX"]), row("new", "degraded", lost=["DevX", "device rxe0"])])
    assert gate["worse"][0]["detail"] == "lost: device rxe0"
    gate = answer([row("old", "degraded", lost=["a", "b"]), row("new", "degraded", lost=["b"])])
    assert gate["better"][0]["detail"] == "has: a" and gate["result"] == "pass"


def test_what_only_a_newer_library_asks_for_is_no_loss():
    gate = answer([row("old", "degraded"), row("new", "degraded", lost=["method DEVICE.QUERY_PORT_SPEED"])])
    assert gate["worse"] == []


def test_a_test_that_fails_now_is_worse():
    tests = [{"name": "A.B", "result": "failed"}]
    gate = answer([row("old", "broken", scenario="conformance"), row("new", "broken", scenario="conformance", tests=tests)])
    assert gate["worse"][0]["detail"] == "fails: A.B"


def asked(name, result):
    return {"name": f"ask:{name}", "result": result, "message": None}


def test_what_was_granted_and_is_refused_now_is_worse():
    old = [asked("alloc_mw:1", "passed"), asked("cq_ex:sl", "skipped"), asked("open_xrcd", "passed")]
    new = [asked("alloc_mw:1", "skipped"), asked("cq_ex:sl", "passed"), asked("open_xrcd", "passed")]
    gate = answer([row("old", tests=old, scenario="control"), row("new", tests=new, scenario="control")])
    assert gate["worse"][0]["detail"] == "refuses: alloc_mw:1" and gate["result"] == "fail"
    gate = answer([row("old", tests=old[1:], scenario="control"), row("new", tests=new[1:], scenario="control")])
    assert gate["better"][0]["detail"] == "grants: cq_ex:sl" and gate["result"] == "pass"


def test_what_only_one_of_both_asks_for_says_nothing():
    tests = [asked("reg_mr_ex", "skipped"), asked("query_port_speed", "passed")]
    gate = answer([row("old", scenario="control"), row("new", tests=tests, scenario="control")])
    assert gate["worse"] == gate["better"] == []
    gate = answer([row("old", tests=tests, scenario="control"), row("new", scenario="control")])
    assert gate["worse"] == gate["better"] == []


def test_steps_that_are_no_asks_tell_by_their_losses():
    was, now = {"name": "srq", "result": "passed"}, {"name": "srq", "result": "skipped"}
    assert answer([row("old", tests=[was]), row("new", tests=[now])])["worse"] == []


def swept(userland, *versions):
    return row(userland, scenario="abi-sweep", features=[f"ABI {version}" for version in versions])


# Both sweeps are full: of a place whose source nobody has read, no table says which versions it should take.
@pytest.mark.parametrize("was, now, worse, better", [
    ((1, 2, 3), (1, 2), "refuses: ABI 3", None),
    ((0, 1, 2), (2,), "refuses: ABI 0 to 1", None),
    ((0, 1, 2), (0, 2), "refuses: ABI 1", None),
    ((1,), (), "refuses: ABI 1", None),
    ((1, 2), (2, 3), "refuses: ABI 1", None),  # what else is taken makes up for nothing
    ((1,), (1, 2, 2**31 - 1), None, "takes: ABI 2, 2147483647"),
    ((1, 2), (2, 1), None, None)])
def test_versions_that_a_provider_takes_are_compared(was, now, worse, better):
    gate = answer([swept("old", *was), swept("new", *now)])
    assert [one["detail"] for one in gate["worse"]] == ([worse] if worse else [])
    assert [one["detail"] for one in gate["better"]] == ([better] if better else [])
    assert gate["result"] == ("fail" if worse else "pass")


@pytest.mark.parametrize("was, now", [
    ("full", "unmodelled"), ("refused", "unmodelled"), ("broken", "unmodelled"), ("unmodelled", "full"),
    ("unmodelled", "broken"), ("unmodelled", "unmodelled")])
def test_what_has_no_model_leaves_no_answer(was, now):
    rows = [row("old", was, tests=[{"name": "A.B", "result": "failed"}], message="method A"),
            row("new", now, lost=["DevX"], message="method A")]
    gate = answer([row("old", kernel="linux-5.6"), row("new", kernel="linux-5.6"), *rows])
    assert (gate["result"], gate["worse"], gate["better"]) == ("not_run", [], [])
    assert gate["reasons"] == ["1 cells have no model: new/linux-6.1/mlx5: method A"]
    assert gate["x_unmodelled"] == [{"id": "new/linux-6.1/mlx5", "was": was, "is": now, "detail": "method A"}]


def test_what_has_no_model_hides_nothing_that_got_worse():
    rows = [row("old"), row("new", "unmodelled"), row("old", kernel="linux-5.6"), row("new", "refused", "linux-5.6")]
    gate = answer(rows)
    assert gate["result"] == "fail" and [one["id"] for one in gate["worse"]] == ["new/linux-5.6/mlx5"]
    assert [text.partition(":")[0] for text in gate["reasons"]] == ["1 cells got worse", "1 cells have no model"]
    assert answer(rows[:2], new_facts=facts({"g": ["V_2@"]}))["result"] == "fail"


def test_changed_headers_are_told_and_stop_nothing():
    told = {"what": "x.h: struct x", "class": "resized", "detail": "", "stops": False}
    gate = compare.answer("old", "new", [row("old"), row("new")], (facts(), facts()), ({}, {}), headers=[told])
    assert (gate["facts"], gate["result"]) == ([told], "pass")


def test_absent_cells_say_nothing():
    assert answer([row("old", "absent"), row("new", "absent")])["result"] == "pass"


def test_a_removed_symbol_stops_the_release():
    gate = answer([row("old"), row("new")], new_facts=facts({"g": ["V_2@"]}))
    assert gate["result"] == "fail" and gate["reasons"] == ["symbols: libx.so.1: f removed"]


def test_a_private_abi_is_told_and_stops_nothing():
    gate = answer([row("old"), row("new")], new_facts=facts(private="P_2"))
    assert gate["result"] == "pass"
    assert [(one["class"], one["detail"], one["stops"]) for one in gate["symbols"]] == [("private-abi", "P_1 → P_2", False)]


def test_a_removed_provider_stops_the_release():
    gate = answer([row("old"), row("new")], facts(providers=("i40iw", "mlx5")))
    assert gate["result"] == "fail" and gate["reasons"] == ["negotiation: i40iw provider-removed"]


@pytest.mark.parametrize("after, kind, stops", [
    ({"min": 1, "max": 2, "by": ["pci"]}, "range-widened", False),
    ({"min": 1, "max": 1, "by": []}, "match-removed", True),
    ({"min": 2, "max": 2, "by": ["pci"]}, "range-narrowed", True),
    ({"min": 1, "max": 1, "by": ["pci", "name"]}, "match-added", False)])
def test_ranges_and_ways_of_matching(after, kind, stops):
    found = list(compare.ranges({"x": {"min": 1, "max": 1, "by": ["pci"]}}, {"x": after}))
    assert [(one["class"], one["stops"]) for one in found] == [(kind, stops)]


def test_cells_that_were_not_run_leave_no_answer():
    gate = answer([row("old", None, verdict="not_run", message="libibverbs1 has left the archive"), row("new")])
    assert gate["result"] == "not_run" and "has left the archive" in gate["reasons"][0]
    gate = answer([row("old", None, verdict="not_run"), row("new")], new_facts=facts({"g": ["V_2@"]}))
    assert gate["result"] == "fail" and len(gate["reasons"]) == 2


def test_turning_points_along_kernels():
    order = ["linux-4.4", "linux-4.16", "linux-5.3", "linux-6.1"]
    rows = [row("u", state, kernel) for kernel, state in zip(order, ("refused", "absent", "degraded", "broken"))]
    points = [(one["first"], one["at"], one["after"], one["was"], one["is"])
              for one in turning.turning_points(rows, "kernel", order)]
    assert points == [("good", "linux-5.3", "linux-4.4", "refused", "degraded"),
                      ("bad", "linux-6.1", "linux-5.3", "degraded", "broken")]
    assert turning.sentence(next(turning.turning_points(rows, "kernel", order))) == (
        "u/*/mlx5: first good is linux-5.3 (degraded; linux-4.4: refused)")


def test_turning_points_keep_scenarios_apart():
    order = ["a", "b"]
    rows = [row("a"), row("b", "refused", overlays=["no-ioctl"]), row("a", "refused", overlays=["no-ioctl"]), row("b")]
    assert list(turning.turning_points(rows, "userland", order)) == []
    rows.append(row("c", "refused"))
    assert [one["cell"] for one in turning.turning_points(rows, "userland", ["a", "b", "c"])] == ["*/linux-6.1/mlx5"]
