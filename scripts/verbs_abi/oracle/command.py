# SPDX-License-Identifier: BSD-2-Clause
"""`verbs-abi oracle …`: the subcommands and their options."""

import argparse
import os
import pathlib
import sys

from verbs_abi import errors
from verbs_abi.oracle import boot
from verbs_abi.oracle import check
from verbs_abi.oracle import clients
from verbs_abi.oracle import kernels
from verbs_abi.oracle import record
from verbs_abi.oracle import store
from verbs_abi.setup import build


def _boot(options):
    files = []
    for spec in options.file:
        path, _, name = spec.partition(":")
        files.append((path, name or pathlib.Path(path).name))
    result = boot.run(options.kernel, options.script, files, not options.no_rxe,
                      timeout=options.timeout)
    print(result.text("stdout"), end="")
    print(result.text("stderr"), end="", file=sys.stderr)
    if options.console or result.ended != "done":
        print(result.console, file=sys.stderr)
    if options.dmesg:
        print(result.text("dmesg"), file=sys.stderr)
    if result.ended != "done":
        print(f"{options.kernel}: the guest {result.ended} after {result.seconds:.0f} s",
              file=sys.stderr)
        return 2
    return int(result.text("status") or 2)


def _record(options):
    beside = record.programs if options.only_programs else record.JOURNEYS.get(options.journey)

    def tell(text):
        print(text, flush=True)

    def make(name):
        print(f"{name}: at work; a kernel takes minutes, {boot.MOST_GUESTS} guests run at a time on this machine",
              file=sys.stderr, flush=True)
        if options.driver == "siw":
            record.record_siw(name, options.seed, tell, _room(options))
        elif beside:
            record.record_beside(name, beside, tell, _room(options))
        else:
            record.record(name, options.seed, tell, not options.no_programs, options.afresh,
                          options.changed, _room(options))

    names = list(dict.fromkeys(options.kernel or kernels.table()))
    for name in names:
        kernels.find(name)
    _can_store(_room(options))
    record.each(names, make, tell, _room(options))
    return 0


def _room(options):
    return pathlib.Path(options.room) if options.room else store.ROOM


def _percent(text):
    value = float(text)
    if not 0 <= value <= 100:  # nor is "nan"
        raise argparse.ArgumentTypeError(f"{text} is no percentage")
    return value


def _build(options, targets):
    """The build folder with those programs, built unless one was named."""
    if not options.build:
        return build.ensure(targets=targets)
    folder = pathlib.Path(options.build)
    if not (folder / "harness" / "world" / "vabi-world").exists():
        raise kernels.OracleError(f"{folder} is no build folder: it has no harness/world/vabi-world",
                                  hint="Without --build one is made.")
    return folder


def _can_store(room):
    """Asked before a kernel is recorded, which takes minutes."""
    place = next(folder for folder in (room.absolute(), *room.absolute().parents) if folder.exists())
    if not os.access(place, os.W_OK):
        raise kernels.OracleError(f"nothing can be stored in {place}", hint="--room names another folder.")


def _check(options):
    names = list(dict.fromkeys(options.kernel or store.names(_room(options))))
    if not names:
        raise kernels.OracleError(f"no recordings in {_room(options)}",
                                  hint="Make them with `verbs-abi oracle record`.")
    for name in names:
        if not store.Recording(name, _room(options)).exists():
            kernels.find(store.split(name)[0])
    folder = None if options.answers else _build(options, check.TARGETS)
    return check.check(names, folder, options.threshold,
                       None if options.all else 20, options.json, options.answers, options.keep,
                       _room(options))


def _clients(options):
    room = _room(options)
    folder = _build(options, build.RUNTIME)
    fake = check.FakeMachine(folder)
    compared = [clients.compare(name, fake, room, options.only) for name in options.kernel or clients.recorded(room)]
    fake.close()
    for one in compared:
        clients.tell(one)
    if options.threshold is None:
        return 1 if any(one.unexplained for one in compared) else 0
    return 1 if any(100 * one.same < options.threshold * one.count for one in compared) else 0


def register(subparsers):
    """Adds `oracle` to the command line."""
    oracle = subparsers.add_parser("oracle", help="answers of real kernels: record, check, boot")
    errors.tell_actions(oracle)
    commands = oracle.add_subparsers(metavar="record|check|clients|boot")

    one = commands.add_parser("record", help="ask real kernels and store their answers")
    one.add_argument("--kernel", action="append", help="repeatable; default: all")
    one.add_argument("--seed", type=int, default=0, help="order, values and handles; default 0")
    one.add_argument("--room", metavar="DIR", help="store there instead of in matrix/oracle")
    one.add_argument("--changed", action="store_true",
                     help="only cases whose calls are others than those recorded")
    one.add_argument("--afresh", action="store_true",
                     help="also make calls that took the same kernel package down before")
    one.add_argument("--journey", choices=list(record.JOURNEYS),
                     help="keep the calls' answers; make this journey on the kernel")
    one.add_argument("--driver", choices=("rxe", "siw"), default="rxe",
                     help="siw: build it for the kernel and store what it answers as KERNEL-siw")
    one.add_argument("--only-programs", action="store_true",
                     help="keep the calls' answers; run the userlands' programs anew")
    one.add_argument("--no-programs", action="store_true",
                     help="keep what the userlands' programs said before")
    one.set_defaults(handler=_record)

    one = commands.add_parser("check", help="compare the fake kernel with the stored answers")
    one.add_argument("--kernel", action="append", help="repeatable, also KERNEL-siw; default: all that is recorded")
    one.add_argument("--threshold", type=_percent, metavar="PERCENT",
                     help="exit status 1 when a kernel agrees less than that; default: what "
                          "matrix/oracle/thresholds.json says of the kernel")
    one.add_argument("--json", action="store_true")
    one.add_argument("--all", action="store_true", help="show every disagreement")
    one.add_argument("--keep", action="store_true", help="keep the figures for the reports, and as the least from now on")
    one.add_argument("--build", metavar="DIR", help="a build folder, instead of building")
    one.add_argument("--room", metavar="DIR",
                     help="recordings from there, for example of another seed")
    one.add_argument("--answers", metavar="FILE", help="compare these stored answers instead")
    one.set_defaults(handler=_check)

    one = commands.add_parser("clients", help="compare what pyverbs' tests come to with the recorded results")
    one.add_argument("--kernel", action="append", help="repeatable; default: those that are recorded")
    one.add_argument("--threshold", type=_percent, metavar="PERCENT",
                     help="exit status 1 when fewer tests end as on the real kernel; default: when one ends otherwise "
                          "for which matrix/oracle/reasons.json has no reason")
    one.add_argument("--only", metavar="PATTERN", default="*", help="of the tests with such names")
    one.add_argument("--build", metavar="DIR", help="a build folder, instead of building")
    one.add_argument("--room", metavar="DIR", help="recordings from there")
    one.set_defaults(handler=_clients)

    one = commands.add_parser("boot", help="run a shell script on a real kernel")
    one.add_argument("--kernel", required=True)
    one.add_argument("--file", action="append", default=[], metavar="PATH[:GUEST]")
    one.add_argument("--no-rxe", action="store_true", help="do not make rxe0 first")
    one.add_argument("--timeout", type=float, default=90)
    one.add_argument("--console", action="store_true")
    one.add_argument("--dmesg", action="store_true")
    one.add_argument("script")
    one.set_defaults(handler=_boot)
