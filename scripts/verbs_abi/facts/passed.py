# SPDX-License-Identifier: BSD-2-Clause
"""Which of the kernel's structs an rdma-core really passes: those in the debug information of its libraries.

A compiler leaves out types that no code refers to, so what is there is used. Packages are stripped: for a userland
made of packages its source is built, with its own headers.
"""

import contextlib
import pathlib
import tempfile

from verbs_abi import matrix, progress
from verbs_abi.errors import UserError, unknown
from verbs_abi.facts import tool
from verbs_abi.facts.builds import engine, layout, sources, userland
from verbs_abi.userlands import built


def source_of(name):
    """(source, headers) of a userland's name."""
    if built.is_name(name):
        return userland.parts(name)
    if name in matrix.names("sources"):
        return name, matrix.get("sources", name).data["headers"]
    if name not in matrix.names("userlands"):
        raise unknown("userland", name, [*matrix.names("userlands"), *matrix.names("sources")])
    version = matrix.get("userlands", name).data.get("source_version", "").partition("-")[0]
    for entry in matrix.load("sources").values():
        if entry.data["version"] == version:
            return entry.name, entry.data["headers"]
    raise UserError(f"userland {name} has no registered source of version {version or '(none)'}",
                    hint="Name one of: " + ", ".join(matrix.names("sources")))


def structs(what):
    """Their names. what: a userland, a source, or a library that was built with -g."""
    path = pathlib.Path(what)
    if path.suffix == ".so" or ".so." in path.name:
        newest = tool.headers(matrix.names("kernels") and _newest())
        report = tool.layout([path], [newest])["libraries"][0]
        if not report["debug"]:
            raise UserError(f"{what}: has no debug information", hint="Build it with -g.")
        return report["structs"]
    source_name, headers = source_of(what)
    with progress.Progress("build") as show:
        source = sources.get(source_name, show)
        builder = engine.Builder(source, progress=show)
        with builder.lock():
            pair = builder.pair(tool.headers(headers))
    return layout.structs(pair)


def _newest():
    return [name for name in matrix.names("kernels") if name.startswith("debian-")][-1]


@contextlib.contextmanager
def listed(what):
    """A file with the names, one a line."""
    found = structs(what)
    if not found:
        raise UserError(f"{what}: its libraries hold no struct of the kernel's interface")
    with tempfile.NamedTemporaryFile("w", prefix="verbs-abi-structs-", suffix=".txt") as file:
        file.write("\n".join(found) + "\n")
        file.flush()
        yield pathlib.Path(file.name)
