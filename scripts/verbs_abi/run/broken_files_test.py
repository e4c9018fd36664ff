# SPDX-License-Identifier: BSD-2-Clause
"""Broken files of the matrix, of facts, and broken worlds: told with file, place and what was expected."""

import json
import os
import shutil
import subprocess

import pytest

from verbs_abi import paths
from verbs_abi.cells import worlds

OWN = {"name": "x", "parent": "debian-6.1.192", "headers": "debian-6.1.192", "known_by": "source"}


@pytest.fixture(name="root")
def _root(tmp_path):
    """A copy of the matrix that a test may break."""
    if not worlds.shim().exists():
        pytest.skip("there is no build yet: verbs-abi test makes one")
    shutil.copytree(paths.ROOT / "matrix", tmp_path / "matrix")
    (tmp_path / "reference-headers").symlink_to(paths.ROOT / "reference-headers")
    return tmp_path


def start(root, *words, **env):
    result = subprocess.run([str(paths.LAUNCHER), *words], text=True, capture_output=True, stdin=subprocess.DEVNULL,
                            env={**os.environ, "VERBS_ABI_MATRIX": str(root / "matrix"), **env}, timeout=120,
                            check=False)
    assert "Traceback" not in result.stderr, result.stderr
    return result


def write(path, data):
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def change(**row):
    return {**OWN, "changes": [{"why": "a test", **row}]}


@pytest.mark.parametrize("data, where, expected", (
    ('{"name": "x",\n "parent": }', "line 2, column 12", "a JSON file"),
    ("[]", "line 1", "a JSON object"),
    ({**OWN, "parent": "debian-6.1.19", "changes": []}, "/parent", '"debian-6.1.192"'),
    ({**OWN, "parent": "x", "changes": []}, "/parent", "no end"),
    ({**OWN, "headers": "debian-6.1.1", "changes": []}, "/headers", "debian-6.1.1.json: cannot be read"),
    (OWN, "/", "the keys name, headers, known_by, changes"),
    # A misspelt parent would leave a kernel of its own, and a misspelt driver a change for all drivers.
    ({**OWN, "parnt": "linux-4.16", "changes": []}, "/", "only the keys name, parent, headers"),
    (change(knob="rxe.max_qp", value=1, drver="rxe"), "/changes/0", "only the keys why, rule"),
    ({**OWN, "known_by": "guess", "changes": []}, "/known_by", "one of calibrated, source, headers"),
    ({**OWN, "changes": {}}, "/changes", "a list of changes"),
    ({**OWN, "changes": [3]}, "/changes/0", 'an object with "why"'),
    ({**OWN, "changes": [{"rule": "ioctl.absent", "on": True}]}, "/changes/0", "the keys why"),
    (change(rule="ioctl.absnt", on=True), "/changes/0", '"ioctl.absent"'),
    (change(rule=5, on=True), "/changes/0/rule", "a rule's name"),
    (change(rule="ioctl.absent", on="yes"), "/changes/0/on", "true or false"),
    (change(rule="ioctl.absent", errno="EFOO"), "/changes/0", 'unknown errno "EFOO"'),
    (change(knob="rxe.max_qq", value=1), "/changes/0", '"rxe.max_qp"'),
    (change(knob="rxe.max_qp", value="1"), "/changes/0/value", "a number"),
    (change(method="CQ.CREAT", served=False), "/changes/0", '"CQ.CREATE"'),
    (change(attribute="UVERBS_ATTR_UHW_I", value=1), "/changes/0", '"UVERBS_ATTR_UHW_IN"'),
    (change(served=True), "/changes/0", "names nothing that a kernel file can change"),
))
def test_a_broken_kernel(root, data, where, expected):
    path = write(root / "matrix/kernels/x.json", data)
    for words in (("exec", "--kernel", "x", "--provider", "rxe", "--", "true"), ("world", "--kernel", "x")):
        result = start(root, *words)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(f"verbs-abi: {path}: {where}: ")
        assert expected in result.stderr


@pytest.mark.parametrize("axis, data, where, expected", (
    ("overlays", {"name": "x"}, "/", "the keys name, changes"),
    ("overlays", {"name": "x", "changes": 3}, "/changes", "a list of changes"),
    ("overlays", {"name": "x", "changes": [{}], "stp": True}, "/", "only the keys name, about, step"),
    ("providers", {"name": "x", "driver": "rxe"}, "/", "the keys name, driver, links"),
    ("providers", {"name": "x", "driver": "rxe", "links": ["wifi"]}, "/links/0", "one of ib, roce, iw"),
    ("expectations", {"name": "x"}, "/", "the keys name, rows"),
    ("expectations", {"name": "x", "rows": [{"outcome": "fine", "reason": "?"}]}, "/rows/0/outcome", "one of full"),
    ("expectations", {"name": "x", "rows": [{"outcome": "full", "reason": "?", "kernel": []}]}, "/rows/0",
     "only the keys userlands, kernels"),
    ("expectations", {"name": "x", "rows": [{"outcome": "full", "reason": "?", "kernels": {"from": "linux-416"}}]},
     "/rows/0/kernels/from", "linux-4.16"),
    ("expectations", {"name": "x", "rows": [{"outcome": "full", "reason": "?", "scenarios": {"to": "journy"}}]},
     "/rows/0/scenarios/to", "journey"),
    ("expectations", {"name": "x", "rows": [{"outcome": "full", "reason": "?", "overlays": ["no-*", "no-ioctll"]}]},
     "/rows/0/overlays/1", "no-ioctl"),
    ("expectations", {"name": "x", "rows": [{"outcome": "full", "reason": "?", "providers": ["mlx"]}]},
     "/rows/0/providers/0", "mlx5"),
    ("providers", {"name": "x", "driver": "rxe", "links": ["roce"], "fw": "1"}, "/", "only the keys name, driver"),
    ("providers", {"name": "x", "driver": "rxe", "links": ["roce"], "port": {"mtu": 5}}, "/port",
     "only the keys max_mtu"),
))
def test_a_broken_file_ends_a_run_before_its_first_cell(root, axis, data, where, expected):
    path = write(root / f"matrix/{axis}/x.json", data)
    result = start(root, "run", "--kernel", "debian-6.1.192", "--out", str(root / "out"))
    assert result.returncode == 2
    assert result.stderr.startswith(f"verbs-abi: {path}: {where}: ") and expected in result.stderr
    assert not (root / "out/cells.jsonl").exists()


