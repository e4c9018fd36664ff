# SPDX-License-Identifier: BSD-2-Clause
"""libFuzzer on the two front ends of the uverbs core: seeds from the kernel's facts, then a minute of mutations."""

import os
import pathlib
import re
import signal
import subprocess

from verbs_abi import children, paths
from verbs_abi.errors import UserError

SECONDS = 60
PROGRAM = "shims/uverbs/uverbs_fuzz"
DONE = re.compile(r"^Done (\d+) runs in (\d+) second", re.M)
COVERED = re.compile(r"^#\d+\s+\w+\s+cov: (\d+) ft: (\d+)", re.M)


def seeds(program, folder):
    """Has the program write its seeds; how many there are."""
    result = subprocess.run([str(program)], cwd=paths.ROOT, env={**os.environ, "VABI_FUZZ_SEEDS": str(folder)},
                            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120)
    count = len(list(folder.iterdir()))
    if result.returncode or count == 0:
        raise UserError(f"{program.name} wrote no seeds", details=result.stderr.splitlines()[-10:])
    return count


def summary(output):
    """(executions, covered edges) of what libFuzzer printed; zeros where it did not get so far."""
    done, covered = DONE.findall(output), COVERED.findall(output)
    return int(done[-1][0]) if done else 0, int(covered[-1][0]) if covered else 0


def run(build, folder, seconds=SECONDS):
    """Fuzzes for so long. (executions, covered edges, path of the input that was found or None, output)."""
    program = build / PROGRAM
    corpus, found = folder / "corpus", folder / "found"
    for place in (corpus, found):
        place.mkdir()
    seeds(program, corpus)
    argv = [str(program), f"-max_total_time={seconds}", "-rss_limit_mb=2048", "-timeout=20", "-print_final_stats=1",
            f"-artifact_prefix={found}/", str(corpus)]
    with children.started(argv, cwd=paths.ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        try:
            output, _ = process.communicate(timeout=seconds + 120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
    inputs = sorted(found.iterdir())
    kept = None
    if inputs:
        kept = pathlib.Path(build) / inputs[0].name
        kept.write_bytes(inputs[0].read_bytes())
    executions, covered = summary(output)
    return executions, covered, kept, output
