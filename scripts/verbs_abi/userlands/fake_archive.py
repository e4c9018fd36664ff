# SPDX-License-Identifier: BSD-2-Clause
"""For tests: a small archive of made-up packages in a folder, with a suite's package list."""

import json
import pathlib
import subprocess

from verbs_abi.userlands import archive

COMMON = "Architecture: amd64\nMaintainer: Nobody <nobody@example.org>\n"
PROVIDERS = "usr/lib/x86_64-linux-gnu/libibverbs"


class FakeArchive:
    """Packages are built with dpkg-deb; `publish` writes the list that apt reads."""

    def __init__(self, folder, suite="sid"):
        self.folder = pathlib.Path(folder)
        self.suite = suite
        self.listed = {}

    @property
    def mirror(self):
        """For VERBS_ABI_DEBIAN_MIRROR."""
        return f"[trusted=yes] file:{self.folder}"

    def add(self, name, version, files, source=None):
        """Builds a package; returns its row as a definition has it."""
        source = source or name
        tree = self.folder / "build" / f"{name}_{version}"
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "DEBIAN/control").write_text(
            f"Package: {name}\nVersion: {version}\n{COMMON}"
            f"Source: {source}\nDescription: made up for a test\n"
        )
        for path, text in files.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
        file = f"pool/main/{source[0]}/{source}/{name}_{version}_amd64.deb"
        deb = self.folder / file
        deb.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["dpkg-deb", "-Znone", "--root-owner-group", "-b", str(tree), str(deb)],
            check=True,
            capture_output=True,
        )
        row = {
            "name": name,
            "part": "root",
            "source": source,
            "version": version,
            "file": file,
            "size": deb.stat().st_size,
            "sha256": archive.sha256_of(deb),
        }
        self.listed[name] = row
        return row

    def publish(self):
        """Writes the suite's package list: the newest of each package that was not withdrawn."""
        stanzas = [
            f"Package: {row['name']}\nSource: {row['source']}\nVersion: {row['version']}\n{COMMON}"
            f"Filename: {row['file']}\nSize: {row['size']}\n"
            f"SHA256: {row['sha256']}\nDescription: made up for a test\n"
            for row in self.listed.values()
        ]
        path = self.folder / "dists" / self.suite / "main/binary-amd64/Packages"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(stanzas))

    def withdraw(self, row):
        """The version leaves the pool, and the list when it is the newest one."""
        (self.folder / row["file"]).unlink()
        if self.listed.get(row["name"]) == row:
            del self.listed[row["name"]]


def rdma_core(version, suffix="rdmav65"):
    """{package: files} of a made-up rdma-core that passes for one."""
    return {
        "libibverbs1": {"usr/lib/x86_64-linux-gnu/libibverbs.so.1": f"libibverbs {version}"},
        "ibverbs-providers": {
            f"{PROVIDERS}/libmlx5-{suffix}.so": f"mlx5 {version}",
            "etc/libibverbs.d/mlx5.driver": "driver mlx5\n",
        },
        "ibverbs-utils": {"usr/bin/ibv_devices": f"#!/bin/sh\necho {version}\n"},
    }


def write_definition(matrix, name, rows, **changes):
    """Writes matrix/userlands/NAME.json with these packages."""
    data = {
        "name": name,
        "kind": "debian",
        "title": "made up",
        "stack": "rdma-core",
        "arch": "x86_64",
        "suite": "sid",
        "source": "rdma-core",
        "source_version": "65.0",
        "libc": "host",
        "library_dir": "usr/lib/x86_64-linux-gnu",
        "providers_dir": PROVIDERS,
        "config_dir": "etc/libibverbs.d",
        "plugin_suffix": "rdmav65",
        "private_abi": "IBVERBS_PRIVATE_65",
        "packages": rows,
        **changes,
    }
    path = matrix / "userlands" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return path
