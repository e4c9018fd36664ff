# SPDX-License-Identifier: BSD-2-Clause
"""The command line: finds the sub-command's module, and turns errors into exit statuses.

A sub-command is one row of COMMANDS. Its module has `register(subparsers)`, which adds a parser of
the command's name and sets its default `handler`, a function from the parsed arguments to an exit
status: 0 all as expected, 1 something unexpected, 2 usage or set-up error. Only the module that is
asked for is imported, so that one command's dependencies cost the others nothing.
"""

import argparse
import errno
import importlib
import importlib.util
import os
import signal
import sys

from verbs_abi import children, errors, screen

# name, module, what it does
COMMANDS = (
    ("run", "verbs_abi.run.command", "run cells of the matrix, write the reports"),
    ("exec", "verbs_abi.run.exec", "run any program in the world of one kernel"),
    ("explain", "verbs_abi.run.explain", "why a cell ended as it did, step by step"),
    ("list", "verbs_abi.listing", "kernels, userlands, providers, overlays, plans, cells, rules …"),
    ("world", "verbs_abi.run.world", "compile a world; what a kernel's model comes to"),
    ("facts", "verbs_abi.facts.command", "ABI facts: extract, diff, headers, modules"),
    ("symbols", "verbs_abi.symbols.command", "exported symbols of a userland; what changed between two"),
    ("gate", "verbs_abi.gate.command", "may one userland be released in place of another"),
    ("report", "verbs_abi.reports.command", "one report from the results of shards"),
    ("oracle", "verbs_abi.oracle.command", "answers of real kernels: record, check"),
    ("test", "verbs_abi.testing", "build and run the whole test suite"),
    ("bench", "verbs_abi.bench.command", "the benchmarks, each beside its baseline"),
)

DESCRIPTION = "Does this rdma-core work on that kernel, and how? Tested without hardware."
EPILOG = "Exit status: 0 all as expected, 1 something unexpected, 2 usage or set-up error."


def present():
    """The rows of COMMANDS whose modules are part of this version."""
    found = []
    for row in COMMANDS:
        try:
            if importlib.util.find_spec(row[1]):
                found.append(row)
        except ModuleNotFoundError:  # of its package
            pass
    return found


def _overview(width=None):
    commands = [(name, what) for name, _, what in present()]
    size = max(len(name) for name, _ in commands)
    if width is not None and width - size - 4 < screen.READABLE:
        rows = [line for name, what in commands for line in (f"  {name}", *screen.wrap(what, width, " " * 4, " " * 4))]
    else:
        rows = [line for name, what in commands
                for line in screen.wrap(what, width, f"  {name:{size}}  ", " " * (size + 4))]
    lines = ["usage: verbs-abi COMMAND [ARGUMENTS]", "", *screen.wrap(DESCRIPTION, width), "", "commands:", *rows, "",
             *screen.wrap("'verbs-abi COMMAND --help' tells a command's arguments.", width),
             *screen.wrap(EPILOG, width)]
    return "\n".join(lines) + "\n"


def _load(name):
    for known, module, _ in COMMANDS:
        if known == name:
            try:
                return importlib.import_module(module)
            except ModuleNotFoundError as error:
                if error.name and (module == error.name or module.startswith(error.name + ".")):
                    raise errors.UserError(f"'{name}' is not part of this version") from error
                raise errors.UserError(
                    f"'{name}' needs the Python module {error.name}, which is missing",
                    hint="Start it through the verbs-abi launcher, which installs it.",
                ) from error
    raise errors.unknown("command", name, [known for known, _, _ in present()])


def _parse(argv):
    name = argv[0]
    module = _load(name)
    parser = argparse.ArgumentParser(prog="verbs-abi", description=DESCRIPTION, epilog=EPILOG)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    module.register(subparsers)
    return parser.parse_args(argv)


# What the machine refuses, through no fault of the program: told in one line. Any other OSError is a defect of ours.
MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM,
           errno.EAGAIN, errno.EFBIG)


def _usable_streams():
    """Standard output and error that take any text; one that the caller closed goes nowhere."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # pylint: disable=consider-using-with
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _forget_output():
    """Nothing is left to say on standard output, also not at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(argv):
    """Runs the command; returns its exit status."""
    _usable_streams()
    if not argv or argv[0] in ("-h", "--help", "help"):
        if len(argv) > 1 and argv[0] == "help":
            return main([argv[1], "--help"])
        stream = sys.stdout if argv else sys.stderr
        stream.write(_overview(screen.columns(stream)))
        return errors.EXIT_OK if argv else errors.EXIT_USAGE
    try:
        if argv[0].startswith("-"):
            raise errors.UserError(
                f"unknown option '{argv[0]}'",
                hint="The command comes first: verbs-abi COMMAND [ARGUMENTS]",
            )
        arguments = _parse(argv)
        with children.interruptible():
            status = arguments.handler(arguments)
        sys.stdout.flush()
        return errors.EXIT_OK if status is None else status
    except errors.UserError as error:
        sys.stdout.flush()
        print(f"verbs-abi: {error}", file=sys.stderr)
        return error.status
    except BrokenPipeError:
        _forget_output()  # its reader has gone (`| head`)
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno not in MACHINE:
            raise
        try:
            sys.stdout.flush()
        except OSError:
            _forget_output()
        print(f"verbs-abi: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        return errors.EXIT_USAGE
    except KeyboardInterrupt as asked:
        print("verbs-abi: interrupted", file=sys.stderr)
        return 128 + getattr(asked, "number", signal.SIGINT)
