# SPDX-License-Identifier: BSD-2-Clause
"""What programs ask to learn the answer (harness/cells/asks): told, never a loss, and the same twice."""

import json

import pytest

from verbs_abi.cells import ids, outcome, pool, runner, trace

CELL = ids.Cell("deb-44.0", "debian-6.1.192", (ids.Device("mlx4"),), (), "control")


def asked(setup, name):
    """{step: errno, "" where it was granted} of a cell's first asks of each name."""
    ended, _, _ = pool.run_raw(setup, ids.parse(name))
    steps, _ = outcome.steps_of(ended.stdout)
    found = {}
    for step in steps:
        if step.get("asked"):
            found.setdefault(step["step"].removeprefix("ask:"), "" if step["ok"] else step.get("errno", "?"))
    return found


def judged(**more):
    step = {"step": "mw", "ok": False, "optional": True, "errno": "EINVAL", **more}
    ended = runner.Ended(0, None, None, json.dumps(step) + "\n", "", 0.1)
    return outcome.judge(CELL, ended, [], must=())


def test_a_refused_ask_is_no_loss():
    assert (judged().outcome, judged().lost[0]) == ("degraded", "mw")
    result = judged(asked=True, step="ask:mw")
    assert "mw" not in " ".join(result.lost)
    assert [(test["name"], test["result"], test["message"]) for test in result.tests] == [("ask:mw", "skipped", "EINVAL")]


@pytest.mark.parametrize("cell", ("mlx4", "bnxt_re", "efa/no-ioctl"))
def test_two_runs_ask_the_same(setup, cell):
    cell = ids.parse(f"deb-44.0/debian-6.1.192/{cell}@control")
    first, second = (pool.run_raw(setup, cell)[1] for _ in range(2))
    assert trace.digest(first) == trace.digest(second)


def test_each_release_asks_for_what_its_headers_name(setup):
    names = {release: set(asked(setup, f"deb-{release}/debian-7.3.4/siw@control")) for release in ("33.2", "44.0", "56.1", "65.0")}
    assert names["33.2"] == names["44.0"] and {"reg_mr:on_demand", "query_gid_table"} <= names["33.2"]
    assert names["56.1"] - names["44.0"] == {"reg_mr:flush_global", "reg_mr:flush_persistent", "active_speed_ex"}
    assert names["65.0"] - names["56.1"] == {"reg_mr_ex", "query_port_speed", "query_comp_cntr_caps"}
    assert names["33.2"] < names["56.1"] < names["65.0"]


# drivers/infiniband of the kernels named.
@pytest.mark.parametrize("kernel, provider, ask, errno", [
    # rdma/ib_verbs.h: ib_check_mr_access looks for unknown flags in 5.6, not in 5.4, and knows flushing in 6.12, not in 6.1.
    ("linux-5.3", "siw", "reg_mr:flush_global", ""), ("linux-5.6", "siw", "reg_mr:flush_global", "EINVAL"),
    ("debian-6.1.192", "siw", "reg_mr:flush_global", "EINVAL"), ("debian-7.3.4", "siw", "reg_mr:flush_global", "EOPNOTSUPP"),
    ("debian-7.3.4", "siw", "reg_mr:remote_write_alone", "EINVAL"),
    # sw/siw/siw_verbs.c: siw_create_qp wants a send queue since 5.10.
    ("linux-5.9", "siw", "create_qp:receives_only", ""), ("debian-5.10.223", "siw", "create_qp:receives_only", "EINVAL"),
    ("debian-6.1.192", "mlx4", "open_xrcd", ""), ("debian-6.1.192", "mlx4", "create_cq:no_such_vector", "EINVAL"),
    ("debian-6.1.192", "siw", "open_xrcd", "EOPNOTSUPP"),
])
def test_kernels_answer_as_their_sources_say(setup, kernel, provider, ask, errno):
    assert asked(setup, f"deb-56.1/{kernel}/{provider}@control")[ask] == errno
