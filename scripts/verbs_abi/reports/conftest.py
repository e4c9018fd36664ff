# SPDX-License-Identifier: BSD-2-Clause
"""Made-up results for the tests of the reports. Nothing here is a statement about real kernels."""

from __future__ import annotations

import copy
import hashlib
import random

import pytest

from . import model

KERNELS = [
    *(
        f"linux-{version}"
        for version in (
            "4.4",
            "4.10",
            "4.14",
            "4.16",
            "4.17",
            "4.20",
            "5.0",
            "5.2",
            "5.4",
            "5.6",
            "5.12",
            "5.17",
            "6.2",
            "6.8",
        )
    ),
    "debian-5.10.223",
    "debian-6.1.192",
    "debian-6.12.117",
    "debian-7.2.13",
    "debian-7.3.4",
    "gvisor-rdmaproxy",
    "rr-sandbox",
]
OVERLAYS = [
    [],
    ["no-netlink"],
    ["no-netlink-chardev"],
    ["no-ioctl"],
    ["no-invoke-write"],
    ["no-write"],
    ["global-abi=2"],
    ["global-abi=7"],
    ["provider-abi=99"],
    ["provider-abi=garbage"],
    ["missing-method=CQ_CREATE"],
    ["no-cdev-node"],
    ["cdev-mode=0600"],
    ["errno@GET_CONTEXT=EINVAL"],
    ["no-dynamic-uar"],
    ["mmap-fails=0"],
]


def digest(text):
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _outcome(kernel, provider, overlays):
    old = kernel in ("linux-4.4", "linux-4.10", "linux-4.14", "linux-4.16")
    overlay = overlays[0] if overlays else ""
    if overlay.startswith(("global-abi", "provider-abi", "no-cdev", "cdev-mode", "errno@")):
        return "refused"
    if kernel == "gvisor-rdmaproxy" and overlay == "no-ioctl":
        return "refused"
    if old or overlay.startswith(("no-ioctl", "no-invoke", "missing", "no-dynamic")):
        return "degraded"
    return "full"


def make_cell(userland, kernel, provider, overlays=(), scenario=None, **changes):
    """A valid cell; `changes` may make it anything else."""
    overlays = list(overlays)
    outcome = _outcome(kernel, provider, overlays)
    cell_id = "/".join([userland, kernel, provider, *overlays]) + (
        f"@{scenario}" if scenario else ""
    )
    over = "".join(f" --overlay {name}" for name in overlays)
    cell = {
        "id": cell_id,
        "userland": userland,
        "kernel": kernel,
        "provider": provider,
        "overlays": overlays,
        "scenario": scenario,
        "arch": "x86_64",
        "page_size": 4096,
        "outcome": outcome,
        "verdict": "expected",
        "route": "write" if outcome == "degraded" else "ioctl",
        "lost": [],
        "rule": None,
        "errno": None,
        "by": None,
        "message": None,
        "known_by": {
            "core": "calibrated" if kernel.startswith("debian") else "source",
            "driver": "source",
        },
        "trace_digest": digest(cell_id),
        "world_digest": digest("world " + cell_id),
        "tests": [
            {"name": f"Fallback.SentenceNumber{number}", "result": "passed"} for number in range(6)
        ],
        "duration_ms": 78.5,
        "exec": f"./verbs-abi exec --userland {userland} --kernel {kernel} --provider {provider}"
        f"{over} -- ibv_devinfo -v",
    }
    if outcome == "degraded":
        cell.update(
            lost=["dynamic UAR", "DevX"] if provider == "mlx5" else [],
            rule="ioctl.absent",
            errno="ENOTTY",
            by="kernel",
        )
    if outcome == "refused":
        cell.update(
            rule="discovery.global_abi",
            errno="ENOSYS",
            by="libibverbs",
            trace_digest=None,
            message="libibverbs: Fatal: kernel ABI version 7 doesn't match library version 6.",
        )
    cell.update(changes)
    return cell


def make_results(cells, **changes):
    results = {
        "schema_version": 1,
        "stack": "rdma-core",
        "generated": "2026-05-04T03:02:01Z",
        "run": {
            "plan": "quick",
            "command": "./verbs-abi run",
            "started": "2026-05-04T03:01:40Z",
            "finished": "2026-05-04T03:02:01Z",
            "jobs": 2,
            "complete": True,
            "planned": len(cells),
        },
        "provenance": {
            "shim": digest("shim"),
            "facts": digest("facts"),
            "userlands": {
                name: digest(name) for name in sorted({str(cell["userland"]) for cell in cells})
            },
            "kernels": {
                name: digest(name) for name in sorted({str(cell["kernel"]) for cell in cells})
            },
            "version": "0.1",
            "commit": "0123456789abcdef",
            "host": "Debian 12, x86_64",
        },
        "cells": cells,
        "summary": model.summarise(cells, 21.4),
    }
    results.update(changes)
    return results


