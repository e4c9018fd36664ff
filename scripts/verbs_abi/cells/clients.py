# SPDX-License-Identifier: BSD-2-Clause
"""Clients as scenarios: matrix/scenarios/NAME.json. Software that nobody here wrote, in several processes of one world.

    {"name": "pingpong", "about": "…", "packages": ["ibverbs-utils"],
     "roles": {"server": ["{program}", "-p", "{port}", …], "client": […, "127.0.0.1"]},
     "expect": "regular expression", "seconds": 30,
     "tests": [{"name": "rc", "program": "ibv_rc_pingpong", "arguments": ["-n", "100"]}]}

Roles start in order: each when the one before it listens on {port}, which is free and differs each time. Every role
must end with status 0 and say what "expect" wants (one expression, or one for each role that has to say something).
"devices": arguments by link ("roce") or driver, "*" for all others, in place of {device_arguments}. A test that "lacks"
something is skipped where its output says so, on the drivers, links and kernels that are named. A test with "only" is
run there alone. "expects": "error" marks a test that wants to be refused ("status": with which exit status); such tests
are counted apart. "runner": "pyverbs" stands in place of roles and tests: see pyverbs.py.
"""

import dataclasses
import fnmatch
import pathlib
import re
import shutil
import socket
import threading
import time

from verbs_abi import matrix, paths
from verbs_abi.cells import baselines, features, pyverbs, runner, trace
from verbs_abi.cells.outcome import Outcome
from verbs_abi.errors import UserError

# How long a role may take until it listens.
LISTENS = 15
# Characters of a program's output that a result keeps.
SHOWN = 400


def names():
    return matrix.names("scenarios")


def get(name):
    return matrix.get("scenarios", name)


def is_client(name):
    return name in names()


def brings_tests(name):
    """Are its tests the userland's own, hundreds of them?"""
    return is_client(name) and get(name).data.get("runner") == pyverbs.RUNNER


@dataclasses.dataclass
class Played:
    """How the roles of one test ended: {role: runner.Ended}, and what was wrong with it before that."""

    ended: dict
    problem: str | None = None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    """Does any process of this machine listen on that TCP port? Read from the kernel: a connection would disturb."""
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = pathlib.Path(name).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                return True
    return False


def fill(words, values):
    """The words of a command; {arguments} and {device_arguments} stand for several."""
    made = []
    for word in words:
        if word in ("{arguments}", "{device_arguments}"):
            made += fill(values[word[1:-1]], values)
        else:
            made.append(re.sub(r"\{(\w+)\}", lambda match: str(values[match[1]]), word))
    return made


def device_name(device):
    """The name that the first device of a cell has in its world."""
    if device.name:
        return device.name
    return matrix.get("providers", device.provider).data["device_prefix"] + "0"


def link_of(device):
    return device.link or matrix.get("providers", device.provider).data["links"][0]


def commands(data, test, device, port):
    """{role: argv} of one test."""
    shapes = data.get("devices", {})
    link, driver = link_of(device), device.provider
    extra = shapes.get(driver, shapes.get(link, shapes.get("*", [])))
    values = {**data.get("values", {}), **test.get("values", {}), "program": test["program"], "port": port,
              "device": device_name(device), "project": paths.ROOT,
              "arguments": test.get("arguments", []), "device_arguments": extra}
    return {role: fill(words, values) for role, words in (test.get("roles") or data["roles"]).items()}


def play(argvs, start, port, seconds):
    """Starts the roles in order, waits for all. start(argv): a runner.Ended."""
    ended, threads, problem = {}, [], None
    for number, (role, argv) in enumerate(argvs.items()):
        def run(role=role, argv=argv):
            ended[role] = start(argv, seconds)

        thread = threading.Thread(target=run)
        thread.start()
        threads.append(thread)
        if number + 1 == len(argvs):
            break
        until = time.monotonic() + LISTENS
        while not listens(port) and thread.is_alive() and time.monotonic() < until:
            time.sleep(0.02)
        if not listens(port):
            if thread.is_alive():
                problem = f"{role}: does not listen on its port after {LISTENS} s"
            break
    for thread in threads:
        thread.join()
    return Played(ended, problem)


def _said(ended):
    return "\n".join(filter(None, (ended.stdout, ended.stderr)))


def _last_words(ended):
    lines = [line.strip() for line in _said(ended).splitlines() if line.strip(" -")]
    return (lines[-1] if lines else "")[:SHOWN]


def holds(row, cell):
    """Is the cell on the drivers, links and kernels that the row names?"""
    device = cell.devices[0]
    return (device.provider in row.get("drivers", [device.provider])
            and link_of(device) in row.get("links", [link_of(device)])
            and any(fnmatch.fnmatch(cell.kernel, pattern) for pattern in row.get("kernels", ["*"])))


def _why_not(test, cell, played):
    """The reason to skip, when the programs' output says what the device is known to lack in this kernel."""
    text = "\n".join(map(_said, played.ended.values()))
    return next((row["reason"] for row in test.get("lacks", []) if holds(row, cell) and re.search(row["match"], text)),
                None)


