# SPDX-License-Identifier: BSD-2-Clause
"""Debian's archive: packages by pinned place and digest, and what a suite has now.

Uses apt's own transports (proxies and credentials of the machine count) with a state folder and a
source list per suite; the machine's package lists and sources are read, never changed.
"""

import dataclasses
import hashlib
import os
import re
import shutil
import subprocess
import urllib.parse

from verbs_abi import paths
from verbs_abi.errors import UserError

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
APT_HELPER = "/usr/lib/apt/apt-helper"
BASE_SUITE = re.compile(r"'(?P<mirror>[a-z+]+:[^']*?)/?/dists/(?P<suite>[a-z]+)/InRelease'")
TIMEOUT_S = 600


@dataclasses.dataclass(frozen=True)
class Mirror:
    """One copy of the archive. `options` as in a line of sources.list, for example trusted=yes."""

    uri: str
    options: str = ""

    def source_line(self, suite):
        options = " ".join(filter(None, [f"signed-by={KEYRING}", self.options]))
        return f"deb [{options}] {self.uri} {suite} main\n"

    def url(self, file):
        return f"{self.uri}/{urllib.parse.quote(file)}"

    def local(self, file):
        """The path of a file on a file: mirror, else None."""
        if not self.uri.startswith("file:"):
            return None
        return os.path.join(urllib.parse.unquote(self.uri.removeprefix("file:")), file)


class Gone(Exception):
    """The archive answered that it does not have this file (any more)."""


class Unreachable(Exception):
    """No answer from the archive."""


class Mismatch(Exception):
    """What the archive sent is not what the digest says."""


def _environment():
    return {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}


