# SPDX-License-Identifier: BSD-2-Clause
"""Userlands: several rdma-core releases on one machine, each in a root of its own.

    userland = userlands.get("deb-56.1")
    argv, env = userland.command(["ibv_devinfo", "-v"], shim)
"""

from verbs_abi import errors, matrix
from verbs_abi.userlands import built, definition, elf, fetch, local, store, userland

DEFAULT = "deb-44.0"

NotInterceptable = elf.NotInterceptable


def names():
    """All registered names."""
    return matrix.names("userlands")


def check(name):
    """Exit 2 with the nearest names unless a userland of that name can be had."""
    if built.is_name(name):
        built.parts(name)
    elif name not in names():
        raise errors.unknown("userland", name, names())


def get(name=DEFAULT, *, deep=False, again=False):
    """The Userland of that name, fetched and unpacked first when it is not in the cache.

    Exit 2 (errors.UserError) for unknown names and when packages cannot be had. See fetch.ensure
    for the flags. A name such as src-44.0+headers=debian-6.12.117 is built, see facts/builds.
    """
    if built.is_name(name):
        return built.get(name)
    entry = matrix.get("userlands", name)
    if entry.data["kind"] != "debian":
        return local.get(local.from_entry(entry))
    return userland.from_store(fetch.ensure(definition.load(name), deep=deep, again=again))


def arch(name):
    """The architecture of a userland's programs: "x86_64", or another one that this kernel runs."""
    return matrix.get("userlands", name).data["arch"] if name in names() else "x86_64"


def usual(known=None):
    """Of these names, or of all, those of this machine's own architecture: what "all" and patterns mean."""
    return [name for name in (names() if known is None else known) if arch(name) == "x86_64"]


def resolve(text):
    """The name of a userland: `text` itself, or that of the place that it names (local.SPEC), registered now."""
    return local.register(text) if local.is_spec(text) else text


def states():
    """{name: (definition, state, remark)}: ready, not fetched, stale or gone."""
    return {
        name: (wanted, *store.Store(wanted).state())
        for name, wanted in definition.load_all().items()
    }
