# SPDX-License-Identifier: BSD-2-Clause
"""Builds one rdma-core source with one set of kernel headers after the other.

    CACHE/builds/SOURCE/DIGEST/tree      a copy of the source, whose kernel-headers are replaced in place
    CACHE/builds/SOURCE/DIGEST/build     its build folder: what a change of headers does not touch stays built
    CACHE/builds/SOURCE/DIGEST/pairs/HEADERS-DIGEST/
        pair.json                        what came of it; written last
        root/                            libraries, plug-ins, *.driver files, public headers: a userland

The headers are made from facts (`facts headers`), so that every snapshot can be built with; rdma-core makes the
same object code with them as with the real ones.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from verbs_abi import locks, paths
from verbs_abi.errors import UserError
from verbs_abi.facts import tool
from verbs_abi.facts.builds import causes

# Changes when the same source and headers are to be built in another way.
LAYOUT = 1
LIBRARY_DIR = "usr/lib/x86_64-linux-gnu"
# Not part of what talks to the kernel's RDMA interface.
LEFT_OUT = ("libibacmp", "librspreload", "libibmad", "libibnetdisc")
NO_PROVIDERS = ("libibverbs", "librdmacm", "libibumad")
PROGRAMS = ("bin/ibv_devices", "bin/ibv_devinfo")
SECONDS = 1800
FLAGS = ("-GNinja", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-O1 -g", "-DNO_MAN_PAGES=1", "-DNO_PYVERBS=1",
         "-DENABLE_RESOLVE_NEIGH=1", "-DCMAKE_INSTALL_PREFIX=/usr", "-DCMAKE_INSTALL_SYSCONFDIR=/etc",
         "-DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu", "-DCMAKE_INSTALL_RUNDIR=/run")
PUBLIC_HEADERS = ("infiniband", "rdma/rdma_cma.h", "rdma/rdma_cma_abi.h", "rdma/rdma_verbs.h", "rdma/rsocket.h")


@dataclasses.dataclass(frozen=True)
class Library:
    """One library of a pair. file: below the pair's root, None when it does not build."""

    name: str
    file: str | None
    error: str | None = None
    cause: str | None = None


@dataclasses.dataclass(frozen=True)
class Pair:
    """What came of a source and headers. root: a userland's files."""

    source: str
    headers: str
    digest: str
    root: pathlib.Path
    libraries: tuple
    seconds: float
    plugin_suffix: str
    fresh: bool

    @property
    def complete(self):
        """Do all of its libraries build?"""
        return all(library.file for library in self.libraries)


