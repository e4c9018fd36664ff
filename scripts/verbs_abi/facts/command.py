# SPDX-License-Identifier: BSD-2-Clause
"""`verbs-abi facts …` builds vabi-facts when needed and runs it; that program does the work.

Its exit status is ours: 0 fine, 1 a dangerous difference or a header that did not parse, 2 usage.
"""

import pathlib
import subprocess
import sys

from verbs_abi import errors, matrix, paths
from verbs_abi.facts import tool
from verbs_abi.setup import build

PROGRAM = "vabi-facts"
REFERENCE = paths.ROOT / "reference-headers"


def run(words):
    """Runs the program with these arguments; its exit status."""
    folder = build.ensure(targets=(PROGRAM,))
    program = folder / "harness" / "facts" / PROGRAM
    return subprocess.run(
        [str(program), "--reference", str(REFERENCE), *words],
        stdin=subprocess.DEVNULL,
        check=False,
    ).returncode


def _run(words):
    def handler(arguments):
        status = run(words(arguments))
        # Ended by a signal: nothing that the program says of itself.
        if status < 0:
            raise errors.UserError(f"{PROGRAM} was ended by signal {-status}")
        return status

    return handler


SOURCE_HELP = "headers: a folder, a kernel or rdma-core tree, a .deb, a .rpm, or git:PATH@REVISION"
SNAPSHOT_HELP = "a name from `facts list` or `list kernels`, or a SOURCE"


def snapshot(name):
    """The snapshot that a kernel of the matrix has its headers from; any other name itself."""
    if (REFERENCE / f"{name}.json").exists() or pathlib.Path(name).exists() or name not in matrix.names("kernels"):
        return name
    headers = tool.of_kernel(name)
    print(f"{name}: its headers are those of the snapshot {headers}", file=sys.stderr)
    return headers


def _extract(actions):
    parser = actions.add_parser(
        "extract", help="facts from headers", description="Facts from headers, into the -o folder."
    )
    parser.add_argument("source", metavar="SOURCE", help=SOURCE_HELP)
    parser.add_argument("--name", help="name of the snapshot (default: from the source)")
    parser.add_argument("-o", dest="output", metavar="DIR", help="where to write, else it is shown")

    def words(arguments):
        named = ["--name", arguments.name] if arguments.name else []
        output = ["-o", arguments.output] if arguments.output else []
        return ["extract", *named, *output, arguments.source]

    parser.set_defaults(handler=_run(words))


def _diff(actions):
    parser = actions.add_parser(
        "diff",
        help="what changed between two snapshots",
        description="Names every change with its class. Exit status 1 when one is dangerous.",
    )
    parser.add_argument("old", metavar="A", type=snapshot, help=SNAPSHOT_HELP)
    parser.add_argument("new", metavar="B", type=snapshot, help=SNAPSHOT_HELP)
    parser.add_argument(
        "--against",
        metavar="USERLAND",
        help="only structs that this rdma-core passes: src-44.0, deb-44.0, or libraries built with -g",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="for programs")
    form.add_argument("--markdown", action="store_true", help="for a page")

    def words(arguments):
        form = [f"--{name}" for name in ("json", "markdown") if getattr(arguments, name)]
        return ["diff", *form, arguments.old, arguments.new]

    def handler(arguments):
        if arguments.against is None:
            return _run(words)(arguments)
        from verbs_abi.facts import passed

        with passed.listed(arguments.against) as names:
            return _run(lambda a: [*words(a), "--only", str(names)])(arguments)

    parser.set_defaults(handler=handler)


def _build(actions):
    from verbs_abi.facts.builds import command

    command.register(actions)


def _headers(actions):
    parser = actions.add_parser(
        "headers",
        help="C headers from facts",
        description="Writes C headers that declare what the snapshot says, below DIR/rdma.",
    )
    parser.add_argument("snapshot", metavar="SNAPSHOT", type=snapshot, help=SNAPSHOT_HELP)
    parser.add_argument("folder", metavar="DIR")
    parser.set_defaults(handler=_run(lambda a: ["headers", a.snapshot, a.folder]))


