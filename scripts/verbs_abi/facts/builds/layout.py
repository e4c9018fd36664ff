# SPDX-License-Identifier: BSD-2-Clause
"""Silent drift: libraries that build, and whose structs are not those of the kernel that they will meet.

The layout in a built library comes from its DWARF, the kernel's from its facts. Growth at the end is what both
sides are made for; a member that stands elsewhere, has another length or another meaning is drift: nothing tells
of it, no ABI version and no compiler.
"""

from verbs_abi import matrix
from verbs_abi.facts import tool

# Structs that a library declares in its own words under the kernel's name, with the same bytes: library, struct, why.
OWN_WORDS = {
    ("libibumad", "ib_user_mad"): "umad.h spells the header's members out in place",
}


def kernels_of(source, headers):
    """Names of the kernels that a pair is held against: that of its headers and its neighbours.

    headers: the name of a snapshot. The source's own headers, and snapshots of nobody's kernel, are held against the
    kernels nearest to the source.
    """
    return kernels_near(headers, source.kernels)


def kernels_near(headers, otherwise):
    """A packaged kernel and its neighbours; `otherwise` where the headers are those of none."""
    known = [name for name in matrix.names("kernels") if name.startswith("debian-") and name in tool.names()]
    if headers not in known:
        return list(otherwise)
    place = known.index(headers)
    return [headers, *known[max(0, place - 1):place], *known[place + 1:place + 2]]


def struct_of(subject):
    """"struct rxe_av" and "rxe_av.dmac" → "rxe_av"."""
    for keyword in ("struct ", "union "):
        subject = subject.removeprefix(keyword)
    return subject.partition(".")[0]


def drift(pair, kernels):
    """{library: rows of results.json} for the libraries of the pair that differ dangerously from a kernel's facts."""
    files = {str(pair.root / library.file): library.name for library in pair.libraries if library.file}
    if not files or not kernels:
        return {}
    report = tool.layout(list(files), [tool.headers(name) for name in kernels])
    found = {}
    for (_, library), told in zip(files.items(), report["libraries"]):
        rows = {}
        for kernel, one in zip(kernels, told["reports"]):
            for difference in one["differences"]:
                # Another name for the same bytes is no matter of layout; `facts diff` tells of it.
                if not difference["dangerous"] or difference["same_place"] or (library, struct_of(difference["subject"])) in OWN_WORDS:
                    continue
                key = (difference["class"], difference["subject"], difference["facts"], difference["binary"])
                rows.setdefault(key, []).append(kernel)
        if rows:
            found[library] = [
                {"type": subject, "class": kind, "x_kernels": names,
                 "detail": f"{kind}: {', '.join(names)} has {facts or 'nothing'}, the library {binary or 'nothing'}"}
                for (kind, subject, facts, binary), names in rows.items()]
    return found


def structs(pair):
    """Names of the kernel's structs that the pair's libraries hold: what this rdma-core really passes."""
    files = [pair.root / library.file for library in pair.libraries if library.file]
    report = tool.layout(files, [tool.headers(pair.headers)])
    return sorted({name for one in report["libraries"] for name in one["structs"]})
