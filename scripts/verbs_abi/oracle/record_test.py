# SPDX-License-Identifier: BSD-2-Clause
"""What goes wrong while a kernel is recorded: which kernel, what is kept, exit status 2."""

import errno
import io
import os
import signal
import subprocess
import sys
import time

import pytest

from verbs_abi import cli, errors
from verbs_abi.oracle import apt, boot, check, generate, kernels, probing, record, store, vm
from verbs_abi.setup import build

KERNEL = "debian-6.1.192"
LIST = "case a\ncall 1 close 1\n"


@pytest.fixture(name="place")
def _place(tmp_path, monkeypatch):
    """A room with an older recording, an unpacked kernel that is no kernel, and an empty PATH."""
    store.Recording(KERNEL, tmp_path / "room").replace({"a:1": "old 0"}, "old list", 0, {"p": "1"},
                                                       {"netlink.txt": "old"}, {})
    monkeypatch.setenv("VERBS_ABI_CACHE", str(tmp_path / "cache"))
    unpacked = kernels.Unpacked(kernels.find(KERNEL))
    image = unpacked.root / "boot" / f"vmlinuz-{unpacked.kernel.release}"
    image.parent.mkdir(parents=True)
    image.write_bytes(b"no kernel")
    (unpacked.cache / "done").write_text('{"p": "1"}')
    monkeypatch.setattr(generate, "call_list", lambda *_: LIST)
    monkeypatch.setattr(vm, "base_archive", lambda *_: image)
    monkeypatch.setattr(boot, "job", lambda *_: b"")
    monkeypatch.setattr(boot, "guest_tools", lambda: {})
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def fake(place, name, script):
    path = place / "bin" / name
    path.write_text("#!/bin/sh\nPATH=/usr/bin:/bin\n" + script)
    path.chmod(0o755)


def limited(monkeypatch, **limits):
    """Boots as boot.run does, within a time that a test can wait for."""
    monkeypatch.setattr(probing.boot, "run", lambda kernel, script, extra=(), **_: vm.boot(
        kernels.Unpacked(kernels.find(kernel)).prepare(), extra, **limits))


def ask(place, *words):
    """What `oracle record` said of the kernel, in its own words and in the error's."""
    lines = []
    room = place / "room"
    with pytest.raises(errors.UserError) as error:
        record.each([KERNEL], lambda name: record.record(name, 0, lines.append, *words, room=room),
                    lines.append, room)
    assert KERNEL in str(error.value)
    recording = store.Recording(KERNEL, room)
    assert recording.answers() == {"a:1": "old 0"} and sorted(os.listdir(room)) == [KERNEL]
    assert lines[-1].startswith(f"{KERNEL}:")
    assert f"the recording of {recording.about()['date']} is kept" in lines[-1]
    return lines[-1]


def test_without_qemu_the_recording_stays(place):
    assert "no qemu-system-x86_64: install the package qemu-system-x86" in ask(place)


def test_a_package_that_is_gone_is_named_with_its_suites(place, monkeypatch):
    (kernels.Unpacked(kernels.find(KERNEL)).cache / "done").unlink()
    monkeypatch.setattr(apt, "_source_line", lambda suite: f"deb http://nowhere {suite} main\n")
    fake(place, "apt-get", 'case "$*" in *download*) echo "E: Unable to locate package" >&2; '
         "exit 100;; esac\n")
    said = ask(place)
    assert "linux-image-6.1.0-57-amd64" in said and "bookworm" in said and "Unable to locate" in said


def test_a_package_that_is_broken_is_told(place, monkeypatch):
    unpacked = kernels.Unpacked(kernels.find(KERNEL))
    (unpacked.cache / "done").unlink()
    debs = apt.Suites(unpacked.kernel.suites).root / "debs"
    debs.mkdir(parents=True)
    (debs / f"{unpacked.kernel.packages[0]}_1_amd64.deb").write_bytes(b"cut off")
    fake(place, "dpkg-deb", "exit 2\n")
    assert "dpkg-deb" in ask(place)


def test_a_guest_that_hangs_is_ended_and_told(place, monkeypatch):
    fake(place, "qemu-system-x86_64", "exec sleep 600\n")
    limited(monkeypatch, timeout=0.5)
    assert "the probe did not start in the guest (timeout)" in ask(place)


def test_a_kernel_that_does_not_come_up_shows_its_console(place, monkeypatch):
    fake(place, "qemu-system-x86_64",
         'for word; do case "$word" in file:*) echo "VFS: no root" > "${word#file:}";; esac; done\n')
    limited(monkeypatch, timeout=20)
    said = ask(place)
    assert "the probe did not start in the guest (crashed)" in said and "VFS: no root" in said


def test_a_probe_that_fails_in_the_guest_is_told(place, monkeypatch):
    monkeypatch.setattr(probing.boot, "run", lambda *_, **__: vm.Result(
        "done", "", b"", {"stderr": b"probe: cannot open uverbs0"}, 1.0))
    assert "probe: cannot open uverbs0" in ask(place)


