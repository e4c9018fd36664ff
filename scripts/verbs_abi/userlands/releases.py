# SPDX-License-Identifier: BSD-2-Clause
"""Which release's facts and known defects a userland shares: matrix/expectations speaks of releases.

A release of the matrix is itself, and what is built of its source is it, too. A place (a source tree, a prefix, package
files) is what the newest release at or below its version is: a defect stays until somebody mends it; or what the next one
is, where it has that one's changes already. One that is older than all of them is what the oldest is; one that tells no
version is none of them.
"""

import functools
import re

from verbs_abi import matrix
from verbs_abi.errors import UserError
from verbs_abi.userlands import built, local


def number(version):
    """(44, 0) of "44.0", "44.0-1" and "44"; None of what does not start as a version."""
    found = re.match(r"(\d+)(?:\.(\d+))?", version or "")
    return found and (int(found[1]), int(found[2] or 0))


@functools.cache
def _shipped():
    """{name: its matrix entry's data} of the matrix's own releases."""
    entries = [matrix.get("userlands", name) for name in matrix.shipped("userlands")]
    return {entry.name: entry.data for entry in entries if entry.data["kind"] == "debian"}


@functools.cache
def _of_built(name):
    return at(matrix.get("sources", built.parts(name)[0]).data["source_version"])


def at(version):
    """The name of the newest release that is not newer than this version, of the oldest when all are; None without one."""
    wanted = number(version)
    known = sorted((number(data["source_version"]), name) for name, data in _shipped().items() if data["arch"] == "x86_64")
    if wanted is None or not known:
        return None
    older = [name for there, name in known if there <= wanted]
    return older[-1] if older else known[0][1]


def above(name):
    """Of a place whose version lies between two releases, the name of the newer one; else None. What it has of the changes
    between them nobody has noted."""
    if name in _shipped() or built.is_name(name) or of(name) is None:
        return None
    wanted = number(local.version(local.from_entry(matrix.get("userlands", name))))
    newer = sorted((number(data["source_version"]), other) for other, data in _shipped().items()
                   if data["arch"] == "x86_64" and number(data["source_version"]) > wanted)
    return newer[0][1] if newer and newer[0][1] != of(name) and wanted != number(_shipped()[of(name)]["source_version"]) else None


def of(name):
    """The name of the release of a userland by name; None: it tells no version, or is not there."""
    if name in _shipped():
        return name
    if built.is_name(name):
        return _of_built(name)
    if name not in matrix.names("userlands"):
        return None
    try:
        return at(local.version(local.from_entry(matrix.get("userlands", name))))
    except (OSError, UserError):
        return None  # it is gone: its cells are not run, and say why
