# SPDX-License-Identifier: BSD-2-Clause
"""For maintainers: which ABI versions each provider of a release accepts, read in its source.

    python3 -m verbs_abi.userlands.ranges NAME SOURCE-TREE      (in scripts/)

writes matrix/negotiation/NAME.json: for each provider (by its folder, after which its plug-in is called) the two
numbers of its verbs_device_ops, where they stand, its own name, and by what it recognises its devices. The `abi-sweep` cells compare what the built library does with this table.
"""

import json
import pathlib
import re
import sys

from verbs_abi import paths, userlands
from verbs_abi.errors import UserError

OPS = re.compile(r"static const struct verbs_device_ops (\w+) = \{(.*?)\n\};", re.S)
MEMBER = re.compile(r"\.(\w+)\s*=\s*([^,\n]+(?:\([^)]*\))?[^,\n]*),")
TABLE = r"(?:static )?const struct verbs_match_ent {}\[\] = \{{(.*?)\n\}};"
DEFINE = r"^#define\s+{}\s+\(?\s*(\w+)\s*\)?"
ENUMERATOR = r"\b{}\s*=\s*(\w+)"
# What stands in a table of matches, and the short word for it.
KINDS = (("driver_id", "VERBS_DRIVER_ID("), ("name", "VERBS_NAME_MATCH("), ("modalias", "VERBS_MODALIAS_MATCH("))
# sizeof(void *) == 8?1:2: of 64-bit machines and of others.
WIDTH = re.compile(r"sizeof\(void \*\) == 8\s*\?\s*(\d+)\s*:\s*(\d+)")
INT_MAX = 2**31 - 1


def number(text, files, wide=True):
    """The value of a number, of INT_MAX, or of a macro or enumerator in one of these files' texts."""
    text = text.strip()
    width = WIDTH.fullmatch(text)
    if width:
        return int(width[1] if wide else width[2])
    if text == "INT_MAX":
        return INT_MAX
    try:
        return int(text, 0)
    except ValueError:
        pass
    for body in files:
        for pattern in (DEFINE, ENUMERATOR):
            found = re.search(pattern.format(re.escape(text)), body, re.M)
            if found:
                return number(found[1], files, wide)
    raise UserError(f"the value of {text} is not in the source")


def _matches(body, text):
    """By what a provider's table recognises a device. PCI rows come through macros of the provider's own."""
    found = [kind for kind, word in KINDS if word in body]
    macros = re.findall(r"^#define\s+(\w+)\(.*?VERBS_PCI_MATCH", text.replace("\\\n", " "), re.M)
    if "VERBS_PCI_MATCH(" in body or any(re.search(rf"\b{name}\(", body) for name in macros):
        found.append("pci")
    return found


def of_source(root, arch="x86_64"):
    """{provider: row} of a source tree, as it is built for that architecture."""
    wide = arch != "i386"
    root = pathlib.Path(root)
    shared = [path.read_text(errors="replace") for path in sorted((root / "kernel-headers/rdma").glob("*.h"))]
    rows = {}
    for folder in sorted((root / "providers").iterdir()):
        texts = {path: path.read_text(errors="replace") for path in sorted(folder.glob("*.[ch]"))}
        for path, text in texts.items():
            for ops in OPS.finditer(text):
                members = dict(MEMBER.findall(ops[2]))
                if "match_min_abi_version" not in members:
                    continue
                files = [*texts.values(), *shared]
                table = members["match_table"].strip()
                body = re.search(TABLE.format(table), text, re.S)
                # cxgb4 makes its table by the macros of t4_pci_id_tbl.h.
                matches = _matches(body[1], text) if body else ["driver_id", "pci"] if "_PCI_DEVICE_ID_TABLE" in text else []
                line = text.count("\n", 0, ops.start() + ops[0].index(".match_min_abi_version")) + 1
                if "match_max_abi_version" in members and ops[0].index(".match_max") < ops[0].index(".match_min"):
                    line = text.count("\n", 0, ops.start() + ops[0].index(".match_max_abi_version")) + 1
                rows[folder.name] = {
                    "name": members["name"].strip().strip('"'),
                    "min": number(members["match_min_abi_version"], files, wide),
                    "max": number(members["match_max_abi_version"], files, wide),
                    "by": matches, "where": f"{path.relative_to(root)}:{line}"}
    if not rows:
        raise UserError(f"{root}: no provider with a verbs_device_ops below providers/")
    return rows


def write(name, root):
    """Writes the release's table; returns its path."""
    rows = of_source(root, userlands.arch(name))
    path = paths.matrix_dir() / "negotiation" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    body = ",\n".join(f"    {json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items())
    path.write_text(f'{{\n  "name": {json.dumps(name)},\n  "about": "verbs_device_ops of each provider, as its source '
                    f'says",\n  "providers": {{\n{body}\n  }}\n}}\n')
    return path


if __name__ == "__main__":
    print(write(sys.argv[1], sys.argv[2]))
