# SPDX-License-Identifier: BSD-2-Clause
"""`verbs-abi facts consumers`: do a userland's public headers compile in C++ programs?

Each header alone, and all together, as C++17, C++20 and C++23, with g++ and clang++ and all warnings as errors: what
an application has to live with. What is known to fail stands in matrix/builds/known-cxx.json, with its reason.
"""

import concurrent.futures
import dataclasses
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess

from verbs_abi import matrix, paths, userlands
from verbs_abi.errors import EXIT_OK, EXIT_UNEXPECTED, UserError
from verbs_abi.progress import Progress

STANDARDS = ("c++17", "c++20", "c++23")
COMPILERS = ("g++", "clang++")
# What compilers of Debian 12 call the draft.
SPELLED = {("clang++", "c++23"): "c++2b", ("g++", "c++23"): "c++23"}
WARNINGS = ("-Wall", "-Wextra", "-Werror")
FOLDERS = ("infiniband", "rdma")
SECONDS = 120
TOGETHER = "(all together)"


@dataclasses.dataclass(frozen=True)
class Result:
    """header: "infiniband/verbs.h" or TOGETHER. error: the compiler's first words, None when it compiles.

    reason: why nobody expects it to compile, from the table.
    """

    header: str
    compiler: str
    standard: str
    error: str | None
    reason: str | None = None

    @property
    def unexpected(self):
        return self.error is not None and self.reason is None


def headers_of(include_dir):
    """The public headers below an include folder, sorted: "infiniband/verbs.h"."""
    found = []
    for folder in FOLDERS:
        found += sorted(f"{folder}/{path.name}" for path in (include_dir / folder).glob("*.h"))
    return found


def known():
    """The rows of matrix/builds/known-cxx.json."""
    return matrix.read_json(paths.matrix_dir() / "builds" / "known-cxx.json")["rows"]


def _row_of(rows, header, error):
    """The row that knows of this error in this header."""
    return next((row for row in rows if any(fnmatch.fnmatchcase(header, name) for name in row["headers"])
                 and re.search(row["error"], error)), None)


def _compile(include_dir, headers, compiler, standard, more=()):
    """The first error of a program that includes these headers, or None."""
    text = "".join(f"#include <{name}>\n" for name in headers) + "int main() { return 0; }\n"
    flag = "-std=" + SPELLED.get((compiler, standard), standard)
    result = subprocess.run([compiler, flag, *WARNINGS, *more, "-fsyntax-only", "-I", str(include_dir), "-x", "c++", "-"],
                            input=text, text=True, capture_output=True, check=False, timeout=SECONDS,
                            env={**os.environ, "LC_ALL": "C"})
    if result.returncode == 0:
        return None
    lines = [line for line in result.stderr.splitlines() if "error:" in line] or result.stderr.splitlines() or ["failed"]
    return lines[0].replace(f"{include_dir}/", "")


def check(include_dir, *, compilers=COMPILERS, standards=STANDARDS, jobs=None, rows=None, done=None):
    """A Result for each header, compiler and standard, and for all headers together."""
    include_dir = pathlib.Path(include_dir)
    names = headers_of(include_dir)
    if not names:
        raise UserError(f"{include_dir}: has no headers in {'/ or '.join(FOLDERS)}/")
    missing = [compiler for compiler in compilers if shutil.which(compiler) is None]
    if missing:
        raise UserError(f"{', '.join(missing)}: no such compiler", hint="apt-get install g++ clang")
    rows = known() if rows is None else rows
    apart = {name for row in rows if "without" not in row for name in row["headers"]}
    together = [name for name in names if name not in apart]
    tasks = [(name, [name], compiler, standard) for compiler in compilers for standard in standards for name in names]
    tasks += [(TOGETHER, together, compiler, standard) for compiler in compilers for standard in standards]

    def run(task):
        name, included, compiler, standard = task
        error = _compile(include_dir, included, compiler, standard)
        row = _row_of(rows, name, error) if error else None
        reason = row and row["reason"]
        if row and "without" in row:
            # Is there anything behind what is known?
            other = _compile(include_dir, included, compiler, standard, row["without"])
            error, reason = (other, None) if other else (error, reason)
        return Result(name, compiler, standard, error, reason)

    found = []
    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        for result in pool.map(run, tasks):
            found.append(result)
            if done:
                done(result, len(tasks))
    return found


def tell(name, found):
    """Lines for people."""
    failed, known_errors = {}, {}
    for result in found:
        if result.unexpected:
            failed.setdefault((result.header, result.error), []).append(f"{result.compiler} {result.standard}")
        elif result.error:
            known_errors.setdefault(result.reason, []).append(result)
    headers = {result.header for result in found} - {TOGETHER}
    good = sum(1 for result in found if not result.error)
    lines = [f"{name}: {len(headers)} headers, {good} of {len(found)} programs compile"
             + (f", {len(failed)} headers do not for reasons unknown" if failed else "")]
    for (header, error), where in failed.items():
        lines += [f"  ! {header}  [{', '.join(where)}]", f"      {error}"]
    for reason, results in known_errors.items():
        where = sorted({f"{result.compiler} {result.standard}" for result in results})
        lines += [f"    {len(results)} programs [{', '.join(where)}]: {reason}"]
    return "\n".join(lines)


def register(actions):
    """Adds `consumers` to the actions of `facts`."""
    parser = actions.add_parser("consumers", help="a userland's public headers in C++17, 20 and 23 programs",
                                description=__doc__.split("\n\n")[1])
    parser.add_argument("--userland", action="append", default=[], metavar="U", help="may be repeated; default: all")
    parser.add_argument("--include", metavar="DIR", help="an include folder instead of a userland's")
    parser.set_defaults(handler=handle)


def handle(arguments):
    if arguments.include:
        wanted = {arguments.include: pathlib.Path(arguments.include)}
    else:
        wanted = {name: userlands.get(name).include_dir for name in arguments.userland or userlands.usual()}
    status = EXIT_OK
    for name, include_dir in wanted.items():
        with Progress(f"C++ {name}") as show:
            count = [0]

            def done(_result, total):
                count[0] += 1
                show.update(f"{count[0]}/{total}")

            found = check(include_dir, done=done)
        print(tell(name, found))
        if any(result.unexpected for result in found):
            status = EXIT_UNEXPECTED
    return status
