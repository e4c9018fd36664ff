# SPDX-License-Identifier: BSD-2-Clause
"""32-bit programs on 64-bit kernels: the i386 userland, on the shim of its own width.

What needs that build is skipped where there is none; `verbs-abi run --userland deb-44.0-i386` makes it.
"""

import subprocess

import pytest

from verbs_abi import userlands
from verbs_abi.cells import ids, plans, pool, worlds
from verbs_abi.errors import UserError
from verbs_abi.setup import build

NAME = "deb-44.0-i386"


@pytest.fixture(name="narrow", scope="module")
def _narrow(setup):
    if not worlds.shim(arch="i386").exists():
        pytest.skip(f"there is no 32-bit build: verbs-abi run --userland {NAME} makes one")
    try:
        setup.userlands[NAME] = userlands.get(NAME)
        build.ensure_shims({"i386"})
    except UserError as error:
        pytest.skip(str(error))
    return setup


def cell(kernel, provider, scenario=ids.USUAL, userland=NAME, overlays=()):
    return ids.Cell(userland, kernel, (ids.Device.parse(provider),), tuple(overlays), scenario)


def test_patterns_never_mean_it():
    group = {"kernels": ["debian-6.1.192"], "providers": ["rxe"]}
    for wanted in ("*", ["deb-*"]):
        found = {cell.userland for cell in plans.cells_of({**group, "userlands": wanted})}
        assert "deb-44.0" in found and NAME not in found
    assert {cell.userland for cell in plans.cells_of({**group, "userlands": [NAME]})} == {NAME}


@pytest.mark.parametrize("plan", ("quick", "gate", "nightly"))
def test_plans_that_a_release_needs_name_it(plan):
    assert (NAME in {cell.userland for cell in plans.load(plan)}) == (plan != "quick")


@pytest.mark.parametrize("provider", ("mlx5", "mlx5,link=roce", "rxe"))
def test_data_arrive_whole(narrow, provider):
    row = pool.run_cell(narrow, cell("debian-6.1.192", provider))
    assert (row["outcome"], row["verdict"], row["arch"]) == ("full", "expected", "i386"), row["message"]


def test_all_that_runs_in_it_is_of_its_width(narrow):
    ended, _, told = pool.run_raw(narrow, cell("debian-6.1.192", "mlx5", "devinfo"))
    assert "hca_id:\tmlx5_0" in ended.stdout
    loaded = [path for paths in told["mapped"].values() for path in paths]
    assert any(path.endswith("ld-linux.so.2") for path in loaded)
    for path in loaded:
        with open(path, "rb") as file:
            assert file.read(5)[4] == 1, f"{path} is not of 32 bits"


# L2-01: providers/rxe/rxe.c: match_min_abi_version; what the rest of rxe's layouts was in ABI 1, the facts of linux-4.10
# tell (reference-headers).
def test_librxe_of_32_bits_takes_no_abi_1(narrow):
    narrow.userlands["deb-44.0"] = userlands.get("deb-44.0")
    refused, _, _ = pool.run_raw(narrow, cell("linux-4.16", "rxe", "devices"))
    assert "Driver rxe does not support the kernel ABI of 1 (supports 2 to 2)" in refused.stderr
    assert "rxe0" not in refused.stdout
    taken, _, _ = pool.run_raw(narrow, cell("linux-4.16", "rxe", "devices", userland="deb-44.0"))
    assert "rxe0" in taken.stdout and "does not support" not in taken.stderr
    both, _, _ = pool.run_raw(narrow, cell("linux-4.17", "rxe", "devices"))
    assert "rxe0" in both.stdout and "does not support" not in both.stderr


def test_a_program_of_another_width_is_named():
    with pytest.raises(userlands.NotInterceptable, match="true is not an i386 program"):
        userlands.get(NAME).command(["/usr/bin/true"], None, {})
    shell = userlands.get(NAME).find_program("sh")
    with pytest.raises(userlands.NotInterceptable, match="is not an x86-64 program"):
        userlands.get("deb-44.0").command([shell], None, {})


def test_its_scripts_run_in_its_own_shell(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh -e\nexit 7\n")
    script.chmod(0o755)
    here = userlands.get(NAME)
    argv, env = here.command([str(script)], None, {})
    assert argv[-3:] == [f"{here.root}/bin/sh", "-e", str(script)]
    assert subprocess.run(argv, env=env, check=False, timeout=60).returncode == 7
