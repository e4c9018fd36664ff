# SPDX-License-Identifier: BSD-2-Clause
"""Userlands that are built from a source and a kernel's headers: src-44.0+headers=debian-6.12.117.

The seam to verbs_abi.facts.builds, which is loaded only when such a name is asked for.
"""

MARK = "+headers="


def is_name(name):
    """Is this the name of one?"""
    return MARK in name


def name_of(source, headers):
    """Its name."""
    return f"{source}{MARK}{headers}"


def parts(name):
    """(source, headers); exit 2 with the nearest names when one is unknown."""
    from verbs_abi.facts.builds import userland

    return userland.parts(name)


def get(name):
    """The Userland, built when it is not in the cache."""
    from verbs_abi.facts.builds import userland

    return userland.get(name)
