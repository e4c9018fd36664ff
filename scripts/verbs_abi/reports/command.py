# SPDX-License-Identifier: BSD-2-Clause
"""verbs-abi report: one report from the results of shards, or from one results.json again."""

import pathlib
import sys

from verbs_abi.errors import EXIT_OK, EXIT_UNEXPECTED, EXIT_USAGE, UserError
from verbs_abi.reports import MergeError, ResultsError, load, merge, terminal, write_all


def register(subparsers):
    parser = subparsers.add_parser(
        "report", help="one report from the results of shards",
        description="Puts the results of shards (run --shard) together and writes the reports anew. Order does not matter, "
                    "and what is given twice counts once.",
        epilog="Exit status: 0 all as expected, 1 something unexpected, 2 usage error, a shard is missing, or cells that "
               "could not be run.")
    parser.add_argument("results", nargs="+", type=pathlib.Path, help="results.json of each shard, or its folder")
    parser.add_argument("--out", required=True, type=pathlib.Path, metavar="DIR", help="where the reports go")
    parser.set_defaults(handler=handle)


def lacking(shards):
    """The shards that are not among these ("1/4", …), in order."""
    wanted = {f"{index}/{count}" for count in {int(text.partition("/")[2]) for text in shards} for index in range(1, count + 1)}
    return sorted(wanted - set(shards), key=lambda text: [int(part) for part in text.split("/")])


def _load(path):
    path = path / "results.json" if path.is_dir() else path
    try:
        return load(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", hint="Expected: results.json of a run, or the folder that --out named.") from error


def handle(arguments):
    try:
        results = merge(_load(path) for path in arguments.results)
        paths = write_all(results, arguments.out)
    except (MergeError, ResultsError) as error:
        raise UserError(str(error)) from error
    except OSError as error:
        raise UserError(f"{error.filename or arguments.out} cannot be written: {error.strerror}",
                        hint="Name another folder with --out.") from error
    terminal.table(results, report=paths["index.html"])
    gone = lacking(results.get("run", {}).get("shards", []))
    if gone:
        print(f"verbs-abi: there is no result of the shards {', '.join(gone)}", file=sys.stderr)
    if results["summary"]["unexpected"]:
        return EXIT_UNEXPECTED
    return EXIT_USAGE if gone or any(cell["verdict"] == "not_run" for cell in results["cells"]) else EXIT_OK