def judge(data, test, cell, played):
    """The row of results.json for one test: {name, result, message}."""
    expect = test.get("expect", data["expect"])
    problem = played.problem
    for role, ended in played.ended.items():
        values = {**data.get("values", {}), **test.get("values", {}), "device": device_name(cell.devices[0])}
        wanted = expect if isinstance(expect, str) else expect.get(role)
        wanted = wanted and re.sub(r"\{(\w+)\}", lambda match, values=values: str(values.get(match[1], match[0])), wanted)
        if problem:
            break
        if ended.limit:
            problem = f"{role}: no end after {ended.seconds:.0f} s"
        elif ended.signal:
            problem = f"{role}: crashed: {ended.signal_name}"
        elif ended.status != test.get("status", 0):
            problem = f"{role}: exit status {ended.status}: {_last_words(ended)}"
        elif wanted and not re.search(wanted, _said(ended)):
            problem = f"{role}: did not say what was expected ({wanted}): {_last_words(ended)}"
    if problem is None:
        marked = {"x_expects": test["expects"]} if "expects" in test else {}
        return {"name": test["name"], "result": "passed", "message": None, **marked}
    reason = _why_not(test, cell, played)
    if reason is not None:
        return {"name": test["name"], "result": "skipped", "message": reason}
    return {"name": test["name"], "result": "failed", "message": problem}


def check_programs(name, userland):
    """UserError when a program is neither in the userland nor on the machine."""
    data = get(name).data
    if data.get("runner") == pyverbs.RUNNER:
        pyverbs.argv(data, userland)
        return
    for program in dict.fromkeys(test["program"] for test in data["tests"]):
        if userland.own_program(program) is None and shutil.which(program) is None:
            packages = " ".join(data.get("packages", []))
            raise UserError(f"scenario {name}: no program '{program}'",
                            hint=f"apt-get install {packages}" if packages else None)


def run(name, cell, userland, shim, environment, folder):
    """([row of each test], the worst runner.Ended) of a scenario in a world that is compiled.

    environment(env): the variables of a process of that world.
    """
    data, rows, worst = get(name).data, [], None
    device = cell.devices[0]
    check_programs(name, userland)
    if data.get("runner") == pyverbs.RUNNER:
        return pyverbs.run(data, cell, userland, shim, environment, folder)
    for test in data["tests"]:
        if "only" in test and not holds(test["only"], cell):
            rows.append({"name": test["name"], "result": "skipped", "message": test["only"]["reason"]})
            continue
        port = free_port()

        def start(argv, seconds):
            words, env = userland.command(argv, shim)
            return runner.run(words, environment(env), seconds=seconds, cwd=folder)

        played = play(commands(data, test, device, port), start, port, test.get("seconds", data["seconds"]))
        rows.append(judge(data, test, cell, played))
        for ended in played.ended.values():
            if worst is None or (rows[-1]["result"] == "failed" and (ended.limit or ended.signal or ended.status)):
                worst = ended
    nothing = runner.Ended(status=0, signal=None, limit=None, stdout="", stderr="", seconds=0.0)
    return rows, worst or nothing


def outcome_of(name, cell, rows, ended, records):
    """What a cell of that scenario came to: an Outcome."""
    if get(name).data.get("runner") == pyverbs.RUNNER:
        return pyverbs.outcome_of(cell, rows, ended, records)
    worse, _ = baselines.compare(rows, baselines.of_cell(cell))
    result = _outcome_of(rows, records)
    if result.outcome == "broken" and worse:
        result.message += f"; {len(worse)} worse than the baseline"
    return result


def _outcome_of(rows, records):
    """The Outcome of a cell: full when everything passed or was skipped for a reason, and something passed.

    The processes' commands stand in one trace, in the order in which they came.
    """
    failed = [row for row in rows if row["result"] == "failed"]
    passed = [row for row in rows if row["result"] == "passed" and "x_expects" not in row]
    result = Outcome("full" if passed and not failed else "broken", tests=rows, route=features.route(records),
                     discovery=features.discovery(records), trace_digest=trace.digest_of_kinds(records))
    missing = next(filter(None, map(trace.unmodelled, records)), None)
    if missing is not None:
        result.outcome, result.message = "unmodelled", missing
    elif failed:
        result.message = f"{len(failed)} of {len(rows)} failed; {failed[0]['name']}: {failed[0]['message']}"
    elif not passed:
        result.message = "nothing passed: " + (rows[0]["message"] if rows else "no test")
    return result


def tell(rows):
    """The cell step by step: rows as steps.tell makes them."""
    return [{"stage": "client", "text": f"{row['name']}: {row['result']}" + (f": {row['message']}" if row["message"] else ""),
             "by": "program"} for row in rows]


def exec_words(name, cell):
    """How to run the scenario's first test by hand: the server's command, and the client's."""
    data = get(name).data
    if data.get("runner") == pyverbs.RUNNER:
        return pyverbs.exec_words(data)
    argvs = commands(data, data["tests"][0], cell.devices[0], 18515)
    return " & sleep 1; ".join(" ".join(argv) for argv in argvs.values())
