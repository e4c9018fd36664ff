# SPDX-License-Identifier: BSD-2-Clause
"""Programs that were built for another release than the one that they run beside.

    old-app       the journey, built with 33.2's headers and libraries
    old-suites    the conformance suites, built so
    new-app       the journey, built with 65.0's: it uses nothing that is new, so it must run beside every release
    newest        a program that refers to a symbol of each of 65.0's version nodes
    compat-1_0    a program of 2006, linked to node IBVERBS_1.0 alone
    compat-1_0-query-qp, compat-1_0-query-port  the same program: one call each, in which rdma-core has a defect

Beside a release that lacks versions or symbols which the program was linked to, the dynamic linker must refuse it and
name every one of them; what it lacks is computed from the program's own needs (ELF) and the release's facts
(matrix/symbols).
"""

import dataclasses
import re

from elftools.elf.elffile import ELFFile

from verbs_abi.cells import outcome
from verbs_abi.symbols import read

OLDEST, NEWEST = "deb-33.2", "deb-65.0"


@dataclasses.dataclass(frozen=True)
class Application:
    """program: of programs.PROGRAMS; built_with: a userland, None for a program that needs none of theirs; must: steps
    without which its end proves nothing."""

    program: str
    built_with: str | None
    must: tuple = outcome.DATA_STEPS
    arguments: tuple = ()


APPLICATIONS = {
    "old-app": Application("journey", OLDEST),
    "old-suites": Application("conformance", OLDEST),
    "new-app": Application("journey", NEWEST),
    "newest": Application("newest", NEWEST, ("symbols", "open_device", "reg_mr_ex")),
    "compat-1_0": Application("compat-1_0", None, ("data:send", "data:write", "data:read", "event:cq", "event:qp",
                                                   "event:srq", "query_qp:own", "post_send:bad_wr")),
    "compat-1_0-query-port": Application("compat-1_0", None, ("query_port:within",), ("query_port",)),
    "compat-1_0-query-qp": Application("compat-1_0", None, ("query_qp",), ("query_qp",)),
}

# elf/dl-version.c and elf/dl-lookup.c of glibc: one line for each version that a library lacks; the first symbol alone.
NO_VERSION = re.compile(r"version `(?P<node>[^']+)' not found \(required by ")
NO_SYMBOL = re.compile(r"undefined symbol: (?P<symbol>\S+), version (?P<node>\S+)")


def needs(path):
    """{(library, node): {symbols}} that a program was linked to."""
    with open(path, "rb") as file:
        elf = ELFFile(file)
        table, found = {}, {}
        for library, versions in elf.get_section_by_name(".gnu.version_r").iter_versions():
            for version in versions:
                table[version["vna_other"]] = (library.name, version.name)
        marks = elf.get_section_by_name(".gnu.version")
        for index, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
            number = marks.get_symbol(index)["ndx"]
            if symbol["st_shndx"] == "SHN_UNDEF" and number in table:
                found.setdefault(table[number], set()).add(symbol.name)
    return found


def lacking(path, userland):
    """(nodes, symbols): what a program was linked to and a userland has not got; symbols of nodes that it has.

    Each is a sorted list of texts: "IBVERBS_1.18", "ibv_alloc_pd@IBVERBS_1.1".
    """
    libraries = facts(userland)["libraries"]
    nodes, symbols = set(), set()
    for (library, node), names in needs(path).items():
        row = libraries.get(library)
        if row is None:
            continue  # not rdma-core's
        if node not in row["nodes"]:
            nodes.add(node)
            continue
        symbols |= {f"{name}@{node}" for name in names
                    if node not in (version.rstrip("@") for version in row["symbols"].get(name, ()))}
    return sorted(nodes), sorted(symbols)


def facts(userland):
    """What a userland exports; of the four releases the facts that the matrix has."""
    return read.stored(userland.name) or read.of_userland(userland)


def refused(ended, path, userland):
    """The Outcome of a program that cannot start beside this userland; None for one that can.

    refused, by ld.so: it named exactly what the facts say that the userland lacks. broken: anything else.
    """
    nodes, symbols = lacking(path, userland)
    if not nodes and not symbols:
        return None
    told = sorted({match["node"] for match in NO_VERSION.finditer(ended.stderr)})
    named = sorted({f"{match['symbol']}@{match['node']}" for match in NO_SYMBOL.finditer(ended.stderr)})
    result = outcome.Outcome("broken", by="ld.so")
    right = told == nodes if nodes else len(named) == 1 and named[0] in symbols
    if ended.status not in (1, 127) or ended.stdout or not right:
        result.message = (f"{userland.name} has not got {', '.join(nodes or symbols)}; the dynamic linker said "
                          f"{', '.join(told + named) or 'nothing'}, exit status {ended.status}")
        return result
    result.outcome = "refused"
    result.message = "not found: " + ", ".join(nodes or named)
    return result
