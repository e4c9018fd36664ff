# SPDX-License-Identifier: BSD-2-Clause
"""`verbs-abi list AXIS`: what there is to test.

Each axis is one row of LISTS: a function that returns (columns, rows), each row a dict by column.
`--json` prints the rows. An axis that is not plain files of matrix/ names its module, which is
imported only when it is asked for.
"""

import importlib
import json
import sys

from verbs_abi import errors, matrix


def _from_matrix(axis, *keys):
    """Rows of an axis: each entry's name and these keys of its file."""

    def rows(_arguments):
        return (
            ("name", *keys),
            [
                {"name": name, **{key: entry.data.get(key, "") for key in keys}}
                for name, entry in matrix.load(axis).items()
            ],
        )

    return rows


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
    "kernels": _from_matrix("kernels", "parent", "headers", "known_by"),
    "userlands": _elsewhere("verbs_abi.userlands.listing", "rows"),
    "providers": _from_matrix("providers", "title"),
    "overlays": _from_matrix("overlays", "title"),
    "plans": _from_matrix("plans", "title"),
    "cells": _elsewhere("verbs_abi.cells.listing", "rows"),
}


def _text(value):
    if value is True:
        return "yes"
    if value is None or value is False:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def table(columns, rows):
    """Plain text, columns aligned, no trailing spaces."""
    cells = [[_text(row.get(column)) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells)]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip()
        for line in [list(columns), *cells]
    ]
    return "\n".join(lines) + "\n"


def _run(arguments):
    if arguments.axis not in LISTS:
        raise errors.unknown("list", arguments.axis, LISTS)
    columns, rows = LISTS[arguments.axis](arguments)
    if arguments.json:
        json.dump(rows, sys.stdout, indent=1, ensure_ascii=False)
        sys.stdout.write("\n")
    else:
        sys.stdout.write(table(columns, rows))
    return errors.EXIT_OK


def register(subparsers):
    """Adds `list` to the command line."""
    parser = subparsers.add_parser(
        "list",
        help="what there is to test",
        description="Lists what there is to test: the names that the other commands take.",
    )
    parser.add_argument("axis", metavar="AXIS", help=", ".join(LISTS))
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
    parser.set_defaults(handler=_run)
