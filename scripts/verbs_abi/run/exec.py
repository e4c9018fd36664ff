# SPDX-License-Identifier: BSD-2-Clause
"""verbs-abi exec: any program in the world of one kernel. Its exit status is the program's."""

import argparse
import os
import pathlib
import signal
import subprocess
import sys

from verbs_abi import userlands
from verbs_abi.cells import applications, conformance, ids, plans, programs, worlds
from verbs_abi.errors import EXIT_CANNOT_RUN, EXIT_NOT_FOUND, UserError, printable
from verbs_abi.cells import trace as records_of
from verbs_abi.run import pass_through
from verbs_abi.setup import build

# More lines than this about what went past the fake kernel say nothing new.
SHOWN = 5


def add_world_arguments(parser, kernel_needed=True):
    parser.add_argument("--userland", default=plans.DEFAULT_USERLAND if kernel_needed else None,
                        help=f"default: {plans.DEFAULT_USERLAND}")
    parser.add_argument("--kernel", required=kernel_needed, help="see verbs-abi list kernels")
    parser.add_argument("--provider", action="append", default=[],
                        help="a device of this provider, with its usual name and link; may be repeated")
    parser.add_argument("--device", action="append", default=[], metavar="NAME=DRIVER[,link=ib|roce|iw]",
                        help="a device with a name of its own; may be repeated")
    parser.add_argument("--overlay", action="append", default=[],
                        help="see verbs-abi list overlays; may be repeated")


def cell_of(arguments):
    """The Cell that the arguments describe."""
    arguments.userland = userlands.resolve(arguments.userland or plans.DEFAULT_USERLAND)
    ids.check_names(arguments)
    devices = [device for text in arguments.provider + arguments.device for device in ids.devices(text)]
    if not devices:
        raise UserError("no device", hint="Name one with --provider P or --device NAME=DRIVER.")
    return ids.Cell(arguments.userland, arguments.kernel, tuple(devices), tuple(arguments.overlay))


def register(subparsers):
    parser = subparsers.add_parser(
        "exec", help="run any program in the world of one kernel",
        description="Runs a program of the userland (or of this machine) with a fake kernel under it. A program called "
                    "@journey is verbs-abi's own. At the end, standard error names what the fake kernel does not model "
                    "and what went past it. Exit status: the program's, or 128 and the number of the signal that ended "
                    "it; 126 when it cannot be run on a fake kernel, 127 when there is none, 2 for wrong arguments.",
        usage="verbs-abi exec --kernel K --provider P [OPTIONS] -- PROGRAM [ARGUMENTS]",
        epilog="For example: verbs-abi exec --kernel debian-6.1.192 --provider mlx5 -- ibv_devinfo -v")
    add_world_arguments(parser, kernel_needed=False)
    parser.add_argument("--pass-through", action="store_true",
                        help="no fake kernel: run the program on this machine's own devices and write down what goes "
                        "to them (with --trace FILE); without --userland, with this machine's own libraries")
    parser.add_argument("--trace", metavar="FILE", help="write every command that crosses the user/kernel border there")
    parser.add_argument("--relax", action="append", default=[], metavar="RULE", help="take one rule of the kernel away")
    parser.add_argument("--keep", metavar="DIR", help="keep the world in this folder")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM", help="and its arguments, behind --")
    parser.set_defaults(handler=handle)


def _argv(words, userland):
    if words[0].startswith("@"):
        name = words[0][1:]
        known = [*programs.PROGRAMS, *(name for name in applications.APPLICATIONS if name not in programs.PROGRAMS)]
        application = applications.APPLICATIONS.get(name)
        if application is not None:
            built_with = userlands.get(application.built_with) if application.built_with else userland
            return [str(programs.build(application.program, built_with)), *application.arguments, *words[1:]]
        if name not in programs.PROGRAMS:
            raise UserError(f"no program '{words[0]}'", hint="There are: " + ", ".join("@" + n for n in known))
        return [str(programs.build(name, userland)), *words[1:]]
    return words


def _ended(start):
    """Starts a program, passes our own signals on, and returns its status when it has ended.

    A signal that comes while it starts is for the program, too: without us nobody would end it.
    """
    process, early = None, []

    def forward(number, _frame):
        if process is None:
            early.append(number)
        else:
            process.send_signal(number)

    # One that we ignore (nohup) the program ignores as well; one that is caught it would not.
    numbers = [number for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
               if signal.getsignal(number) != signal.SIG_IGN]
    kept = {number: signal.signal(number, forward) for number in numbers}
    try:
        process = start()
        for number in early:
            process.send_signal(number)
        while True:
            try:
                return process.wait()
            except InterruptedError:
                continue
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        if process is None and early:
            os.kill(os.getpid(), early[0])


