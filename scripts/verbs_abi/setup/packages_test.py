# SPDX-License-Identifier: BSD-2-Clause
"""The launcher's set-up, with stand-ins for dpkg-query, apt-get, sudo and id on its PATH."""

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import termios

import pytest

from verbs_abi import paths

PACKAGES = paths.SCRIPTS / "verbs_abi/setup/packages.txt"
LISTED = """# comment
base  alpha        why
base  beta|gamma   either
test  delta        why
"""


class Machine:
    """A pretended machine: which packages are installed and known, who the user is."""

    def __init__(self, folder):
        self.bin = folder / "bin"
        self.state = folder / "installed"
        self.log = folder / "log"
        self.tmp = folder / "tmp"
        self.bin.mkdir()
        self.tmp.mkdir()
        self.log.write_text("")
        root = folder / "tree"
        (root / "scripts/verbs_abi/setup").mkdir(parents=True)
        shutil.copy(paths.LAUNCHER, root)
        shutil.copy(PACKAGES.with_name("packages.sh"), root / "scripts/verbs_abi/setup")
        (root / "scripts/verbs_abi/setup/packages.txt").write_text(LISTED)
        (root / "scripts/verbs_abi/__init__.py").touch()
        (root / "scripts/verbs_abi/cli.py").write_text(
            "def main(argv):\n    print('started', *argv)\n"
        )
        self.launcher = root / "verbs-abi"
        self.cache = folder / "cache"
        self.installed()
        self.program(
            "dpkg-query", f'echo dpkg-query >>"{self.log}"; sed "s/$/ installed/" "{self.state}"'
        )
        self.program("apt-cache", 'case "$3" in beta) exit 100;; esac')
        self.program(
            "apt-get",
            f"""
            echo "apt-get $*" | sed 's/-o [^ ]* //g; s/-q //' >>"{self.log}"
            case "$*" in *install*) for name; do echo "$name"; done >>"{self.state}" ;; esac""",
        )
        self.be_root()

    def program(self, name, text):
        (self.bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.bin / name).chmod(0o755)

    def installed(self, *names):
        self.state.write_text("".join(f"{name}\n" for name in names))

    def be_root(self):
        self.program("id", "echo 0")
        (self.bin / "sudo").unlink(missing_ok=True)

    def be_nobody(self, sudo=None):
        self.program("id", "echo 1000")
        # One that can be found must be shadowed too.
        self.program("sudo", sudo or "exit 1")

    def calls(self):
        return [line for line in self.log.read_text().splitlines() if line != "dpkg-query"]

    def start(self, *words, **env):
        return subprocess.run(
            [str(self.launcher), *words],
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env={"PATH": f"{self.bin}:{os.environ['PATH']}", "VERBS_ABI_CACHE": str(self.cache),
                 "TMPDIR": str(self.tmp), **env},
            timeout=240,
            check=False,
        )


@pytest.fixture(name="machine")
def _machine(tmp_path):
    return Machine(tmp_path)


def test_when_all_is_there_nothing_is_installed_and_next_time_nothing_is_asked(machine):
    machine.installed("alpha", "gamma")
    result = machine.start("list", "kernels")
    assert (result.returncode, result.stdout, result.stderr) == (0, "started list kernels\n", "")
    assert machine.log.read_text() == "dpkg-query\n"
    machine.start("list")
    assert machine.log.read_text() == "dpkg-query\n"


def test_a_changed_package_list_is_looked_at_again(machine):
    machine.installed("alpha", "gamma")
    machine.start("list")
    stamp = next((machine.cache / "setup").iterdir())
    os.utime(stamp, (1, 1))
    machine.start("list")
    assert machine.log.read_text() == "dpkg-query\ndpkg-query\n"


def test_what_is_missing_is_installed_with_the_alternative_that_exists(machine):
    result = machine.start("list")
    assert machine.calls()[-1] == "apt-get install -y --no-install-recommends alpha gamma"
    assert (result.returncode, result.stdout) == (0, "started list\n")
    assert re.fullmatch(r"verbs-abi: installing 2 packages: alpha gamma\n"
                        r"verbs-abi: packages are installed, \d+ s\n", result.stderr)
    assert not list(machine.tmp.iterdir())


def test_a_command_brings_only_its_own_groups(machine):
    machine.installed("alpha", "gamma")
    assert machine.start("run").returncode == 0
    assert machine.calls() == []
    assert machine.start("test").returncode == 0
    assert machine.calls()[-1] == "apt-get install -y --no-install-recommends delta"


def test_old_package_lists_are_updated_once_and_the_install_tried_again(machine):
    machine.program(
        "apt-get",
        f"""
        echo "apt-get $*" | sed 's/-o [^ ]* //g; s/-q //' >>"{machine.log}"
        case "$*" in
          *update*) touch "{machine.bin}/updated" ;;
          *) [ -e "{machine.bin}/updated" ] || {{ echo 'E: 404' >&2; exit 100; }}
             for name; do echo "$name"; done >>"{machine.state}" ;;
        esac""",
    )
    assert machine.start("list").returncode == 0
    assert machine.calls()[-2:] == [
        "apt-get update",
        "apt-get install -y --no-install-recommends alpha gamma",
    ]


def test_without_root_and_sudo_the_exact_line_is_printed(machine):
    machine.be_nobody()
    result = machine.start("list")
    assert (result.returncode, result.stdout) == (2, "")
    assert (
        "apt-get update && apt-get install --no-install-recommends alpha gamma\n" in result.stderr
    )
    assert machine.calls() == []


