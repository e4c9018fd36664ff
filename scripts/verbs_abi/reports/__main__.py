# SPDX-License-Identifier: BSD-2-Clause
"""Puts the results of shards together and writes the reports anew.

python3 -m verbs_abi.reports OUT_DIR RESULTS_JSON…, with scripts/ in PYTHONPATH. Exit status: 0 all
as expected, 1 something unexpected, 2 results that cannot be used.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

from . import MergeError, ResultsError, load, merge, terminal, write_all


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python3 -m verbs_abi.reports", description=__doc__.splitlines()[0]
    )
    parser.add_argument("out_dir", type=pathlib.Path, help="where the reports go")
    parser.add_argument("results", nargs="+", type=pathlib.Path, help="results.json of each shard")
    options = parser.parse_args(arguments)
    try:
        results = merge(load(path) for path in options.results)
        paths = write_all(results, options.out_dir)
    except (OSError, MergeError, ResultsError) as error:
        print(f"reports: {error}", file=sys.stderr)
        return 2
    terminal.table(results, report=paths["index.html"])
    return 1 if results["summary"]["unexpected"] else 0


if __name__ == "__main__":
    sys.exit(main())
