# SPDX-License-Identifier: BSD-2-Clause
"""exec --pass-through, as users start it: on whatever this machine has, which may be no device at all."""

import os
import shutil
import subprocess

import pytest

from verbs_abi import paths, userlands
from verbs_abi.cells import trace
from verbs_abi.errors import UserError
from verbs_abi.run import pass_through

OPEN = "exec 3<>/dev/infiniband/uverbs9"  # by a shell: as an application opens it


@pytest.fixture(autouse=True)
def _built():
    if not pass_through.recorder().exists():
        pytest.skip("there is no build yet: verbs-abi test makes one")


def start(*words):
    return subprocess.run([str(paths.LAUNCHER), "exec", *words], text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=120, check=False)


def test_what_goes_to_the_machines_own_kernel_is_written_down(tmp_path):
    file = tmp_path / "the trace"
    result = start("--pass-through", "--trace", str(file), "--", "sh", "-c", f"{OPEN}; echo $? $0; exit 7", "word")
    assert result.returncode == 7 or "cannot" in result.stderr
    event, opened = trace.read(file)
    assert event["event"] == "recording" and f" on Linux {os.uname().release} " in event["text"]
    assert (opened["via"], opened["name"]) == ("open", "open") and opened["result"] <= 0


def test_a_program_that_asks_no_device_is_as_it_was(tmp_path):
    result = start("--pass-through", "--trace", str(tmp_path / "t"), "--", "sh", "-c", "echo \"$@\"; exit 42", "-", "a b")
    assert (result.returncode, result.stdout) == (42, "a b\n") and trace.read(tmp_path / "t") == []


def test_a_userlands_program_runs_on_the_machines_kernel(tmp_path):
    try:
        userlands.get("deb-44.0")
    except Exception:  # pylint: disable=broad-except
        pytest.skip("userland deb-44.0 is not there")
    argv, env = pass_through.command(["ibv_devices"], tmp_path / "t", "deb-44.0")
    assert "VERBS_ABI_WORLD" not in env and env["VERBS_ABI_REDIRECT"]
    first, second = (argv[argv.index("--preload") + 1] if "--preload" in argv else env["LD_PRELOAD"]).split(":")[:2]
    assert first.endswith("libverbs_abi_recorder.so") and second.endswith("libverbs_abi_shim.so")
    assert subprocess.run(argv, env=env, capture_output=True, check=False, timeout=60).returncode >= 0
    # The devices are looked for by netlink, where this kernel has it.
    assert all(record.get("via") == "netlink" or "event" in record for record in trace.read(tmp_path / "t"))


@pytest.mark.parametrize("words, said", (
    (("--pass-through", "--", "true"), "without a trace"),
    (("--pass-through", "--trace", "t", "--kernel", "linux-6.1", "--", "true"), "there is no --kernel"),
    (("--pass-through", "--trace", "t", "--provider", "rxe", "--", "true"), "there is no --provider"),
    (("--pass-through", "--trace", "/nowhere/t", "--", "true"), "cannot be written"),
    (("--pass-through", "--trace", "/dev/null", "--", "no-such-program"), "no program 'no-such-program'"),
    (("--provider", "rxe", "--", "true"), "no kernel")))
def test_what_does_not_go_together_is_told(words, said):
    result = start(*words)
    assert result.returncode == 2 and said in result.stderr


@pytest.mark.skipif(not shutil.which("busybox"), reason="a static program, from package busybox-static")
def test_a_static_program_is_refused(tmp_path):
    result = start("--pass-through", "--trace", str(tmp_path / "t"), "--", "busybox", "true")
    assert result.returncode == 2 and "statically linked" in result.stderr


def test_a_userland_of_32_bits_is_refused(tmp_path):
    with pytest.raises(UserError, match="userland 'deb-44.0-i386' is of i386: the recorder is built for x86-64 alone"):
        pass_through.command(["ibv_devices"], tmp_path / "trace", "deb-44.0-i386")
