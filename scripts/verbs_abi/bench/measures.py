# SPDX-License-Identifier: BSD-2-Clause
"""What is measured, and how: functions that return rows {name, value, unit, baseline, ratio, goal, met}."""

import contextlib
import ctypes.util
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import time

from verbs_abi import userlands
from verbs_abi.cells import clients, ids, programs, runner, worlds
from verbs_abi.errors import UserError

KERNEL = "debian-6.1.192"
ROUNDS = 5
CALLS = {"OpenClose": "open_close", "Stat": "stat", "Read": "read", "Ioctl": "ioctl"}


def row(name, value, unit, baseline=None, goal=None, met=None):
    """One result; the ratio follows."""
    ratio = value / baseline if baseline else None
    return {"name": name, "value": round(value, 3), "unit": unit,
            "baseline": None if baseline is None else round(baseline, 3),
            "ratio": None if ratio is None else round(ratio, 3), "goal": goal, "met": met}


class Bench:
    """What the measurements share."""

    def __init__(self, build, compiler):
        self.build = build
        self.compiler = compiler
        self.userland = userlands.get()
        self.shim = worlds.shim(build)

    @contextlib.contextmanager
    def world(self, provider, overlays=()):
        cell = ids.Cell(self.userland.name, KERNEL, (ids.Device.parse(provider),), tuple(overlays))
        with worlds.run_folder() as folder:
            yield self.compiler.compile(cell, folder)[0]

    def env(self, world):
        """Of a program of the machine (not the userland's) with the shim in a world."""
        return {**os.environ, "LD_PRELOAD": str(self.shim), "VERBS_ABI_WORLD": world}


def _calls(program, env, seconds="0.05"):
    text = subprocess.run([program, "--benchmark_format=json", f"--benchmark_min_time={seconds}"], env=env, text=True,
                          capture_output=True, check=True, timeout=120).stdout
    return {CALLS[entry["name"]]: entry["real_time"] for entry in json.loads(text)["benchmarks"]}


def _merge(best, found):
    for name, value in found.items():
        best[name] = min(best.get(name, value), value)


def interpose(bench):
    """libc calls bare, under the shim, and (for the record) under umockdev's preload."""
    program = str(bench.build / "bench/vabi-bench-calls")
    other = ctypes.util.find_library("umockdev-preload")
    best = {"bare": {}, "shim": {}, "umockdev": {}}
    with bench.world("mlx5") as world:
        for _ in range(2 * ROUNDS):
            _merge(best["bare"], _calls(program, os.environ))
            _merge(best["shim"], _calls(program, bench.env(world)))
            if other:
                _merge(best["umockdev"], _calls(program, {**os.environ, "LD_PRELOAD": other}))
    for name in CALLS.values():
        value, bare = best["shim"][name], best["bare"][name]
        yield row(f"interpose.{name}", value, "ns", bare, "<= 1.10 x", value <= 1.10 * bare)
        if other:
            yield row(f"interpose.{name}.umockdev", best["umockdev"][name], "ns", bare)


# No benchmark's process takes longer than this, in seconds.
LIMIT = 60


def _once(argv, env):
    """Seconds from the start of a process to its end; subprocess would look for the end in growing steps."""
    actions = [(os.POSIX_SPAWN_OPEN, descriptor, os.devnull, os.O_RDWR, 0) for descriptor in (0, 1, 2)]
    start = time.perf_counter()
    process = os.posix_spawnp(argv[0], argv, env, file_actions=actions)
    descriptor = os.pidfd_open(process)
    try:
        ready, _, _ = select.select([descriptor], [], [], LIMIT)
        spent = time.perf_counter() - start
        if not ready:
            os.kill(process, signal.SIGKILL)
            raise UserError(f"{argv[0]} did not end within {LIMIT} s")
        return spent
    finally:
        os.close(descriptor)
        os.waitpid(process, 0)