def test_sudo_is_used_where_it_needs_no_password(machine):
    machine.be_nobody(sudo=f'echo "sudo" >>"{machine.log}"; [ "$1" = -n ] && exit 0; "$@"')
    result = machine.start("list")
    assert result.returncode == 0, result.stderr
    assert machine.calls()[-2:] == [
        "sudo",
        "apt-get install -y --no-install-recommends alpha gamma",
    ]


def test_a_failed_installation_shows_apts_errors_and_the_line(machine):
    machine.program("apt-get", "echo 'E: Unable to locate package alpha' >&2; exit 100")
    result = machine.start("list")
    assert (result.returncode, result.stdout) == (2, "")
    assert "E: Unable to locate package alpha" in result.stderr
    (log,) = machine.tmp.glob("*/log")
    assert f"All that apt-get said stands in {log}\n" in result.stderr
    assert "E: Unable to locate package alpha" in log.read_text()
    assert "apt-get install --no-install-recommends alpha gamma" in result.stderr


def test_an_installation_that_brought_nothing_is_noticed(machine):
    machine.program("apt-get", "exit 0")
    result = machine.start("list")
    assert result.returncode == 2
    assert "verbs-abi: still missing after apt-get install: alpha beta|gamma\n" in result.stderr


# What apt-get tells, each thing until it was read three times: the second reading began after it was told, and with the
# third the words about the second are out.
TELLING = """
heard() {{
  want=$(($(wc -l <"{reads}") + 3)) tries=0
  while [ $(wc -l <"{reads}") -lt $want ] && [ $tries -lt 600 ]; do sleep 0.2; tries=$((tries + 1)); done
}}
echo 'Get:1 https://archive alpha [5 kB]'
echo 'dlstatus:1:37.5:Retrieving file 1 of 2 (3s remaining)' >&3
heard
echo 'pmstatus:alpha:62.5:Unpacking alpha (amd64)' >&3
heard
for name; do echo "$name"; done >>"{state}"
"""


def tell(machine):
    reads = machine.cache.with_name("reads")
    reads.write_text("")
    machine.program("tail", f'{shutil.which("tail")} "$@"; echo >>"{reads}"')
    machine.program("apt-get", TELLING.format(state=machine.state, reads=reads))


def test_a_log_hears_now_and_then_how_far_apt_is(machine):
    tell(machine)
    lines = machine.start("list", VERBS_ABI_LOG_SECONDS="0.1").stderr.splitlines()
    told = [line for line in lines if " % (" in line]
    assert told[0].startswith("verbs-abi: fetching packages: 37 % (Retrieving file 1 of 2 (3s remaining)), ")
    assert told[-1].startswith("verbs-abi: installing packages: 62 % (Unpacking alpha (amd64)), ")
    machine.installed()
    shutil.rmtree(machine.cache)
    machine.program("apt-get", f'for name; do echo "$name"; done >>"{machine.state}"')
    quiet = machine.start("list", "x")
    assert quiet.returncode == 0 and len(quiet.stderr.splitlines()) == 2


def test_apt_writes_to_files_that_do_not_block(machine):
    """Scripts of packages inherit them: what apt makes non-blocking must take everything at once."""
    machine.program("apt-get", """
        for fd in 1 2 3; do [ -f /proc/self/fd/$fd ] || exit 9; done
        for name; do echo "$name"; done >>"%s" """ % machine.state)
    assert machine.start("list").returncode == 0


def test_people_see_one_line_that_changes(machine):
    tell(machine)
    leader, follower = pty.openpty()
    try:
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        ended = subprocess.run([str(machine.launcher), "list"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=follower, timeout=240, check=False,
                               env={"PATH": f"{machine.bin}:{os.environ['PATH']}", "TERM": "xterm",
                                    "VERBS_ABI_CACHE": str(machine.cache), "TMPDIR": str(machine.tmp)})
        shown = os.read(leader, 1 << 16).decode()
    finally:
        os.close(leader)
        os.close(follower)
    assert ended.returncode == 0
    assert "\r\x1b[Kverbs-abi: fetching packages: 37 % (Retrieving file 1 of 2" in shown
    assert shown.replace("\r\n", "\n").count("\n") == 2, "the line that changes leaves none behind"


@pytest.mark.parametrize("words, wanted", (
    (["run"], False), (["run", "--userland", "deb-44.0"], False), (["test"], False),
    (["run", "--out", "/x/i386/out"], False), (["list", "cells", "--userland", "deb-44.0-i386"], False),
    (["run", "--userland", "deb-44.0-i386"], True), (["exec", "--userland=deb-44.0-i386", "--", "true"], True),
    (["explain", "deb-44.0-i386/linux-6.1/rxe"], True), (["run", "--plan", "gate"], True), (["test", "--all"], True),
    (["test", "--only", "unit,i386"], True), (["run", "--plan=nightly"], True)))
def test_what_i386_userlands_need_comes_in_where_one_is_asked_for(machine, words, wanted):
    listed = machine.launcher.parent / "scripts/verbs_abi/setup/packages.txt"
    listed.write_text(LISTED + "i386  wide-and-narrow  why\n")
    assert machine.start(*words).returncode == 0
    assert ("wide-and-narrow" in machine.state.read_text()) == wanted


def test_the_projects_own_list_is_well_formed():
    groups = set()
    for line in PACKAGES.read_text().splitlines():
        if line and not line.startswith("#"):
            group, names, why = line.split(None, 2)
            groups.add(group)
            assert re.fullmatch(r"[a-z0-9.+-]+(\|[a-z0-9.+-]+)*", names), line
            assert why
    assert groups == {"base", "build", "test", "bench", "client", "i386", "oracle", "source"}
