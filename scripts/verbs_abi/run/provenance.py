# SPDX-License-Identifier: BSD-2-Clause
"""What exactly was tested: digests of the shim, the facts, the userlands and the kernel models."""

import functools
import hashlib
import platform
import subprocess

from verbs_abi import matrix, paths
from verbs_abi.cells import worlds
from verbs_abi.facts import tool


def _digest(chunks):
    total = hashlib.sha256()
    for chunk in chunks:
        total.update(chunk)
    return "sha256:" + total.hexdigest()


@functools.cache
def _bytes(path):
    return path.read_bytes()


def kernel(name):
    """Digest of a kernel's model: its files, and its snapshot's list of header digests."""
    snapshot = paths.matrix_dir().parent / "reference-headers" / f"{tool.of_kernel(name)}.json"
    return _digest([b"".join(_bytes(entry.path) for entry in matrix.lineage(name)), snapshot.read_bytes()])


def commit():
    """The commit that the work tree stands on, with -dirty where it differs; None without git."""
    def git(*words):
        return subprocess.run(["git", "-C", str(paths.ROOT), *words], text=True, capture_output=True, check=False)
    head = git("rev-parse", "--short=12", "HEAD")
    if head.returncode:
        return None
    dirty = git("status", "--porcelain", "--untracked-files=no").stdout.strip()
    return head.stdout.strip() + ("-dirty" if dirty else "")


def of(cells, userlands, build=None):
    """The provenance object of results.json."""
    snapshots = sorted((paths.matrix_dir().parent / "reference-headers").glob("*.json"))
    others = sorted({userland.arch for userland in userlands.values()} - {"x86_64"})
    found = {"shim": _digest(worlds.shim(build, arch).read_bytes() for arch in ("x86_64", *others)),
             "facts": _digest(path.read_bytes() for path in snapshots),
             "userlands": {name: userland.digest for name, userland in sorted(userlands.items())},
             "kernels": {name: kernel(name) for name in sorted({cell.kernel for cell in cells})},
             "host": f"{platform.freedesktop_os_release().get('PRETTY_NAME', 'Linux')} {platform.machine()}"}
    head = commit()
    if head:
        found["commit"] = head
    return found
