# SPDX-License-Identifier: BSD-2-Clause
"""For maintainers: writes a suite's current versions and digests into matrix/userlands/NAME.json.

    python3 -m verbs_abi.userlands.pin NAME…      (in scripts/)
"""

import argparse
import sys

from verbs_abi import errors, matrix
from verbs_abi.userlands import archive

FIELDS = ("name", "part", "source", "version", "file", "size", "sha256", "required", "purpose")


def pin(name):
    """Updates the file of that name; prints what changed."""
    entry = matrix.get("userlands", name)
    rows = entry.data["packages"]
    suite, arch = entry.data["suite"], entry.data["arch"]
    found = archive.current(
        suite,
        [row["name"] for row in rows],
        mirror=archive.mirrors()[0],
        state=archive.state_of(suite, arch),
        arch=arch,
    )
    for row in rows:
        if row["name"] not in found:
            print(f"{name}: {row['name']} is not in {suite}", file=sys.stderr)
            continue
        new = found[row["name"]]
        if row.get("version") != new["version"]:
            print(f"{name}: {row['name']} {row.get('version')} -> {new['version']}")
        row.update(new)
        if new["source"] == entry.data["source"]:
            entry.data["source_version"] = new["version"]
    entry.data["packages"] = [{key: row[key] for key in FIELDS if key in row} for row in rows]
    entry.path.write_text(matrix.formatted(entry.data))


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python3 -m verbs_abi.userlands.pin",
        description="Writes a suite's current versions and digests into matrix/userlands/NAME.json.",
    )
    parser.add_argument("name", nargs="+", help="a userland; see verbs-abi list userlands")
    try:
        for name in parser.parse_args(argv).name:
            pin(name)
    except errors.UserError as error:
        print(f"pin: {error}", file=sys.stderr)
        return errors.EXIT_USAGE
    return errors.EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
