# SPDX-License-Identifier: BSD-2-Clause
"""Many cells at once: each with its world, its program and its limits; one that fails harms no other."""

import concurrent.futures
import dataclasses
import datetime
import shlex
import threading

from verbs_abi import userlands
from verbs_abi.cells import (applications, clients, conformance, expect, ids, known, negotiation, outcome, plugins, programs, runner, steps, trace,
                             worlds)
from verbs_abi.errors import UserError
from verbs_abi.userlands import mapped

# How a scenario is started: argv by scenario; "{journey}" is the program built for the userland.
SHIPPED = {"devinfo": ["ibv_devinfo", "-v"], "devices": ["ibv_devices"]}


@dataclasses.dataclass
class Setup:
    """What cells share: the build, a compiler of worlds, the userlands that are ready."""

    build: object
    compiler: worlds.Compiler
    userlands: dict
    keep_traces: object = None  # a folder, or None
    lacking: dict = dataclasses.field(default_factory=dict)  # userlands that cannot be had, and why

    def userland(self, name):
        if name in self.lacking:
            raise self.lacking[name]
        if name not in self.userlands:
            self.userlands[name] = userlands.get(name)
        return self.userlands[name]


def program_of(scenario):
    """The program (programs.PROGRAMS) that a scenario runs, or None for a shipped one."""
    if scenario in negotiation.SCENARIOS:
        return negotiation.PROGRAM
    if scenario in applications.APPLICATIONS:
        return applications.APPLICATIONS[scenario].program
    if clients.is_client(scenario):
        return None
    return None if scenario in SHIPPED else scenario


def built_with(cell_userland, scenario):
    """The name of the userland whose headers and libraries a scenario's program is built with."""
    application = applications.APPLICATIONS.get(scenario)
    return application.built_with or cell_userland if application else cell_userland


def suites(cell):
    """Does it run the conformance suites?"""
    return program_of(cell.scenario) == conformance.SCENARIO


def argv_of(setup, cell):
    if cell.scenario in SHIPPED:
        return list(SHIPPED[cell.scenario])
    userland = setup.userland(built_with(cell.userland, cell.scenario))
    application = applications.APPLICATIONS.get(cell.scenario)
    return [str(programs.build(program_of(cell.scenario), userland)), *(application.arguments if application else ())]


def exec_line(cell):
    """The command that runs the cell's program, or the userland's own tool, by hand."""
    cell = negotiation.widened(cell)
    devices = " ".join(f"--provider {device}" if not device.name else f"--device {device}" for device in cell.devices)
    overlays = "".join(f" --overlay {shlex.quote(text)}" for text in cell.overlays)
    application = applications.APPLICATIONS.get(cell.scenario)
    own = ["@" + (cell.scenario if application else program_of(cell.scenario) or "")]
    program = " ".join(SHIPPED.get(cell.scenario) or own)
    if clients.is_client(cell.scenario):
        program = "sh -c " + shlex.quote(clients.exec_words(cell.scenario, cell))
    return (f"./verbs-abi exec --userland {cell.userland} --kernel {cell.kernel} {devices}{overlays} -- {program}")


def run_raw(setup, cell, relax=()):
    """(Ended, trace records, what vabi-world said of the world) of a cell. Raises worlds.Absent and UserError.

    The third has "mapped" too: {process id: files that it has loaded}.
    """
    userland = setup.userland(cell.userland)
    with worlds.run_folder() as folder:
        trace_path = folder / "trace.jsonl"
        # Of hundreds of tests only the gaps: the whole trace of rxe's doorbells is beyond a cell's limits.
        wanted = f"gaps:{trace_path}" if clients.brings_tests(cell.scenario) else trace_path
        told = setup.compiler.tell(negotiation.widened(cell), folder, wanted, relax, model=suites(cell))
        seen = plugins.altered(userland, cell, folder)
        kept = {"VERBS_ABI_MAPPED": str(folder / "mapped")}
        if clients.is_client(cell.scenario):
            told["tests"], ended = clients.run(
                cell.scenario, cell, seen, worlds.shim(setup.build, userland.arch),
                lambda env: worlds.environment(told["world"], env | kept), folder)
        else:
            argv, env = seen.command(argv_of(setup, cell), worlds.shim(setup.build, userland.arch))
            if "model" in told:
                env |= conformance.write_facts(folder, cell, userland, told, trace_path)
            ended = runner.run(argv, worlds.environment(told["world"], env | kept), cwd=folder)
        told["mapped"] = mapped.told(folder / "mapped")
        records = trace.read(trace_path)
        if setup.keep_traces and trace_path.exists():
            name = cell.id.replace("/", "~")
            (setup.keep_traces / f"{name}.jsonl").write_bytes(trace_path.read_bytes())
    return ended, records, told


