# SPDX-License-Identifier: BSD-2-Clause
"""Which pairs a plan builds: matrix/builds/plans.json, by the plan's name.

    "gate": [{"sources": "*", "headers": ["own", "nearest"]}]

`sources` and `headers` are "*" or lists of names and patterns; headers also "own" (those of the source), "nearest"
(the kernels nearest to it) and "debian-*" and the like.
"""

import fnmatch

from verbs_abi import matrix, paths
from verbs_abi.errors import unknown
from verbs_abi.facts import tool
from verbs_abi.userlands import built


def groups_of(name):
    """The groups of a plan; none when it builds nothing."""
    groups = _all().get(name, [])
    return groups if isinstance(groups, list) else []


def names():
    """The plans that build something."""
    return [name for name, groups in _all().items() if isinstance(groups, list)]


def _all():
    path = paths.matrix_dir() / "builds" / "plans.json"
    return matrix.read_json(path) if path.exists() else {}


def of(name):
    """[(source name, headers name)] of a plan, each once."""
    return pairs(groups_of(name))


def pairs(groups):
    """The same of its groups."""
    found = {}
    for group in groups:
        for source in _pick("source", group.get("sources", "*"), matrix.names("sources")):
            for headers in headers_of(source, group.get("headers", ["own", "nearest"])):
                found[(source, headers)] = None
    return list(found)


def named(name, patterns):
    """The userlands that a plan builds (src-44.0+headers=debian-6.12.117) of which one of these is the name or a pattern."""
    found = [built.name_of(*pair) for pair in of(name)]
    return [userland for userland in found if any(fnmatch.fnmatchcase(userland, pattern) for pattern in patterns)]


def headers_of(source, wanted):
    """Names of snapshots for one registered source."""
    data = matrix.get("sources", source).data
    found = []
    for word in [wanted] if isinstance(wanted, str) else wanted:
        if word == "own":
            found.append(data["headers"])
        elif word == "nearest":
            found += data["kernels"]
        else:
            found += _pick("set of headers", word, tool.names())
    return list(dict.fromkeys(found))


def _pick(kind, wanted, names):
    found = []
    for pattern in [wanted] if isinstance(wanted, str) else wanted:
        matching = fnmatch.filter(names, pattern)
        if not matching:
            raise unknown(kind, pattern, names)
        found += matching
    return list(dict.fromkeys(found))
