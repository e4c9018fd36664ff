# SPDX-License-Identifier: BSD-2-Clause
"""The overlay `plugin=WHAT`: a userland whose plug-in for the cell's provider is not as it was shipped.

The folder of plug-ins is shown as a view of links below the cell's run folder, with that one plug-in changed.
"""

import dataclasses
import os
import subprocess

from verbs_abi import locks, matrix, paths, userlands
from verbs_abi.errors import UserError, unknown

PREFIX = "plugin="


def _of_another_abi(userland, library):
    """The path of a library's plug-in that was built for another private ABI than the userland's."""
    for name in matrix.shipped("userlands"):
        other = matrix.get("userlands", name).data
        if other["arch"] == userland.arch and other.get("plugin_suffix", userland.plugin_suffix) != userland.plugin_suffix:
            other = userlands.get(name)
            path = other.providers_dir / f"lib{library}-{other.plugin_suffix}.so"
            if path.exists():
                return path.resolve()
    raise UserError(f"plugin=private-abi: no release of another private ABI than {userland.name}'s has lib{library}",
                    hint="Another provider, or another state of the plug-in, can be looked at.")


def _registering_nothing():
    """A library that can be loaded and does nothing."""
    target = paths.cache_dir() / "programs" / "empty-plugin.so"
    target.parent.mkdir(exist_ok=True)
    with locks.exclusive(target.parent / ".empty-plugin.lock", "building an empty plug-in"):
        if not target.exists():
            scratch = target.with_suffix(".new")
            subprocess.run(["gcc", "-shared", "-fPIC", "-nostdlib", "-x", "c", os.devnull, "-o", str(scratch)], check=True,
                           capture_output=True, stdin=subprocess.DEVNULL)
            scratch.rename(target)
    return target


def _missing(_path, _userland, _library):
    pass


def _directory(path, _userland, _library):
    path.mkdir()


def _empty(path, _userland, _library):
    path.touch()


def _private_abi(path, userland, library):
    path.symlink_to(_of_another_abi(userland, library))


def _no_symbol(path, _userland, _library):
    path.symlink_to(_registering_nothing())


def _vendor_symbol(path, _userland, _library):
    """A plug-in that was built for a vendor's libibverbs: it wants a symbol that no other has."""
    target = paths.cache_dir() / "programs" / "vendor-plugin.so"
    target.parent.mkdir(exist_ok=True)
    with locks.exclusive(target.parent / ".vendor-plugin.lock", "building a vendor's plug-in"):
        if not target.exists():
            scratch = target.with_suffix(".new")
            subprocess.run(["gcc", "-shared", "-fPIC", "-nostdlib", "-Wl,-z,now", "-x", "c", "-", "-o", str(scratch)], check=True,
                           capture_output=True, text=True,
                           input="int ibv_exp_cmd_create_srq(void);\nint use(void) { return ibv_exp_cmd_create_srq(); }\n")
            scratch.rename(target)
    path.symlink_to(target)


MAKERS = {"missing": _missing, "directory": _directory, "empty": _empty, "private-abi": _private_abi,
          "no-symbol": _no_symbol, "vendor-symbol": _vendor_symbol}
# Not the plug-in is missing, but the file that names it.
UNCONFIGURED = "unconfigured"


def altered(userland, cell, folder):
    """The userland as the cell's overlays change it; `userland` itself when there is no such overlay."""
    wanted = [text.removeprefix(PREFIX) for text in cell.overlays if text.startswith(PREFIX)]
    if not wanted:
        return userland
    if len(wanted) > 1:
        raise UserError(f"a plug-in is in one state: {' and '.join(PREFIX + text for text in wanted)} contradict each other")
    if wanted[0] == UNCONFIGURED:
        empty = folder / "libibverbs.d"
        empty.mkdir()
        return dataclasses.replace(userland, config_dir=empty)
    if wanted[0] not in MAKERS:
        raise unknown("state of a plug-in", wanted[0], [*MAKERS, UNCONFIGURED])
    view = folder / "plugins"
    view.mkdir()
    changed = {f"lib{library}-{userland.plugin_suffix}.so": library for driver in cell.drivers
               for library in matrix.get("providers", driver).data["libraries"]}
    for path in userland.providers_dir.iterdir():
        if path.name in changed:
            MAKERS[wanted[0]](view / path.name, userland, changed[path.name])
        else:
            (view / path.name).symlink_to(path.resolve())
    directories = tuple(view if path == userland.providers_dir else path for path in userland.library_dirs)
    return dataclasses.replace(userland, providers_view=view, library_dirs=directories)
