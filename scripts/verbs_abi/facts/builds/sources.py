# SPDX-License-Identifier: BSD-2-Clause
"""Where rdma-core sources come from: pinned Debian source packages, a git revision, or a folder.

    CACHE/sources/NAME/DIGEST/     the tree as released, never changed

A registered source (matrix/sources/NAME.json) is the upstream tarball of a Debian source package. When
no mirror has it any more, VERBS_ABI_RDMA_CORE names a git repository of rdma-core that has its tag.
"""

import dataclasses
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from verbs_abi import locks, matrix, paths
from verbs_abi.errors import UserError
from verbs_abi.userlands import archive

REPOSITORY = "VERBS_ABI_RDMA_CORE"
# What tells an rdma-core tree from others.
MARKS = ("kernel-headers/rdma", "libibverbs", "providers", "CMakeLists.txt")


@dataclasses.dataclass(frozen=True)
class Source:
    """name: as cells call it ("src-44.0"). tree: the folder, as released. digest: of what it holds.

    version: "44.0". headers: the snapshot of its own kernel-headers, or None. kernels: the nearest.
    """

    name: str
    version: str
    tree: pathlib.Path
    digest: str
    headers: str | None
    kernels: tuple


@dataclasses.dataclass(frozen=True)
class _Tarball:
    """What archive.download() wants to know of a file."""

    name: str
    file: str
    sha256: str


def names():
    """The registered sources, oldest first."""
    return matrix.names("sources")


def get(what, progress=None):
    """The Source of a registered name, a folder, or git:PATH@REVISION; fetched when it is missing."""
    if what.startswith("git:"):
        return _from_git(what)
    if what not in names() and os.path.isdir(what):
        return _from_folder(pathlib.Path(what))
    return _registered(matrix.get("sources", what).data, progress)


def check_tree(tree, what):
    """Raises UserError unless the folder is an rdma-core tree."""
    missing = [mark for mark in MARKS if not (tree / mark).exists()]
    if missing:
        raise UserError(f"{what}: is no rdma-core tree: it has no {', '.join(missing)}",
                        hint="Expected an unpacked release or a clone of rdma-core.")


def version_of(tree):
    """"44.0", from CMakeLists.txt."""
    found = re.search(r'set\(PACKAGE_VERSION "([^"]+)"', (tree / "CMakeLists.txt").read_text(errors="replace"))
    return found[1] if found else "unknown"


def _registered(data, progress):
    place = paths.cache_dir() / "sources" / data["name"]
    tree = place / data["sha256"][:16]
    if not tree.exists():
        with locks.exclusive(place / ".lock", f"fetching {data['name']}"):
            if not tree.exists():
                if progress:
                    progress.note(f"fetching {data['file']}")
                _fetch(data, place, tree)
    return Source(data["name"], data["version"], tree, data["sha256"][:16], data["headers"], tuple(data["kernels"]))


def _fetch(data, place, tree):
    tarball = _Tarball(data["name"], data["file"], data["sha256"])
    failed = "no mirror was asked"
    with tempfile.TemporaryDirectory(prefix=".tmp-", dir=place) as scratch:
        scratch = pathlib.Path(scratch)
        new = scratch / "tree"
        new.mkdir()
        for mirror in archive.mirrors():
            try:
                errors = archive.download([tarball], scratch, mirror=mirror)
            except archive.Unreachable as error:
                errors = {tarball.name: error}
            if not errors:
                _run(["tar", "-xf", str(scratch / f"{tarball.sha256}.deb"), "-C", str(new), "--strip-components=1"])
                break
            failed = errors[tarball.name]
        else:
            repository = os.environ.get(REPOSITORY)
            if not repository:
                raise UserError(f"source {data['name']} cannot be fetched: {data['file']}: {failed}",
                                hint=f"{REPOSITORY} names a git repository of rdma-core to take {data['tag']} from.")
            _archive(repository, data["tag"], new)
        check_tree(new, data["name"])
        new.rename(tree)


def _archive(repository, revision, target):
    """Unpacks a revision of a git repository into the folder."""
    if revision.startswith("-"):
        raise UserError(f"git revision '{revision}' cannot start with '-'")
    packed = target.parent / "revision.tar"
    _run(["git", "-C", repository, "archive", "-o", str(packed.resolve()), revision])
    _run(["tar", "-xf", str(packed), "-C", str(target)])


def _from_git(what):
    path, at, revision = what.removeprefix("git:").rpartition("@")
    if not at or not path or not revision:
        raise UserError(f"{what}: expected git:PATH@REVISION", hint="For example git:rdma-core@v44.0")
    commit = _run(["git", "-C", path, "rev-parse", "--verify", revision + "^{commit}"]).strip()
    name = "src-" + re.sub(r"[^A-Za-z0-9._-]", "-", revision.removeprefix("v"))
    place = paths.cache_dir() / "sources" / name
    tree = place / commit[:16]
    with locks.exclusive(place / ".lock", f"unpacking {name}"):
        if not tree.exists():
            with tempfile.TemporaryDirectory(prefix=".tmp-", dir=place) as scratch:
                new = pathlib.Path(scratch) / "tree"
                new.mkdir()
                _archive(path, commit, new)
                check_tree(new, what)
                new.rename(tree)
    return _described(name, tree, commit[:16])


def _from_folder(folder):
    check_tree(folder, str(folder))
    folder = folder.resolve()
    return _described(re.sub(r"[^A-Za-z0-9._-]", "-", folder.name), folder, _digest_of(folder))


def _described(name, tree, digest):
    """A source that no file registers: its release tells its headers and neighbours, where it is a known one."""
    version = version_of(tree)
    for entry in matrix.load("sources").values():
        if entry.data["version"].partition(".")[0] == version.partition(".")[0]:
            return Source(name, version, tree, digest, None, tuple(entry.data["kernels"]))
    return Source(name, version, tree, digest, None, ())


def _digest_of(folder):
    """By names, sizes and times of all files: a tree that someone works on is built again when it changes."""
    digest = hashlib.sha256()
    for base, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in (".git", "build"))
        for name in sorted(files):
            status = os.lstat(os.path.join(base, name))
            digest.update(f"{base}/{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _run(command):
    if shutil.which(command[0]) is None:
        raise UserError(f"{command[0]} is missing", hint="The launcher installs it: start ./verbs-abi.")
    result = subprocess.run(command, text=True, capture_output=True, check=False, stdin=subprocess.DEVNULL,
                            timeout=600)
    if result.returncode:
        raise UserError(f"{command[0]} failed: {(result.stderr.strip() or result.stdout.strip())[-300:]}")
    return result.stdout
