# SPDX-License-Identifier: BSD-2-Clause
"""Building a small project of its own."""

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from verbs_abi import paths
from verbs_abi.errors import UserError
from verbs_abi.setup import build

LISTS = """cmake_minimum_required(VERSION 3.25)
project(small C)
add_executable(one one.c)
add_executable(two two.c)
"""
PRESETS = {
    "version": 6,
    "configurePresets": [
        {"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build/release"}
    ],
}


@pytest.fixture(name="project")
def _project(tmp_path):
    root = tmp_path / "a project"
    root.mkdir()
    (root / "CMakeLists.txt").write_text(LISTS)
    (root / "CMakePresets.json").write_text(json.dumps(PRESETS))
    for name in ("one", "two"):
        (root / f"{name}.c").write_text("int main(void) { return 0; }\n")
    return root


def test_a_fresh_tree_is_configured_and_built(project, capfd):
    folder = build.ensure(root=project)
    assert folder == project / "build/release"
    assert (folder / "one").exists() and (folder / "two").exists()
    assert "build release: 4 steps in " in capfd.readouterr().err


def test_nothing_to_do_says_nothing(project, capfd):
    build.ensure(root=project)
    capfd.readouterr()
    build.ensure(root=project)
    assert capfd.readouterr() == ("", "")


def test_only_the_targets_that_are_asked_for_are_built(project):
    folder = build.ensure(targets=["two"], root=project)
    assert (folder / "two").exists() and not (folder / "one").exists()


def test_a_compilers_errors_are_shown_whole(project, capfd):
    (project / "one.c").write_text(
        "int main(void) { return first; }\nint f(void) { return second; }\n"
    )
    with pytest.raises(build.BuildError, match="the build failed"):
        build.ensure(root=project)
    shown = capfd.readouterr().err
    assert "one.c:1:25: error: " in shown and "one.c:2:" in shown and "second" in shown
    (project / "one.c").write_text("int main(void) { return 0; }\n")
    build.ensure(root=project)


def test_a_mistake_in_the_lists_is_shown_and_can_be_mended(project, capfd):
    (project / "CMakeLists.txt").write_text(LISTS + "frobnicate()\n")
    with pytest.raises(build.BuildError, match="could not be configured"):
        build.ensure(root=project)
    assert 'Unknown CMake command "frobnicate"' in capfd.readouterr().err
    (project / "CMakeLists.txt").write_text(LISTS)
    assert (build.ensure(root=project) / "one").exists()


def test_a_tree_that_was_copied_with_its_build_folder_is_configured_anew(project, tmp_path):
    build.ensure(root=project)
    copy = tmp_path / "copy"
    shutil.copytree(project, copy)
    (copy / "one.c").write_text("int main(void) { return 7; }\n")
    build.ensure(root=copy)
    assert (
        f"CMAKE_HOME_DIRECTORY:INTERNAL={copy}"
        in (copy / "build/release/CMakeCache.txt").read_text()
    )


def test_two_builds_at_once_take_turns(project, monkeypatch):
    running, seen = [], []
    real = build._build

    def watched(*arguments):
        running.append(1)
        seen.append(len(running))
        real(*arguments)
        running.pop()

    monkeypatch.setattr(build, "_build", watched)
    failures = []

    def one():
        try:
            build.ensure(root=project)
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    assert seen == [1, 1]


def test_a_folder_that_is_no_source_tree_is_told(tmp_path):
    with pytest.raises(UserError, match="has no CMakeLists.txt"):
        build.ensure(root=tmp_path)


SLOW = """#!/bin/sh
# A compiler that takes its time, and tells who it is.
echo $$ >>"{told}"
[ -e "{fast}" ] || sleep 600
exec gcc "$@"
"""


def _runs(pid):
    """Also false for one that has ended and that nobody asks for."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
def test_a_signal_ends_the_compilers_and_a_rerun_builds(project, tmp_path, number):
    told, fast = tmp_path / "told", tmp_path / "fast"
    fast.touch()
    compiler = tmp_path / "slow-gcc"
    compiler.write_text(SLOW.format(told=told, fast=fast))
    compiler.chmod(0o755)
    (project / "CMakeLists.txt").write_text(
        LISTS.replace("project(small C)", f'set(CMAKE_C_COMPILER "{compiler}")\nproject(small C)'))
    start = [sys.executable, "-c", "import pathlib, sys\nsys.path.insert(0, sys.argv[1])\n"
             "from verbs_abi import children\nfrom verbs_abi.setup import build\n"
             "with children.interruptible():\n    build.ensure(root=pathlib.Path(sys.argv[2]))\n",
             str(paths.SCRIPTS), str(project)]
    assert subprocess.run([*start], timeout=120, check=False).returncode == 0
    (project / "one.c").write_text("int main(void) { return 1; }\n")
    told.unlink()
    fast.unlink()
    with subprocess.Popen(start, start_new_session=True, stderr=subprocess.DEVNULL) as process:
        limit = time.monotonic() + 60
        while not (told.exists() and told.read_text().endswith("\n")):
            assert time.monotonic() < limit
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait(timeout=60) != 0
    left = [pid for pid in map(int, told.read_text().split()) if _runs(pid)]
    assert left == [], "a compiler is left behind"
    fast.touch()
    assert subprocess.run(start, timeout=120, check=False).returncode == 0
    assert subprocess.run([project / "build/release/one"], check=False).returncode == 1
