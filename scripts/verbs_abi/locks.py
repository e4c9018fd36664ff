# SPDX-License-Identifier: BSD-2-Clause
"""File locks, so that two runs at once do not disturb each other."""

import contextlib
import errno
import fcntl
import os
import time

from verbs_abi.errors import UserError


@contextlib.contextmanager
def exclusive(path, purpose, *, seconds=900, note=None):
    """Holds the lock file `path` (made when missing, never removed) for the body.

    Waits up to `seconds`; `note(text)` is called once when there is something to wait for.
    The kernel drops the lock with its process, so a killed run leaves none behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        end = time.monotonic() + seconds
        waited = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
            if not waited and note:
                note(f"waiting for another run that is {purpose}")
            waited = True
            if time.monotonic() > end:
                raise UserError(
                    f"another run has been {purpose} for {seconds} seconds",
                    details=[f"lock file: {path}"],
                    hint="End that run, then try again.",
                )
            time.sleep(0.1)
        yield waited
    finally:
        os.close(descriptor)
