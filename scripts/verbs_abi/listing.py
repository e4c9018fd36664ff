# SPDX-License-Identifier: BSD-2-Clause
"""`verbs-abi list AXIS`: what there is to test.

Each axis is one row of LISTS: a function that returns (columns, rows), each row a dict by column.
`--json` prints the rows. An axis that is not plain files of matrix/ names its module, which is
imported only when it is asked for.
"""

import importlib
import json
import sys

from verbs_abi import errors, matrix, screen


def _kernels(_arguments):
    """The kernels that cells can name, oldest first."""
    from verbs_abi.cells import ids

    columns = ("name", "kind", "parent", "headers", "known_by", "about")
    return columns, [
        {"name": name, **{key: entry.data.get(key) or "" for key in columns[1:]}}
        for name, entry in ids.kernels().items()
    ]


def _providers(_arguments):
    columns = ("name", "device", "links", "about")
    return columns, [
        {
            "name": name,
            "device": f"{entry.data.get('device_prefix', name)}0",
            "links": entry.data.get("links", []),
            "about": entry.data.get("about", ""),
        }
        for name, entry in matrix.load("providers").items()
    ]


def _overlays(_arguments):
    """With how each is written: a fault at one step, a view of one device or of all."""

    def written(name, data):
        fault = any("fault" in change for change in data["changes"])
        at = ("@STEP" if fault else "[@DEVICE]") if data.get("step") else ""
        return name + at + ("=VALUE" if "value" in data else "")

    def what(data):
        return "; VALUE: ".join(filter(None, [data.get("about"), data.get("value")]))

    return ("name", "written", "what"), [
        {
            "name": name,
            "written": written(name, entry.data),
            "value": entry.data.get("value", ""),
            "about": entry.data.get("about", ""),
            "what": what(entry.data),
        }
        for name, entry in matrix.load("overlays").items()
    ]


def _plans(_arguments):
    from verbs_abi.cells import plans

    return ("name", "cells", "about"), [
        {"name": name, "cells": len(plans.load(name)), "about": entry.data.get("about", "")}
        for name, entry in matrix.load("plans").items()
    ]


def _expectations(_arguments):
    """What is known to end otherwise than "full", and where: one row a row of the files."""

    def told(condition):
        if isinstance(condition, list):
            return " ".join(condition)
        return "–".join([condition.get("from", ""), condition.get("to", "")])

    keys = ("outcome", "errno", "reason", "link")
    return ("name", "where", "outcome", "reason"), [
        {
            "name": name,
            "where": "; ".join(
                f"{axis} {told(row[axis])}" for axis in row if isinstance(row[axis], (list, dict))
            ),
            **{key: row[key] for key in keys if key in row},
        }
        for name, entry in matrix.load("expectations").items()
        for row in entry.data.get("rows", ())
    ]


def _rules(_arguments):
    """Every refusal that the fake kernel knows, from the build."""
    from verbs_abi import paths
    from verbs_abi.cells import worlds

    if not (paths.build_dir() / "harness/world/vabi-world").exists():
        raise errors.UserError(
            "the rules stand in the fake kernel, which is not built yet",
            hint="'verbs-abi run' and 'verbs-abi test' build it.",
        )
    return ("name", "errno", "kind", "source"), worlds.rules()


def _elsewhere(module, function):
    def rows(arguments):
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise errors.UserError(
                f"'list {arguments.axis}' is not part of this version"
            ) from error
        return getattr(found, function)(arguments)

    return rows


LISTS = {
    "kernels": _kernels,
    "userlands": _elsewhere("verbs_abi.userlands.listing", "rows"),
    "providers": _providers,
    "overlays": _overlays,
    "scenarios": _elsewhere("verbs_abi.cells.listing", "scenarios"),
    "plans": _plans,
    "cells": _elsewhere("verbs_abi.cells.listing", "rows"),
    "expectations": _expectations,
    "rules": _rules,
}
# What each of them holds, for `list` alone.
ABOUT = {
    "kernels": "the kernels and look-alikes that cells can name",
    "userlands": "the rdma-cores, and which of them are here",
    "providers": "the devices' drivers",
    "overlays": "faults and other views of the machine",
    "scenarios": "what is run in a cell",
    "plans": "sets of cells",
    "cells": "the cells of a plan, or of what --kernel, --provider … name",
    "expectations": "what is known to end otherwise than full, and why",
    "rules": "every refusal of the fake kernel, with its source (needs the build)",
}


def _text(value):
    if value is True:
        return "yes"
    if value is None or value is False:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def table(columns, rows, width=None):
    """Plain text, columns aligned, no trailing spaces; wrapped where a person's terminal is narrower."""
    lines = screen.table(columns, [[_text(row.get(column)) for column in columns] for row in rows], width)
    return "\n".join(lines) + "\n"


def _run(arguments):
    if arguments.axis is None:
        rows = [{"name": name, "about": ABOUT[name]} for name in LISTS]
        print(json.dumps(rows, ensure_ascii=False, indent=2) if arguments.json else
              table(("name", "about"), rows, screen.columns()), end="\n" if arguments.json else "")
        return errors.EXIT_OK
    if arguments.axis not in LISTS:
        raise errors.unknown("list", arguments.axis, LISTS)
    columns, rows = LISTS[arguments.axis](arguments)
    if arguments.json:
        json.dump(rows, sys.stdout, indent=1, ensure_ascii=False)
        sys.stdout.write("\n")
    else:
        sys.stdout.write(table(columns, rows, screen.columns()))
    return errors.EXIT_OK


def register(subparsers):
    """Adds `list` to the command line."""
    parser = subparsers.add_parser(
        "list",
        help="what there is to test",
        description="Lists what there is to test: the names that the other commands take.",
        epilog="For example: verbs-abi list cells --kernel debian-6.1.192 --provider rxe",
    )
    parser.add_argument("axis", metavar="AXIS", nargs="?", help=", ".join(LISTS) + "; none: these, with what they hold")
    parser.add_argument("--json", action="store_true", help="for programs: a list of objects")
    parser.add_argument(
        "--fetch",
        action="store_true",
        help="userlands: bring all of them into the cache; replace those that are not at "
        "their pinned versions if these can be had again",
    )
    parser.add_argument(
        "--deep",
        action="store_true",
        help="userlands: check every unpacked file, not only the stamp; with --fetch, unpack "
        "damaged ones anew",
    )
    from verbs_abi.cells import listing

    listing.add_arguments(parser)
    parser.set_defaults(handler=_run)