class Builder:
    """The build folder of one source. One at a time: hold it with `with builder.lock():`."""

    def __init__(self, source, jobs=None, progress=None):
        self.source = source
        self.jobs = jobs or os.cpu_count() or 1
        self.progress = progress
        self.place = paths.cache_dir() / "builds" / source.name / f"{source.digest}-{LAYOUT}"
        self.tree = self.place / "tree"
        self.folder = self.place / "build"

    def lock(self):
        return locks.exclusive(self.place / ".lock", f"building {self.source.name}", seconds=SECONDS,
                               note=self.progress.note if self.progress else None)

    def pair(self, headers, again=False):
        """The Pair with these headers (a tool.Headers), built unless that was done before. The lock is held."""
        place = self.place / "pairs" / f"{headers.name}-{headers.digest[:12]}"
        if not again and (place / "pair.json").exists():
            return _read(place, fresh=False)
        start = time.monotonic()
        self._prepare()
        replaced = self._replace_headers(headers)
        output = self._ninja()
        libraries = self._libraries(causes.failures(output))
        place.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".tmp-", dir=place.parent) as scratch:
            new = pathlib.Path(scratch) / "new"
            self._collect(new / "root", libraries)
            (new / "ninja.log").write_text(output)
            (new / "pair.json").write_text(json.dumps({
                "source": self.source.name, "headers": headers.name, "digest": self._digest(headers),
                "seconds": round(time.monotonic() - start, 2), "replaced": replaced, "plugin_suffix": self._suffix(),
                "libraries": [dataclasses.asdict(library) for library in libraries]}, indent=1))
            shutil.rmtree(place, ignore_errors=True)
            new.rename(place)
        return _read(place, fresh=True)

    def _digest(self, headers):
        return hashlib.sha256(f"{LAYOUT} {self.source.digest} {headers.digest}".encode()).hexdigest()[:16]

    # --- the build folder

    def _prepare(self):
        if (self.folder / "build.ninja").exists():
            return
        self._say("configuring")
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.place.mkdir(parents=True, exist_ok=True)
        shutil.copytree(self.source.tree, self.tree, symlinks=True, ignore=shutil.ignore_patterns(".git", "build"))
        launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        result = self._run(["cmake", "-S", str(self.tree), "-B", str(self.folder), *FLAGS, *launcher])
        if result.returncode:
            (self.folder / "build.ninja").unlink(missing_ok=True)
            told = [line for line in result.stdout.splitlines() if line.strip()]
            first = next((index for index, line in enumerate(told) if line.startswith("CMake Error")), len(told) - 8)
            raise UserError(f"{self.source.name} cannot be configured", details=told[max(0, first):][:12])

    def _replace_headers(self, headers):
        """Puts the snapshot's headers in the place of the tree's own. Returns how many files changed.

        A header that the source wants and the snapshot lacks becomes a #error, so that what needs it fails in
        words. One that the source does not know of is published too: others may include it.
        """
        with tempfile.TemporaryDirectory(prefix="verbs-abi-headers-") as scratch:
            tool.generate(headers, scratch)
            made = pathlib.Path(scratch)
            new = {str(path.relative_to(made)): path.read_bytes() for path in sorted(made.rglob("*.h"))}
        own = self.tree / "kernel-headers"
        known = {str(path.relative_to(own)) for path in (own / "rdma").rglob("*.h")}
        published = self.folder / "include"
        changed = 0
        for name in sorted(known | set(new)):
            text = new.get(name, f"#error {name} is not among these headers\n".encode())
            path = own / name
            if not path.exists() or path.read_bytes() != text:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text)
                changed += 1
            link = published / name
            if not link.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(path)
        return changed

    def _ninja(self):
        """Builds what can be built; ninja's output."""
        self._say("building")
        # What does not link must not be there from an earlier pair.
        for path in (self.folder / "lib").glob("*.so*"):
            if not path.is_symlink():
                path.unlink()
        targets = [target for target, _ in self._targets()] + list(PROGRAMS)
        result = self._run(["ninja", "-C", str(self.folder), "-k0", f"-j{self.jobs}", *targets])
        return result.stdout

    def _targets(self):
        """(file to link, library) of each library: ("lib/libefa.so.1.3.56.1", "libefa")."""
        listed = self._run(["ninja", "-C", str(self.folder), "-t", "targets", "all"]).stdout
        found = re.findall(r"^(lib/(lib[A-Za-z0-9_]+?)(?:-rdmav\d+)?\.so[.0-9]*): C_(?:SHARED|MODULE)_LIBRARY_LINKER",
                           listed, re.M)
        if not found:
            raise UserError(f"{self.source.name}: its build makes no library", details=listed.splitlines()[:5])
        return [(file, name) for file, name in found if name not in LEFT_OUT]

    def _run(self, command):
        environment = {**os.environ, "CCACHE_BASEDIR": str(self.tree), "CCACHE_NOHASHDIR": "1", "LC_ALL": "C.UTF-8",
                       "NINJA_STATUS": "[%f/%t] ", "CLICOLOR_FORCE": "0"}
        try:
            return subprocess.run(command, env=environment, text=True, stdin=subprocess.DEVNULL, errors="replace",
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=SECONDS)
        except FileNotFoundError as error:
            raise UserError(f"{command[0]} is missing", hint="The launcher installs it: start ./verbs-abi.") from error
        except subprocess.TimeoutExpired as error:
            raise UserError(f"{command[0]} of {self.source.name} took longer than {SECONDS} s") from error

    def _say(self, what):
        if self.progress:
            self.progress.update(f"{what} {self.source.name}")

    # --- what came of it

    def _libraries(self, failed):
        by_target = {}
        for failure in failed:
            by_target.setdefault(re.sub(r"-rdmav\d+$", "", failure.target), failure)
            for output in failure.outputs:
                by_target.setdefault(output, failure)
        found = []
        for file, name in self._targets():
            if (self.folder / file).exists():
                base = pathlib.PurePath(file).name
                plugin = "libibverbs/" if "-rdmav" in base else ""
                found.append(Library(name, f"{LIBRARY_DIR}/{plugin}{base}"))
                continue
            failure = by_target.get(name.removeprefix("lib")) or by_target.get(file)
            if failure:
                found.append(Library(name, None, failure.error, failure.cause))
            else:
                found.append(Library(name, None, None, self._blocked_by(by_target)))
        return found

    @staticmethod
    def _blocked_by(by_target):
        for target in ("rdma_util", "kern-abi", "ibverbs"):
            if target in by_target:
                return f"what it links to does not build: {target}"
        return "what it links to does not build"

    def _link(self, folder, library, name):
        """The links that an installed library has: libefa.so.1, libefa.so and, for a provider, its plug-in."""
        stem, _, version = name.partition(".so.")
        if not version:
            return
        for link in (f"{stem}.so.{version.partition('.')[0]}", f"{stem}.so"):
            (folder / link).symlink_to(name)
        if library not in NO_PROVIDERS:
            (folder / "libibverbs" / f"{stem}-{self._suffix()}.so").symlink_to(f"../{name}")

    def _suffix(self):
        text = (self.tree / "CMakeLists.txt").read_text(errors="replace")
        found = re.search(r'set\(IBVERBS_PABI_VERSION "(\d+)"', text)
        return f"rdmav{found[1]}" if found else "rdmav34"

    def _collect(self, root, libraries):
        """Copies what a userland needs, in the places where packages have it."""
        target = root / LIBRARY_DIR
        (target / "libibverbs").mkdir(parents=True)
        for library in libraries:
            if library.file:
                name = pathlib.PurePath(library.file).name
                shutil.copyfile(self.folder / "lib" / name, root / library.file)
                self._link(target, library.name, name)
        drivers = root / "etc/libibverbs.d"
        drivers.mkdir(parents=True)
        for path in sorted(self.folder.glob("etc/libibverbs.d/*.driver")):
            # In a build folder they name plug-ins by path; an installed one by name.
            text = re.sub(r"driver .*/lib([A-Za-z0-9_]+)(?:-rdmav\d+(?:\.so)?)?$", r"driver \1", path.read_text(), flags=re.M)
            (drivers / path.name).write_text(text)
        for name in PUBLIC_HEADERS:
            source = self.folder / "include" / name
            if source.is_dir():
                shutil.copytree(source, root / "usr/include" / name)
            elif source.exists():
                (root / "usr/include" / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, root / "usr/include" / name)
        for name in PROGRAMS:
            if (self.folder / name).exists():
                (root / "usr/bin").mkdir(parents=True, exist_ok=True)
                shutil.copy(self.folder / name, root / "usr/bin")


def _read(place, fresh):
    data = json.loads((place / "pair.json").read_text())
    return Pair(data["source"], data["headers"], data["digest"], place / "root",
                tuple(Library(**row) for row in data["libraries"]), data["seconds"],
                data["plugin_suffix"], fresh)
