# SPDX-License-Identifier: BSD-2-Clause
"""Builds the C++ parts, incrementally, with a CMake preset of the same name as its folder below
build/.
"""

import os
import pathlib
import re
import shutil
import subprocess
import time

from verbs_abi import children, locks, paths
from verbs_abi.errors import UserError
from verbs_abi.progress import Progress

STEP = re.compile(r"\[(\d+)/(\d+)\] (.*)")
LOCK_SECONDS = 3600


# What cells need, and no test.
SHIM = "verbs_abi_shim"
RUNTIME = (SHIM, "vabi-world")


class BuildError(UserError):
    """The build failed; what the compiler said was printed already."""


def ensure(preset="release", targets=(), root=paths.ROOT):
    """Configures when needed and builds `targets` (default: everything). Returns the build folder.

    Quick when there is nothing to do. Two calls at once take turns. Raises BuildError.
    """
    folder = root / "build" / preset
    if not (root / "CMakeLists.txt").exists():
        raise UserError(
            f"{root} has no CMakeLists.txt", hint="verbs-abi runs from its source tree."
        )
    with Progress(f"build {preset}") as progress:
        with locks.exclusive(
            root / "build" / f".{preset}.lock",
            f"building {preset}",
            seconds=LOCK_SECONDS,
            note=progress.note,
        ):
            if not _is_configured(folder, root):
                _configure(preset, root, progress)
            _build(folder, root, targets, progress)
    return folder


def ensure_shims(architectures):
    """Builds the shims for programs of these architectures, beside the usual one, which ensure() has built.

    Raises UserError where this machine's compiler builds no such programs, BuildError.
    """
    for arch in sorted(set(architectures) - {"x86_64"}):
        lacking = lacks_multilib()
        if lacking:
            raise UserError(f"programs of {arch} need a shim of their own word size: {lacking}",
                            hint="apt-get install --no-install-recommends g++-multilib")
        ensure(arch, (SHIM,))


def lacks_multilib():
    """Why g++ builds no 32-bit programs here; "" when it does."""
    ended = subprocess.run([_tool("g++"), "-m32", "-print-libgcc-file-name"], text=True, capture_output=True, check=False,
                           stdin=subprocess.DEVNULL)
    if os.path.isfile(ended.stdout.strip()):
        return ""
    return "g++ has no 32-bit libraries here"


def _is_configured(folder, root):
    """Also false for a folder that was copied or moved along with its source tree."""
    if not (folder / "build.ninja").exists():
        return False
    try:
        text = (folder / "CMakeCache.txt").read_text()
    except OSError:
        return False
    home = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", text, re.M)
    return bool(home) and home[1] == str(root)


def _tool(name):
    path = shutil.which(name)
    if path is None:
        raise UserError(
            f"{name} is missing",
            hint="Start this through the verbs-abi launcher, which " "installs it.",
        )
    return path


def _configure(preset, root, progress):
    progress.update("configuring")
    result = children.run(
        [_tool("cmake"), "--preset", preset, "--fresh"],
        cwd=root,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if result.returncode:
        progress.output(result.stdout)
        raise BuildError(f"the build could not be configured (cmake --preset {preset})")


def _build(folder, root, targets, progress):
    """Runs ninja; what it prints beside its steps is shown whole, at once."""
    environment = {
        # ccache takes what another clone of the tree compiled.
        "CCACHE_BASEDIR": str(root),
        "CCACHE_NOHASHDIR": "1",
        **os.environ,
        "NINJA_STATUS": "[%f/%t] ",
        "CLICOLOR_FORCE": "0",
    }
    start, steps, noisy = time.monotonic(), 0, False
    with children.started(
        [_tool("ninja"), "-C", str(folder), *targets],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
    ) as ninja:
        for line in ninja.stdout:
            step = STEP.match(line)
            if step:
                steps = int(step[1])
                progress.update(f"{step[1]}/{step[2]} {_short(step[3])}")
            elif not line.startswith(("ninja: Entering", "ninja: no work", "-- ")):
                progress.output(line)
                noisy = True
    if ninja.returncode:
        raise BuildError(
            f"the build failed (ninja -C {folder})"
            if noisy
            else f"the build ended with status {ninja.returncode} and no message"
        )
    if steps:
        progress.note(f"{steps} steps in {time.monotonic() - start:.0f} s")


def _short(text):
    """The file that a build step makes, without its folders."""
    return pathlib.PurePath(text.split()[-1]).name if text.split() else ""
