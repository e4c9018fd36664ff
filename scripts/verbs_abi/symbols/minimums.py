# SPDX-License-Identifier: BSD-2-Clause
"""Debian's .symbols files: the minimum version that a package asks for when a program uses a symbol.

A minimum that is lower than the first release with the symbol lets a program be installed where it does not start.
"""

import re
import subprocess

from verbs_abi import paths
from verbs_abi.userlands import definition

ROW = re.compile(r"^ (?P<tags>\([^)]*\))?\"?(?P<symbol>[^@\s]+)@(?P<node>[^\s\"]+)\"? (?P<version>\S+)")
HEAD = re.compile(r"^(?P<soname>\S+\.so\S*) ")


def parse(text):
    """{soname: {(symbol, node): minimum version}}."""
    found, current = {}, None
    for line in text.splitlines():
        head = HEAD.match(line)
        if head:
            current = found.setdefault(head["soname"], {})
            continue
        row = ROW.match(line)
        if row and current is not None:
            current[row["symbol"], row["node"]] = row["version"]
    return found


def of_userland(name):
    """{soname: {(symbol, node): minimum}} of a Debian release's packages in the cache."""
    found = {}
    for package in definition.load(name).packages:
        path = paths.cache_dir() / "debs" / f"{package.sha256}.deb"
        if package.source != "rdma-core" or not path.exists():
            continue
        ended = subprocess.run(["dpkg-deb", "-I", str(path), "symbols"], text=True, capture_output=True, check=False,
                               stdin=subprocess.DEVNULL)
        if ended.returncode == 0:
            found |= parse(ended.stdout)
    return found


def _key(version):
    """Order of upstream versions such as 1.1.6, 33, 56.1; a Debian revision does not count."""
    return [int(part) for part in re.findall(r"\d+", version.partition("-")[0])]


def problems(facts, minimums, version):
    """Sentences about symbols without a minimum, minima that no library has, and minima above the release."""
    for soname, rows in minimums.items():
        library = facts["libraries"].get(soname)
        if library is None:
            continue
        exported = {(symbol, node.removesuffix("@")) for symbol, nodes in library["symbols"].items() for node in nodes}
        exported |= {(node, node) for node in library["nodes"]}
        for symbol, node in sorted(exported - set(rows)):
            if not any(name == "*" for name, of in rows if of == node):
                yield f"{soname}: {symbol}@{node} has no minimum version"
        for symbol, node in sorted(set(rows) - exported):
            if "*" not in symbol:
                yield f"{soname}: {symbol}@{node} has a minimum version, but is not exported"
        for (symbol, node), minimum in sorted(rows.items()):
            if _key(minimum) > _key(version):
                yield f"{soname}: {symbol}@{node} asks for {minimum}, which is newer than the release itself"


def too_low(older, version, minimums):
    """Sentences about minima that let a program run with a release which has not got the symbol.

    older: the facts of an older release; version: its number; minimums: the newer release's.
    """
    for soname, rows in minimums.items():
        library = older["libraries"].get(soname)
        if library is None:
            continue
        exported = {(symbol, node.removesuffix("@")) for symbol, nodes in library["symbols"].items() for node in nodes}
        exported |= {(node, node) for node in library["nodes"]}
        for (symbol, node), minimum in sorted(rows.items()):
            if "*" not in symbol and (symbol, node) not in exported and _key(minimum) <= _key(version):
                yield f"{soname}: {symbol}@{node} asks for {minimum}, but {version} has not got it"
