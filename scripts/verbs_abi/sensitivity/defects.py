# SPDX-License-Identifier: BSD-2-Clause
"""Defects as data: matrix/defects/SOURCE.json.

    {"name": "src-44.0", "defects": [
      {"name": "owner-bit", "layer": "data path", "file": "providers/mlx5/cq.c", "in": "get_sw_cqe",
       "from": "!!", "to": "!", "why": "the owner bit of a completion is read inverted"}]}

`in` names a function, a structure, a variable with an initialiser, a macro, or a version node of a map file; the defect
swaps the `at`-th token `from` there (default: the first) for `to`. Comments count as text, so that data hold no more
than one token of anybody's code.
"""

import dataclasses
import fnmatch
import re

from verbs_abi import matrix, paths
from verbs_abi.errors import UserError, unknown

# The userland of the source with a defect: src-44.0+defect=owner-bit.
MARK = "+defect="
LAYERS = ("layout", "negotiation", "fallback", "capabilities", "symbols", "events", "data path")
WORD = re.compile(r"[A-Za-z0-9_.]+")
WORD_CHARACTER, OPERATOR_CHARACTER = r"[A-Za-z0-9_]", r"[-+*/%&|^!<>=~?:]"


@dataclasses.dataclass(frozen=True)
class Defect:
    """One row; see above. layer: one of LAYERS."""

    name: str
    layer: str
    file: str
    where: str
    old: str
    new: str
    why: str
    at: int = 1


def load(source):
    """The defects of a source, in their order."""
    path = paths.matrix_dir() / "defects" / f"{source}.json"
    if not path.exists():
        raise UserError(f"there are no defects of {source}", hint=f"They stand in {path}.")
    data = matrix.read_json(path)
    matrix.check(path, data, matrix.read_json(paths.matrix_dir() / "schema" / "defects.json"))
    found = [Defect(row["name"], row["layer"], row["file"], row["in"], row["from"], row["to"], row["why"], row.get("at", 1))
             for row in data["defects"]]
    names = [defect.name for defect in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise matrix.MatrixError(path, "/defects", f"{sorted(twice)[0]} stands twice", "each name once")
    return found


def is_name(text):
    """Is this the name, or a pattern, of userlands with a defect?"""
    return MARK in text


def userland(source, defect):
    """The name of the source's userland with one defect."""
    return f"{source}{MARK}{defect.name}"


def named(source, patterns):
    """The source's userlands of which one of these is the name or a pattern; exit 2 with the nearest for one that is none."""
    names = [userland(source, defect) for defect in load(source)]
    picked = set()
    for pattern in patterns:
        found = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
        if not found:
            raise unknown("userland with a defect", pattern, names)
        picked.update(found)
    return [name for name in names if name in picked]


def _region(text, where):
    """(start, end) of what `where` names in a file's text; None when it is not there."""
    name = re.escape(where)
    macro = re.search(rf"^#define\s+{name}\b(?:.*\\\n)*.*$", text, re.M)
    if macro:
        return macro.span()
    node = re.search(rf"^{name} {{$.*?^}}.*$", text, re.M | re.S)
    if node:
        return node.span()
    # The name stands in a line that begins in the first column (of a function as name, or first argument of a macro), then
    # comes the body, before any semicolon; it ends at the next closing brace in the first column.
    for head in re.finditer(rf"^(?=[A-Za-z_]).*?\b{name}\b(?=\s*[(,{{=\[])", text, re.M):
        body = re.compile(r"[;{]").search(text, head.end())
        end = re.compile(r"^\}", re.M).search(text, head.end())
        if body and end and body[0] == "{" and body.start() < end.start():
            return head.start(), end.end()
    return None


def _token(token):
    character = WORD_CHARACTER if WORD.fullmatch(token) else OPERATOR_CHARACTER
    return re.compile(rf"(?<!{character}){re.escape(token)}(?!{character})")


def swapped(defect, text):
    """The file's text with the defect. Ends with a sentence where the token is not found."""
    region = _region(text, defect.where)
    if region is None:
        raise UserError(f"defect {defect.name}: {defect.file} has no {defect.where}")
    found = list(_token(defect.old).finditer(text, *region))
    if len(found) < defect.at:
        raise UserError(f"defect {defect.name}: {defect.where} in {defect.file} has '{defect.old}' {len(found)} times, "
                        f"not {defect.at}")
    match = found[defect.at - 1]
    return text[:match.start()] + defect.new + text[match.end():]
