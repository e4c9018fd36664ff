# SPDX-License-Identifier: BSD-2-Clause
"""Package files, .deb or .rpm, as a userland: unpacked below CACHE/local/NAME/DIGEST, complete or not at all."""

import hashlib
import json
import pathlib
import re
import shutil
import tempfile

from verbs_abi import locks, paths
from verbs_abi.errors import UserError
from verbs_abi.userlands import packages, rooted, seen

# Packages that go into a sub-root of their own: another C library must not be on a library path of this machine's.
LIBC = re.compile(r"libc6|libgcc-s1|libstdc\+\+6|glibc|glibc-common|libgcc|libstdc\+\+")
# Those that rdma-core's version is the version of.
OWN = re.compile(r"libibverbs1?|rdma-core")
LOADERS = ("usr/lib64/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
LAYOUT = 2


def sha256(path):
    """Of a file, in pieces."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check(path, row):
    """The Package of a file that is still the one that was registered."""
    if not path.is_file():
        raise UserError(f"the package file {path} is gone", hint="Without it this userland cannot be unpacked.")
    if sha256(path) != row["sha256"]:
        raise UserError(f"{path} is not the file that was registered",
                        details=[f"registered SHA-256 {row['sha256']}"], hint="Register it again under its name.")
    return packages.read(path)


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
        manifest = self._manifest()
        changed = seen.changed(self.folder, manifest["files"], self.folder.with_name(f"{self.digest}.seen"))
        if changed:
            raise UserError(f"userland '{self.local.name}': its unpacked files were changed", details=changed[:3],
                            hint=f"Remove {self.folder}; the next use unpacks the packages again.")
        libc = self.folder / "libc"
        loader = next((libc / name for name in LOADERS if (libc / name).exists()), None)
        return rooted.userland(self.local.name, self.folder / "root", version=self.version(),
                               libc_root=libc if loader else None, loader=loader and loader.resolve())

    def _manifest(self):
        path = self.folder / "manifest.json"
        try:
            found = json.loads(path.read_text())
            if isinstance(found["files"], dict) and isinstance(found["version"], str):
                return found
        except (OSError, ValueError, KeyError, TypeError):
            pass
        raise UserError(f"userland '{self.local.name}': {path} is damaged",
                        hint=f"Remove {self.folder}; the next use unpacks the packages again.")

    def version(self):
        """"44.0" as its packages say; by their file names while they are not unpacked; "unknown"."""
        if self.ready():
            return self._manifest()["version"]
        names = (re.fullmatch(rf"(?:{OWN.pattern})[_-]([0-9][0-9.]*)[_-].*", pathlib.Path(row["path"]).name)
                 for row in self.local.files)
        return next((name[1] for name in names if name), "unknown")

    def _install(self):
        with tempfile.TemporaryDirectory(prefix=".tmp-", dir=self.folder.parent) as scratch:
            new = pathlib.Path(scratch) / "new"
            try:
                (new / "root").mkdir(parents=True)
                found = {}
                for row in self.local.files:
                    path = pathlib.Path(row["path"])
                    package = _check(path, row)
                    other = found.setdefault(package.name, (package, path))
                    if other[0] != package:
                        raise UserError(f"userland '{self.local.name}': two versions of {package.name}",
                                        details=[f"{one.version}: {where}" for one, where in (other, (package, path))],
                                        hint="Name the files of one release.")
                    part = new / ("libc" if LIBC.fullmatch(package.name) else "root")
                    part.mkdir(exist_ok=True)
                    packages.unpack(path, part)
                rooted.find(new / "root", self.local.name, "these packages: " + ", ".join(
                    pathlib.Path(row["path"]).name for row in self.local.files))
                versions = [package.version for package, _ in found.values() if OWN.fullmatch(package.name)]
                (new / "manifest.json").write_text(json.dumps({
                    "packages": list(self.local.files), "files": seen.of(new), "version": (versions or ["unknown"])[0]}))
                new.rename(self.folder)
            except OSError as error:
                raise UserError(f"userland '{self.local.name}' cannot be put into the cache {paths.cache_dir()}: {error}",
                                hint="VERBS_ABI_CACHE names another folder.") from error
