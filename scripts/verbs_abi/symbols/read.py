# SPDX-License-Identifier: BSD-2-Clause
"""Facts of a userland's libraries: which symbols they export under which version node.

    {"name": "deb-44.0", "private_abi": "IBVERBS_PRIVATE_34", "providers": ["bnxt_re", …],
     "libraries": {"libibverbs.so.1": {"nodes": ["IBVERBS_1.0", …],
                                       "symbols": {"ibv_open_device": ["IBVERBS_1.0", "IBVERBS_1.1@"]}}}}

A version that ends in @ is the default one: what the linker binds new programs to. The facts of the four releases stand
in matrix/symbols; `python3 -m verbs_abi.symbols.read NAME…` (in scripts/) writes them.
"""

import contextlib
import json
import os
import re
import struct
import sys

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from verbs_abi import paths, userlands
from verbs_abi.errors import UserError

# The libraries that applications link to; by soname, since a library that gains one appears at that release.
PUBLIC = re.compile(r"lib(ibverbs|rdmacm|ibumad|ibmad|ibnetdisc|mlx4|mlx5|efa|hns|mana|ionic|bnxt_re)\.so\.\d+")
DEFAULT = "@"
# Bit of .gnu.version that says: not the default version.
HIDDEN = 0x8000
GLOBAL = ("STB_GLOBAL", "STB_WEAK")
# What elftools raises for files whose headers lead nowhere.
DAMAGED = (ELFError, ArithmeticError, AssertionError, AttributeError, LookupError, OSError, TypeError, ValueError, struct.error)
# libibverbs of 65.0 has 19 nodes; a damaged count would be followed for minutes.
NODES = 1000


def of_library(path):
    """{"nodes": […], "symbols": {…}} of one library."""
    with open(path, "rb") as file:
        try:
            return _of_elf(ELFFile(file))
        except DAMAGED as error:
            told = str(error) if isinstance(error, ELFError) and str(error) else "its tables contradict each other"
            raise UserError(f"the symbols of {path} cannot be read: {told}",
                            hint="It is damaged, or no shared library of rdma-core.") from error


def _of_elf(elf):
    dynamic = elf.get_section_by_name(".dynsym")
    versions = elf.get_section_by_name(".gnu.version")
    defined = elf.get_section_by_name(".gnu.version_d")
    if dynamic is None or defined is None or versions is None:
        raise ELFError("it has no versioned symbols")
    if defined["sh_info"] > NODES or versions.num_symbols() != dynamic.num_symbols():
        raise ELFError("its tables contradict each other")
    names = {}
    for definition, auxiliary in defined.iter_versions():
        names[definition["vd_ndx"]] = (next(iter(auxiliary)).name, definition["vd_flags"] & 1)
    symbols = {}
    for index, symbol in enumerate(dynamic.iter_symbols()):
        if symbol["st_shndx"] in ("SHN_UNDEF", "SHN_ABS") or symbol["st_info"]["bind"] not in GLOBAL:
            continue
        number = versions.get_symbol(index)["ndx"]
        if not isinstance(number, int):
            continue  # local, or without a version
        node, base = names[number & ~HIDDEN]
        if base:
            continue
        symbols.setdefault(symbol.name, set()).add(node + ("" if number & HIDDEN else DEFAULT))
    if not symbols:
        raise ELFError("it exports nothing")
    # The node that is the library's own name is none.
    nodes = sorted(name for name, base in names.values() if not base)
    return {"nodes": nodes, "symbols": {name: sorted(symbols[name]) for name in sorted(symbols)}}


def of_userland(userland):
    """The facts of a Userland."""
    libraries = {}
    for path in sorted(userland.library_dirs[0].iterdir()):
        if PUBLIC.fullmatch(path.name):
            libraries[path.name] = of_library(path)
    suffix = f"-{userland.plugin_suffix}.so"
    providers = sorted(path.name.removeprefix("lib").removesuffix(suffix) for path in userland.providers_dir.glob(f"lib*{suffix}"))
    private = [node for node in libraries.get("libibverbs.so.1", {"nodes": []})["nodes"] if "PRIVATE" in node]
    return {"name": userland.name, "private_abi": private[0] if private else "", "providers": providers,
            "libraries": libraries}


def facts(name):
    """The facts of a userland by name, kept in the cache under its digest."""
    userland = userlands.get(name)
    path = paths.cache_dir() / "symbols" / f"{userland.name}-{userland.digest}-1.json"
    with contextlib.suppress(OSError, ValueError):  # not there yet, or damaged: read again
        found = json.loads(path.read_text())
        if isinstance(found, dict) and found.keys() == {"name", "private_abi", "providers", "libraries"}:
            return found
    found = of_userland(userland)
    with contextlib.suppress(OSError):  # a cache that may only be read
        path.parent.mkdir(exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}.new")
        scratch.write_text(json.dumps(found))
        scratch.replace(path)
    return found


def stored(name):
    """The facts in matrix/symbols, or None."""
    path = paths.matrix_dir() / "symbols" / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def formatted(found):
    """One line a symbol, so that a change shows as one."""
    lines = [f'{{\n"name": {json.dumps(found["name"])},\n"private_abi": {json.dumps(found["private_abi"])},\n'
             f'"providers": {json.dumps(found["providers"])},\n"libraries": {{']
    blocks = []
    for library, row in found["libraries"].items():
        symbols = ",\n".join(f"  {json.dumps(name)}: {json.dumps(where)}" for name, where in row["symbols"].items())
        blocks.append(f'{json.dumps(library)}: {{"nodes": {json.dumps(row["nodes"])},\n "symbols": {{\n{symbols}}}}}')
    return lines[0] + "\n" + ",\n".join(blocks) + "}}\n"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        target = paths.matrix_dir() / "symbols" / f"{argument}.json"
        target.parent.mkdir(exist_ok=True)
        target.write_text(formatted(of_userland(userlands.get(argument))))
        print(target)
