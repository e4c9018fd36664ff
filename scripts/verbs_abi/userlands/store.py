# SPDX-License-Identifier: BSD-2-Clause
"""Unpacked userlands and downloaded packages in the cache.

    CACHE/debs/SHA256.deb                    packages, shared by all userlands
    CACHE/userlands/NAME/DIGEST/root/        rdma-core and what it links to
    CACHE/userlands/NAME/DIGEST/libc/        its own C library, where it has one
    CACHE/userlands/NAME/DIGEST/manifest.json   what was unpacked; written last
    CACHE/userlands/NAME/DIGEST/files.json   digest of every file, for the deep check
    CACHE/userlands/NAME/DIGEST.seen         when its libraries and programs were looked at last
    CACHE/userlands/NAME/current             link to the DIGEST in use
    CACHE/userlands/NAME/gone                why the last fetch found packages missing

A folder appears under its final name only when it is complete, and is never changed after that: a
run that uses an older one goes on undisturbed.
"""

import contextlib
import json
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile

from verbs_abi import locks, paths
from verbs_abi.errors import UserError
from verbs_abi.userlands import archive, definition, seen

# Packages of suites before the merge of /lib into /usr/lib unpack to the same places as later ones.
MERGED = ("bin", "sbin", "lib", "lib64")


class Store:
    """The cache of one userland."""

    def __init__(self, wanted, cache=None):
        self.definition = wanted
        self._cache = cache or paths.cache_dir()
        self.folder = self._cache / "userlands" / wanted.name
        self.debs = self._cache / "debs"
        self._gone = self.folder / "gone"

    def lock(self, note=None):
        """Held while something is fetched or unpacked."""
        return locks.exclusive(self.folder / ".lock", f"fetching {self.definition.name}", note=note)

    # --- what is there

    def manifest(self):
        """The manifest of the folder in use, or None."""
        try:
            found = json.loads((self.folder / "current" / "manifest.json").read_text())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and "packages" in found else None

    def current(self):
        """The folder in use, without symbolic links."""
        return (self.folder / "current").resolve()

    def is_ready(self, manifest=None):
        """Is the folder in use what the definition asks for, and are its main parts there?"""
        manifest = manifest or self.manifest()
        if manifest is None or manifest.get("wanted") != self.definition.pin_digest():
            return False
        here = self.folder / "current"
        needed = [
            here / "root" / self.definition.library_dir / "libibverbs.so.1",
            here / "root" / self.definition.providers_dir,
        ]
        if self.definition.own_libc:
            needed.append(here / "libc" / self.definition.loader)
        return all(path.exists() for path in needed)

    def state(self):
        """(state, remark): ready, not fetched, stale or gone."""
        manifest = self.manifest()
        if manifest is not None:
            if self.is_ready(manifest):
                changed = self.changed()
                if changed:
                    return "stale", "damaged: " + "; ".join(changed[:3])
                return "ready", "; ".join(map(substitution_text, manifest["substituted"]))
            if manifest.get("wanted") == self.definition.pin_digest():
                return "stale", "files are missing"
            return "stale", "other versions are asked for than those unpacked"
        try:
            return "gone", self._gone.read_text().strip()
        except OSError:
            return "not fetched", ""

    def changed(self):
        """The check at each use: libraries and programs against their digests. Returns what is wrong, at most 20."""
        here = self.current()
        stamp = self.folder / f"{here.name}.seen"
        if seen.unchanged(here, stamp):
            return []
        try:
            recorded = json.loads((here / "files.json").read_text())
        except (OSError, ValueError):
            return ["files.json cannot be read"]
        run = {name: digest for name, digest in recorded.items() if seen.RUN.fullmatch(name)}
        return seen.changed(here, run, stamp)[:20]

    def damage(self):
        """The deep check: every file against its digest. Returns what is wrong, at most 20."""
        here = self.current()
        try:
            recorded = json.loads((here / "files.json").read_text())
        except (OSError, ValueError):
            return ["files.json cannot be read"]
        found = _listing(here)
        wrong = [f"{name}: missing" for name in recorded if name not in found]
        wrong += [
            f"{name}: changed"
            for name in recorded
            if name in found and found[name] != recorded[name]
        ]
        wrong += [
            f"{name}: was not unpacked from a package"
            for name in found
            if name not in recorded and "__pycache__" not in name
        ]
        return wrong[:20]

    # --- changing it; the caller holds the lock

    def remember_gone(self, text):
        """Remembers why the last fetch failed for good; None: it did not."""
        if text is None:
            self._gone.unlink(missing_ok=True)
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._gone.write_text(text + "\n")

    def sweep(self):
        """Removes what interrupted runs left. Nobody else works here: the lock is held."""
        for path in self.folder.glob(".tmp-*"):
            shutil.rmtree(path, ignore_errors=True)

    @contextlib.contextmanager
    def workspace(self):
        """A temporary folder in the cache's file system; sweep() removes forgotten ones."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".tmp-", dir=self.folder) as path:
            yield pathlib.Path(path)

    def deb(self, package):
        """The package's file in the cache, or None; a damaged one is removed."""
        path = self.debs / f"{package.sha256}.deb"
        try:
            if archive.sha256_of(path) == package.sha256:
                return path
            path.unlink(missing_ok=True)
        except FileNotFoundError:
            pass
        return None

    def keep_debs(self, folder):
        """Moves the downloaded packages from a workspace into the cache."""
        self.debs.mkdir(parents=True, exist_ok=True)
        for path in folder.glob("*.deb"):
            path.replace(self.debs / path.name)

    def install(self, packages, substituted, progress):
        """Unpacks `packages`, all in the cache, and makes them the folder in use."""
        digest = definition.digest_of(packages)
        with self.workspace() as temporary:
            new = temporary / "new"
            for part in sorted({package.part for package in packages}):
                _prepare_root(new / part)
            for number, package in enumerate(packages, 1):
                progress.update(f"unpacking {number}/{len(packages)} {package.name}")
                _unpack(self.debs / f"{package.sha256}.deb", new / package.part, package)
            suffix = _plugin_suffix(new / "root" / self.definition.providers_dir, self.definition)
            (new / "files.json").write_text(json.dumps(_listing(new), indent=0))
            (new / "manifest.json").write_text(
                json.dumps(
                    {
                        "wanted": self.definition.pin_digest(),
                        "digest": digest,
                        "plugin_suffix": suffix,
                        "substituted": substituted,
                        "packages": {
                            package.name: {"version": package.version, "sha256": package.sha256}
                            for package in packages
                        },
                    },
                    indent=1,
                )
            )
            final = self.folder / digest
            if final.exists():
                # Damaged, or it would not be unpacked again. Aside first: renaming onto it cannot
                # be done.
                final.rename(temporary / "old")
            new.rename(final)
            link = temporary / "current"
            link.symlink_to(digest)
            link.replace(self.folder / "current")
        self.remember_gone(None)


