# SPDX-License-Identifier: BSD-2-Clause
"""`verbs-abi oracle check`: asks the fake kernel what the real ones were asked, and compares."""

import collections
import concurrent.futures
import contextlib
import datetime
import functools
import hashlib
import json
import multiprocessing
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

from verbs_abi import children, cli, errors
from verbs_abi import userlands
from verbs_abi.cells import ids, trace, worlds
from verbs_abi.oracle import agreement
from verbs_abi.oracle import apt
from verbs_abi.oracle import dumps
from verbs_abi.oracle import facts
from verbs_abi.oracle import generate
from verbs_abi.oracle import kernels
from verbs_abi.oracle import machine
from verbs_abi.oracle import pairs
from verbs_abi.oracle import probing
from verbs_abi.oracle import shapes
from verbs_abi.oracle import store
from verbs_abi.run import provenance
from verbs_abi.setup import build as build_step

LIMIT_SECONDS = 300


# Of this folder, what a call list is made by.
GENERATOR = ("generate.py", "calls.py", "facts.py", "session.py", "*_calls.py", "*_table.py")


def cached_list(kernel, seed, driver="rxe"):
    """The call list; made anew when the generator or the facts have changed."""
    state = hashlib.sha256()
    for path in sorted(path for pattern in GENERATOR for path in pathlib.Path(__file__).parent.glob(pattern)):
        state.update(path.read_bytes())
    state.update((facts.FOLDER / f"{kernel}.json").read_bytes())
    path = apt.cache_dir() / "oracle" / "lists" / f"{kernel}-{driver}-{seed}-{state.hexdigest()[:16]}.txt"
    if path.exists():
        return path.read_text()
    text = generate.call_list(kernel, seed, driver=driver)
    path.parent.mkdir(parents=True, exist_ok=True)
    for stale in path.parent.glob(f"{kernel}-{driver}-{seed}-*.txt"):
        stale.unlink(missing_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(text)
    fresh.replace(path)
    return text


class FakeMachine:
    """Runs programs of ours on the fake kernel: one device of the driver in the default userland's world."""

    def __init__(self, build, driver="rxe"):
        self.build = pathlib.Path(build)
        self.driver = driver
        self.compiler = worlds.Compiler(self.build)

    def close(self):
        self.compiler.close()

    def probe(self, kernel, program, *words):
        """(exit status, output) of a program from the build's probe folder."""
        path = self.build / "harness" / "probe" / program
        return self.run(kernel, userlands.DEFAULT, path, *words)[:2]

    @contextlib.contextmanager
    def world(self, kernel, name, traced=False):
        """A world of that kernel and userland: yields (folder, start). start(words) starts a program in it, and
        where it is traced, the trace is FOLDER/trace."""
        userland = userlands.get(name)
        cell = ids.Cell(name, kernel, (ids.Device.parse(self.driver),), ())
        with worlds.run_folder() as folder, contextlib.ExitStack() as running:
            world, _ = self.compiler.compile(cell, folder, folder / "trace" if traced else "")

            def start(words):
                argv, env = userland.command([str(word) for word in words], worlds.shim(self.build))
                return running.enter_context(children.started(
                    argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    env=worlds.environment(world, env)))

            yield folder, start

    def run(self, kernel, name, *words, traced=False):
        """(exit status, output, trace) of a program in that userland's world."""
        with self.world(kernel, name, traced) as (folder, start):
            process = start(words)
            try:
                output, _ = process.communicate(timeout=LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
            return process.returncode, output.decode(errors="replace"), trace.read(folder / "trace")

    def ping_pong(self, kernel, name, program):
        """{role: trace} of a server and its client."""
        with self.world(kernel, name, traced=True) as (folder, start):
            pids, _ = pairs.run(start, program)  # what went wrong shows in the traces
            records = trace.read(folder / "trace")
        return {role: [record for record in records if record["pid"] == pid] for role, pid in pids.items()}


def ask_discovery(kernel, fake):
    """What the fake kernel's netlink and sysfs say: {call: answer}."""
    _, netlink = fake.probe(kernel, "vabi-dump", "netlink", "0")
    _, tree = fake.probe(kernel, "vabi-dump", "tree", *machine.TREES.split())
    return {**dumps.netlink(netlink), **dumps.tree(tree)}


def stored_discovery(recording):
    return {**dumps.netlink(recording.text("netlink.txt")), **dumps.tree(recording.text("sysfs.txt"))}


def recorded_userlands(recording):
    return sorted(path.name.removeprefix("userland-").removesuffix(".txt")
                  for path in recording.folder.glob("userland-*.txt"))


def stored_programs(recording):
    """What ibv_devinfo -v of each recorded userland said: {call: answer}."""
    answers = {}
    for name in recorded_userlands(recording):
        text = recording.text(f"userland-{name}.txt")
        answers.update(dumps.devinfo(name, dumps.section(text, f"{name} ibv_devinfo -v")))
    return answers


def ask_programs(kernel, names, fake, traced):
    """(answers, traces): what ibv_devinfo -v says and, of the `traced` programs ("USERLAND PROGRAM ROLE"), what they
    ask of the kernel, packed."""
    answers, asked = {}, {}
    for name in names:
        title = f"{name} ibv_devinfo program"
        status, text, records = fake.run(kernel, name, "ibv_devinfo", "-v", traced=title in traced)
        answers.update(dumps.devinfo(name, f"{text}\nstatus {status}\n"))
        if title in traced:
            asked[title] = shapes.pack(shapes.lines(records))
    for name, program in sorted({tuple(title.split(" ")[:2]) for title in traced if "pingpong" in title}):
        for role, records in fake.ping_pong(kernel, name, program).items():
            asked[f"{name} {program} {role}"] = shapes.pack(shapes.lines(records))
    return answers, asked


def stored_traces(recording):
    """What the recorded programs asked of the real kernel, packed; nothing where that is not recorded."""
    path = recording.folder / "traces.txt"
    return shapes.load(path.read_text()) if path.exists() else {}


def compared_traces(real, fake):
    """Both sides' {call: line} of traces, line by line as they belong together."""
    sides = {}, {}
    for title, lines in real.items():
        both = (pairs.comparable(title, one) for one in (lines, fake.get(title, [])))
        for side, answers in zip(sides, shapes.aligned(title, *both)):
            side.update(answers)
    return sides


# The probe of a kernel waits for longer than it works: for completions and events that do not come on the real kernel
# either. Cases know nothing of each other, so that many can wait at once.
PARTS = 12


def parts(list_text, count=PARTS):
    """A call list as `count` lists or fewer. Neighbours, which wait alike, are dealt to different ones."""
    cases = [f"case {block}" for block in re.split(r"^case ", list_text, flags=re.M)[1:]]
    return ["".join(cases[start::count]) for start in range(min(count, len(cases)))]


def ask_fake(kernel, list_text, fake):
    """The fake kernel's answers to the list, in no order: {call: answer}. Each part has a world of its own."""
    with concurrent.futures.ThreadPoolExecutor(PARTS) as pool:
        answers = {}
        for some in pool.map(functools.partial(_ask_part, kernel, fake), parts(list_text)):
            answers.update(some)
    return answers


def _ask_part(kernel, fake, list_text):
    with tempfile.TemporaryDirectory(prefix="vabi-oracle-") as folder:
        folder = pathlib.Path(folder)
        (folder / "list").write_text(list_text)
        status, output = fake.probe(kernel, "vabi-probe", folder / "list", folder / "answers")
        answers = folder / "answers"
        text = answers.read_text(errors="replace").rstrip("\0") if answers.exists() else ""
    lines, under_way = probing.split(text)
    if ("all", "done") not in lines:
        raise kernels.OracleError(
            f"{kernel}: the probe did not come to its end on the fake kernel (exit status "
            f"{status}, at {under_way or (lines[-1][0] if lines else 'the start')}): "
            f"{output[-1000:]}")
    return {name: answer for name, answer in lines if name != "all"}


def told(answers):
    """The answers as they are read from a recording, which leaves set-up calls that worked out."""
    return store.unpack(store.pack(answers))


def check_kernel(name, fake, answers=None, room=store.ROOM):
    """Agreement of one recording. answers: a file of answers instead of the fake machine."""
    kernel, driver = store.split(name)
    recording = store.Recording(name, room)
    if not recording.exists():
        raise kernels.OracleError(f"{name}: no recording in {recording.folder}; make one with "
                                  f"`verbs-abi oracle record --kernel {kernel} --driver {driver}`")
    about = recording.about()
    list_text = cached_list(kernel, about["seed"], driver)
    if store.digest(list_text) != about["list"]:
        raise kernels.OracleError(f"{kernel}: the recording of {about['date']} is of another call "
                                  "list; record again, the probe's calls have changed")
    real, reasons = recording.answers(), agreement.Reasons()
    if answers:
        try:
            said = store.unpack(pathlib.Path(answers).read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise kernels.OracleError(f"{answers}: no answers: {getattr(error, 'strerror', error)}") from error
    elif driver != "rxe":
        said = told(ask_fake(kernel, list_text, fake))
    else:
        asked = {title: lines for title, lines in stored_traces(recording).items() if not reasons.apart(kernel, title)}
        real.update(stored_discovery(recording))
        real.update(stored_programs(recording))
        with concurrent.futures.ThreadPoolExecutor(2) as beside:
            calls = beside.submit(ask_fake, kernel, list_text, fake)
            programs = beside.submit(ask_programs, kernel, recorded_userlands(recording), fake, asked)
            said = {**told(calls.result()), **ask_discovery(kernel, fake)}
            answers, traces = programs.result()
        said.update(answers)
        for side, lines in zip((real, said), compared_traces(asked, traces)):
            side.update(lines)
    return agreement.compare(name, real, said, reasons)


def show(result, details, out=print):
    """One kernel's table and disagreements."""
    out(f"{result.kernel}: {result.agree} of {result.cases} agree, {agreement.down(result.percent, 2):.2f} %")
    for group, rows in result.groups.items():
        for name, (same, count) in sorted(rows.items()):
            mark = "" if same == count else f"   {count - same} differ"
            out(f"  {group:10} {name:18} {same:6} / {count:<6} {agreement.down(100 * same / count, 2):6.2f} %{mark}")
    for reason, count in agreement.by_reason(result.disagreements):
        out(f"  because    {count:6} {reason}")
    if details is None:
        for item in result.disagreements:
            _show_one(item, out)
        return
    kinds = grouped(result.disagreements)
    for (case, real, fake), items in kinds[:details]:
        out(f"  {len(items)} × {case}: real {real}, fake {fake}; for example")
        _show_one(items[0], out)
    if len(kinds) > details:
        left = sum(len(items) for _, items in kinds[details:])
        out(f"  … and {left} more of {len(kinds) - details} kinds (--all shows every one)")


def _show_one(item, out):
    out(f"    {item.call}\n      real  {item.real}\n      fake  {item.fake}" +
        (f"\n      why   {item.reason}" if item.reason else ""))


def grouped(disagreements):
    """Disagreements of one kind together, the most frequent first: [((case, real, fake), items)],
    real and fake being return value and errno."""
    kinds = collections.defaultdict(list)
    for item in disagreements:
        heads = (" ".join(answer.split(" ")[:2]) for answer in (item.real, item.fake))
        kinds[(item.call.split(":", 1)[0], *heads)].append(item)
    return sorted(kinds.items(), key=lambda pair: -len(pair[1]))


def as_json(results):
    return json.dumps({result.kernel: {result.driver: {
        "cases": result.cases, "agree": result.agree, "groups": result.groups,
        "disagreements": [vars(item) for item in result.disagreements]}} for result in results},
        indent=1)


def _check_alone(kernel, build, answers, room):
    """check_kernel in a process of its own: (Agreement, None), or (None, what was wrong) as exceptions of ours do
    not all survive the way between processes."""
    fake = None if answers else FakeMachine(build, store.split(kernel)[1])
    with children.interruptible():
        try:
            return check_kernel(kernel, fake, answers, room), None
        except errors.UserError as error:
            return None, str(error)
        except OSError as error:
            if error.errno not in cli.MACHINE:
                raise
            return None, f"{kernel}: {kernels.full(error)}"
        finally:
            if fake:
                fake.close()


# What of the build it takes, to build no more.
TARGETS = (*build_step.RUNTIME, "vabi-probe", "vabi-dump")


def compare_all(names, build, answers=None, room=store.ROOM):
    """The Agreement of each kernel. All are asked at once; each in a process, since what is done here takes as long as the
    probe."""
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(max_workers=max(len(names), 1), mp_context=context,
                                                initializer=children.forked) as pool:
        try:
            with children.undisturbed():
                checking = pool.map(functools.partial(_check_alone, build=build, answers=answers, room=room), names)
            done = list(checking)
        except KeyboardInterrupt:  # a signal that came to us alone
            for worker in multiprocessing.active_children():
                worker.terminate()
            raise
    for _, wrong in done:
        if wrong:
            raise kernels.OracleError(wrong)
    return [result for result, _ in done]


def too_low(results, threshold=None, room=store.ROOM):
    """A line for each kernel that agrees less than the threshold: the given percentage, or what
    thresholds.json says of the kernel; and for each that was asked fewer calls than when its figures were kept."""
    kept, stored = agreement.thresholds(room), agreement.stored(room)
    lines = []
    for result in results:
        least = kept.get(result.kernel, 0) if threshold is None else threshold
        if result.percent < least:
            lines.append(f"{result.kernel}: {agreement.down(result.percent, 2):.2f} % is below {least} %")
        before = stored.get(result.kernel, {}).get(result.driver, {}).get("cases", 0)
        if result.cases < before:
            lines.append(f"{result.kernel}: {result.cases} calls were compared, {before} when the figures were kept: "
                         f"a file in {room / result.kernel} lacks lines, or less is compared (then --keep)")
    return lines


def check(names, build, threshold=None, details=20, use_json=False, answers=None, keep=False,
          room=store.ROOM):
    """Checks the kernels; exit status 1 when one of them is below its threshold."""
    results = compare_all(names, build, answers, room)
    if use_json:
        print(as_json(results))
    else:
        for result in results:
            show(result, details)
    low = too_low(results, threshold, room)
    for line in low:
        print(line, file=sys.stderr)
    if keep:
        agreement.save(results, datetime.date.today().isoformat(), room, provenance.commit())
    return 1 if low else 0
