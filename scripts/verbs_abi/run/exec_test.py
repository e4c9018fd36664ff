# SPDX-License-Identifier: BSD-2-Clause
"""verbs-abi exec, as users start it."""

import fcntl
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys

import pytest

from verbs_abi import children, paths
from verbs_abi.cells import worlds
from verbs_abi.run import exec as exec_command

WORLD = ("--kernel", "debian-6.1.192", "--provider", "rxe")


@pytest.fixture(autouse=True)
def _built():
    if not worlds.shim().exists():
        pytest.skip("there is no build yet: verbs-abi test makes one")


def start(*words, command="exec", **env):
    return subprocess.run([str(paths.LAUNCHER), command, *words], env={**os.environ, **env}, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=120, check=False)


def run(*program):
    return start(*WORLD, "--", *program)


def script(path, text, mode=0o755):
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize("status, program", (
    (0, ("true",)), (42, ("sh", "-c", "exit 42")), (2, ("sh", "-c", "exit 2")),
    (128 + signal.SIGKILL, ("sh", "-c", "kill -KILL $$")), (128 + signal.SIGSEGV, ("sh", "-c", "kill -SEGV $$"))))
def test_the_status_is_the_programs(status, program):
    result = run(*program)
    assert (result.returncode, result.stdout, result.stderr) == (status, "", "")


