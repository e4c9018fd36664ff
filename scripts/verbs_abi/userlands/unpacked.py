# SPDX-License-Identifier: BSD-2-Clause
"""Package files, .deb or .rpm, as a userland: unpacked below CACHE/local/NAME/DIGEST, complete or not at all."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from verbs_abi import locks, paths
from verbs_abi.errors import UserError
from verbs_abi.userlands import rooted

# Packages that go into a sub-root of their own: another C library must not be on a library path of this machine's.
LIBC = re.compile(r"(libc6|libgcc-s1|libstdc\+\+6|glibc|glibc-common|libgcc|libstdc\+\+)[_-][0-9].*")
LOADERS = ("usr/lib64/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
LAYOUT = 1


def sha256(path):
    """Of a file, in pieces."""
    total = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            total.update(chunk)
    return total.hexdigest()


def _fail(path, messages):
    text = messages.decode(errors="replace")
    if "No space left" in text:
        raise UserError(f"{path} cannot be unpacked: no space is left in {paths.cache_dir()}",
                        hint="VERBS_ABI_CACHE names another folder.")
    if ".." in text and ("Path contains" in text or "member name" in text.lower()):
        raise UserError(f"{path} has a path in it that leaves its root", details=text.strip().splitlines()[:3],
                        hint="Such a package is not unpacked.")
    raise UserError(f"{path} cannot be unpacked", details=text.strip().splitlines()[-4:],
                    hint="It is damaged, cut off, or not a package.")


def _unpack_deb(path, root):
    tar = ["tar", "-x", "-C", str(root), "--no-same-owner", "--keep-directory-symlink"]
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(path)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"}) as reader:
        writer = subprocess.run(tar, stdin=reader.stdout, stderr=subprocess.PIPE, timeout=300, check=False,
                                env={**os.environ, "LC_ALL": "C"})
        reader.stdout.close()
        messages = writer.stderr + reader.stderr.read()
    if reader.returncode or writer.returncode:
        _fail(path, messages)


def _unpack_rpm(path, root):
    # bsdtar reads rpm by itself, and refuses paths with .. and writing through links.
    ended = subprocess.run(["bsdtar", "-x", "--no-same-owner", "-f", str(path), "-C", str(root)], capture_output=True,
                           timeout=300, check=False, stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"})
    if ended.returncode:
        _fail(path, ended.stderr)
    if not any(root.iterdir()):
        _fail(path, b"nothing is in it")


UNPACK = {".deb": _unpack_deb, ".rpm": _unpack_rpm}


def _machine(path):
    """The architecture that a package says it is for."""
    if path.suffix == ".deb":
        ended = subprocess.run(["dpkg-deb", "-f", str(path), "Architecture"], text=True, capture_output=True, check=False,
                               stdin=subprocess.DEVNULL)
        if ended.returncode:
            _fail(path, ended.stderr.encode())
        return ended.stdout.strip()
    # Lead of an rpm: magic, version, type, then a 16-bit machine; the file name says it better.
    with open(path, "rb") as file:
        if file.read(4) != b"\xed\xab\xee\xdb":
            _fail(path, b"it does not start as an rpm does")
    return path.name.rsplit(".", 2)[-2]


def _check(path, row):
    if not path.is_file():
        raise UserError(f"the package file {path} is gone", hint="Without it this userland cannot be unpacked.")
    if sha256(path) != row["sha256"]:
        raise UserError(f"{path} is not the file that was registered",
                        details=[f"registered SHA-256 {row['sha256']}"], hint="Register it again under its name.")
    machine = _machine(path)
    if machine not in ("amd64", "x86_64", "all", "noarch"):
        raise UserError(f"{path} is for another machine: {machine}", hint="Only amd64 (x86_64) packages can be used here.")


class Unpacked:
    """The unpacked packages of one userland."""

    def __init__(self, local):
        self.local = local
        rows = sorted((row["sha256"], pathlib.Path(row["path"]).name) for row in local.files)
        self.digest = hashlib.sha256(json.dumps([LAYOUT, rows]).encode()).hexdigest()[:16]
        self.folder = paths.cache_dir() / "local" / local.name / self.digest

    def ready(self):
        """Is all of it unpacked?"""
        return (self.folder / "manifest.json").is_file()

    def get(self):
        """The Userland; unpacked first when it is not there, checked against what was unpacked when it is."""
        if not self.ready():
            parent = self.folder.parent
            with locks.exclusive(parent / ".lock", f"unpacking {self.local.name}"):
                if not self.ready():
                    for left in parent.glob(".tmp-*"):
                        shutil.rmtree(left, ignore_errors=True)
                    self._install()
        libc = self.folder / "libc"
        loader = next((libc / name for name in LOADERS if (libc / name).exists()), None)
        found = rooted.userland(self.local.name, self.folder / "root", version=self.version(),
                                libc_root=libc if loader else None, loader=loader and loader.resolve())
        noted = json.loads((self.folder / "manifest.json").read_text())["libraries"]
        if noted != found.digest:
            raise UserError(f"userland '{self.local.name}': its unpacked files were changed",
                            hint=f"Remove {self.folder}; the next use unpacks the packages again.")
        return found

    def version(self):
        """"44.0" of the packages' file names, or "unknown"."""
        for row in self.local.files:
            found = re.match(r"(?:libibverbs1?|rdma-core)[_-]([0-9][0-9.]*)", pathlib.Path(row["path"]).name)
            if found:
                return found[1]
        return "unknown"

    def _install(self):
        with tempfile.TemporaryDirectory(prefix=".tmp-", dir=self.folder.parent) as scratch:
            new = pathlib.Path(scratch) / "new"
            try:
                for row in self.local.files:
                    path = pathlib.Path(row["path"])
                    _check(path, row)
                    part = new / ("libc" if LIBC.fullmatch(path.name) else "root")
                    part.mkdir(parents=True, exist_ok=True)
                    UNPACK[path.suffix](path, part)
                (new / "root").mkdir(exist_ok=True)
                libraries = rooted.find(new / "root", self.local.name).digest
                (new / "manifest.json").write_text(json.dumps({"files": list(self.local.files), "libraries": libraries}))
                new.rename(self.folder)
            except OSError as error:
                raise UserError(f"userland '{self.local.name}' cannot be put into the cache {paths.cache_dir()}: {error}",
                                hint="VERBS_ABI_CACHE names another folder.") from error
