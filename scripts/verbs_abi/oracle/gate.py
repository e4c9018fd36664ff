# SPDX-License-Identifier: BSD-2-Clause
"""The check as a part of the test suite: a kernel that agrees less than before is a failed test."""

import time

from verbs_abi import errors
from verbs_abi.oracle import check, clients, store


def chosen(text, room=store.ROOM):
    """The recordings whose test, "oracle.NAME", has `text` in its name."""
    return [name for name in store.names(room) if (text or "") in f"oracle.{name}"]


def chosen_clients(text, room=store.ROOM):
    """Those with pyverbs' results whose test, "oracle.NAME.pyverbs", has it."""
    return [name for name in clients.recorded(room) if (text or "") in f"oracle.{name}.pyverbs"]


def run(build, text="", out=print, room=store.ROOM):
    """Checks the kernels with the build's fake kernel, each a test, and the results of pyverbs' tests, a test a kernel;
    (passed, failed)."""
    both = _calls(build, chosen(text, room), out, room), _clients(build, chosen_clients(text, room), out, room)
    return tuple(map(sum, zip(*both)))


def _clients(build, names, out, room):
    """pyverbs' tests on the fake kernels; (passed, failed)."""
    failed, began = 0, time.monotonic()
    for name in names:
        fake = check.FakeMachine(build)
        try:
            compared = clients.compare(name, fake, room)
        except errors.UserError as error:
            out(f"oracle clients: {error}")
            failed += 1
            continue
        finally:
            fake.close()
        out(f"oracle.{name}.pyverbs: {compared.same} of {compared.count} tests end alike")
        for row in compared.unexplained:
            out(f"FAILED oracle.{name}.pyverbs: {row['test']} ended {row['real']} on the real kernel, "
                f"{row['fake']} on the fake one; ./verbs-abi oracle clients --kernel {name} tells more")
        failed += bool(compared.unexplained)
    if names:
        out(f"oracle clients: {len(names) - failed} of {len(names)} kernels passed in {time.monotonic() - began:.1f} s")
    return len(names) - failed, failed


def _calls(build, names, out, room):
    """The recorded calls and programs; (passed, failed) in kernels."""
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
