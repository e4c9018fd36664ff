# SPDX-License-Identifier: BSD-2-Clause
"""The call list of a kernel, from its facts: deterministic for a seed."""

import random

from verbs_abi.oracle import data_calls
from verbs_abi.oracle import facts as facts_room
from verbs_abi.oracle import ioctl_calls
from verbs_abi.oracle import life_calls
from verbs_abi.oracle import qp_calls
from verbs_abi.oracle import write_calls


def cases(facts, seed=0, driver="rxe"):
    """All cases. seed 0: the natural order and values."""
    rng = random.Random(f"{facts.name}/{seed}") if seed else None
    yield from write_calls.Maker(facts, rng).all()
    yield from ioctl_calls.Maker(facts, rng).all()
    yield from life_calls.Maker(facts, rng).all()
    yield from qp_calls.Maker(facts, rng).all()
    if driver == "rxe":  # by hand on its mapped queues
        yield from data_calls.Maker(facts, rng).all()


def call_list(kernel, seed=0, only="", driver="rxe"):
    """The list's text for the kernel of that name; only: cases whose name starts so."""
    facts = facts_room.Facts(kernel, driver=driver)
    return "".join(case.text() for case in cases(facts, seed, driver)
                   if case.name.startswith(only))
