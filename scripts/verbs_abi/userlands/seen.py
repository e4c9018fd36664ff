# SPDX-License-Identifier: BSD-2-Clause
"""Are the unpacked files that a userland runs still those that were unpacked? Asked at each use, so it has to be quick.

A file's content is looked at again when its status is another one than at the last look: size, times, inode (the time of
a status change cannot be set by anybody). The last look stands in a file beside the unpacked folder.
"""

import hashlib
import json
import os
import re

# Libraries with their links, and programs. Headers, manuals and such are left to the deep check.
RUN = re.compile(r".*\.so(\.[0-9.]+)?|.*/s?bin/[^/]+|.*\.driver")


def _digest(path):
    """Of a file's content; of a link, where it leads to; None: neither a file nor a link, or not to be read."""
    try:
        if os.path.islink(path):
            return "-> " + os.readlink(path)
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _status(path):
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return [found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def of(folder):
    """{relative name: digest} of what is run below a folder."""
    found = {}
    for base, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(base, name)
            relative = os.path.relpath(path, folder)
            if RUN.fullmatch(relative) and (os.path.islink(path) or os.path.isfile(path)):
                found[relative] = _digest(path)
    return found


def _last(stamp):
    try:
        found = json.loads(stamp.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def changed(folder, recorded, stamp):
    """["NAME: changed" or "NAME: missing"] of the recorded files, {relative name: digest}; stamp: the last look's file."""
    last, now, wrong = _last(stamp), {}, []
    for name, digest in recorded.items():
        path = os.path.join(folder, name)
        status = _status(path)
        if status is None:
            wrong.append(f"{name}: missing")
        elif last.get(name) == [digest, status] or _digest(path) == digest:
            now[name] = [digest, status]
        else:
            wrong.append(f"{name}: changed")
    if not wrong and now != last:
        _write(stamp, now)
    return wrong


def unchanged(folder, stamp):
    """Has every file the status of the last look? Quicker than changed(): nothing but statuses is read."""
    last = _last(stamp)
    return bool(last) and all(_status(os.path.join(folder, name)) == row[1] for name, row in last.items())


def _write(stamp, looked):
    scratch = stamp.with_name(f".tmp-{stamp.name}-{os.getpid()}")
    try:
        scratch.write_text(json.dumps(looked))
        scratch.replace(stamp)
    except OSError:
        pass  # a cache that may only be read: they are looked at each time
