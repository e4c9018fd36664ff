# SPDX-License-Identifier: BSD-2-Clause
"""What changed between the libraries of two userlands, each difference with a class.

breaks      a program that ran with the old userland does not start, or runs other code, with the new one
attention   nothing that ran stops; what is built anew may not run with the old userland although its node is there
news        more than before
"""

import dataclasses

from verbs_abi.symbols.read import DEFAULT

# class: (severity, what it means)
CLASSES = {
    "library-removed": ("breaks", "programs that are linked to it do not start"),
    "library-added": ("news", "a library that programs may be linked to now"),
    "provider-removed": ("breaks", "devices of this provider are not found any more"),
    "provider-added": ("news", "devices of this provider are found now"),
    "node-removed": ("breaks", "programs that were linked to a symbol of it do not start"),
    "removed": ("breaks", "programs that use it do not start"),
    "moved": ("breaks", "it stands under another version only: programs that use it do not start"),
    "default-moved": ("attention", "programs that are linked anew are bound to another version of it"),
    "added-to-old-node": ("attention", "a program that uses it starts with the old library, whose node has that name, "
                                       "and ends where it is first called"),
    "added-with-new-node": ("news", "programs that use it say at once that they need the new library"),
    "private-abi": ("attention", "plug-ins of the old userland cannot be loaded by the new one, nor the reverse"),
    "private-unnumbered": ("attention", "what plug-ins use changed, but not the number that keeps releases apart: a plug-in "
                                        "of the one may be loaded by the other, and miss a symbol there"),
    "private-removed": ("news", "a symbol for plug-ins of the same release only"),
    "private-added": ("news", "a symbol for plug-ins of the same release only"),
}


@dataclasses.dataclass(frozen=True)
class Difference:
    """One difference. name: of a symbol, node, library or provider; old, new: versions, or other texts."""

    kind: str
    library: str
    name: str
    old: str = ""
    new: str = ""

    @property
    def severity(self):
        return CLASSES[self.kind][0]

    @property
    def meaning(self):
        return CLASSES[self.kind][1]

    def __str__(self):
        where = f"{self.library}: " if self.library else ""
        change = f" {self.old} → {self.new}" if self.old and self.new else f" {self.old or self.new}".rstrip()
        return f"{self.kind}: {where}{self.name}{change}"


def is_private(node):
    """Symbols of such a node are for plug-ins of the same release only."""
    return "PRIVATE" in node


def _split(where):
    """({node}, default node or None) of a symbol, without private nodes."""
    nodes = {node.removesuffix(DEFAULT) for node in where}
    default = next((node.removesuffix(DEFAULT) for node in where if node.endswith(DEFAULT)), None)
    return {node for node in nodes if not is_private(node)}, default


def _symbol(library, name, old, new, old_nodes):
    """Differences of one symbol; old, new: its versions, [] where it is not."""
    if any(is_private(node) for node in old + new):
        if bool(old) != bool(new):
            yield Difference("private-added" if new else "private-removed", library, name)
    (had, was), (has, now) = _split(old), _split(new)
    lost, came = sorted(had - has), sorted(has - had)
    if lost and came:
        yield Difference("moved", library, name, ", ".join(lost), ", ".join(came))
        return
    for node in lost:
        yield Difference("removed", library, name, node)
    for node in came:
        kind = "added-to-old-node" if node in old_nodes else "added-with-new-node"
        yield Difference(kind, library, name, "", node)
    if had and has and was != now and not lost:
        yield Difference("default-moved", library, name, was or "none", now or "none")


def _library(library, old, new):
    gone = sorted(node for node in set(old["nodes"]) - set(new["nodes"]) if not is_private(node))
    for node in gone:
        yield Difference("node-removed", library, node)
    for name in sorted({*old["symbols"], *new["symbols"]}):
        yield from _symbol(library, name, old["symbols"].get(name, []), new["symbols"].get(name, []), set(old["nodes"]))


def compare(old, new):
    """[Difference] of two userlands' facts, those that break first."""
    found = []
    if old["private_abi"] != new["private_abi"]:
        found.append(Difference("private-abi", "libibverbs.so.1", "private ABI", old["private_abi"], new["private_abi"]))
    for kind, names in (("provider-removed", set(old["providers"]) - set(new["providers"])),
                        ("provider-added", set(new["providers"]) - set(old["providers"]))):
        found += [Difference(kind, "", name) for name in sorted(names)]
    for library in sorted({*old["libraries"], *new["libraries"]}):
        if library not in new["libraries"]:
            found.append(Difference("library-removed", "", library))
        elif library not in old["libraries"]:
            found.append(Difference("library-added", "", library))
        else:
            found += _library(library, old["libraries"][library], new["libraries"][library])
    changed = sorted(one.name for one in found if one.kind in ("private-removed", "private-added"))
    if changed and old["private_abi"] == new["private_abi"]:
        found.append(Difference("private-unnumbered", "libibverbs.so.1", new["private_abi"], "", ", ".join(changed)))
    rank = ("breaks", "attention", "news")
    return sorted(found, key=lambda one: rank.index(one.severity))
