# SPDX-License-Identifier: BSD-2-Clause
"""What kind of program a file is: does a preloaded library get into it?"""

import os
import stat
import struct

PT_INTERP = 3
EM_X86_64 = 62
ELFCLASS64 = 2


class NotInterceptable(Exception):
    """The program cannot have a library preloaded; the text says why."""


def _interpreter(file):
    """The dynamic linker that an ELF file names. Raises NotInterceptable."""
    header = file.read(64)
    if (
        len(header) < 64
        or header[4] != ELFCLASS64
        or struct.unpack_from("<H", header, 18)[0] != EM_X86_64
    ):
        raise NotInterceptable("is not an x86-64 program")
    (offset,) = struct.unpack_from("<Q", header, 32)
    size, count = struct.unpack_from("<HH", header, 54)
    for index in range(count):
        file.seek(offset + index * size)
        row = file.read(56)
        if len(row) == 56 and struct.unpack_from("<I", row)[0] == PT_INTERP:
            (start,) = struct.unpack_from("<Q", row, 8)
            (length,) = struct.unpack_from("<Q", row, 32)
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


def check_interceptable(path):
    """Raises NotInterceptable unless `path` is an x86-64 program of glibc's dynamic linker."""
    with open(path, "rb") as file:
        magic = file.read(4)
        if magic != b"\x7fELF":
            raise NotInterceptable("is neither an ELF program nor a script with #!")
        file.seek(0)
        interpreter = _interpreter(file)
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
