# SPDX-License-Identifier: BSD-2-Clause
"""Where things are: the project's own folders, the build, the cache."""

import os
import pathlib
import pwd

from verbs_abi.errors import UserError

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
LAUNCHER = ROOT / "verbs-abi"
BUILD = ROOT / "build"


def matrix_dir():
    """matrix/ of the project, or the folder that VERBS_ABI_MATRIX names (tests use that)."""
    return pathlib.Path(os.environ.get("VERBS_ABI_MATRIX") or ROOT / "matrix")


def build_dir(preset="release"):
    """The build folder of a CMake preset."""
    return BUILD / preset


def _home():
    home = os.environ.get("HOME")
    if not home:
        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            home = f"/tmp/verbs-abi-{os.getuid()}"
    return pathlib.Path(home)


def cache_dir():
    """Where downloads and unpacked userlands are kept; made when it is missing.

    $VERBS_ABI_CACHE, or verbs-abi below $XDG_CACHE_HOME or ~/.cache.
    """
    named = os.environ.get("VERBS_ABI_CACHE")
    if named:
        path = pathlib.Path(named)
    else:
        path = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache") / "verbs-abi"
    path = pathlib.Path(os.path.abspath(path))
    # The dynamic linker's and the shim's variables separate paths with these.
    if any(mark in str(path) for mark in ":;=\n"):
        raise UserError(
            f"the cache folder's path has one of ':', ';', '=' in it: {path}",
            hint="Name another folder with VERBS_ABI_CACHE.",
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"the cache folder {path} cannot be made: {error.strerror}",
            hint="Name another folder with VERBS_ABI_CACHE.",
        ) from error
    return path
