# SPDX-License-Identifier: BSD-2-Clause
"""What a trace shows as lost, and what stood in for it."""

import pytest

from verbs_abi.cells import features


def asked(length, flags, errno=None):
    answer = {"errno": errno, "result": -22} if errno else {"result": 48}
    return {"via": "write", "name": "GET_CONTEXT", "uhw_in": length, "flags": flags, **answer}


# mlx5_set_context of libmlx5 asks with 32, 24 and 16 bytes, then all again without the DEVX flag.
@pytest.mark.parametrize("taken, instead", (
    (asked(24, "0x1"), "a shorter one"),
    (asked(16, "0x0"), "a shorter one"),
    (asked(32, "0x0"), "one with other flags"),
))
def test_what_stands_in_for_a_full_request(taken, instead):
    records = [asked(32, "0x1", "EINVAL"), taken]
    assert ("GET_CONTEXT: full request", instead, records[0]) in features.lost(records)


def test_a_full_request_that_is_taken_loses_nothing():
    assert not [feature for feature, *_ in features.lost([asked(32, "0x1")]) if "full request" in feature]
