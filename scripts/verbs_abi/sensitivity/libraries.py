# SPDX-License-Identifier: BSD-2-Clause
"""A source tree that is built with one defect after the other.

    CACHE/sensitivity/SOURCE/DIGEST/tree     a copy of the source; one file of it differs while a defect is built
                                    build    its build folder: what a defect does not touch stays built
                                    roots/NAME    libraries and *.driver files of one defect: a userland

Only the libraries that a defect's file goes into are built again; the others are links to those of the whole source.
"""

import dataclasses
import hashlib
import os
import re
import shutil
import subprocess
import tempfile

from verbs_abi import children, locks, paths
from verbs_abi.errors import UserError
from verbs_abi.facts.builds import sources
from verbs_abi.sensitivity import defects
from verbs_abi.userlands import rooted
from verbs_abi.userlands.sources import OPTIONS

SECONDS = 1800
# Providers that cells can move data with.
PROVIDERS = ("mlx5", "rxe")
LINKED = re.compile(r"^(lib/(lib[A-Za-z0-9_]+?)(?:-rdmav\d+)?\.so[.0-9]*): C_(?:SHARED|MODULE)_LIBRARY_LINKER", re.M)


class DoesNotBuild(UserError):
    """The source does not compile with the defect."""


class Tree:
    """One source's build folder. One at a time: hold it with `with tree.lock():`."""

    def __init__(self, source_name, progress):
        self.source = sources.get(source_name, progress)
        self.progress = progress
        self.place = paths.cache_dir() / "sensitivity" / self.source.name / self.source.digest
        self.tree, self.folder = self.place / "tree", self.place / "build"

    def lock(self):
        return locks.exclusive(self.place / ".lock", f"building {self.source.name} with defects", seconds=SECONDS,
                               note=self.progress.note)

    def sound(self, found=()):
        """The Userland of the source as it is; the lock is held.

        found: defects, whose files are put right first: a run that was killed may have left one of them.
        """
        self._prepare()
        for file in sorted({defect.file for defect in found}):
            right, here = self.source.tree / file, self.tree / file
            if right.is_file() and here.read_bytes() != right.read_bytes():
                shutil.copyfile(right, here)
        self._ninja(self._targets(), self.source.name)
        return self._userland(self.source.name, self._root("sound", self._targets()))

    def broken(self, defect, sound):
        """The Userland with one defect; the lock is held. Raises DoesNotBuild."""
        row = hashlib.sha256(repr(dataclasses.astuple(defect)).encode()).hexdigest()[:8]
        name = defects.userland(self.source.name, defect)
        root = self.place / "roots" / f"{defect.name}-{row}"
        if not root.exists():
            path = self.tree / defect.file
            if not path.is_file():
                raise UserError(f"defect {defect.name}: {self.source.name} has no {defect.file}")
            text = path.read_text()
            path.write_text(defects.swapped(defect, text))
            try:
                targets = [target for target in self._targets() if concerns(defect.file, target)]
                self._ninja(targets, f"defect {defect.name}")
                self._root(root.name, targets)
            finally:
                path.write_text(text)
                self._ninja(targets, self.source.name)
        return dataclasses.replace(self._userland(name, root), include_dir=sound.include_dir)

    def _prepare(self):
        if (self.folder / "build.ninja").exists():
            return
        self.progress.update(f"configuring {self.source.name}")
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(parents=True)
        shutil.copytree(self.source.tree, self.tree, symlinks=True, ignore=shutil.ignore_patterns(".git", "build"))
        launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        self._run(["cmake", "-GNinja", "-S", str(self.tree), "-B", str(self.folder), *OPTIONS, *launcher],
                  f"configuring {self.source.name}", UserError)

    def _targets(self):
        listed = self._run(["ninja", "-C", str(self.folder), "-t", "targets", "all"], "listing targets", UserError)
        return sorted({match[1] for match in LINKED.finditer(listed)})

    def _ninja(self, targets, what):
        self.progress.update(f"building {what}")
        self._run(["ninja", "-C", str(self.folder), *targets], f"building {what}", DoesNotBuild)

    def _run(self, command, what, error):
        # Paths below the build folder, so that ccache serves the next copy of the source too.
        env = {**os.environ, "CCACHE_BASEDIR": str(self.place), "CCACHE_NOHASHDIR": "1"}
        result = children.run(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              errors="replace", env=env)
        if result.returncode:
            told = [line for line in result.stdout.splitlines() if re.search(r"\berror\b|No space left", line, re.I)]
            raise error(f"{what} failed", details=(told or result.stdout.splitlines())[-6:])
        return result.stdout

    def _root(self, name, targets):
        """The libraries as they are now, below roots/NAME: those of `targets` copied, the others linked to."""
        own = {os.path.basename(target) for target in targets}
        root = self.place / "roots" / name
        root.parent.mkdir(exist_ok=True)
        shutil.rmtree(root, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=".tmp-", dir=root.parent) as scratch:
            new = os.path.join(scratch, "root")
            shutil.copytree(self.folder / "etc", os.path.join(new, "etc"))
            os.mkdir(os.path.join(new, "lib"))
            for path in (self.folder / "lib").glob("*.so*"):
                target = os.path.join(new, "lib", path.name)
                if path.is_symlink():
                    os.symlink(os.readlink(path), target)
                elif path.name in own:
                    shutil.copy2(path, target)
                else:
                    os.link(path, target)
            os.rename(new, root)
        return root

    def _userland(self, name, root):
        found = rooted.userland(name, root, version=self.source.version)
        include = self.folder / "include"
        return dataclasses.replace(found, include_dir=include, shares_programs=True)


def concerns(file, target):
    """Does a file of the source go into a library? Of providers, those that cells can use."""
    library = os.path.basename(target).partition(".")[0].partition("-")[0].removeprefix("lib")
    folder, _, rest = file.partition("/")
    if folder == "providers":
        return library == rest.partition("/")[0]
    return library in ("ibverbs", *PROVIDERS)