def _modules(actions):
    parser = actions.add_parser(
        "modules",
        help="what a kernel was compiled with, from its modules",
        description="Compares the BTF of a kernel's modules with header facts, and names the "
        "structs that the BTF does not hold. Exit status 1 when a difference is dangerous.",
    )
    parser.add_argument(
        "source", metavar="SOURCE", help="a folder with lib/modules, a .deb, or /sys/kernel/btf"
    )
    parser.add_argument(
        "--against",
        metavar="SNAPSHOT",
        type=snapshot,
        help="the headers to compare with (default: those that differ least)",
    )
    parser.add_argument(
        "--base", metavar="VMLINUX", help="the kernel that the modules refer to, if not in SOURCE"
    )
    parser.add_argument("--name", help="what to call a snapshot that is made of it")
    parser.add_argument("-o", dest="output", metavar="DIR", help="where to write that snapshot")
    parser.add_argument("--json", action="store_true", help="for programs")

    def words(arguments):
        against = ["--against", arguments.against] if arguments.against else []
        base = ["--base", arguments.base] if arguments.base else []
        named = ["--name", arguments.name] if arguments.name else []
        output = ["-o", arguments.output] if arguments.output else []
        return ["modules", *against, *base, *named, *output, *_json(arguments), arguments.source]

    parser.set_defaults(handler=_run(words))


def _layout(actions):
    parser = actions.add_parser(
        "layout",
        help="the structs that libraries were compiled with, against a kernel's",
        description="Compares the DWARF of libraries with header facts. Exit status 1 when a "
        "difference is dangerous.",
    )
    parser.add_argument("libraries", metavar="LIBRARY", nargs="+", help="built with -g")
    parser.add_argument(
        "--against", metavar="SNAPSHOT", type=snapshot, action="append", required=True, help="may be repeated"
    )
    parser.add_argument("--json", action="store_true", help="for programs")

    def words(arguments):
        against = [word for name in arguments.against for word in ("--against", name)]
        return ["layout", *against, *_json(arguments), *arguments.libraries]

    parser.set_defaults(handler=_run(words))


def _json(arguments):
    return ["--json"] if arguments.json else []


def _consumers(actions):
    from verbs_abi.facts import consumers

    consumers.register(actions)


def _show(actions):
    parser = actions.add_parser(
        "show",
        help="a snapshot, or structs, members, enums and constants of it",
        description="Shows a snapshot, or what it says of a name: ib_uverbs_send_wr.wr.rdma.rkey",
    )
    parser.add_argument("snapshot", metavar="SNAPSHOT", type=snapshot, help=SNAPSHOT_HELP)
    parser.add_argument("names", metavar="NAME", nargs="*")
    parser.add_argument("--i386", action="store_true", help="the 32-bit layout")

    def words(arguments):
        i386 = ["--i386"] if arguments.i386 else []
        return ["show", *i386, arguments.snapshot, *arguments.names]

    parser.set_defaults(handler=_run(words))


def _history(actions):
    parser = actions.add_parser(
        "history",
        help="the silent changes of all releases, as Markdown",
        description="What changed from snapshot to snapshot (default: all rdma-core releases).",
    )
    parser.add_argument("snapshots", metavar="SNAPSHOT", type=snapshot, nargs="*", help=SNAPSHOT_HELP)
    parser.set_defaults(handler=_run(lambda a: ["history", *a.snapshots]))


def _list(actions):
    parser = actions.add_parser("list", help="the snapshots that there are")
    parser.set_defaults(handler=_run(lambda _: ["list"]))


# One function an action.
ACTIONS = (_extract, _diff, _headers, _modules, _layout, _build, _consumers, _show, _history, _list)


def register(subparsers):
    """Adds `facts` to the command line."""
    parser = subparsers.add_parser(
        "facts",
        help="ABI facts: extract, diff, headers, modules",
        description="ABI facts of kernels: from headers, modules and libraries, compared, and back "
        "to headers.",
    )
    errors.tell_actions(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    for add in ACTIONS:
        add(actions)