@pytest.mark.parametrize("groups, where, expected", (
    (None, "/", "the keys name, groups"), ([], "/groups", "a list of groups"), ([3], "/groups/0", "a group"),
    ([{"userland": ["deb-44.0"]}], "/groups/0", "only the keys userlands"),
    ([{"overlays": ["no-ioctl"]}], "/groups/0/overlays/0", "a list of overlays"),
    ([{"kernels": ["debian-6.1"]}], "/groups/0", "debian-6.1.192"),
    ([{"scenarios": ["journy"]}], "/groups/0", "journey"), ([{"overlays": [["no-iotcl"]]}], "/groups/0", "no-ioctl")))
def test_a_broken_plan(root, groups, where, expected):
    path = write(root / "matrix/plans/x.json", {"name": "x", **({} if groups is None else {"groups": groups})})
    result = start(root, "list", "cells", "--plan", "x")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"verbs-abi: {path}: {where}: ") and expected in result.stderr


@pytest.mark.parametrize("break_it, told", (
    (lambda path: path.write_text(path.read_text()[:100]), ".json:"),
    (lambda path: path.write_text('{"name": 3}'), 'expected a member "format"'),
    (lambda path: path.unlink(), "cannot be read; expected the file of snapshot 'debian-6.1.192'"),
))
def test_broken_facts(root, break_it, told):
    (root / "reference-headers").unlink()
    shutil.copytree(paths.ROOT / "reference-headers", root / "reference-headers")
    path = root / "reference-headers/debian-6.1.192.json"
    break_it(path)
    result = start(root, "exec", "--kernel", "debian-6.1.192", "--provider", "rxe", "--", "true")
    assert (result.returncode, result.stdout) == (2, "")
    assert str(path) in result.stderr and told in result.stderr


@pytest.mark.parametrize("break_it, told", (
    (lambda path: path.unlink(), "cannot be opened; VERBS_ABI_WORLD must name a world file"),
    (lambda path: path.write_bytes(b""), "is of another size"),
    (lambda path: path.write_bytes(path.read_bytes()[:-1]), "is of another size"),
    (lambda path: path.write_bytes(b"X" + path.read_bytes()[1:]), "is not a world file"),
))
def test_a_broken_world_ends_the_program_with_one_line(root, break_it, told):
    result = start(root, "world", "--kernel", "debian-6.1.192", "--provider", "rxe", "--out", str(root / "w"))
    assert result.returncode == 0, result.stderr
    lines = dict(line.removeprefix("export ").split("=", 1) for line in result.stdout.splitlines())
    assert set(lines) == {"VERBS_ABI_WORLD", "LD_PRELOAD"}
    whole = subprocess.run(["/bin/ls", "/sys/class/infiniband"], env={**os.environ, **lines}, text=True,
                           capture_output=True, timeout=60, check=False)
    assert (whole.returncode, whole.stdout) == (0, "rxe0\n")
    world = root / "w/world"
    assert str(world) == lines["VERBS_ABI_WORLD"]
    break_it(world)
    broken = subprocess.run(["/bin/ls", "/sys/class/infiniband"], env={**os.environ, **lines}, text=True,
                            capture_output=True, timeout=60, check=False)
    assert (broken.returncode, broken.stdout) == (2, "")
    assert broken.stderr.startswith(f"verbs-abi: world {world}: ") and told in broken.stderr
    assert broken.stderr.count("\n") == 1


def test_a_userland_that_cannot_be_had_is_told_and_the_others_work(root):
    """No network and nothing in the cache: which package of which suite, and how to go on."""
    result = start(root, "exec", "--userland", "deb-56.1", "--kernel", "debian-6.1.192", "--provider", "rxe", "--",
                   "true", VERBS_ABI_CACHE=str(root / "cache"), http_proxy="http://127.0.0.1:9",
                   https_proxy="http://127.0.0.1:9")
    assert (result.returncode, result.stdout) == (2, "")
    assert "deb-56.1" in result.stderr and "trixie" in result.stderr