def substitution_text(row):
    """One line about a package that is not at the version asked for."""
    if row.get("got") is None:
        return f"{row['name']} is missing" + (f" ({row['purpose']})" if row.get("purpose") else "")
    return f"{row['name']} {row['got']} instead of {row['wanted']}"


def _prepare_root(root):
    (root / "usr").mkdir(parents=True)
    for name in MERGED:
        (root / "usr" / name).mkdir()
        (root / name).symlink_to(f"usr/{name}")


def _unpack(deb, root, package):
    # dpkg-deb -x would put a folder in the place of our link from lib to usr/lib.
    tar = ["tar", "-x", "-C", str(root), "--keep-directory-symlink", "--no-same-owner"]
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", str(deb)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as reader:
        writer = subprocess.run(
            tar, stdin=reader.stdout, stderr=subprocess.PIPE, timeout=300, check=False
        )
        reader.stdout.close()
        messages = reader.stderr.read() + writer.stderr
    if reader.returncode or writer.returncode:
        deb.unlink(missing_ok=True)
        raise UserError(
            f"package {package.name} {package.version} cannot be unpacked",
            details=messages.decode(errors="replace").strip().splitlines()[-5:],
            hint="It was removed from the cache; the next call fetches it again.",
        )


def _plugin_suffix(providers, wanted):
    """What the plug-ins' file names end with: libmlx5-rdmav34.so has rdmav34."""
    found = {path.stem.rpartition("-")[2] for path in providers.glob("lib*-rdmav*.so")}
    if len(found) != 1:
        raise UserError(
            f"userland '{wanted.name}': no plug-ins of one private ABI in its packages",
            details=[f"found in {wanted.providers_dir}: {', '.join(sorted(found)) or 'none'}"],
            hint=f"Expected lib*-{wanted.plugin_suffix}.so.",
        )
    return found.pop()


def _listing(folder):
    """{relative name: digest, or "-> target" of a link} of all files below a userland's folder."""
    found = {}
    for base, names, files in os.walk(folder):
        for name in names + files:
            path = os.path.join(base, name)
            relative = os.path.relpath(path, folder)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                found[relative] = "-> " + os.readlink(path)
            elif stat.S_ISREG(mode) and base != str(folder):
                found[relative] = archive.sha256_of(path)
    return found
