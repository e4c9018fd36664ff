# SPDX-License-Identifier: BSD-2-Clause
"""Debian's packaged kernels: which there are (matrix/oracle/kernels.json), fetched and unpacked."""

import dataclasses
import errno
import json
import lzma
import pathlib
import subprocess
import tempfile

from verbs_abi import errors, locks
from verbs_abi.oracle import apt
from verbs_abi.reports.store import write_atomically

SOURCE_ROOT = pathlib.Path(__file__).resolve().parents[3]
TABLE = SOURCE_ROOT / "matrix" / "oracle" / "kernels.json"

# What the recordings need. rxe on 6.1 finds its checksum only where crc32_generic is loaded.
MODULES = ("crc32_generic", "ib_uverbs", "ib_umad", "rdma_ucm", "rdma_rxe", "dummy", "veth",
           "virtio_pci", "virtio_blk")


class OracleError(errors.UserError):
    """What the recording or the check stumbled over, with the kernel and what to do."""


def full(error):
    """What to say of an OSError: one without a path, of a disk that is full, is of our temporary files."""
    if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{error.strerror} for temporary files in {tempfile.gettempdir()}; TMPDIR names another folder"
    return str(error)


@dataclasses.dataclass(frozen=True)
class Kernel:
    """One row of kernels.json."""

    name: str
    release: str
    suites: tuple
    packages: tuple
    userland_suite: str
    siw: dict = None  # the packages that siw.py builds its module from


def table(path=TABLE):
    """All kernels by name, in the file's order."""
    rows = json.loads(path.read_text())["kernels"]
    return {row["name"]: Kernel(row["name"], row["release"], tuple(row["suites"]),
                                tuple(row["packages"]), row["userland_suite"], row.get("siw"))
            for row in rows}


def find(name):
    """The kernel of that name; OracleError names the known ones."""
    kernels = table()
    if name not in kernels:
        raise errors.unknown("recorded kernel", name, kernels)
    return kernels[name]


class Unpacked:
    """A kernel's image and modules in the cache."""

    def __init__(self, kernel, cache=None):
        self.kernel = kernel
        self.cache = (cache or apt.cache_dir()) / "oracle" / "kernels" / kernel.name
        self.root = self.cache / "root"

    def prepare(self):
        """Fetches and unpacks unless that was done before; two at once take turns. Returns self."""
        done = self.cache / "done"
        with locks.exclusive(self.cache / "lock", f"unpacking {self.kernel.name}"):
            self._prepare(done)
        return self

    def _prepare(self, done):
        if not done.exists():
            debs = apt.Suites(self.kernel.suites).download(self.kernel.packages)
            for deb in debs.values():
                apt.unpack(deb, self.root)
            # Newer packages use /usr/lib/modules; depmod wants /lib/modules.
            if not (self.root / "lib").exists():
                (self.root / "lib").symlink_to("usr/lib")
            elif not (self.root / "lib" / "modules").exists():
                (self.root / "lib" / "modules").symlink_to("../usr/lib/modules")
            subprocess.run(["depmod", "-b", str(self.root), self.kernel.release], check=True,
                           timeout=120)
            versions = {name: apt.deb_field(deb, "Version") for name, deb in debs.items()}
            write_atomically(done, json.dumps(versions))

    def package_versions(self):
        return json.loads((self.cache / "done").read_text())

    def image(self):
        for path in (self.root / "boot" / f"vmlinuz-{self.kernel.release}",
                     self.root / "usr/lib/modules" / self.kernel.release / "vmlinuz"):
            if path.exists():
                return path
        raise OracleError(f"{self.kernel.name}: its packages hold no vmlinuz")

    def modules(self, wanted=MODULES):
        """(name, bytes) of the modules and all that they need, in the order of loading."""
        folder = self.root / "lib" / "modules" / self.kernel.release
        needs, paths = {}, {}
        for line in (folder / "modules.dep").read_text().splitlines():
            path, _, rest = line.partition(":")
            name = pathlib.Path(path).name.split(".ko")[0].replace("-", "_")
            paths[name] = folder / path
            needs[name] = [pathlib.Path(word).name.split(".ko")[0].replace("-", "_")
                           for word in rest.split()]
        soft = {}
        for line in (folder / "modules.softdep").read_text().splitlines():
            words = line.split()
            if words[:1] == ["softdep"] and "pre:" in words:
                before = words[words.index("pre:") + 1:]
                soft[words[1]] = [word for word in before if word in paths]
        order = []

        def visit(name):
            if name not in paths or name in order:
                return
            # modules.dep lists the nearest need first, and every need's own needs after it.
            for need in soft.get(name, []) + list(reversed(needs[name])):
                visit(need)
            if name not in order:
                order.append(name)

        for name in wanted:
            visit(name)
        return [(name, _uncompressed(paths[name])) for name in order]


def _uncompressed(path):
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data
