# SPDX-License-Identifier: BSD-2-Clause
"""One package file, .deb or .rpm: what it says it is, and its files below a folder."""

import contextlib
import dataclasses
import os
import pathlib
import re
import stat
import struct
import subprocess
import tempfile
import threading

from verbs_abi import paths
from verbs_abi.errors import UserError, printable

# No rdma-core and no C library is larger; what is would fill the disk.
BYTES = 2 << 30
SECONDS = 300
ENVIRONMENT = {"LC_ALL": "C"}
DAMAGED = "It is damaged, cut off, or not a package: copy or download it again."

_RPM_MAGIC = b"\xed\xab\xee\xdb"
_RPM_LEAD = 96
_RPM_HEADER = b"\x8e\xad\xe8\x01"
# rpm's tags, all strings (include/rpm/rpmtag.h: RPMTAG_NAME, RPMTAG_VERSION, RPMTAG_ARCH).
_RPM_TAGS = {1000: "name", 1001: "version", 1022: "machine"}
_RPM_STRING = 6


@dataclasses.dataclass(frozen=True)
class Package:
    """What a package says of itself; version without a distribution's part."""

    name: str
    version: str
    machine: str


def _fail(path, text, hint=DAMAGED):
    raise UserError(f"{path} cannot be unpacked: {printable(text)}", hint=hint)


def _told(messages):
    """The one of some programs' messages that says what is wrong with the package, without the programs' names."""
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    cut = next((line for line in lines if "unexpected end of file" in line or "Truncated" in line), None)
    if cut or any("Unexpected EOF" in line for line in lines) and not any("decompressing" in line for line in lines):
        return "its end is missing"
    best = next((line for line in lines if "decompressing" in line), None) or next(
        (line for line in lines if not line.startswith("tar: Removing leading")), "it tells nothing about itself")
    return best.rpartition(": ")[2] if "decompressing" in best else best.partition(": ")[2] or best


def _of_deb(path):
    ended = subprocess.run(["dpkg-deb", "-f", str(path), "Package", "Version", "Architecture"], capture_output=True, check=False,
                           stdin=subprocess.DEVNULL, env={**os.environ, **ENVIRONMENT})
    if ended.returncode:
        _fail(path, _told(ended.stderr.decode(errors="replace")))
    fields = dict(line.split(": ", 1) for line in ended.stdout.decode(errors="replace").splitlines() if ": " in line)
    version = fields.get("Version", "").rpartition(":")[2]  # the epoch stands before a colon
    return Package(fields.get("Package", ""), version.partition("-")[0], fields.get("Architecture", ""))


def _of_rpm(path):
    """By its header; by its file name (NAME-VERSION-RELEASE.ARCH.rpm) where that tells nothing."""
    named = re.fullmatch(r"(?:(.+)-([^-]+)-[^-]+|.+)\.([^.-]+)\.rpm", path.name)
    found = dict(zip(("name", "version", "machine"), named.groups("") if named else ("", "", "")))
    with open(path, "rb") as file:
        lead = file.read(_RPM_LEAD)
        if lead[:4] != _RPM_MAGIC:
            _fail(path, "it does not start as an rpm does")
        if len(lead) < _RPM_LEAD:
            _fail(path, "its end is missing")
        found |= _rpm_header(path, file)
    if lead[6:8] == b"\0\1":
        found["machine"] = "source"
    return Package(**found)


def _rpm_header(path, file):
    """Of the second header, behind the one of signatures, which is padded to eight bytes."""
    for padded in (True, False):
        head = file.read(16)
        if len(head) < 16 or head[:4] != _RPM_HEADER:
            _fail(path, "its header is damaged or missing")
        count, size = struct.unpack(">II", head[8:])
        if 16 * count + size > BYTES >> 4:
            _fail(path, "its header is damaged: it tells a length that no package has")
        index, store = file.read(16 * count), file.read(size)
        if len(index) < 16 * count or len(store) < size:
            _fail(path, "its end is missing")
        if padded:
            file.read(-size % 8)
    found = {}
    for at in range(0, 16 * count, 16):
        tag, kind, offset, _ = struct.unpack_from(">IIII", index, at)
        if tag in _RPM_TAGS and kind == _RPM_STRING and offset < size:
            found[_RPM_TAGS[tag]] = store[offset:].partition(b"\0")[0].decode(errors="replace")
    return found


