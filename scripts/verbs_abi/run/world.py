# SPDX-License-Identifier: BSD-2-Clause
"""verbs-abi world: compiles a world to keep, or prints what a kernel's model comes to."""

import json
import pathlib
import shlex
import sys

from verbs_abi.cells import ids, worlds
from verbs_abi.errors import EXIT_OK, UserError
from verbs_abi.run import exec as exec_command
from verbs_abi.setup import build


def register(subparsers):
    parser = subparsers.add_parser(
        "world", help="compile a world; what a kernel's model comes to",
        description="Compiles the world of a kernel and its devices into a folder, for programs that are started "
                    "without verbs-abi exec (in a container, say), and prints the variables by which they find it. "
                    "Without a device: prints the kernel's model, which rules are on, what is served, how long "
                    "structures are.")
    exec_command.add_world_arguments(parser)
    parser.add_argument("--out", metavar="DIR", help="where the world goes; needed with a device")
    parser.add_argument("--trace", metavar="FILE", default="", help="programs in this world append to this trace")
    parser.add_argument("--relax", action="append", default=[], metavar="RULE", help="take one rule of the kernel away")
    parser.add_argument("--json", action="store_true", help="all that is known of the world, for programs")
    parser.set_defaults(handler=handle)


def _model(arguments):
    if arguments.overlay or arguments.relax or arguments.out:
        raise UserError("no device", hint="Name one with --provider P or --device NAME=DRIVER; without any, the "
                        "kernel's model is printed, which has no overlays.")
    ids.check_kernel(arguments.kernel)
    json.dump(worlds.model(arguments.kernel, build.ensure(targets=build.RUNTIME)), sys.stdout, indent=1)
    print()
    return EXIT_OK


def handle(arguments):
    if not arguments.provider and not arguments.device:
        return _model(arguments)
    cell = exec_command.cell_of(arguments)
    if not arguments.out:
        raise UserError("no folder for the world", hint="Name one with --out DIR.")
    out = pathlib.Path(arguments.out).absolute()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"the folder {out} cannot be made: {error.strerror}", hint="Name another with --out.") from error
    folder = build.ensure(targets=build.RUNTIME)
    trace = str(pathlib.Path(arguments.trace).absolute()) if arguments.trace else ""
    with worlds.Compiler(folder) as compiler:
        try:
            told = compiler.tell(cell, out, trace, arguments.relax, model=arguments.json)
        except worlds.Absent as reason:
            raise worlds.no_driver(reason, cell) from reason
    if arguments.json:
        json.dump(told, sys.stdout, indent=1)
        print()
    else:
        print(f"export VERBS_ABI_WORLD={shlex.quote(told['world'])}")
        print(f"export LD_PRELOAD={shlex.quote(str(worlds.shim(folder)))}")
    return EXIT_OK
