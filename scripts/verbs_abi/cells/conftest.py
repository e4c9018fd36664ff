# SPDX-License-Identifier: BSD-2-Clause
"""What tests of whole cells start from: the build that verbs-abi test has made."""

import pytest

from verbs_abi.cells import pool, worlds


@pytest.fixture(name="compiler", scope="module")
def _compiler():
    if not worlds.shim().exists():
        pytest.skip("there is no build yet: verbs-abi test makes one")
    with worlds.Compiler() as compiler:
        yield compiler


@pytest.fixture(name="setup", scope="module")
def _setup(compiler):
    return pool.Setup(None, compiler, {})
