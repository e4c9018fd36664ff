# SPDX-License-Identifier: BSD-2-Clause
"""Every process of a cell runs on its own userland's libraries: programs, tools, suites, and what they start."""

import pytest

from verbs_abi import userlands
from verbs_abi.cells import ids, outcome, pool, runner, worlds
from verbs_abi.userlands import mapped

RELEASES = ("deb-33.2", "deb-44.0", "deb-56.1", "deb-65.0")


def cell(release, scenario=ids.USUAL):
    return ids.Cell(release, "debian-6.1.192", (ids.Device.parse("rxe"),), (), scenario)


def processes_of(setup, release, argv, more=None):
    """({process id: files}, Ended) of any program in a release's cell; more: of its environment."""
    userland = setup.userlands[release] = userlands.get(release)
    with worlds.run_folder() as folder:
        world = setup.compiler.tell(cell(release), folder, folder / "trace", model=False)
        argv, env = userland.command(argv, worlds.shim())
        env |= {"VERBS_ABI_MAPPED": str(folder / "mapped"), **(more or {})}
        ended = runner.run(argv, worlds.environment(world["world"], env), cwd=folder)
        return mapped.told(folder / "mapped"), ended


def judged(setup, release, processes, report=""):
    result = outcome.Outcome("full")
    pool.check_mapped(setup.userlands[release], report, processes, result)
    return result


def users(processes):
    """How many processes had loaded libibverbs."""
    return sum(any("/libibverbs.so" in path for path in paths) for paths in processes.values())


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("scenario", ("journey", "devinfo", "devices", "negotiate", "conformance", "old-app", "compat-1_0"))
def test_each_scenario_tells_what_it_has_loaded(setup, release, scenario):
    setup.userlands[release] = userlands.get(release)
    _, _, told = pool.run_raw(setup, cell(release, scenario))
    assert users(told["mapped"]) >= 1
    assert any("/librxe-" in path for paths in told["mapped"].values() for path in paths)
    assert judged(setup, release, told["mapped"]).outcome == "full"


@pytest.mark.parametrize("release", RELEASES)
def test_children_are_told_of_too(setup, release):
    processes, ended = processes_of(setup, release, ["/bin/sh", "-c", "ibv_devices; env -i $(command -v ibv_devices); :"],
                                    {"PATH": f"{userlands.get(release).root}/usr/bin:/usr/bin:/bin"})
    assert ended.stdout.count("rxe0") == 2, ended.stderr
    assert users(processes) == 2 and len(processes) == 3
    assert judged(setup, release, processes).outcome == "full"


def test_a_child_on_another_userlands_libraries_breaks_the_cell(setup):
    own, other = userlands.get("deb-44.0"), userlands.get("deb-33.2")
    mix = f"ibv_devices; LD_LIBRARY_PATH={':'.join(map(str, other.library_dirs))} ibv_devices; :"
    processes, ended = processes_of(setup, "deb-44.0", ["/bin/sh", "-c", mix], {"PATH": f"{own.root}/usr/bin:/bin"})
    assert users(processes) == 2, ended.stderr
    result = judged(setup, "deb-44.0", processes)
    assert result.outcome == "broken"
    assert result.message.startswith(f"a process ran on another userland's libraries: {other.root}")


def test_a_plug_in_of_another_userland_breaks_the_cell(setup):
    # 44.0 and 56.1 have the same private ABI: nothing but the path tells their plug-ins apart.
    own, other = userlands.get("deb-56.1"), userlands.get("deb-44.0")
    assert own.plugin_suffix == other.plugin_suffix
    processes, ended = processes_of(setup, "deb-56.1", ["ibv_devinfo"],
                                    {"VERBS_ABI_REDIRECT": f"/etc/libibverbs.d=/nowhere:"
                                     f"/{own.providers_dir.relative_to(own.root)}={other.providers_dir}",
                                     "IBV_DRIVERS": str(other.providers_dir / "librxe")})
    result = judged(setup, "deb-56.1", processes)
    assert result.outcome == "broken", (ended.stdout, ended.stderr)
    assert f"librxe-{other.plugin_suffix}.so" in result.message and str(other.root) in result.message


def test_a_cells_row_says_so(setup, monkeypatch):
    setup.userlands["deb-44.0"] = userlands.get("deb-44.0")
    monkeypatch.setattr(mapped, "told", lambda _: {"1": ["/usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0"]})
    row = pool.run_cell(setup, cell("deb-44.0"))
    assert (row["outcome"], row["verdict"]) == ("broken", "unexpected")
    assert row["message"].endswith("libraries: /usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0")
