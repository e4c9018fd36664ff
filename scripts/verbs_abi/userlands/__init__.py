# SPDX-License-Identifier: BSD-2-Clause
"""Userlands: several rdma-core releases on one machine, each in a root of its own.

    userland = userlands.get("deb-56.1")
    argv, env = userland.command(["ibv_devinfo", "-v"], shim)
"""

from verbs_abi import matrix
from verbs_abi.userlands import definition, elf, fetch, store, userland

DEFAULT = "deb-44.0"

NotInterceptable = elf.NotInterceptable


def names():
    """All registered names."""
    return matrix.names("userlands")


def get(name=DEFAULT, *, deep=False, again=False):
    """The Userland of that name, fetched and unpacked first when it is not in the cache.

    Exit 2 (errors.UserError) for unknown names and when packages cannot be had. See fetch.ensure
    for the flags.
    """
    return userland.from_store(fetch.ensure(definition.load(name), deep=deep, again=again))


def states():
    """{name: (definition, state, remark)}: ready, not fetched, stale or gone."""
    return {
        name: (wanted, *store.Store(wanted).state())
        for name, wanted in definition.load_all().items()
    }
