# SPDX-License-Identifier: BSD-2-Clause
"""clang-format, pyflakes and clang-tidy over the files that git knows."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile

from verbs_abi import children, paths
from verbs_abi.errors import UserError

CXX = (".cc", ".h")
# The compile commands are those of g++: some of its warnings clang has not, some of its options it calls otherwise.
KNOWS_GCC = "--extra-arg=-Wno-unknown-warning-option"
OPTIONS_OF_CLANG = {"-fconstexpr-ops-limit=": "-fconstexpr-steps="}


def files(suffixes, root=paths.ROOT):
    """The project's files with these endings, as git lists them."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, text=True, check=False)
    if listed.returncode:
        raise UserError("git cannot list the files of the source tree", details=listed.stderr.splitlines())
    return [name for name in listed.stdout.split("\0") if name.endswith(tuple(suffixes)) and (root / name).exists()]


def _git(root, *words):
    """What git says, or None when it cannot."""
    told = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    return None if told.returncode else told.stdout


def changed(suffixes, since, root=paths.ROOT):
    """Those of them that differ from a commit."""
    diff = _git(root, "diff", "--name-only", "-z", since)
    if diff is None:
        raise UserError(f"git knows no commit '{since}'")
    return sorted(set(files(suffixes, root)) & set(diff.split("\0")))


def sample(names, share, root=paths.ROOT):
    """Of these files one in `share`, others at each commit, and all that differ from the commit before."""
    commit = (_git(root, "rev-parse", "HEAD") or "").strip()
    recent = set(changed((".cc",), "HEAD~1", root)) if _git(root, "rev-parse", "-q", "--verify", "HEAD~1") else set()
    return [name for name in names if name in recent or _mixed(f"{commit} {name}") % share == 0]


def _mixed(text):
    """A number in which every character counts in every bit. With a check sum (crc32) the files fall into `share` heaps that
    are the same at each commit."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _run(argv, root):
    return children.run(argv, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                        text=True, errors="replace")


def unformatted(names, root=paths.ROOT):
    """Of these C++ files the ones that clang-format would change."""
    result = _run(["clang-format", "--dry-run", "--Werror", "--ferror-limit=1", *names], root)
    lines = result.stdout.splitlines()
    found = sorted({line.split(":", 1)[0] for line in lines if "[-Wclang-format-violations]" in line})
    if result.returncode and not found:
        raise UserError("clang-format failed", details=lines[:20])
    return found


def tidied(names, build):
    """Of these .cc files those that the build compiles, without tests, whose macros clang-tidy takes amiss."""
    database = json.loads((build / "compile_commands.json").read_text())
    compiled = {os.path.relpath(os.path.realpath(os.path.join(row["directory"], row["file"])), paths.ROOT)
                for row in database}
    return [name for name in names if name in compiled and not name.endswith("_test.cc")]


def flakes(names, root=paths.ROOT):
    """What pyflakes says of these Python files: unused imports, names that are nowhere."""
    return _run(["/usr/bin/python3", "-m", "pyflakes", *names], root).stdout.splitlines()


def _for_clang(build, folder):
    """The build's compile commands in this folder, as clang takes them."""
    text = (build / "compile_commands.json").read_text()
    for gcc, clang in OPTIONS_OF_CLANG.items():
        text = text.replace(gcc, clang)
    (folder / "compile_commands.json").write_text(text)


def tidy(names, build, done=lambda name, output: None, root=paths.ROOT):
    """clang-tidy (.clang-tidy) over these .cc files of a build; the ones with findings, {name: output}."""
    def one(name):
        result = _run(["clang-tidy", "-p", commands, "--quiet", KNOWS_GCC, name], root)
        return name, result.stdout if result.returncode else ""

    wrong = {}
    with tempfile.TemporaryDirectory() as commands, concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        _for_clang(build, pathlib.Path(commands))
        for name, output in pool.map(one, names):
            if output:
                wrong[name] = output
            done(name, output)
    return wrong
