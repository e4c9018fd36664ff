# SPDX-License-Identifier: BSD-2-Clause
"""What matrix/userlands/NAME.json says: which packages, at which versions, make up a userland."""

import dataclasses
import hashlib
import json

from verbs_abi import matrix
from verbs_abi.errors import UserError

# Changes when the same packages are to be unpacked in another way.
LAYOUT = 1


@dataclasses.dataclass(frozen=True)
class Package:
    """One package at one version. `file` is its place below the archive's root.

    part: "root" (rdma-core and what it links to) or "libc" (a sub-root of its own).
    required: without it the userland cannot be used; otherwise `purpose` tells what is lost.
    """

    name: str
    part: str
    source: str
    version: str
    file: str
    size: int
    sha256: str
    required: bool
    purpose: str


@dataclasses.dataclass(frozen=True)
class Definition:
    """A userland as data. Paths are relative to its root; `loader` to its libc's sub-root."""

    name: str
    title: str
    stack: str
    arch: str
    suite: str
    source: str
    source_version: str
    libc: str
    loader: str | None
    library_dir: str
    providers_dir: str
    config_dir: str
    plugin_suffix: str
    private_abi: str
    packages: tuple

    @property
    def own_libc(self):
        """Does it run on a C library of its own, not on the machine's?"""
        return self.libc == "own"

    def pin_digest(self):
        """Changes with every package version and digest that is asked for."""
        return digest_of(self.packages)


def digest_of(packages):
    """One digest over what is unpacked: names, parts, versions, package digests."""
    rows = sorted(
        [package.name, package.part, package.version, package.sha256] for package in packages
    )
    return hashlib.sha256(json.dumps([LAYOUT, rows]).encode()).hexdigest()[:16]


def from_entry(entry):
    """The definition in a matrix entry of the axis `userlands`."""
    data = entry.data
    kind = data["kind"]
    if kind != "debian":
        raise UserError(
            f"userland '{entry.name}' is of the kind '{kind}': it has no packages to fetch",
            details=[f"in {entry.path}"],
        )
    packages = tuple(
        Package(
            required=row.get("required", True),
            purpose=row.get("purpose", ""),
            **{
                key: row[key]
                for key in ("name", "part", "source", "version", "file", "size", "sha256")
            },
        )
        for row in data["packages"]
    )
    fields = {field.name: data.get(field.name) for field in dataclasses.fields(Definition)}
    fields.update(name=entry.name, packages=packages)
    return Definition(**fields)


def load(name):
    """The definition of that name; exit 2 with the nearest names when there is none."""
    return from_entry(matrix.get("userlands", name))


def load_all():
    """{name: Definition} of all userlands that this version can use."""
    return {
        name: from_entry(entry)
        for name, entry in matrix.load("userlands").items()
        if entry.data.get("kind") == "debian"
    }
