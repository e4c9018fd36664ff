# SPDX-License-Identifier: BSD-2-Clause
"""Writes initramfs archives (cpio "newc") without needing root or a cpio program."""

import os
import pathlib
import stat


class Archive:
    """An archive in memory. Parents of every entry are made as needed; later entries win."""

    def __init__(self):
        self._parts = []
        self._known = set()
        self._inode = 1

    def _entry(self, name, mode, data=b"", device=(0, 0)):
        encoded = name.encode() + b"\0"
        fields = (self._inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(encoded), 0)
        header = b"070701" + b"".join(b"%08x" % field for field in fields)
        self._inode += 1
        self._parts.append(header + encoded + bytes(-(len(header) + len(encoded)) % 4))
        self._parts.append(data + bytes(-len(data) % 4))
        self._known.add(name)

    def folder(self, name):
        name = name.strip("/")
        if not name or name in self._known:
            return
        self.folder(os.path.dirname(name))
        self._entry(name, stat.S_IFDIR | 0o755)

    def file(self, name, data, mode=0o644):
        name = name.strip("/")
        self.folder(os.path.dirname(name))
        self._entry(name, stat.S_IFREG | mode, data)

    def link(self, name, target):
        name = name.strip("/")
        self.folder(os.path.dirname(name))
        self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def char_device(self, name, major, minor, mode=0o600):
        name = name.strip("/")
        self.folder(os.path.dirname(name))
        self._entry(name, stat.S_IFCHR | mode, device=(major, minor))

    def tree(self, root, into, skip=lambda name: False):
        """Everything below `root` (a Path), under the name `into`; `skip` sees relative names."""
        for path in sorted(pathlib.Path(root).rglob("*")):
            name = path.relative_to(root).as_posix()
            if skip(name):
                continue
            if path.is_symlink():
                self.link(f"{into}/{name}", os.readlink(path))
            elif path.is_dir():
                self.folder(f"{into}/{name}")
            elif path.is_file():
                self.file(f"{into}/{name}", path.read_bytes(), path.stat().st_mode & 0o777)

    def data(self):
        """The finished archive, padded so that another one can follow it."""
        self._entry("TRAILER!!!", 0)
        whole = b"".join(self._parts)
        return whole + bytes(-len(whole) % 512)