def read(path):
    """The Package of a file. UserError for one that is damaged, or for another machine."""
    path = pathlib.Path(path)
    package = _of_deb(path) if path.suffix == ".deb" else _of_rpm(path)
    if package.machine not in ("amd64", "x86_64", "all", "noarch"):
        raise UserError(f"{path} is for another machine: {printable(package.machine) or 'it does not say which'}",
                        hint="Only amd64 (x86_64) packages can be used here.")
    return package


# What writes a package's files as a tar archive, and what unpacks that. GNU tar and bsdtar refuse paths with .. and do not
# write through links that the archive brought; bsdtar reads rpm by itself.
_READERS = {".deb": lambda path: ["dpkg-deb", "--fsys-tarfile", str(path)],
            ".rpm": lambda path: ["bsdtar", "-c", "--format", "pax", "-f", "-", f"@{path}"]}
_WRITERS = {".deb": ["tar", "-x", "--no-same-owner", "--no-same-permissions", "--keep-directory-symlink", "-f", "-", "-C"],
            ".rpm": ["bsdtar", "-x", "--no-same-owner", "--no-same-permissions", "-f", "-", "-C"]}


def _copy(source, target):
    """Copies until one of them ends; the count of bytes, at most a piece more than BYTES."""
    count = 0
    while count <= BYTES:
        data = source.read(1 << 20)
        if not data:
            break
        count += len(data)
        try:
            target.write(data)
        except BrokenPipeError:
            break
    return count


def _start(stack, argv, **how):
    """A program that is ended with the stack, however that is left."""
    process = subprocess.Popen(argv, **how)  # pylint: disable=consider-using-with
    stack.callback(_end, process)
    return process


def _end(process):
    process.kill()
    with contextlib.suppress(BrokenPipeError):
        process.__exit__(None, None, None)


def unpack(path, root):
    """Puts a package's files below `root`. UserError for what is damaged, too large, or would leave `root`."""
    path = pathlib.Path(path)
    environment = {**os.environ, **ENVIRONMENT}
    with tempfile.TemporaryFile() as messages:
        common = {"stderr": messages, "env": environment, "start_new_session": True}
        with contextlib.ExitStack() as stack:
            reader = _start(stack, _READERS[path.suffix](path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **common)
            writer = _start(stack, [*_WRITERS[path.suffix], str(root)], stdin=subprocess.PIPE, **common)
            late = threading.Timer(SECONDS, lambda: (reader.kill(), writer.kill()))
            stack.callback(late.cancel)
            late.start()
            count = _copy(reader.stdout, writer.stdin)
            if count > BYTES:
                reader.kill()
            reader.stdout.close()
            with contextlib.suppress(BrokenPipeError):
                writer.stdin.close()
            statuses = reader.wait(), writer.wait()
            ended = not late.is_alive()
        messages.seek(0)
        text = messages.read(1 << 16).decode(errors="replace")
    if count > BYTES:
        _fail(path, f"its files are more than {BYTES >> 30} GiB", "No rdma-core is as large.")
    if ended:
        _fail(path, f"no end after {SECONDS} s")
    if any(statuses):
        _refuse(path, text)
    _tame(path, root)


def _refuse(path, text):
    if "No space left" in text:
        _fail(path, f"no space is left in {paths.cache_dir()}", "VERBS_ABI_CACHE names another folder.")
    for sign in ("contains '..'", "Path contains '..'", "Cannot extract through symlink", "Cannot open: Not a directory",
                 "Cannot hard link to"):
        if sign in text:
            line = next(line for line in text.splitlines() if sign in line)
            raise UserError(f"{path} has a path in it that leaves its root: {printable(line.partition(': ')[2])}",
                            hint="Such a package is not unpacked.")
    _fail(path, _told(text))


def _tame(path, root):
    """Of what was unpacked: only files, folders and links, that we may read and nobody runs as another user."""
    for base, folders, files in os.walk(root):
        for name in folders + files:
            here = os.path.join(base, name)
            mode = os.lstat(here).st_mode
            if stat.S_ISDIR(mode):
                os.chmod(here, stat.S_IMODE(mode) & 0o777 | 0o700)
            elif stat.S_ISREG(mode):
                os.chmod(here, stat.S_IMODE(mode) & 0o777 | 0o400)
            elif not stat.S_ISLNK(mode):
                raise UserError(f"{path} has something other than files in it: {printable(os.path.relpath(here, root))}",
                                hint="A userland has no use for device nodes, pipes and sockets; such a package is not unpacked.")
