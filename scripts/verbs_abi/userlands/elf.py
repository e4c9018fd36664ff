# SPDX-License-Identifier: BSD-2-Clause
"""What kind of program a file is: does a preloaded library get into it?"""

import dataclasses
import os
import stat
import struct

PT_INTERP = 3


@dataclasses.dataclass(frozen=True)
class Machine:
    """How an architecture's ELF files look. header: offset of the word that says where the program headers are, its
    format, offset of their size and number; row: size of a program header, offsets of place and length of its part."""

    title: str
    elf_class: int
    number: int
    header: tuple
    row: tuple


MACHINES = {
    "x86_64": Machine("x86-64", 2, 62, (32, "<Q", 54), (56, 8, 32)),
    "i386": Machine("i386", 1, 3, (28, "<I", 42), (32, 4, 16)),
}


class NotInterceptable(Exception):
    """The program cannot have a library preloaded; the text says why."""


def _interpreter(file, machine):
    """The dynamic linker that an ELF file names. Raises NotInterceptable."""
    header = file.read(64)
    if (
        len(header) < 64
        or header[4] != machine.elf_class
        or struct.unpack_from("<H", header, 18)[0] != machine.number
    ):
        raise NotInterceptable(f"is not an {machine.title} program")
    at, word, sizes = machine.header
    (offset,) = struct.unpack_from(word, header, at)
    size, count = struct.unpack_from("<HH", header, sizes)
    row_size, place, extent = machine.row
    for index in range(count):
        file.seek(offset + index * size)
        row = file.read(row_size)
        if len(row) == row_size and struct.unpack_from("<I", row)[0] == PT_INTERP:
            (start,) = struct.unpack_from(word, row, place)
            (length,) = struct.unpack_from(word, row, extent)
            file.seek(start)
            return file.read(length).rstrip(b"\0").decode(errors="replace")
    raise NotInterceptable("is statically linked")


def shebang(path):
    """[interpreter, argument] of a script, or None when the file is not one."""
    with open(path, "rb") as file:
        line = file.read(256).split(b"\n")[0]
    if not line.startswith(b"#!"):
        return None
    words = line[2:].strip().split(None, 1)
    return [os.fsdecode(word) for word in words] or None


def _has_capabilities(path):
    """File capabilities (setcap). For root the kernel does not count them (security/commoncap.c:
    cap_bprm_creds_from_file asks for the real user)."""
    try:
        return bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False


def check_interceptable(path, arch="x86_64"):
    """Raises NotInterceptable unless `path` is a program of that architecture and of glibc's dynamic linker."""
    with open(path, "rb") as file:
        magic = file.read(4)
        if magic != b"\x7fELF":
            raise NotInterceptable("is neither an ELF program nor a script with #!")
        file.seek(0)
        interpreter = _interpreter(file, MACHINES[arch])
        status = os.fstat(file.fileno())
    if not os.path.basename(interpreter).startswith("ld-linux"):
        raise NotInterceptable(f"runs on another C library ({interpreter})")
    # Then ld.so ignores preloaded libraries (AT_SECURE).
    if status.st_mode & stat.S_ISUID and status.st_uid != os.geteuid():
        raise NotInterceptable("is set-user-id: it runs as another user")
    if _has_capabilities(path) and os.getuid() != 0:
        raise NotInterceptable("has capabilities of its own: its loader ignores preloaded libraries")
    if status.st_mode & stat.S_ISGID and status.st_mode & stat.S_IXGRP and status.st_gid != os.getegid():
        raise NotInterceptable("is set-group-id: it runs with another group")
