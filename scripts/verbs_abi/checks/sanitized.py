# SPDX-License-Identifier: BSD-2-Clause
"""How this machine runs programs that were built with sanitizers.

ThreadSanitizer has no room for its shadow where the kernel spreads mappings widely (vm.mmap_rnd_bits above 28), and
AddressSanitizer dies there at random, so their programs run under `setarch -R`, which some sandboxes forbid. LeakSanitizer attaches to its own process as a debugger,
which some forbid as well. What works is found out with one program that only lists its tests.
"""

import dataclasses
import os
import pathlib
import shutil
import subprocess

from verbs_abi import paths
from verbs_abi.errors import UserError

RND_BITS = pathlib.Path("/proc/sys/vm/mmap_rnd_bits")
# So many random bits are what the sanitizers of 2022 (g++ 12) can live with.
FEW_BITS = 28
NO_LEAKS = "leaks are not looked for: this process may not be debugged (ptrace)"
# What is said when the machine does not let sanitizers work: by them, and by setarch.
MACHINE = ("unexpected memory mapping", "Shadow memory range interleaves", "failed to allocate", "failed to mmap",
           "LeakSanitizer has encountered a fatal error", "failed to set personality")
SPREAD = f"vm.mmap_rnd_bits is above {FEW_BITS}"
NO_DEBUGGER = "LeakSanitizer has encountered a fatal error"


@dataclasses.dataclass(frozen=True)
class Way:
    """Words before each program, variables to add, and what such a run does not see ("" for nothing)."""

    prefix: tuple = ()
    environment: tuple = ()
    lacks: str = ""


class Impossible(Exception):
    """The sanitizer cannot work on this machine, through no fault of the programs; says why."""


def _spread():
    """Does the kernel place mappings over more than FEW_BITS?"""
    try:
        return int(RND_BITS.read_text()) > FEW_BITS
    except (OSError, ValueError):
        return False  # the program itself will tell


def ways(preset, setarch, spread):
    """The Ways to try for a preset, best first. setarch: path of that program or None."""
    still = Way((setarch, "-R")) if setarch else None
    plain = None if spread else Way()
    if preset == "tsan":
        return [way for way in (still, plain) if way]
    options = os.environ.get("ASAN_OPTIONS", "")
    blind = (("ASAN_OPTIONS", ":".join(filter(None, [options, "detect_leaks=0"]))),)
    seeing = [way for way in (plain, still) if way]
    return seeing + [Way(way.prefix, blind, NO_LEAKS) for way in seeing]


def _listed(program, way):
    """(whether the program lists its tests this way, what it said)"""
    result = subprocess.run([*way.prefix, str(program), "--gtest_list_tests"], cwd=paths.ROOT,
                            env={**os.environ, **dict(way.environment)}, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                            check=False, timeout=120)
    return result.returncode == 0, result.stdout


def find(preset, program, known=None):
    """The first Way in which this program begins. Raises Impossible, or UserError when the program is at fault.

    known: the Ways to try, for tests.
    """
    tried = ways(preset, shutil.which("setarch"), _spread()) if known is None else known
    if not tried:
        raise Impossible(f"{SPREAD}, and there is no setarch (util-linux) to go without")
    reasons = []
    for way in tried:
        begins, said = _listed(program, way)
        if begins:
            return way
        if not any(word in said for word in MACHINE):
            # In this way nothing hindered the sanitizer: it is the program.
            raise UserError(f"{program} does not begin", details=said.splitlines()[-20:])
        reasons.append(said.strip().splitlines()[-1])
    raise Impossible("; ".join(dict.fromkeys(reasons)))
