# SPDX-License-Identifier: BSD-2-Clause
"""What ninja and gcc said, per library: the first error, and its cause in a person's words."""

import dataclasses
import re

STEP = re.compile(r"^\[\d+/\d+\] ")
OBJECT = re.compile(r"CMakeFiles/(?P<target>[^/ ]+)\.dir/")
ERROR = re.compile(r"^(?P<where>[^\s:][^:]*:\d+:(?:\d+:)?) (?:fatal )?error: (?P<what>.*)$")

# Of gcc's words, in the order in which they are tried: (pattern, cause). {n} is the pattern's group n.
CAUSES = tuple((re.compile(pattern), cause) for pattern, cause in (
    (r"#error (?P<h>\S+) is not among these headers", "missing header {1}"),
    (r"(\S+): No such file or directory", "missing header {1}"),
    (r"['‘](?:struct|union) ([^'’]+)['’] has no member named ['‘]([^'’]+)['’]", "missing field {1}.{2}"),
    (r"no member named ['‘]([^'’]+)['’]", "missing field {1}"),
    (r"['‘]([^'’]+)['’] undeclared", "missing symbol {1}"),
    (r"unknown type name ['‘]([^'’]+)['’]", "missing type {1}"),
    (r"(?:storage size of|invalid use of undefined type|invalid application of ['‘]sizeof['’] to incomplete type)"
     r".*?['‘](?:const )?(?:struct |union |enum )?([^'’]+)['’]", "missing type {1}"),
    (r"before ['‘]_STRUCT_([^'’]+)['’]", "missing type {1}"),
    (r"['‘]([^'’]+)['’] has incomplete type", "missing type {1}"),
    (r"implicit declaration of function ['‘]([^'’]+)['’]", "missing symbol {1}"),
    (r"static assertion failed: (.*)", "static assertion: {1}"),
    (r"redefinition of ['‘]([^'’]+)['’]", "declared twice: {1}"),
    (r"redeclaration of enumerator ['‘]([^'’]+)['’]", "declared twice: {1}"),
    (r"conflicting types for ['‘]([^'’]+)['’]", "another type of {1}"),
    (r"initiali[sz]ation of .* from incompatible pointer type", "another type"),
    (r"undefined reference to [`'‘]([^'’]+)['’]", "missing symbol {1}"),
))


@dataclasses.dataclass(frozen=True)
class Failure:
    """One failed step of a build. target: CMake's name of what it belongs to ("mlx5", "efa-rdmav34")."""

    outputs: tuple
    target: str
    error: str
    cause: str | None


def cause_of(error):
    """A cause for gcc's words, or None when they are of no known kind."""
    for pattern, cause in CAUSES:
        found = pattern.search(error)
        if found:
            for number, group in enumerate(found.groups(), 1):
                cause = cause.replace(f"{{{number}}}", group)
            return cause
    return None


def failures(text):
    """The Failures in ninja's output, in its order."""
    found, block = [], None
    for line in [*text.splitlines(), "[1/1] end"]:
        if line.startswith("FAILED: "):
            if block:
                found.append(_failure(block))
            block = [line]
        elif STEP.match(line) or line.startswith("ninja: "):
            if block:
                found.append(_failure(block))
            block = None
        elif block:
            block.append(line)
    return found


def _failure(block):
    outputs = tuple(block[0].removeprefix("FAILED: ").split())
    target = next((match["target"] for output in outputs if (match := OBJECT.search(output))), "")
    lines = block[2:]  # after the command
    told = next((match for line in lines if (match := ERROR.match(line))), None)
    error = told["what"] if told else next((line.strip() for line in lines if "undefined reference" in line), None)
    error = error or next((line.strip() for line in reversed(lines) if line.strip()), "failed without a word")
    return Failure(outputs, target, error, cause_of(error))
