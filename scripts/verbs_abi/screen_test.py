# SPDX-License-Identifier: BSD-2-Clause
"""Text on terminals of any width; whole lines in a pipe."""

import io
import os

import pytest

from verbs_abi import cli, listing, screen

HEADS = ("name", "written", "about")
ROWS = [("cdev-mode", "cdev-mode@STEP=VALUE", "The node has these permission bits"), ("event", "event=VALUE", "")]


def test_a_pipe_and_ci_have_no_width(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(screen.shutil, "get_terminal_size", lambda: os.terminal_size((40, 24)))
    assert screen.columns(Terminal()) == 40
    assert screen.columns(io.StringIO()) is None
    monkeypatch.setenv("CI", "true")
    assert screen.columns(Terminal()) is None


def test_lines_stay_whole_in_a_pipe_and_are_broken_at_words_on_a_terminal():
    assert screen.wrap("a long line of words", None, "> ", "  ") == ["> a long line of words"]
    assert screen.wrap("a long line of words", 12, "> ", "  ") == ["> a long", "  line of", "  words"]
    assert screen.wrap("", 12, "> ") == [">"]
    # Not even one word fits: it goes on at the indentation, and a width without sense is no endless loop.
    assert screen.wrap("abcdefghijkl", 10, "  ", "  ") == ["  abcdefgh", "  ijkl"]
    assert screen.wrap("abcdefghijkl", 1, "  ", "  ") == ["  abcdefgh", "  ijkl"]


def test_a_table_wraps_its_last_column_then_becomes_blocks():
    whole = ["name       written               about",
             "cdev-mode  cdev-mode@STEP=VALUE  The node has these permission bits",
             "event      event=VALUE"]
    assert screen.table(HEADS, ROWS) == whole
    assert screen.table(HEADS, ROWS, 67) == whole
    assert screen.table(HEADS, ROWS, 60) == [
        whole[0], "cdev-mode  cdev-mode@STEP=VALUE  The node has these", " " * 33 + "permission bits", whole[2]]
    assert screen.table(HEADS, ROWS, 40) == [
        "cdev-mode", "  written: cdev-mode@STEP=VALUE", "  The node has these permission bits",
        "event", "  written: event=VALUE"]


@pytest.mark.parametrize("width", (20, 40, 60, 80))
def test_help_and_lists_keep_within_the_terminal_and_lose_nothing(width):
    def words(text):
        return [word for word in text.split() if word != "written:"]

    head, *lines = cli._overview(width).splitlines()
    assert head.startswith("usage: ") and max(map(len, lines)) <= width
    assert words("\n".join(lines)) == words(cli._overview().partition("\n")[2])
    assert max(map(len, cli._overview(200).splitlines())) > 60, "and no shorter than it has to be"
    columns, rows = listing.LISTS["overlays"](None)
    narrow = listing.table(columns, rows, width).splitlines()
    assert max(map(len, narrow)) <= max(width, max(len(f"  written: {row['written']}") for row in rows))
    for row in rows:
        assert row["name"] in "\n".join(narrow)