def devinfo(bench):
    """A whole ibv_devinfo cell against the same binary with no shim and no device."""
    with bench.world("mlx5") as world:
        bare = bench.userland.command(["ibv_devinfo", "-v"], None)
        argv, env = bench.userland.command(["ibv_devinfo", "-v"], bench.shim)
        cell = argv, worlds.environment(world, env)
        # In turns, so that what else the machine does meets both.
        values = [(_once(*bare), _once(*cell)) for _ in range(40 * ROUNDS)]
    baseline, value = min(pair[0] for pair in values) * 1e3, min(pair[1] for pair in values) * 1e3
    yield row("cell.devinfo", value, "ms", baseline, "<= 2 x", value <= 2 * baseline)


def _last_object(text):
    return json.loads(text.strip().splitlines()[-1])


def verbs(bench):
    """Costs through the real library: one ioctl, and messages a second."""
    program = str(programs.build("bench", bench.userland))
    goals = {"mlx5": 500_000, "rxe": 300_000}
    for provider, goal in goals.items():
        best = None
        with bench.world(provider) as world:
            argv, env = bench.userland.command([program], bench.shim)
            for _ in range(3):
                done = subprocess.run(argv, env=worlds.environment(world, env), text=True, capture_output=True,
                                      check=False, timeout=180)
                if done.returncode:
                    raise UserError(f"the bench program on {provider} ended with {done.returncode}",
                                    details=(done.stdout + done.stderr).splitlines()[-10:])
                found = _last_object(done.stdout)
                if best is None:
                    best = found
                best = {"query_device_ns": min(best["query_device_ns"], found["query_device_ns"]),
                        "send64_per_s": max(best["send64_per_s"], found["send64_per_s"]),
                        "post_poll_ns": min(best["post_poll_ns"], found["post_poll_ns"])}
        if provider == "mlx5":
            nanoseconds = best["query_device_ns"]
            bare = _calls(str(bench.build / "bench/vabi-bench-calls"), os.environ)["ioctl"]
            yield row("uverbs.query_device.ioctl", nanoseconds / 1e3, "us", bare / 1e3, "< 2 us",
                      0 < nanoseconds < 2000)
        yield row(f"{provider}.send64.loopback", best["send64_per_s"], "1/s", 1e9 / best["post_poll_ns"],
                  f">= {goal}/s", best["send64_per_s"] >= goal)


def two_processes(bench):
    """64-byte RC SENDs from one process to another, beside messages of a Unix socket."""
    program = str(programs.build("processes", bench.userland))
    argv, env = bench.userland.command([program, "send64", "300000"], bench.shim)
    best = {"send64_per_s": 0, "socket64_per_s": 0}
    for _ in range(3):
        with bench.world("mlx5") as world:
            done = subprocess.run(argv, env=worlds.environment(world, env), text=True, capture_output=True, check=False,
                                  timeout=300)
        if done.returncode:
            raise UserError(f"processes send64: exit {done.returncode}", details=done.stderr.splitlines()[-5:])
        found = _last_object(done.stdout)
        best = {name: max(value, found[name]) for name, value in best.items()}
    value = best["send64_per_s"]
    yield row("fabric.two_processes.send64", value, "1/s", best["socket64_per_s"], ">= 200000/s", value >= 200_000)


def _copy_rate():
    """GB/s of copies of 64 KiB from one buffer to another, the best of some rounds: what memory gives."""
    size, times = 65536, 2000
    source, target = bytearray(os.urandom(size)), bytearray(size)
    best = 0
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(times):
            target[:] = source
        best = max(best, size * times / (time.perf_counter() - start) / 1e9)
    return best


def write_bandwidth(bench):
    """perftest's ib_write_bw with 64 KiB between two processes, beside plain copies of that size."""
    best = 0
    for _ in range(3):
        port = clients.free_port()
        words = ["ib_write_bw", "-F", "-s", "65536", "-n", "20000", "-p", str(port)]

        def start(argv, seconds, port=port):
            return runner.run(argv, worlds.environment(world, env), seconds=seconds)

        with bench.world("mlx5") as world:
            argv, env = bench.userland.command(words, bench.shim)
            played = clients.play({"server": argv, "client": [*argv, "127.0.0.1"]}, start, port, LIMIT)
        text = played.ended["client"].stdout if "client" in played.ended else ""
        found = re.search(r"(?m)^ *65536 +20000 +[0-9.]+ +([0-9.]+)", text)
        if found is None:
            raise UserError("ib_write_bw did not end well", details=text.splitlines()[-5:], hint=played.problem)
        best = max(best, float(found[1]) * 1048576 / 1e9)  # it tells MiB/s
    yield row("perftest.ib_write_bw.64k", best, "GB/s", _copy_rate(), ">= 2 GB/s", best >= 2)