def test_arguments_arrive_as_they_are(tmp_path):
    words = ("a b", "c'd\"e", "", "--", "-v", "$HOME", "*", "ö\n")
    shown = script(tmp_path / "show it", f"#!{sys.executable} -I\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    assert json.loads(run(shown, *words).stdout) == list(words)


def test_options_behind_the_program_are_its_own():
    assert start(*WORLD, "sh", "-c", "echo $0", "--kernel").stdout == "--kernel\n"


def test_a_program_sees_the_world_and_so_do_its_children(tmp_path):
    tool = script(tmp_path / "tool", "#!/bin/sh\nenv -i /bin/ls /sys/class/infiniband\n")
    assert run(tool).stdout == "rxe0\n"


@pytest.mark.parametrize("status, make, told", (
    (126, lambda folder: str(folder), "is a folder, no program"),
    (127, lambda folder: str(folder / "none"), "no program "),
    (127, lambda folder: str(folder / "none/below"), "no program "),
    (127, lambda folder: "no-such-program", "no program 'no-such-program' in userland 'deb-44.0' nor in PATH"),
    (126, lambda folder: "/dev/null", "is no file that could be run"),
    (126, lambda folder: script(folder / "x", "#!/bin/sh\n", 0o644), "may not be executed"),
    (127, lambda folder: script(folder / "x", "#!/no/shell\n"), "/no/shell, the interpreter of "),
    (126, lambda folder: script(folder / "x", "hello\n"), "is neither an ELF program nor a script with #!"),
    (126, lambda folder: script(folder / "x", ""), "is neither an ELF program nor a script with #!"),
    (126, lambda folder: script(folder / "x", f"#!{folder}/x\n"), "scripts upon scripts"),
))
def test_what_is_no_program_is_told_with_the_status_of_a_shell(tmp_path, status, make, told):
    result = run(make(tmp_path))
    assert (result.returncode, result.stdout) == (status, "")
    assert result.stderr.startswith("verbs-abi: ") and told in result.stderr
    assert "Traceback" not in result.stderr


def _static(folder, name="static"):
    source = folder / "static.c"
    source.write_text("int main(void) { return 7; }\n")
    subprocess.run(["gcc", "-static", "-o", str(folder / name), str(source)], check=True)
    return str(folder / name)


def test_what_only_the_kernel_can_refuse_is_told(tmp_path):
    copy = shutil.copy("/bin/true", tmp_path / "busy")
    with open(copy, "ab"):
        result = run(str(copy))
    assert result.returncode == 126 and f"{copy} cannot be started: Text file busy" in result.stderr


def test_a_static_program_is_not_interceptable_and_not_started(tmp_path):
    result = run(_static(tmp_path))
    assert result.returncode == 126
    assert "not interceptable" in result.stderr and "is statically linked" in result.stderr


def test_a_static_child_is_named_in_the_trace_and_at_the_end(tmp_path):
    result = start(*WORLD, "--trace", str(tmp_path / "trace"), "--", "sh", "-c", f"{_static(tmp_path)}; exit 7")
    assert result.returncode == 7
    assert "verbs-abi: not intercepted: " in result.stderr and "statically linked" in result.stderr


RAW = ("import ctypes, os\n"
       "fd = os.open('/dev/infiniband/uverbs0', os.O_RDWR)\n"
       "for _ in range(10_000): ctypes.CDLL(None).syscall(5, fd, ctypes.create_string_buffer(256))\n")


@pytest.mark.parametrize("traced", (True, False))
def test_a_raw_system_call_on_a_device_is_named_once(tmp_path, traced):
    trace = ("--trace", str(tmp_path / "trace")) if traced else ()
    result = start(*WORLD, *trace, "--", "python3", "-c", RAW)
    assert result.returncode == 0, result.stderr
    assert result.stderr == "verbs-abi: not intercepted: a raw system call on a fake descriptor\n"


def test_what_is_not_modelled_is_named_without_a_trace():
    """NEWDEV of RDMA netlink (core/nldev.c:nldev_newlink) makes a device, which no world does."""
    program = ("import socket, struct\n"
               "s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20)\n"
               "s.send(struct.pack('=IHHII', 16, 5 << 10 | 3, 1 | 4, 1, 0))\n"
               "print(struct.unpack_from('=i', s.recv(4096), 16)[0] < 0)\n")
    result = run("python3", "-c", program)
    assert (result.returncode, result.stdout) == (0, "True\n"), result.stderr
    assert result.stderr.startswith("verbs-abi: ") and result.stderr.count("\n") == 1
    assert "NEWLINK" in result.stderr


def test_every_child_that_goes_past_is_named_also_by_a_shell_that_uses_vfork(tmp_path):
    one, two = _static(tmp_path, "one"), _static(tmp_path, "two")
    result = run("sh", "-c", f"{one}; {two}; {one}; true")
    lines = result.stderr.splitlines()
    assert [line.split(": ")[1:3] for line in lines] == [["not intercepted", one], ["not intercepted", two]]


def test_more_than_a_handful_is_counted(tmp_path):
    program = _static(tmp_path)
    names = [str(tmp_path / f"s{i}") for i in range(8)]
    for name in names:
        os.link(program, name)
    lines = run("sh", "-c", "; ".join(names) + "; true").stderr.splitlines()
    assert len(lines) == 6 and lines[-1] == "verbs-abi: and 3 more of that kind; --trace FILE keeps all"


def _other_word_size(folder):
    """A 32-bit program with a dynamic loader, which does not get far but as far as its list of preloads."""
    source = folder / "small.c"
    source.write_text("void _start(void) { __asm__ volatile(\"movl $1, %eax; movl $0, %ebx; int $0x80\"); }\n")
    flags = ["gcc", "-m32", "-nostdlib", "-nostartfiles"]
    subprocess.run([*flags, "-shared", "-fPIC", "-o", str(folder / "lib.so"), str(source)], check=True)
    subprocess.run([*flags, "-no-pie", f"-Wl,--no-as-needed,-rpath,{folder},-dynamic-linker,/lib/ld-linux.so.2",
                    "-o", str(folder / "small"), str(source), str(folder / "lib.so")], check=True)
    return str(folder / "small")


@pytest.mark.parametrize("userland", ("deb-44.0", "deb-56.1"))
def test_a_program_of_another_word_size_is_told_once_and_not_by_its_loader(tmp_path, userland):
    small = _other_word_size(tmp_path)
    result = start(*WORLD, "--userland", userland, "--", "sh", "-c", f"{small}; {small}; ls /sys/class/infiniband")
    assert result.stdout == "rxe0\n"
    told = f"verbs-abi: not intercepted: {small}: built for another machine or word size than the shim\n"
    assert result.stderr.count("not intercepted") == 1 and told in result.stderr
    assert "cannot be preloaded" not in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_who_keeps_roots_rights_until_exec_leaves_the_world_too():
    # setpriv --reuid sets PR_SET_KEEPCAPS: it opens what the program that it starts cannot.
    result = run("setpriv", "--reuid", "65534", "sh", "-c", "echo a; /bin/echo b")
    assert (result.returncode, result.stdout) == (0, "a\nb\n"), result.stderr
    assert "sh, and what it starts: this user or root folder does not reach " in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_who_became_another_user_leaves_the_world_with_one_word():
    program = ("import os\nos.setresuid(65534, 65534, 65534)\n"
               "os.execvp('sh', ['sh', '-c', 'echo a; /bin/echo b; /bin/echo c'])\n")
    result = run("python3", "-c", program)
    assert (result.returncode, result.stdout) == (0, "a\nb\nc\n")
    assert result.stderr.count("\n") == 1
    assert "sh, and what it starts: this user or root folder does not reach " in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_set_user_id_program_of_another_user_is_not_interceptable(tmp_path):
    copy = tmp_path / "true"
    shutil.copy("/bin/true", copy)
    os.chown(copy, 65534, -1)
    copy.chmod(0o4755)
    result = run(str(copy))
    assert result.returncode == 126 and "is set-user-id" in result.stderr
    # Its own user's runs with the shim: nothing changes.
    os.chown(copy, 0, -1)
    copy.chmod(0o4755)
    assert run(str(copy)).returncode == 0


@pytest.mark.parametrize("words, told, nearest", (
    (("--kernel", "debian-6.1.19", "--provider", "rxe"), "unknown kernel 'debian-6.1.19'", "debian-6.1.192"),
    (("--kernel", "base", "--provider", "rxe"), "'base' is no kernel to run on", None),
    ((*WORLD, "--device", "rxe1=rxe,link=ib"), "rxe has no link 'ib'", "roce"),
    (("--kernel", "linux-4.4", "--provider", "irdma"), "linux-4.4 has no driver irdma", "in 5.14"),
    (("--kernel", "debian-7.3.4", "--provider", "i40iw"), "debian-7.3.4 has no driver i40iw", "not in 5.14"),
    ((*WORLD, "--provider", "mlx55"), "unknown provider 'mlx55'", "mlx5"),
    ((*WORLD, "--userland", "deb-56"), "unknown userland 'deb-56'", "deb-56.1"),
    ((*WORLD, "--overlay", "no-iotcl"), "unknown overlay 'no-iotcl'", "no-ioctl"),
    ((*WORLD, "--overlay", "no-ioctl=3"), "overlay 'no-ioctl=3': takes no value", None),
    ((*WORLD, "--overlay", "cdev-mode"), "overlay 'cdev-mode': needs a value", None),
    ((*WORLD, "--overlay", "no-ioctl@rxe0"), "overlay 'no-ioctl@rxe0': takes no @", "list overlays"),
    ((*WORLD, "--overlay", "no-gid@"), "overlay 'no-gid@': nothing follows @", "list overlays"),
    ((*WORLD, "--overlay", "errno@CREATE_CQ=EFOO"), 'unknown errno "EFOO"', None),
    ((*WORLD, "--overlay", "errno@CREATE_CQQ=EIO"), 'unknown step "CREATE_CQQ"', "CREATE_CQ"),
    ((*WORLD, "--overlay", "cdev-mode=600"), "with a leading 0", None),
    ((*WORLD, "--device", "../x=rxe"), "no folder of sysfs", None),
    ((*WORLD, "--relax", "ioctl.absnt"), 'unknown rule "ioctl.absnt"', "ioctl.absent"),
    ((*WORLD, "--device", "rxe1=rxe,speed=1"), "unknown option 'speed=1'", None),
    (("--kernel", "debian-6.1.192"), "no device", "--provider"),
    ((*WORLD, "--trace", "/no/where"), "the trace /no/where cannot be written", None),
    ((*WORLD, "--keep", "/proc/none"), "the folder /proc/none cannot be made", None),
))
def test_wrong_arguments_are_told_with_what_is_near(words, told, nearest):
    result = start(*words, "--", "true")
    assert (result.returncode, result.stdout) == (2, "")
    assert told in result.stderr and (nearest is None or nearest in result.stderr.partition(told)[2])
    assert "Traceback" not in result.stderr


def test_no_program_is_a_usage_error():
    for words in ((), ("--",)):
        result = start(*WORLD, *words)
        assert result.returncode == 2 and "no program" in result.stderr


def test_a_shell_finds_the_userlands_programs_first():
    result = start(*WORLD, "--", "sh", "-c", "command -v ibstat; command -v ls; ibv_devices | tail -1")
    found = result.stdout.splitlines()
    assert "/userlands/deb-44.0/" in found[0] and found[0].endswith("/ibstat")
    assert "/userlands/" not in found[1] and "rxe0" in found[2], result.stderr


def test_a_signal_that_comes_while_the_program_starts_reaches_it():
    def start():
        process = subprocess.Popen(["sh", "-c", "trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done"],
                                   stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "up\n"
        os.kill(os.getpid(), signal.SIGTERM)
        return process

    started = []
    try:
        with children.interruptible():
            assert exec_command._ended(start) == 9
    finally:
        started[0].kill()
        started[0].stdout.close()
        started[0].wait()


def test_signals_reach_the_program():
    with subprocess.Popen([str(paths.LAUNCHER), "exec", *WORLD, "--", "sh", "-c",
                           "trap 'echo got; exit 9' TERM; echo up; while :; do sleep 0.05; done"],
                          stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "got\n"
        assert process.wait(timeout=60) == 9


def test_a_signal_that_is_ignored_stays_so_for_the_program():
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        result = run("sh", "-c", "kill -HUP $$; echo alive")
    finally:
        signal.signal(signal.SIGHUP, old)
    assert (result.returncode, result.stdout) == (0, "alive\n"), result.stderr


def test_no_run_folder_is_left_behind():
    result = run("sh", "-c", "dirname $VERBS_ABI_WORLD; kill -KILL $$")
    folder = pathlib.Path(result.stdout.strip())
    assert result.returncode == 137
    assert folder.parent == worlds.runs_dir() and not folder.exists()


def _folder_of_a_killed_run():
    process = subprocess.Popen([str(paths.LAUNCHER), "exec", *WORLD, "--", "sh", "-c",
                                "dirname $VERBS_ABI_WORLD; read nothing"], text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, start_new_session=True)
    folder = pathlib.Path(process.stdout.readline().strip())
    assert folder.is_dir()
    os.kill(process.pid, signal.SIGKILL)  # the shell in it ends with its standard input
    process.communicate(timeout=60)
    return folder


def test_what_a_killed_run_left_is_removed_when_it_is_old_and_nobodys():
    kept, gone = _folder_of_a_killed_run(), _folder_of_a_killed_run()
    owner = gone / worlds._OWNER
    os.utime(owner, (0, 0))
    try:
        with owner.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert run("true").returncode == 0
            assert gone.exists(), "its owner is alive"
        assert run("true").returncode == 0
        assert not gone.exists()
        assert kept.exists(), "the programs of a run that was just killed may still be ending"
    finally:
        shutil.rmtree(kept, ignore_errors=True)


@pytest.mark.parametrize("overlays, program, told", (
    ((), ("ibv_devices",), None),
    (("errno@REG_MR=EIO",), ("ibv_devices",), "REG_MR"),
    (("errno@open=EIO",), ("ibv_devinfo",), None),
    (("errno@netlink:GET_CHARDEV=EIO",), ("ibv_devices",), None),
    (("errno-once@DEVICE.QUERY_PORT=EIO", "errno@REG_MR=EIO"), ("ibv_devinfo",), "REG_MR"),
    (("errno@QUERY_DEVICE_EX=EIO",), ("ibv_devinfo",), None),
    (("mmap-fails=CQ",), ("@journey",), None), (("mmap-fails=CQS",), ("@journey",), "mmap:CQS")))
@pytest.mark.parametrize("traced", (False, True))
def test_a_fault_that_the_program_never_came_to_is_told(tmp_path, overlays, program, told, traced):
    words = [word for overlay in overlays for word in ("--overlay", overlay)]
    result = start(*WORLD, *words, *(("--trace", str(tmp_path / "trace")) if traced else ()), "--", *program)
    said = [line for line in result.stderr.splitlines() if "never came to it" in line]
    assert said == ([f"verbs-abi: an overlay lets {told} fail, but the program never came to it"] if told else [])


def test_a_trace_that_lacks_lines_says_so():
    result = start(*WORLD, "--trace", "/dev/full", "--", "ibv_devinfo")
    assert result.returncode == 0 and "hca_id" in result.stdout
    assert result.stderr == "verbs-abi: the trace lacks lines: its file cannot be written (ENOSPC)\n"


@pytest.mark.parametrize("cell, told, nearest", (
    ("deb-44.0/debian-6.1.192", "is no cell", "USERLAND/KERNEL/PROVIDER"),
    ("deb-44/debian-6.1.192/rxe", "unknown userland 'deb-44'", "deb-44.0"),
    ("deb-44.0/debian-6.1/rxe", "unknown kernel 'debian-6.1'", "debian-6.1.192"),
    ("deb-44.0/debian-6.1.192/rxa", "unknown provider 'rxa'", "rxe"),
    ("deb-44.0/debian-6.1.192/rxe/no-iotcl", "unknown overlay 'no-iotcl'", "no-ioctl"),
    ("deb-44.0/debian-6.1.192/rxe@journy", "unknown scenario 'journy'", "journey"),
))
def test_explain_tells_what_is_wrong_with_a_cells_name(cell, told, nearest):
    result = start(cell, command="explain")
    assert (result.returncode, result.stdout) == (2, "")
    assert told in result.stderr and nearest in result.stderr


def locked(*words, limit=None):
    """What a journey of an ordinary user came to. limit: of the machine, in bytes, before exec starts."""
    result = subprocess.run(
        [str(paths.LAUNCHER), "exec", *WORLD, "--overlay", "unprivileged", *words], text=True, capture_output=True,
        stdin=subprocess.DEVNULL, timeout=120, check=False,
        preexec_fn=limit and (lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))))
    return result.returncode, [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")], result.stdout


def test_the_worlds_memlock_is_the_processes_and_its_childrens():
    status, _, text = locked("--overlay", "memlock=68", "--", "sh", "-c", "ulimit -l; sh -c 'ulimit -l'")
    assert (status, text) == (0, "68\n68\n")
    status, rows, _ = locked("--overlay", "memlock=68", "--", "@journey")
    failed, = (row for row in rows if row.get("ok") is False)
    # core/umem.c:ib_umem_get
    assert status == 1 and {"step": "reg_mr", "errno": "ENOMEM"}.items() <= failed.items()


def test_a_limit_that_the_program_sets_counts_for_its_children():
    shell = locked("--", "sh", "-c", "ulimit -l 68; ibv_rc_pingpong -g 0 -d rxe0 -s 1000000 2>&1")
    assert shell[0] == 1 and shell[2] == "Couldn't register MR\n"


def test_a_machines_own_limit_is_no_part_of_the_world():
    assert locked("--", "@journey", limit=68 * 1024)[0] == 0
