# SPDX-License-Identifier: BSD-2-Clause
"""The style checks find what is wrong."""

import json
import shutil
import subprocess

import pytest

from verbs_abi.checks import style
from verbs_abi.errors import UserError


@pytest.fixture(name="tree")
def _tree(tmp_path):
    for name, text in {"a.cc": "int  a;\n", "b.cc": "int b;\n", "c.py": "import os\n", "d.txt": "x"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / ".clang-format").write_text("BasedOnStyle: Google\n")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@x"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    return tmp_path


def test_files_are_those_that_git_knows(tree):
    (tree / "new.cc").write_text("")
    assert style.files((".cc",), tree) == ["a.cc", "b.cc"]


def test_changed_files_are_those_that_differ_from_a_commit(tree):
    (tree / "b.cc").write_text("int c;\n")
    assert style.changed((".cc",), "HEAD", tree) == ["b.cc"]
    with pytest.raises(UserError, match="git knows no commit 'nix'"):
        style.changed((".cc",), "nix", tree)


def commit(tree, name, text):
    (tree / name).write_text(text)
    git = ["git", "-C", str(tree), "-c", "user.name=x", "-c", "user.email=x@x"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", text], check=True)


def test_a_sample_has_what_changed_and_another_share_of_the_rest_at_each_commit(tree):
    names = [f"{number}.cc" for number in range(400)]
    assert "a.cc" not in style.sample(["a.cc"], 1_000_000, tree), "the first commit: nothing is before it"
    samples = []
    for number in range(24):
        commit(tree, "b.cc", f"int b{number};\n")
        samples.append(style.sample([*names, "b.cc"], 4, tree))
        assert samples[-1] == style.sample([*names, "b.cc"], 4, tree) and "b.cc" in samples[-1]
        assert 60 < len(samples[-1]) < 150
    # (3/4)^24 of 400: less than one is never in a sample.
    assert len(set().union(*samples)) > 390
    heaps = {tuple(name in sample for sample in samples[:6]) for name in names}
    assert len(heaps) > 32, "two files that are together once are not always together"


@pytest.mark.skipif(not shutil.which("clang-format"), reason="no clang-format")
def test_unformatted_files_are_named(tree):
    assert style.unformatted(["a.cc", "b.cc"], tree) == ["a.cc"]


def test_pyflakes_sees_unused_imports(tree):
    assert [line for line in style.flakes(["c.py"], tree) if "imported but unused" in line]


def _compiled(tree, *names, options=""):
    """The build's database of compile commands."""
    (tree / "build").mkdir(exist_ok=True)
    (tree / "build" / "compile_commands.json").write_text(json.dumps(
        [{"directory": str(tree), "file": name, "command": f"g++ {options} -c {name}"} for name in names]))


@pytest.mark.skipif(not shutil.which("clang-tidy"), reason="no clang-tidy")
def test_findings_of_clang_tidy_are_told_by_file(tree):
    (tree / ".clang-tidy").write_text("Checks: '-*,modernize-use-nullptr'\nWarningsAsErrors: '*'\n")
    (tree / "b.cc").write_text("int* b = 0;\n")
    _compiled(tree, "a.cc", "b.cc")
    wrong = style.tidy(["a.cc", "b.cc"], tree / "build", root=tree)
    assert list(wrong) == ["b.cc"] and "nullptr" in wrong["b.cc"]


@pytest.mark.skipif(not shutil.which("clang-tidy"), reason="no clang-tidy")
def test_clang_tidy_takes_options_of_gcc_by_its_own_names(tree):
    (tree / ".clang-tidy").write_text("Checks: '-*,modernize-use-nullptr'\nWarningsAsErrors: '*'\n")
    (tree / "b.cc").write_text("constexpr int Sum(int n) { return n == 0 ? 0 : n + Sum(n - 1); }\n"
                               "static_assert(Sum(100) == 5050);\n")
    _compiled(tree, "b.cc", options="-std=c++20 -fconstexpr-ops-limit=1000000")
    assert style.tidy(["b.cc"], tree / "build", root=tree) == {}
    _compiled(tree, "b.cc", options="-std=c++20 -fconstexpr-ops-limit=10")
    assert "b.cc" in style.tidy(["b.cc"], tree / "build", root=tree), "the limit holds"
