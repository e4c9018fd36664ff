# SPDX-License-Identifier: BSD-2-Clause
"""Compilers, test runners and the like: each in a session of its own, none of which outlives us.

A signal that asks us to end (Ctrl-C, SIGTERM, SIGHUP) ends all of them at once, wherever we wait, and then raises
Interrupted in the main thread. Programs of cells have limits of their own and are not started here.
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import threading
import time

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# What ninja needs to end its compilers and to remove what they have half written.
GRACE_SECONDS = 5


class Interrupted(KeyboardInterrupt):
    """We were asked to end; `number` is the signal."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


_lock = threading.RLock()
_running = {}  # process id: Popen
_starting = None  # the thread that is starting one: its signal has to wait until it is known
_asked = None  # the signal that came
_undisturbed = 0  # how many bodies of undisturbed() are under way
_waiting = None  # a signal that came meanwhile


def _processes():
    """{process id: (parent, session, start time)} of all."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if len(fields) > 19:
            found[int(folder.name)] = (int(fields[1]), int(fields[3]), fields[19])
    return found


def _belonging(pid):
    """{process id: start time} of a process, its session and all their descendants: a runner of tests gives what it
    starts sessions of their own, as we do."""
    processes = _processes()
    found, more = set(), {pid} & set(processes)
    while more:
        found |= more
        more = {one for one, (parent, session, _) in processes.items() if parent in found or session == pid} - found
    return {one: processes[one][2] for one in found}


def _kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def end(process):
    """Ends a process that `started` gave, its whole session and what that has started."""
    belonging = _belonging(process.pid)
    if process.poll() is None:
        _kill(process.pid, signal.SIGTERM)
        limit = time.monotonic() + GRACE_SECONDS
        while process.poll() is None and time.monotonic() < limit:
            time.sleep(0.02)
    for pid, (_, session, start) in _processes().items():
        if session == process.pid or belonging.get(pid) == start:
            _kill(pid, signal.SIGKILL)


def _end_all():
    for process in list(_running.values()):
        end(process)


@contextlib.contextmanager
def started(argv, **options):
    """A Popen in a session of its own, which is ended when the body raises."""
    global _starting
    with _lock:
        if _asked is not None:
            raise Interrupted(_asked)
        _starting = threading.get_ident()
        try:
            process = subprocess.Popen(argv, start_new_session=True, **options)
            _running[process.pid] = process
        finally:
            _starting = None
    try:
        with process:
            try:
                if _asked is not None:
                    raise Interrupted(_asked)
                yield process
            except BaseException:
                end(process)
                raise
    finally:
        _running.pop(process.pid, None)


def run(argv, **options):
    """subprocess.run (text=…, stdout=…, timeout is not known here) with `started`."""
    check = options.pop("check", False)
    with started(argv, **options) as process:
        out, err = process.communicate()
    if check and process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv, out, err)
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def interrupt(number):
    """What a signal handler does: ends everything, then raises Interrupted."""
    global _asked, _waiting
    if _undisturbed:
        _waiting = number
        return
    _asked = number
    if _starting == threading.get_ident():
        return  # started() looks at once
    _end_all()
    raise Interrupted(number)


def listen():
    """For a process that is about to become a test runner: tests that signal programs of theirs mean it, also where we
    were started in the background (a shell's `&`, nohup) and ignore what a terminal sends."""
    for number in (*SIGNALS, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def forked():
    """For a process that was forked off us and stays Python: it has started nothing yet, and a signal ends it until it
    says otherwise with interruptible(). What is ignored stays ignored."""
    global _asked, _undisturbed, _waiting
    _running.clear()
    _asked, _undisturbed, _waiting = None, 0, None
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def undisturbed():
    """A signal that asks us to end does so when the body is done: for what takes a moment and must not stay half done.
    A body that raises has its own say."""
    global _undisturbed, _waiting
    _undisturbed += 1
    try:
        yield
    finally:
        _undisturbed -= 1
        number, _waiting = _waiting, None
    if number is not None:
        interrupt(number)


@contextlib.contextmanager
def interruptible():
    """The signals that ask us to end do so for the body. A signal that is ignored (nohup) stays ignored."""
    global _asked
    own = os.getpid()

    def handler(number, _frame):
        if os.getpid() == own:  # not a child that is about to become another program
            interrupt(number)

    kept = {number: signal.getsignal(number) for number in SIGNALS}
    kept = {number: old for number, old in kept.items() if old in (signal.SIG_DFL, signal.default_int_handler)}
    for number in kept:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in kept.items():
            signal.signal(number, old)
        _asked = None
