# SPDX-License-Identifier: BSD-2-Clause
"""exec --pass-through: any program on this machine's own kernel and devices, with the trace of what goes to them."""

import os
import shutil
import subprocess
import sys

from verbs_abi import paths, userlands
from verbs_abi.cells import worlds
from verbs_abi.errors import UserError
from verbs_abi.setup import build
from verbs_abi.userlands import elf

TARGET = "verbs_abi_recorder"


def recorder(folder=None):
    """The library to preload."""
    return (folder or paths.build_dir()) / "shims/recorder/libverbs_abi_recorder.so"


def _of_this_machine(words):
    program = shutil.which(words[0])
    if program is None:
        raise UserError(f"no program '{words[0]}' that can be executed")
    try:
        if elf.shebang(program) is None:
            elf.check_interceptable(program)
    except elf.NotInterceptable as error:
        raise UserError(f"{program} {error}", hint="What it sends to the kernel cannot be seen.") from error
    return words, dict(os.environ)


def _of_userland(words, name, folder):
    """Its providers are found by the shim's redirects; without a world the shim passes on everything else."""
    try:
        return userlands.get(name).command(words, worlds.shim(folder))
    except userlands.NotInterceptable as error:
        raise UserError(str(error), hint="What it sends to the kernel cannot be seen.") from error


def command(words, trace, userland=None):
    """(argv, env) that run the program with its trace. userland: None for this machine's own libraries."""
    if userland is not None:
        userland = userlands.resolve(userland)
        if userlands.arch(userland) != "x86_64":
            raise UserError(f"userland '{userland}' is of {userlands.arch(userland)}: the recorder is built for x86-64 "
                            "alone", hint="Without --pass-through it runs on fake kernels.")
    targets = (TARGET,) if userland is None else (TARGET, "verbs_abi_shim")
    folder = build.ensure(targets=targets)
    argv, env = _of_this_machine(words) if userland is None else _of_userland(words, userland, folder)
    env.pop("VERBS_ABI_WORLD", None)
    env["VERBS_ABI_RECORD"] = os.path.abspath(trace)
    # The recorder stands first: it sees what the program asks for.
    if "--preload" in argv:
        at = argv.index("--preload") + 1
        argv[at] = f"{recorder(folder)}:{argv[at]}"
    else:
        env["LD_PRELOAD"] = ":".join(filter(None, [str(recorder(folder)), env.get("LD_PRELOAD")]))
    return argv, env


def start(words, trace, userland=None):
    """The program, started (subprocess.Popen)."""
    argv, env = command(words, trace, userland)
    sys.stdout.flush()
    return subprocess.Popen(argv, env=env)