def test_programs_that_fail_after_the_calls_leave_the_old_recording(place, monkeypatch):
    monkeypatch.setattr(probing.boot, "run", lambda *_, **__: vm.Result(
        "done", "", b"a:1 new 0\na:end exit 0\nall done\n", {}, 1.0))
    monkeypatch.setattr(record.machine, "record", lambda *_: (_ for _ in ()).throw(
        kernels.OracleError(f"{KERNEL}: the programs' boot crashed twice")))
    assert "the programs' boot crashed twice" in ask(place)


def test_one_kernel_that_fails_does_not_keep_the_others_from_their_turn(place):
    made, lines = [], []

    def make(name):
        made.append(name)
        if name == "b":
            raise kernels.OracleError("it is gone")

    with pytest.raises(errors.UserError, match="not recorded: b"):
        record.each(["a", "b", "c"], make, lines.append, place / "room")
    assert made == ["a", "b", "c"] and lines == ["b: it is gone; nothing is stored of it"]


@pytest.mark.parametrize("error, said", (
    (OSError(errno.ENOSPC, "No space left on device"), "a: No space left on device for temporary files in "),
    (OSError(errno.EROFS, "Read-only file system", "/x/y"), "'/x/y'")))
def test_a_disk_that_takes_no_more_is_told_with_its_place(tmp_path, monkeypatch, error, said):
    def fail(*_):
        raise error

    lines = []
    with pytest.raises(errors.UserError, match="not recorded: a"):
        record.each(["a"], fail, lines.append, tmp_path)
    assert said in lines[0] and lines[0].endswith("nothing is stored of it")
    monkeypatch.setattr(check, "check_kernel", fail)
    monkeypatch.setattr(check, "FakeMachine", lambda *_: io.StringIO())
    with pytest.raises(errors.UserError) as ended:
        check.compare_all(["a"], None)
    assert said in str(ended.value)


def test_the_command_ends_with_status_2(place, capfd):
    assert cli.main(["oracle", "record", "--kernel", KERNEL, "--room", str(place / "room")]) == 2
    said = "".join(capfd.readouterr())
    assert f"not recorded: {KERNEL}" in said and "qemu-system-x86" in said


@pytest.mark.parametrize("words, said", (
    (("record", "--kernel", KERNEL, "--kernel", "debian-6.1.19"), "unknown recorded kernel 'debian-6.1.19'"),
    (("check", "--kernel", "debian-6.1.19"), "unknown recorded kernel 'debian-6.1.19'"),
    (("check", "--room", "nowhere"), "no recordings in nowhere"),
    (("check", "--build", "nowhere"), "nowhere is no build folder"),
    (("check", "--answers", "nowhere"), "nowhere: no answers: No such file"),
    (("clients", "--build", "nowhere"), "nowhere is no build folder")))
def test_what_is_not_there_is_told_before_anything_is_built_or_booted(monkeypatch, capfd, words, said):
    monkeypatch.setattr(build, "ensure", lambda *_, **__: pytest.fail("built"))
    monkeypatch.setattr(record, "record", lambda *_, **__: pytest.fail("recorded"))
    assert cli.main(["oracle", *words]) == 2
    assert said in "".join(capfd.readouterr())