def check_mapped(userland, report, processes, result):
    """A cell of which any process has loaded another userland's library says nothing about its own: broken, whatever
    came of it.

    report: the program's, whose "mapped" rows are of its /proc/self/maps; processes: {process id: files}.
    """
    own = [row["mapped"] for row in outcome.rows_of(report) if "mapped" in row]
    for paths in [own, *processes.values()]:
        found = userland.mapped_ok("".join(f"0-1 r-xp 00000000 00:00 0 {path}\n" for path in paths))
        if not found.ok:
            result.outcome, result.by = "broken", None
            result.message = f"a process ran on another userland's libraries: {', '.join(found.strays)}"
            return


def _judge_application(setup, cell, ended, records):
    application = applications.APPLICATIONS[cell.scenario]
    program = argv_of(setup, cell)[0]
    refused = applications.refused(ended, program, setup.userland(cell.userland))
    if refused is not None:
        return refused
    if suites(cell):
        return conformance.judge(ended, records)
    return outcome.judge(cell, ended, records, must=application.must)


def _now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def run_cell(setup, cell):
    """The row of results.json for one cell; never raises for what the cell itself did."""
    row = {"id": cell.id, "userland": cell.userland, "kernel": cell.kernel, "provider": cell.provider,
           "overlays": list(cell.overlays), "scenario": None if cell.scenario == ids.USUAL else cell.scenario,
           "stack": "rdma-core", "arch": userlands.arch(cell.userland), "exec": exec_line(cell)}
    try:
        ended, records, told_world = run_raw(setup, cell)
    except worlds.Absent as reason:
        return {**row, "outcome": "absent", "verdict": "expected", "message": str(reason)}
    except UserError as error:
        return {**row, "outcome": None, "verdict": "not_run", "message": str(error)}
    if cell.scenario in applications.APPLICATIONS:
        result = _judge_application(setup, cell, ended, records)
    elif clients.is_client(cell.scenario):
        result = clients.outcome_of(cell.scenario, cell, told_world["tests"], ended, records)
    elif suites(cell):
        result = conformance.judge(ended, records)
    elif cell.scenario in negotiation.SCENARIOS:
        result = negotiation.judge(cell, ended, records, told_world)
    else:
        result = outcome.judge(cell, ended, records, must=outcome.DATA_STEPS if cell.scenario == ids.USUAL else ())
        negotiation.hold(cell, ended, records, told_world, result)
    check_mapped(setup.userland(cell.userland), ended.stdout, told_world["mapped"], result)
    # Of tests that a release or a suite brings, the trace has only gaps, and their expectations speak of any overlay.
    tests = suites(cell) or clients.brings_tests(cell.scenario)
    verdict, told = expect.verdict(cell, result, () if tests else expect.idle(cell, records))
    row |= {"outcome": result.outcome, "verdict": verdict, "expectation": told, "route": result.route,
            "lost": result.lost, "features": result.features, "rule": result.rule, "errno": result.errno,
            "by": result.by, "message": result.message, "trace_digest": result.trace_digest,
            "world_digest": "fnv:" + told_world["digest"], "tests": result.tests, "finished": _now(),
            "known_by": known.of_cell(cell), "signal": ended.signal_name, "limit": ended.limit,
            "exit_status": ended.status, "duration_ms": round(ended.seconds * 1000, 1),
            "steps": conformance.tell(result) if suites(cell)
            else negotiation.tell(result) if cell.scenario in negotiation.SCENARIOS
            else clients.tell(result.tests) if clients.is_client(cell.scenario)
            else steps.tell(records, result, ended, outcome.steps_of(ended.stdout)[0])}
    if result.outcome == "unmodelled":
        row["unmodelled"] = sorted(set(filter(None, map(trace.unmodelled, records))))
    return row


def run_cells(setup, cells, jobs, done):
    """Runs the cells on `jobs` threads; calls done(row) for each as it ends, in this thread.

    Stops taking up new cells when done() raises (KeyboardInterrupt included) and lets the running ones end.
    """
    stop = threading.Event()

    def work(cell):
        return None if stop.is_set() else run_cell(setup, cell)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(work, cell) for cell in cells]
        try:
            for future in concurrent.futures.as_completed(futures):
                row = future.result()
                if row is not None:
                    done(row)
        except BaseException:
            stop.set()
            for future in futures:
                future.cancel()
            raise
