# SPDX-License-Identifier: BSD-2-Clause
"""A source tree of rdma-core as a userland: built below CACHE/local/NAME/build with ccache, run from there.

CMake's IN_PLACE makes a build that finds its own plug-ins; ninja and ccache make a second one quick. The tree itself is
not written to.
"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess

from verbs_abi import children, locks, paths
from verbs_abi.errors import UserError
from verbs_abi.progress import Progress
from verbs_abi.userlands import rooted

OPTIONS = ("-DIN_PLACE=1", "-DNO_MAN_PAGES=1", "-DNO_PYVERBS=1", "-DENABLE_STATIC=0", "-DCMAKE_BUILD_TYPE=RelWithDebInfo")
# Of a whole build without a cache, on a slow machine.
SECONDS = 1800


def check_tree(path):
    """Ends with a sentence unless rdma-core's sources stand there."""
    for name in ("CMakeLists.txt", "libibverbs/CMakeLists.txt", "providers"):
        if not (path / name).exists():
            raise UserError(f"{path} is no source tree of rdma-core: there is no {name}")


def _folder(local):
    return paths.cache_dir() / "local" / local.name / "build"


def built(local):
    """Has it been built before?"""
    return (_folder(local) / "lib/libibverbs.so.1").exists()


def _run(command, what, folder, log):
    """With all that it starts it ends when we are asked to end, or when it takes too long."""
    with open(log, "ab") as file:
        try:
            with children.started(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT) as ended:
                ended.wait(timeout=SECONDS)
        except FileNotFoundError as error:
            raise UserError(f"{what}: there is no program {error.filename}", hint="apt-get install cmake ninja-build") from error
        except subprocess.TimeoutExpired as error:
            raise UserError(f"{what} was ended after {SECONDS} s", hint=f"What it did stands in {log}") from error
    if ended.returncode:
        lines = log.read_text(errors="replace").splitlines()
        told = [line for line in lines if re.search(r"\berror\b|CMake Error|No space left", line, re.I)] or lines
        raise UserError(f"{what} failed", details=told[-6:], hint=f"All of it stands in {log}")


def version(tree):
    """"44.0" of a source tree, or "unknown"."""
    found = re.search(r'set\(PACKAGE_VERSION "([^"]+)"\)', (tree / "CMakeLists.txt").read_text(errors="replace"))
    return found[1] if found else "unknown"


def get(local):
    """The Userland of the tree as it is now."""
    tree = pathlib.Path(local.path)
    check_tree(tree)
    folder = _folder(local)
    with locks.exclusive(folder.parent / ".lock", f"building {local.name}", seconds=SECONDS), \
            Progress(f"userland {local.name}") as progress:
        folder.mkdir(exist_ok=True)
        log = folder / "verbs-abi.log"
        log.write_bytes(b"")
        configured = folder / "build.ninja"
        command = ["cmake", "-GNinja", *OPTIONS, f"-DIOCTL_MODE={local.ioctl_mode}", str(tree)]
        if shutil.which("ccache"):
            command.insert(2, "-DCMAKE_C_COMPILER_LAUNCHER=ccache")
        mark = folder / "verbs-abi.options"
        wanted = hashlib.sha256(repr(command).encode()).hexdigest()
        if not configured.exists() or not mark.exists() or mark.read_text() != wanted:
            progress.update("configuring")
            # What was configured for another tree or in another way, or half, is nothing to go on from.
            (folder / "CMakeCache.txt").unlink(missing_ok=True)
            shutil.rmtree(folder / "CMakeFiles", ignore_errors=True)
            _run(command, f"configuring {tree}", folder, log)
            mark.write_text(wanted)
        progress.update("building")
        _run(["ninja"], f"building {tree}", folder, log)
    return rooted.userland(local.name, os.path.realpath(folder), version=version(tree))