def test_a_room_that_takes_nothing_is_told_before_a_kernel_is_recorded(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(record, "record", lambda *_, **__: pytest.fail("recorded"))
    monkeypatch.setattr(os, "access", lambda path, _: path != tmp_path)
    assert cli.main(["oracle", "record", "--kernel", KERNEL, "--room", str(tmp_path / "new" / "room")]) == 2
    assert f"nothing can be stored in {tmp_path}\n" in "".join(capfd.readouterr())


@pytest.mark.parametrize("percent", ("nan", "-1", "101", "most"))
def test_a_threshold_is_a_percentage(capfd, percent):
    with pytest.raises(SystemExit) as ended:
        cli.main(["oracle", "check", "--threshold", percent])
    assert ended.value.code == 2 and "--threshold" in capfd.readouterr().err


# A qemu that leaves answers in the shared memory as a guest does: the N-th boot says what is in the file boot.N, then
# hangs, where there is a file hang.N, or ends; "guest: done" on the console is a file done.N.
GUEST = """
n=$(cat DIR/boots 2>/dev/null || echo 0); n=$((n + 1)); echo $n > DIR/boots
for word; do
  case "$word" in
    *mem-path=*) shared=${word#*mem-path=}; shared=${shared%%,*} ;;
    file:*) console=${word#file:} ;;
  esac
done
dd if=DIR/boot.$n of="$shared" conv=notrunc 2>/dev/null
if [ -e DIR/done.$n ]; then echo "guest: done" > "$console"; fi
if [ -e DIR/hang.$n ]; then exec sleep 600; fi
"""


def guests(place, monkeypatch, *boots):
    """boots: (answers, how it ends: "done", "hangs" or "dies")."""
    for number, (answers, end) in enumerate(boots, 1):
        (place / f"boot.{number}").write_text(answers)
        for marker, wanted in (("done", "done"), ("hang", "hangs")):
            if end == wanted:
                (place / f"{marker}.{number}").touch()
    fake(place, "qemu-system-x86_64", GUEST.replace("DIR", str(place)))
    limited(monkeypatch, timeout=20, stall=0.3)
    monkeypatch.setattr(record.machine, "record", lambda *_: {"netlink.txt": "new"})


WHOLE = "a:1 0 0\\na:end exit 0\\nall done\\n".replace("\\n", "\n")


def recorded(place):
    lines = []
    record.record(KERNEL, report=lines.append, room=place / "room")
    recording = store.Recording(KERNEL, place / "room")
    return recording.answers(), (place / "boots").read_text().strip(), lines


@pytest.mark.parametrize("end", ("dies", "hangs"))
def test_a_guest_that_ends_in_the_middle_of_an_answer_is_booted_again(place, monkeypatch, end):
    guests(place, monkeypatch, ("a:1", end), (WHOLE, "done"))
    answers, boots, lines = recorded(place)
    assert answers == {"a:1": "0 0", "a:end": "exit 0"} and boots == "2"
    assert lines[0] == f"{KERNEL}: the guest {'crashed' if end == 'dies' else 'stalled'} at a:1; once more"


def test_a_call_at_which_two_guests_hang_is_an_answer(place, monkeypatch):
    guests(place, monkeypatch, ("a:1", "hangs"), ("a:1", "hangs"), (WHOLE.replace("0 0", "oops"), "done"))
    answers, boots, lines = recorded(place)
    assert answers == {"a:1": "oops", "a:end": "exit 0"} and boots == "3"
    assert "a:1 stalled" in lines[1]


def test_guests_that_never_come_to_the_end_store_nothing(place, monkeypatch):
    monkeypatch.setattr(probing, "MAX_BOOTS", 4)
    guests(place, monkeypatch, *[("a:1 0 0\na:", "dies")] * 4)
    assert "not done after 4 boots, at case a; nothing was stored" in ask(place)


def test_two_guests_at_a_time_and_a_third_waits(place, monkeypatch):
    monkeypatch.setattr(boot.time, "sleep", lambda _: (_ for _ in ()).throw(TimeoutError("it waits")))
    first, second = boot.a_guests_place(), boot.a_guests_place()
    with pytest.raises(TimeoutError):
        boot.a_guests_place()
    second.close()
    boot.a_guests_place().close()
    first.close()


SIGNALLED = """
import sys, threading
from verbs_abi import children
from verbs_abi.oracle import kernels, probing, record, vm
probing.boot.run = lambda kernel, script, extra=(), **_: vm.boot(kernels.Unpacked(kernels.find(kernel)), extra, timeout=60)
vm.base_archive = lambda *_: sys.argv[1]
record.generate.call_list = lambda *_: "case a\\ncall 1 close 1\\n"
with children.interruptible():
    record.each(["KERNEL"], record.record, print)
"""


def test_a_signal_ends_the_guests_and_boots_none_again(place):
    fake(place, "qemu-system-x86_64", f"echo $$ >> {place}/guests; exec sleep 600\n")
    image = next((place / "cache").rglob("vmlinuz-*"))
    with subprocess.Popen([sys.executable, "-c", SIGNALLED.replace("KERNEL", KERNEL), str(image)],
                          cwd=kernels.SOURCE_ROOT / "scripts", stderr=subprocess.DEVNULL) as ended:
        limit = time.monotonic() + 60
        while not (place / "guests").exists() and time.monotonic() < limit:
            time.sleep(0.05)
        ended.send_signal(signal.SIGTERM)
        assert ended.wait(timeout=60) != 0
    guests_of = (place / "guests").read_text().split()
    assert len(guests_of) == 1 and not os.path.exists(f"/proc/{guests_of[0]}")


AT_ONCE = """
import os, signal
start = threading.Thread.start
def signalled(thread):
    start(thread)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread.start = signalled
"""


def test_a_signal_while_the_threads_begin_boots_no_guest_that_stays(place):
    fake(place, "qemu-system-x86_64", f"echo $$ >> {place}/guests; exec sleep 600\n")
    image = next((place / "cache").rglob("vmlinuz-*"))
    script = SIGNALLED.replace("KERNEL", KERNEL).replace("with children", AT_ONCE + "with children")
    with subprocess.Popen([sys.executable, "-c", script, str(image)], cwd=kernels.SOURCE_ROOT / "scripts",
                          stderr=subprocess.DEVNULL, start_new_session=True) as ended:
        try:
            assert ended.wait(timeout=30) != 0
        finally:
            ended.kill()
            guests_of = (place / "guests").read_text().split() if (place / "guests").exists() else []
            left = [pid for pid in guests_of if os.path.exists(f"/proc/{pid}")]
            for pid in left:
                os.kill(int(pid), signal.SIGKILL)
        assert left == []
