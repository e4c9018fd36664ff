# SPDX-License-Identifier: BSD-2-Clause
"""verbs-abi symbols: what a userland's libraries export, or what changed between two userlands."""

import json
import sys

from verbs_abi import userlands
from verbs_abi.cells import ids
from verbs_abi.errors import EXIT_OK, EXIT_UNEXPECTED
from verbs_abi.symbols import compare, read


def register(subparsers):
    parser = subparsers.add_parser(
        "symbols", help="exported symbols of a userland, or what changed between two",
        description="With one userland: its libraries' version nodes and how many symbols each has. With two: what "
                    "changed from the first to the second. Exit status 1: something breaks.")
    parser.add_argument("userland", nargs="+", help="one or two: names, or places as run takes them")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(handler=handle)


def _facts(text):
    name = userlands.resolve(text)
    ids.check_userland(name)
    return read.facts(name)


def _show(found):
    print(f"{found['name']}: {found['private_abi']}, {len(found['providers'])} providers")
    for library, row in found["libraries"].items():
        for node in row["nodes"]:
            count = sum(node in (where.removesuffix("@") for where in versions) for versions in row["symbols"].values())
            print(f"  {library:20} {node:24} {count:4} symbols")


def handle(arguments):
    if len(arguments.userland) > 2:
        from verbs_abi.errors import UserError
        raise UserError("one userland, or two to compare", hint="verbs-abi symbols OLD NEW")
    facts = [_facts(text) for text in arguments.userland]
    if len(facts) == 1:
        if arguments.json:
            json.dump(facts[0], sys.stdout, indent=1)
            print()
        else:
            _show(facts[0])
        return EXIT_OK
    found = compare.compare(*facts)
    if arguments.json:
        json.dump([{"class": one.kind, "severity": one.severity, "library": one.library, "name": one.name, "old": one.old,
                    "new": one.new} for one in found], sys.stdout, indent=1)
        print()
    else:
        if not found:
            print(f"{facts[0]['name']} and {facts[1]['name']} export the same")
        for severity in ("breaks", "attention", "news"):
            rows = [one for one in found if one.severity == severity]
            if rows:
                print(f"{severity} ({len(rows)})")
            for one in rows:
                print(f"  {one}")
    return EXIT_UNEXPECTED if any(one.severity == "breaks" for one in found) else EXIT_OK