def many_cells(
    userlands=("deb-33.2", "deb-44.0", "deb-56.1", "deb-65.0"),
    providers=("mlx5", "rxe"),
    kernels=KERNELS,
):
    return [
        make_cell(userland, kernel, provider, overlays)
        for provider in providers
        for kernel in kernels
        for userland in userlands
        for overlays in OVERLAYS
    ]


def spoil(cells, seed=7):
    """Some cells of each other verdict and outcome, always the same ones."""
    chosen = random.Random(seed).sample(
        [cell for cell in cells if not cell["overlays"] or "mmap" in cell["overlays"][0]], 6
    )
    chosen[0].update(
        outcome="broken",
        verdict="unexpected",
        signal="SIGSEGV",
        rule=None,
        errno=None,
        trace_digest=None,
        expectation={"outcome": "full", "reason": "nothing speaks against it", "link": None},
        tests=[
            {
                "name": "DataPath.WriteArrives",
                "result": "failed",
                "message": "expected 0x40, got 0x3f <b>",
            },
            {"name": "DataPath.SendArrives", "result": "passed"},
        ],
    )
    chosen[1].update(
        outcome="unmodelled",
        verdict="unexpected",
        unmodelled=["mlx5 method 0x1005.0x1002"],
        errno=None,
        lost=[],
    )
    chosen[2].update(
        verdict="fixed",
        expectation={
            "outcome": "broken",
            "reason": "lost completion",
            "link": "https://bugs.example/1",
        },
    )
    chosen[3].update(
        outcome=None,
        verdict="not_run",
        message="userland package has left the archive",
        trace_digest=None,
        tests=[],
    )
    chosen[4].update(
        outcome="absent",
        verdict="not_run",
        message="the provider is younger than this kernel",
        trace_digest=None,
        tests=[],
        lost=[],
    )
    chosen[5].update(
        outcome="refused",
        verdict="unexpected",
        errno="EINVAL",
        by="kernel",
        rule="mlx5.ucontext.flags",
        lost=[],
        message="open failed </script><img src=x onerror=\"document.title='hit'\"> | `code` "
        "\x1b[31m",
    )
    return chosen


@pytest.fixture
def small():
    """Two userlands, three kernels, two providers, all overlays, and some bad news."""
    cells = many_cells(
        ("deb-44.0", "deb-65.0"), kernels=["linux-4.16", "debian-6.1.192", "gvisor-rdmaproxy"]
    )
    spoil(cells)
    return make_results(
        cells,
        oracle={
            "debian-6.1.192": {"rxe": {"cases": 3321, "agree": 3311, "recorded": "2026-05-01"}},
            "debian-5.10.223": {"rxe": {"cases": 3204, "agree": 3204}},
        },
        bench=[
            {
                "name": "uverbs.query_device.ioctl",
                "value": 1.31,
                "unit": "us",
                "baseline": 0.08,
                "ratio": 16.4,
                "goal": "<= 2 us",
                "met": True,
            }
        ],
        builds=[
            {
                "source": "src-44.0",
                "headers": "debian-6.12.117",
                "library": "libmlx5",
                "result": "drift",
                "drift": [
                    {
                        "type": "struct mlx5_ib_alloc_ucontext_resp",
                        "detail": "num_ports moved from 20 to 24",
                    }
                ],
            }
        ],
        gate={
            "old": "deb-44.0",
            "new": "deb-65.0",
            "result": "fail",
            "reasons": ["provider i40iw is gone"],
            "worse": [{"id": cells[0]["id"], "was": "full", "is": "degraded"}],
            "better": [],
            "symbols": [{"what": "ibv_x@IBVERBS_1.1", "class": "removed", "stops": True}],
        },
        axes={
            "kernels": {
                "gvisor-rdmaproxy": {
                    "kind": "look-alike",
                    "title": "EINVAL for what it does not model",
                },
                "debian-6.1.192": {"title": "bookworm"},
            },
            "providers": {"mlx5": {"title": "NVIDIA ConnectX"}},
        },
    )


@pytest.fixture
def copy_of():
    return copy.deepcopy
