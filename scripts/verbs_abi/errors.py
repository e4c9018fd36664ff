# SPDX-License-Identifier: BSD-2-Clause
"""What a user did wrong or the machine lacks, told so that they can mend it."""

import difflib
import sys

EXIT_OK = 0
EXIT_UNEXPECTED = 1
EXIT_USAGE = 2
# As a shell has them: what was found cannot be run; nothing was found.
EXIT_CANNOT_RUN = 126
EXIT_NOT_FOUND = 127


class UserError(Exception):
    """Ends the command with its message and exit status 2, or `status`; no traceback.

    what: one sentence, with the name of the thing and where it is.
    details: further lines, for example a program's own error output.
    hint: what to do about it.
    """

    def __init__(self, what, *, details=(), hint=None, status=EXIT_USAGE):
        super().__init__(what)
        self.what = what
        self.details = tuple(details)
        self.hint = hint
        self.status = status

    def __str__(self):
        lines = [self.what, *(f"  {line}" for line in self.details)]
        if self.hint:
            lines.append(self.hint)
        return printable("\n".join(lines))


def printable(text):
    """Text with names from elsewhere, for a terminal: no control characters, and no half of a surrogate pair."""
    text = "".join(f"\\x{ord(one):02x}" if ord(one) < 32 and one not in "\n\t" or 127 <= ord(one) < 160 else one
                   for one in text)
    return text.encode(errors="backslashreplace").decode()


def tell_actions(parser):
    """Of a command that does nothing without an action: alone it tells which there are, as a usage error."""
    def handler(_arguments):
        parser.print_help(sys.stderr)
        return EXIT_USAGE

    parser.set_defaults(handler=handler)


def nearest(name, known, count=3):
    """The known names that look most like `name`, best first; maybe none."""
    known = list(known)
    lower = {}
    for candidate in known:
        lower.setdefault(candidate.lower(), candidate)
    close = difflib.get_close_matches(name.lower(), lower, n=count, cutoff=0.5)
    if not close:
        close = [text for text in lower if name and name.lower() in text][:count]
    return [lower[text] for text in close]


def unknown(kind, name, known):
    """The error for a name that no `kind` (kernel, userland, …) has."""
    known = list(known)
    close = nearest(name, known)
    if close:
        hint = "Nearest: " + ", ".join(close)
    elif known:
        shown = known[:12]
        hint = "There are: " + ", ".join(shown) + (", …" if len(known) > len(shown) else "")
    else:
        hint = f"There is no {kind} at all"
    return UserError(f"unknown {kind} '{name}'", hint=hint)
