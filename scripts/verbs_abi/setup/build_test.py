# SPDX-License-Identifier: BSD-2-Clause
"""Building a small project of its own."""

import json
import shutil
import threading

import pytest

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
