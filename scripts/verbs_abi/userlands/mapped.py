# SPDX-License-Identifier: BSD-2-Clause
"""Which libraries a process really loaded: strays from another userland make a cell worthless."""

import dataclasses
import os
import re

# rdma-core's libraries and what they are released with. Provider plug-ins end with -rdmavNN.so.
RDMA = re.compile(
    r"lib(ibverbs|rdmacm|ibumad|ibmad|ibnetdisc|mlx4|mlx5|efa|hns|ionic|mana|nl-3|nl-route-3)"
    r"\.so(\.[0-9.]+)?|lib.+-rdmav\d+\.so"
)
LIBC = re.compile(
    r"(libc|libm|libdl|libpthread|librt|libresolv)(\.so\.[0-9]+|-[0-9.]+\.so)|"
    r"ld-linux(-x86-64)?\.so\.2|ld-[0-9.]+\.so"
)
DELETED = " (deleted)"


@dataclasses.dataclass(frozen=True)
class Mapped:
    """own: the userland's files among the mappings; strays: others of the same kind."""

    own: tuple
    strays: tuple

    @property
    def ok(self):
        return not self.strays

    def __str__(self):
        return (
            "only its own libraries"
            if self.ok
            else "mapped from elsewhere: " + ", ".join(self.strays)
        )


def files(maps_text):
    """The distinct files in the text of /proc/PID/maps, in order. Names may hold spaces."""
    found = {}
    for line in maps_text.splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[5].startswith("/"):
            found.setdefault(fields[5].removesuffix(DELETED), None)
    return list(found)


def told(path):
    """{process id: files that it has loaded, without symbolic links} of the file that VERBS_ABI_MAPPED named.

    Call it before the run folder goes: views of plug-ins stand there.
    """
    found = {}
    if path.exists():
        for line in path.read_text(errors="replace").splitlines():
            process, _, name = line.partition(" ")
            found.setdefault(process, []).append(os.path.realpath(name))
    return found


def check(maps_text, root, libc_root=None, netlink=True):
    """Sorts the mapped RDMA libraries, and the C library, into the userland's own and strays.

    libc_root: the sub-root of the userland's own C library; None when it runs on the machine's, and
    then a C library from below `root` is a stray. netlink: the userland has a libnl of its own.
    """
    own, strays = [], []
    root = os.path.realpath(root)
    libc_root = libc_root and os.path.realpath(libc_root)
    for path in files(maps_text):
        name = os.path.basename(path)
        if not netlink and name.startswith("libnl-"):
            continue
        if RDMA.fullmatch(name):
            (own if _below(path, root) else strays).append(path)
        elif LIBC.fullmatch(name):
            if libc_root is None:
                if _below(path, root):
                    strays.append(path)
            else:
                (own if _below(path, libc_root) else strays).append(path)
    return Mapped(tuple(own), tuple(strays))


def _below(path, root):
    return os.path.realpath(path).startswith(root + "/")
