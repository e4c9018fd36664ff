# SPDX-License-Identifier: BSD-2-Clause
"""Debian packages of any suite, fetched without touching the machine's own apt.

Every suite has an apt state of its own under the cache folder. Packages are downloaded once,
unpacked with dpkg-deb and never installed.
"""

import pathlib
import subprocess

from verbs_abi import errors, paths
from verbs_abi.userlands import archive

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class AptError(errors.UserError):
    """A package or a suite could not be had; the message says which and what still works."""


def cache_dir():
    """The project's cache folder."""
    return pathlib.Path(paths.cache_dir())


def _source_line(suite):
    """The suite on the mirror that the machine's own sources name; security suites stand beside it."""
    uri = archive.mirrors()[0].uri.rstrip("/")
    if suite.endswith("-security"):
        uri += "-security"
    return f"deb [signed-by={KEYRING}] {uri} {suite} main\n"


class Suites:
    """One apt state over a set of suites that belong together (a release and its security)."""

    def __init__(self, suites, cache=None):
        self.suites = list(suites)
        self.root = (cache or cache_dir()) / "oracle" / "apt" / "+".join(self.suites)

    def _options(self):
        root = self.root
        for sub in ("lists/partial", "cache/archives/partial"):
            (root / sub).mkdir(parents=True, exist_ok=True)
        sources = root / "sources.list"
        sources.write_text("".join(map(_source_line, self.suites)))
        settings = {
            "Dir::Etc::sourcelist": sources,
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": root / "lists",
            "Dir::Cache": root / "cache",
            "Dir::State::status": "/dev/null",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
        }
        return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]

    def _run(self, program, *words, cwd=None):
        result = subprocess.run([program, *self._options(), *words], cwd=cwd, text=True,
                                capture_output=True, timeout=900, check=False)
        if result.returncode:
            raise AptError(f"{program} {' '.join(words)} failed in suites "
                           f"{', '.join(self.suites)}: {result.stderr.strip()[-500:]}")
        return result.stdout

    def update(self):
        """Fetches the package lists once; later calls do nothing."""
        stamp = self.root / "updated"
        if not stamp.exists():
            self._run("apt-get", "-q", "update")
            stamp.touch()

    def download(self, packages):
        """Downloads the packages ("name" or "name=version") that are not in the cache yet. Returns
        {package: .deb path}."""
        debs = self.root / "debs"
        debs.mkdir(parents=True, exist_ok=True)
        found = {}
        for package in packages:
            name, _, version = package.partition("=")
            pattern = f"{name}_{version.replace(':', '%3a') or '*'}_*.deb"
            have = sorted(debs.glob(pattern))
            if not have:
                self.update()
                self._run("apt-get", "-q", "download", package, cwd=debs)
                have = sorted(debs.glob(pattern))
            if not have:
                raise AptError(f"package {package} is in none of {', '.join(self.suites)}; "
                               "stored recordings stay usable without it")
            found[package] = have[-1]
        return found


def unpack(deb, into):
    """dpkg-deb -x, into a folder that may hold other packages already."""
    into.mkdir(parents=True, exist_ok=True)
    subprocess.run(["dpkg-deb", "-x", str(deb), str(into)], check=True, timeout=300)


def deb_field(deb, field):
    """One field of a package file: Version, Package, …"""
    return subprocess.run(["dpkg-deb", "-f", str(deb), field], check=True, text=True,
                          capture_output=True, timeout=60).stdout.strip()