def run(cell, words, trace="", relax=(), keep=None):
    """Runs the program, tells what went past the fake kernel; returns its exit status as a shell would give it."""
    folder = build.ensure(targets=build.RUNTIME)
    userland = userlands.get(cell.userland)
    build.ensure_shims({userland.arch})
    with worlds.run_folder() as scratch, worlds.Compiler(folder) as compiler:
        home = scratch if keep is None else keep
        suites = words[0] in ("@" + conformance.SCENARIO, "@old-suites")
        # Without a trace to write, only of what the program's results could not tell.
        gaps = not trace and not suites
        trace = os.path.abspath(trace) if trace else str(scratch / "trace.jsonl")
        try:
            told = compiler.tell(cell, home, f"gaps:{trace}" if gaps else trace, relax, model=suites)
        except worlds.Absent as reason:
            raise worlds.no_driver(reason, cell) from reason
        try:
            argv, env = userland.command(_argv(words, userland), worlds.shim(folder, userland.arch))
        except userlands.NotInterceptable as error:
            raise UserError(str(error), hint="Only dynamically linked programs of the userland's own C library can be "
                            "run on a fake kernel.", status=EXIT_CANNOT_RUN) from error
        if suites:
            env |= conformance.write_facts(scratch, cell, userland, told, trace)
        env["PATH"] = userland.search_path(os.environ.get("PATH", os.defpath))
        sys.stdout.flush()
        status = _ended(lambda: _start(argv, worlds.environment(told["world"], env)))
        if not os.path.isfile(trace):
            return _as_shell(status)
        records = records_of.read(trace)
        _tell_what_went_past(records, whole=not gaps)
        for step in sorted(set(told["faults"]) - records_of.faults_reached(records)):
            print(f"verbs-abi: an overlay lets {step} fail, but the program never came to it", file=sys.stderr)
    return _as_shell(status)


def _as_shell(status):
    """A status of subprocess as a shell gives it."""
    return status if status >= 0 else 128 - status


def _start(argv, environment):
    try:
        return subprocess.Popen(argv, env=environment)
    except OSError as error:  # what the kernel alone can tell: too long a command line, a file that is being written
        missing = isinstance(error, FileNotFoundError)
        raise UserError(f"{argv[0]} cannot be started: {error.strerror}",
                        status=EXIT_NOT_FOUND if missing else EXIT_CANNOT_RUN) from error


def _tell_what_went_past(records, whole):
    """On standard error: what the program did that no fake kernel answered. Its results tell nothing then.

    whole: the records are a trace's that a person asked for, and all of it.
    """
    texts = list(dict.fromkeys(filter(None, map(records_of.unmodelled, records))))
    for text in texts[:SHOWN]:
        print(f"verbs-abi: {printable(text)}", file=sys.stderr)
    if len(texts) > SHOWN:
        print(f"verbs-abi: and {len(texts) - SHOWN} more of that kind" + ("" if whole else "; --trace FILE keeps all"),
              file=sys.stderr)


def _check(arguments):
    """UserError for options that do not go together."""
    if not arguments.pass_through:
        if not arguments.kernel:
            raise UserError("no kernel", hint="Name one with --kernel K (verbs-abi list kernels), or ask this machine's "
                            "own with --pass-through.")
        return
    of_a_world = [name for name in ("kernel", "provider", "device", "overlay", "relax", "keep")
                  if getattr(arguments, name)]
    if of_a_world:
        raise UserError(f"--pass-through asks this machine's own kernel: there is no --{of_a_world[0]}")
    if not arguments.trace:
        raise UserError("--pass-through without a trace", hint="Name its file with --trace FILE.")


def handle(arguments):
    words = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    if not words:
        raise UserError("no program", hint="For example: verbs-abi exec --kernel debian-6.1.192 --provider mlx5 -- "
                        "ibv_devinfo -v")
    _check(arguments)
    cell = None if arguments.pass_through else cell_of(arguments)
    if arguments.trace:
        try:
            open(arguments.trace, "w", encoding="utf-8").close()
        except OSError as error:
            raise UserError(f"the trace {arguments.trace} cannot be written: {error.strerror}") from error
    if arguments.keep:
        try:
            pathlib.Path(arguments.keep).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"the folder {arguments.keep} cannot be made: {error.strerror}",
                            hint="Name another with --keep.") from error
    if arguments.pass_through:
        status = _ended(lambda: pass_through.start(words, arguments.trace, arguments.userland))
        return _as_shell(status)
    return run(cell, words, arguments.trace or "", arguments.relax, arguments.keep)
