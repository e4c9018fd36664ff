# SPDX-License-Identifier: BSD-2-Clause
"""The check as a part of the test suite: a kernel that agrees less than before is a failed test."""

import time

from verbs_abi import errors
from verbs_abi.oracle import check, store


def chosen(text, room=store.ROOM):
    """The recordings whose test, "oracle.NAME", has `text` in its name."""
    return [name for name in store.names(room) if (text or "") in f"oracle.{name}"]


def run(build, text="", out=print, room=store.ROOM):
    """Checks the kernels with the build's fake kernel; (passed, failed) in kernels."""
    names = chosen(text, room)
    if not names:
        return 0, 0
    began = time.monotonic()
    try:
        results = check.compare_all(names, build, room=room)
    except errors.UserError as error:
        out(f"oracle check: {error}")
        return 0, len(names)
    low = check.too_low(results, room=room)
    for result in results:
        out(f"oracle.{result.kernel}: {result.agree} of {result.cases} agree, "
            f"{result.percent:.2f} %")
    for line in low:
        out(f"FAILED oracle.{line}; ./verbs-abi oracle check --kernel {line.split(':')[0]} tells "
            "which calls differ")
    out(f"oracle check: {len(results) - len(low)} of {len(results)} kernels passed in "
        f"{time.monotonic() - began:.1f} s")
    return len(results) - len(low), len(low)
