# SPDX-License-Identifier: BSD-2-Clause
from verbs_abi.reports import terminal


def results(builds):
    return {"cells": [], "builds": builds,
            "summary": {"cells": 0, "expected": 0, "unexpected": 0, "fixed": 0, "not_run": 0, "unmodelled": 0, "wall_s": 1}}


def row(library, result, verdict, **more):
    return {"source": "src-44.0", "headers": "debian-6.1.192", "library": library, "result": result, "verdict": verdict, **more}


def test_unexpected_builds_are_named_and_all_are_counted():
    lines = terminal.last_lines(results([
        row("libmlx5", "drift", "unexpected", cause="silent drift against debian-6.1.192"),
        row("librxe", "failed", "expected", cause="missing header rdma/x.h"), row("libefa", "built", "expected")]))
    assert lines[0] == "unexpected build: src-44.0 + debian-6.1.192: libmlx5: drift (silent drift against debian-6.1.192)"
    assert lines[1] == "1 builds: 1 of 3 libraries as their kernels, 1 with silent drift, 1 do not build"
    assert len(lines) == 3


def test_a_run_that_builds_nothing_says_nothing_of_builds():
    assert len(terminal.last_lines(results([]))) == 1
