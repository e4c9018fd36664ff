# SPDX-License-Identifier: BSD-2-Clause
"""Progress on stderr: one line rewritten in place for people, plain lines now and then elsewhere."""

import os
import shutil
import sys
import time


def for_people(stream=None):
    """Does a person look at this stream? Not in a pipe, with CI=true, or on a dumb terminal."""
    stream = stream or sys.stderr
    return (
        stream.isatty()
        and os.environ.get("CI") != "true"
        and os.environ.get("TERM", "dumb") != "dumb"
    )


# A log that grows by a line this often tells that the work goes on, and stays short.
LOG_SECONDS = 30


class Progress:
    """`with Progress("building") as progress: progress.update("12/80")`.

    For people each update replaces the last one; elsewhere `note` prints, and an update when
    nothing was printed for half a minute.
    """

    def __init__(self, title, stream=None, clock=time.monotonic):
        self._title = title
        self._stream = stream or sys.stderr
        self._live = for_people(self._stream)
        self._shown = False
        self._clock = clock
        self._last = 0.0 if self._live else clock()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._clear()

    def _clear(self):
        if self._shown:
            self._stream.write("\r\033[K")
            self._stream.flush()
            self._shown = False

    def update(self, text):
        """What is going on now. Costs nothing when called often."""
        now = self._clock()
        if not self._live:
            if now - self._last >= LOG_SECONDS:
                self.note(text)
            return
        if self._shown and now - self._last < 0.05:
            return
        self._last = now
        line = f"{self._title}: {text}"[: max(1, shutil.get_terminal_size().columns - 1)]
        self._stream.write(f"\r\033[K{line}")
        self._stream.flush()
        self._shown = True

    def note(self, text):
        """A line that stays."""
        self._clear()
        self._last = self._clock()
        self._stream.write(f"{self._title}: {text}\n")
        self._stream.flush()

    def output(self, text):
        """Another program's own words, as they are."""
        self._clear()
        self._stream.write(text)
        self._stream.flush()
