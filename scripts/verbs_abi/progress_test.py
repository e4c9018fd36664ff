# SPDX-License-Identifier: BSD-2-Clause
"""Progress for people and for pipes."""

import io

from verbs_abi.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def use(stream):
    with Progress("build", stream) as progress:
        progress.update("1/2 a.o")
        progress.note("took long")
        progress.output("a.c:1: warning\n")
        progress.update("2/2 b.o")
    return stream.getvalue()


def test_a_pipe_gets_plain_lines_that_stay():
    assert use(io.StringIO()) == "build: took long\na.c:1: warning\n"


def test_a_pipe_is_told_every_half_minute_that_the_work_goes_on():
    now, stream = [100.0], io.StringIO()
    with Progress("build", stream, clock=lambda: now[0]) as progress:
        for second in range(0, 100, 10):
            now[0] = 100.0 + second
            progress.update(f"at {second} s")
            if second == 40:
                progress.note("took long")
    assert stream.getvalue() == (
        "build: at 30 s\nbuild: took long\nbuild: at 70 s\n"
    )


def test_a_terminal_sees_one_line_change_and_nothing_left_of_it(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    clear = "\r\033[K"
    assert use(Terminal()) == (
        f"{clear}build: 1/2 a.o{clear}build: took long\na.c:1: warning\n"
        f"{clear}build: 2/2 b.o{clear}"
    )


def test_the_line_is_shorter_than_the_narrowest_terminal(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "12")
    stream = Terminal()
    with Progress("build", stream) as progress:
        progress.update("a file with a long name")
    assert stream.getvalue() == "\r\033[Kbuild: a fi\r\033[K"


def test_ci_gets_plain_lines_on_a_terminal_too(monkeypatch):
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("TERM", "xterm")
    assert use(Terminal()) == "build: took long\na.c:1: warning\n"
