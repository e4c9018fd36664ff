# SPDX-License-Identifier: BSD-2-Clause
"""`verbs-abi facts build`: would this rdma-core, built with those headers, still speak to this kernel?"""

import json
import os
import pathlib
import re
import sys

from verbs_abi import errors, progress
from verbs_abi.errors import EXIT_OK, EXIT_UNEXPECTED, UserError
from verbs_abi.facts import tool
from verbs_abi.facts.builds import plan, rows, run

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~-]*")


def register(actions):
    """Adds `build` to the actions of `facts`."""
    parser = actions.add_parser(
        "build",
        help="rdma-core sources against kernels' headers",
        description="Builds libraries of rdma-core sources with other kernels' headers, and holds the layouts in them "
        "against the kernels' facts. Exit status 1 when one drifted silently, or failed in a way that nobody expects.")
    parser.add_argument("--source", action="append", default=[], metavar="S",
                        help="src-44.0 and its like, a folder, or git:PATH@REVISION; may be repeated; default: all registered")
    parser.add_argument("--headers", action="append", default=[], metavar="H",
                        help="a name from `facts list`, a kernel, own, nearest, or headers in a folder or package; "
                        "may be repeated; default: own and nearest")
    parser.add_argument("--name", help="what to call headers from a folder or package")
    parser.add_argument("--kernel", action="append", default=[], metavar="K",
                        help="hold the layouts against this kernel's facts; default: those near to the headers")
    parser.add_argument("--plan", help="the pairs of a plan: gate, nightly")
    parser.add_argument("--again", action="store_true", help="build also what was built before")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilers at once; default: %(default)s")
    parser.add_argument("--json", action="store_true", help="the rows of results.json")
    parser.add_argument("--out", metavar="FILE", help="write the rows there too")
    parser.set_defaults(handler=handle)


def _own_name(what):
    name = re.sub(r"[^A-Za-z0-9._+~-]", "-", os.path.basename(what.rstrip("/"))).strip("-.")
    for end in (".deb", ".rpm"):
        name = name.removesuffix(end)
    return name or "headers"


def _resolve(source, words, name):
    """Names of snapshots for one source."""
    found = []
    for word in words:
        if word.startswith("git:") or os.path.exists(word) and word not in tool.names():
            chosen = name or _own_name(word)
            if not NAME.fullmatch(chosen):
                raise UserError(f"--name {chosen}: cannot stand in a cell's name",
                                hint="Letters, digits and ._+~- only.")
            found.append(tool.extract(word, chosen).name)
        elif source in plan.matrix.names("sources"):
            found += plan.headers_of(source, [word if word in ("own", "nearest") else tool.headers(word).name])
        elif word not in ("own", "nearest"):
            found.append(tool.headers(word).name)
    return found


def choose(arguments):
    """[(source, headers)] that the arguments ask for."""
    if arguments.plan:
        found = plan.of(arguments.plan)
        if not found:
            raise errors.unknown("plan that builds", arguments.plan, plan.names())
        return [(source, headers) for source, headers in found
                if not arguments.source or source in arguments.source]
    sources = arguments.source or plan.matrix.names("sources")
    found = []
    for source in sources:
        registered = source in plan.matrix.names("sources")
        if not registered and not source.startswith("git:") and not os.path.isdir(source):
            raise errors.unknown("source", source, plan.matrix.names("sources"))
        words = arguments.headers or ["own", "nearest"]
        headers = _resolve(source, words, arguments.name)
        if not headers:
            raise UserError(f"source {source} is not registered: name the headers to build it with",
                            hint="For example --headers debian-6.12.117")
        found += [(source, one) for one in headers]
    return list(dict.fromkeys(found))


def tell(pair, told):
    """A pair in lines for people."""
    counts = rows.summary(told)
    text = f"{pair.source} + {pair.headers}: {counts['built'] + counts['drift']} of {len(told)} libraries build"
    if counts["drift"]:
        text += f", {counts['drift']} with silent drift"
    lines = [f"{text}  ({pair.seconds:.0f} s{'' if pair.fresh else ', built before'})"]
    for row in told:
        if row["result"] == "failed":
            lines.append(f"    {row['library']:<14} does not build: {row['cause'] or row['error']}"
                         + ("" if row["verdict"] == "expected" else "  [unexpected]"))
        for one in row.get("drift", []):
            mark = " " if one.get("x_reason") else "!"
            lines.append(f"  {mark} {row['library']:<14} {one['type']}  {one['detail']}")
            if one.get("x_reason"):
                lines.append(f"    {'':<14} looked into: {one['x_reason']}")
    return "\n".join(lines)


def handle(arguments):
    if arguments.jobs < 1:
        raise UserError("--jobs needs at least 1")
    wanted = choose(arguments)
    for kernel in arguments.kernel:
        tool.headers(kernel)

    def done(pair, told):
        if not arguments.json:
            print(tell(pair, told), flush=True)

    with progress.Progress("build") as show:
        found = run.build_all(wanted, show, jobs=arguments.jobs, again=arguments.again, kernels=arguments.kernel or None,
                              done=done)
    if arguments.json:
        json.dump(found, sys.stdout, indent=1, ensure_ascii=False)
        print()
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    return EXIT_UNEXPECTED if any(row["verdict"] == "unexpected" for row in found) else EXIT_OK