def _run(argv, **more):
    try:
        return subprocess.run(
            argv,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            text=True,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
            **more,
        )
    except FileNotFoundError as error:
        raise UserError(
            f"{argv[0]} is missing: userlands are fetched on Debian systems only"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise Unreachable(f"{os.path.basename(argv[0])} took longer than {TIMEOUT_S} s") from error


def mirrors():
    """The copies of the archive to ask, in order.

    VERBS_ABI_DEBIAN_MIRROR names one ("[options] URI", separated by commas where there are
    several); without it the machine's own sources are looked at for the mirror of its base suite.
    """
    named = os.environ.get("VERBS_ABI_DEBIAN_MIRROR")
    if named:
        found = []
        for part in named.split(","):
            match = re.fullmatch(
                r"\s*(?:\[(?P<options>[^]]*)\]\s*)?(?P<uri>[a-z+]+:\S+?)/*\s*", part
            )
            if not match:
                raise UserError(
                    f"VERBS_ABI_DEBIAN_MIRROR: '{part}' is not a URI",
                    hint="Expected [options] URI, as in a line of sources.list.",
                )
            found.append(Mirror(match["uri"], match["options"] or ""))
        return found
    uris = _run(["apt-get", "--print-uris", "update"]).stdout
    found = list(dict.fromkeys(Mirror(match["mirror"]) for match in BASE_SUITE.finditer(uris)))
    if not found:
        raise UserError(
            "the machine's apt sources name no Debian mirror",
            hint="Name one with VERBS_ABI_DEBIAN_MIRROR=URI.",
        )
    return found


def sha256_of(path):
    """Hex digest of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _transport_options():
    # Root's cache is not readable for apt's own user; without this apt warns about it each time.
    options = {
        "APT::Sandbox::User": "root",
        "Acquire::Retries": "2",
        "Acquire::http::Timeout": "20",
        "Acquire::https::Timeout": "20",
    }
    return [word for key, value in options.items() for word in ("-o", f"{key}={value}")]


def _copy(mirror, package, target):
    try:
        shutil.copyfile(mirror.local(package.file), target)
    except FileNotFoundError:
        return Gone(f"{mirror.local(package.file)} does not exist")
    except OSError as error:
        return Unreachable(str(error))
    return None


def _failures(text):
    """{url: reason} from apt-helper's stderr."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"E: Failed to fetch (\S+)\s+(.*)", line)
        if match:
            found[match[1]] = match[2]
    return found


def _reason(text):
    if re.match(r"(404|410)\b", text):
        return Gone(text)
    if "Hash Sum mismatch" in text or "unexpected size" in text:
        return Mismatch(text)
    return Unreachable(text or "apt-helper said nothing about it")


def download(packages, folder, *, mirror):
    """Fetches packages into `folder`, as SHA256.deb. Returns {name: exception} of what failed."""
    failed = {}
    targets = {package.name: folder / f"{package.sha256}.deb" for package in packages}
    if mirror.uri.startswith("file:"):
        for package in packages:
            error = _copy(mirror, package, targets[package.name])
            if error:
                failed[package.name] = error
    else:
        words = []
        for package in packages:
            # %2b for '+': the archive's own spelling, which proxies have in their caches.
            words += [
                mirror.url(package.file),
                str(targets[package.name]),
                f"SHA256:{package.sha256}",
            ]
        result = _run([APT_HELPER, *_transport_options(), "-qq", "download-file", *words])
        reasons = _failures(result.stderr)
        for package in packages:
            if not targets[package.name].exists():
                last_line = (result.stderr.strip().splitlines() or [""])[-1]
                failed[package.name] = _reason(reasons.get(mirror.url(package.file), last_line))
    for package in packages:
        target = targets[package.name]
        if package.name not in failed and sha256_of(target) != package.sha256:
            failed[package.name] = Mismatch(f"its SHA-256 is {sha256_of(target)}")
            target.unlink()
        target.with_name(target.name + ".FAILED").unlink(missing_ok=True)
    return failed


# Debian's names of the architectures.
DEBIAN_ARCH = {"x86_64": "amd64", "i386": "i386"}


def state_of(suite, arch):
    """The folder of the suite's own apt state."""
    return paths.cache_dir() / "apt" / (suite if arch == "x86_64" else f"{suite}-{arch}")


def _suite_options(suite, mirror, state, arch):
    for sub in ("lists/partial", "cache/archives/partial"):
        (state / sub).mkdir(parents=True, exist_ok=True)
    (state / "sources.list").write_text(mirror.source_line(suite))
    (state / "status").touch()
    options = {
        "Dir::Etc::sourcelist": state / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State": state,
        "Dir::State::lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
        "APT::Architecture": DEBIAN_ARCH[arch],
        "APT::Architectures": DEBIAN_ARCH[arch],
        "Acquire::Languages": "none",
        "APT::Update::Error-Mode": "any",
    }
    return [word for key, value in options.items() for word in ("-o", f"{key}={value}")]


def current(suite, names, *, mirror, state, arch="x86_64"):
    """What the suite has now: {name: {version, source, file, size, sha256}}, no unknown names.

    `state` is the folder of the suite's own apt state, one for each architecture. Raises Unreachable when the suite cannot be
    read.
    """
    options = [*_transport_options(), *_suite_options(suite, mirror, state, arch)]
    result = _run(["apt-get", *options, "-qq", "update"])
    if result.returncode:
        raise Unreachable(
            "; ".join(re.findall(r"^[EW]: (.*)", result.stderr, re.M)[:3])
            or f"apt-get update ended with {result.returncode}"
        )
    shown = _run(["apt-cache", *options, "show", "--no-all-versions", *names]).stdout
    found = {}
    for stanza in re.split(r"\n\s*\n", shown):
        fields = dict(re.findall(r"^([A-Za-z0-9-]+): (.*)$", stanza, re.M))
        if fields.get("Package") in names:
            source = fields.get("Source", fields["Package"]).split()[0]
            found[fields["Package"]] = {
                "version": fields["Version"],
                "source": source,
                "file": fields["Filename"],
                "size": int(fields["Size"]),
                "sha256": fields["SHA256"],
            }
    return found
