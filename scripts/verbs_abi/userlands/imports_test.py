# SPDX-License-Identifier: BSD-2-Clause
"""The shim's self-test over every userland: each libc function that its programs and libraries import is wrapped, or
shims/libc/imports.txt says why it need not be. (shims/libc/imports_test.cc looks at what the machine itself has.)"""

import re
import subprocess

import pytest

from verbs_abi import matrix, paths, userlands
from verbs_abi.errors import UserError

LIBC = paths.ROOT / "shims/libc"
RELEASES = [name for name, entry in matrix.load("userlands").items() if entry.data.get("kind") == "debian"]


def wrapped():
    return set(re.findall(r"^VABI_SYM\([^,]*, *(\w+)", (LIBC / "symbols.def").read_text(), re.M))


def explained():
    words = set()
    for line in (LIBC / "imports.txt").read_text().splitlines():
        if line and line[0] not in "#[":
            words.update(line.split())
    return words


def programs_of(userland):
    """Every ELF file of the userland: its tools, its libraries, its providers, pyverbs."""
    found = []
    for path in sorted((userland.root / "usr").rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    found.append(path)
    return found


def imports(files):
    """{libc function: one of the files that import it}"""
    found = {}
    listing = subprocess.run(["nm", "-D", "--undefined-only", "--print-file-name", *map(str, files)], text=True,
                             capture_output=True, check=False, timeout=120).stdout
    for line in listing.splitlines():
        name, at, version = line.rpartition(" ")[2].partition("@")
        if at and version.lstrip("@").startswith("GLIBC_"):
            found.setdefault(name, line.partition(":")[0])
    return found


def test_four_releases_are_looked_at():
    assert {"deb-33.2", "deb-44.0", "deb-56.1", "deb-65.0"} <= set(RELEASES)


@pytest.mark.parametrize("name", RELEASES)
def test_every_import_is_covered_or_explained(name):
    try:
        userland = userlands.get(name)
    except UserError as error:
        pytest.skip(f"{name} cannot be had: {error}")
    files = programs_of(userland)
    names = {path.name for path in files}
    assert {"ibv_devinfo", "ibv_rc_pingpong"} <= names and any(name.startswith("libibverbs.so") for name in names)
    found = imports(files)
    assert {"open", "ioctl", "mmap"} <= {name.removesuffix("64") for name in found}
    known = wrapped() | explained()
    assert {name: file for name, file in found.items() if name not in known} == {}