def world_load(bench):
    """What a process pays for its world and a fake kernel that is ready: with shim and world, less with the shim alone."""
    program = str(bench.build / "bench/vabi-bench-load")
    with bench.world("mlx5") as world:
        inside = bench.env(world)
        alone = {key: value for key, value in inside.items() if key != "VERBS_ABI_WORLD"}
        pairs = [(_once([program], inside), _once([program], alone)) for _ in range(60 * ROUNDS)]
    value = (min(pair[0] for pair in pairs) - min(pair[1] for pair in pairs)) * 1e6
    yield row("world.load", value, "us", min(pair[1] for pair in pairs) * 1e6, "< 100 us", value < 100)


def _tree_kib(root):
    """Memory of a process and all below it, in KiB; pages that several of them share count each time."""
    parents, sizes = {}, {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        try:
            fields = pathlib.Path(entry.path, "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # ended meanwhile
        parents[int(entry.name)], sizes[int(entry.name)] = int(fields[1]), int(fields[21])

    def below(process):
        for _ in range(64):
            if process == root:
                return True
            process = parents.get(process, 0)
        return False

    return sum(size for process, size in sizes.items() if below(process)) * (os.sysconf("SC_PAGE_SIZE") // 1024)


# How often the memory of a run is looked at, in seconds.
LOOK = 0.1


def quick_plan(bench):
    """The quick plan, as a user runs it."""
    del bench
    with worlds.run_folder() as folder:
        start = time.perf_counter()
        with open(folder / "log", "wb") as log, subprocess.Popen(
                [str(programs.paths.LAUNCHER), "run", "--plan", "quick", "--out", str(folder / "out")], stdout=log,
                stderr=log, stdin=subprocess.DEVNULL) as process:
            peak = 0
            while process.poll() is None:
                peak = max(peak, _tree_kib(process.pid))
                if time.perf_counter() - start > 10 * LIMIT:
                    process.terminate()
                time.sleep(LOOK)
        spent = time.perf_counter() - start
        if not (folder / "out/results.json").exists():
            tail = (folder / "log").read_text(errors="replace").splitlines()[-10:]
            raise UserError("the quick plan gave no results", details=tail)
        summary = json.loads((folder / "out/results.json").read_text(encoding="utf-8"))["summary"]
    yield row("plan.quick", spent, "s", 60, "< 60 s", spent < 60)
    yield row("plan.quick.peak", peak / 1024, "MiB", 512, "< 512 MiB", peak / 1024 < 512)
    yield row("plan.quick.cells", summary["cells"], "cells", 250, ">= 250", summary["cells"] >= 250)
    yield row("plan.quick.distinct_traces", summary["distinct_traces"], "traces", 120, ">= 120",
              summary["distinct_traces"] >= 120)
    yield row("plan.quick.unmodelled", summary["unmodelled"], "cells", None, "0", summary["unmodelled"] == 0)
    yield row("plan.quick.unexpected", summary["unexpected"], "cells", None, "0", summary["unexpected"] == 0)


def facts(bench):
    """Extraction and differences of ABI facts."""
    from verbs_abi.facts import measures
    return measures.facts(bench, row)


def facts_build(bench):
    """A source built with other headers."""
    from verbs_abi.facts import measures
    return measures.build(bench, row)


MEASURES = {"interpose": interpose, "cell.devinfo": devinfo, "verbs": verbs, "fabric.two_processes.send64": two_processes,
            "perftest.ib_write_bw.64k": write_bandwidth, "world.load": world_load,
            "plan.quick": quick_plan, "facts": facts, "facts.build": facts_build}
