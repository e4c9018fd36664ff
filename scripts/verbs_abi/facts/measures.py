# SPDX-License-Identifier: BSD-2-Clause
"""The figures of facts: seconds of processor time of the programs that are called, so that a busy machine does not count.

Each function yields rows as verbs_abi.bench.measures.row() makes them.
"""

import contextlib
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile

from verbs_abi.facts import tool
from verbs_abi.facts.builds import engine, sources

OLD, NEW = "debian-6.1.192", "debian-6.12.117"
ROUNDS = 3
# A source that is in every archive, its own headers, and ones that change most of its files.
PAIR = ("src-56.1", "debian-6.12.117")


def _spent():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _seconds(call):
    start = _spent()
    call()
    return _spent() - start


def _library(name, folder):
    """A library with debug information of every struct of a snapshot, for abidiff."""
    headers = folder / name
    tool.generate(tool.headers(name), headers)
    files = sorted(headers.rglob("*.h"))
    text = "".join(f"#include <{path.relative_to(headers)}>\n" for path in files)
    declared = {match for path in files for match in re.findall(r"^(struct|union) (\w+) \{", path.read_text(), re.M)}
    text += "".join(f"{kind} {struct} *use_{struct};\n" for kind, struct in sorted(declared))
    source = folder / f"{name}.c"
    source.write_text(text)
    made = folder / f"{name}.so"
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-I", str(headers), "-o", str(made), str(source)], check=True,
                   capture_output=True, timeout=120)
    return made


def facts(_bench, row):
    """Extraction of one and of all snapshots, and a diff beside abidiff on the same headers."""
    program = str(tool.path())
    with tempfile.TemporaryDirectory(prefix="verbs-abi-facts-") as scratch:
        folder = pathlib.Path(scratch)
        libraries = [_library(name, folder) for name in (OLD, NEW)]

        def extract(name):
            subprocess.run([program, "extract", str(folder / name), "--name", "x", "-o", str(folder / "out")], check=True,
                           capture_output=True, timeout=120)

        one = min(_seconds(lambda: extract(NEW)) for _ in range(ROUNDS))
        yield row("facts.extract", one, "s", 1.0, "<= 0.5 s x 2 ABIs", one <= 1.0)
        names = tool.names()
        for name in names:
            tool.generate(tool.headers(name), folder / name)
        everything = _seconds(lambda: [extract(name) for name in names])
        yield row("facts.extract.all", everything, "s", 30, "<= 30 s", everything <= 30)
        own = min(_seconds(lambda: subprocess.run([program, "--reference", str(tool.REFERENCE), "diff", OLD, NEW],
                                                  check=False, capture_output=True)) for _ in range(ROUNDS))
        baseline = None
        if shutil.which("abidiff"):
            baseline = min(_seconds(lambda: subprocess.run(["abidiff", *map(str, libraries)], check=False,
                                                           capture_output=True)) for _ in range(ROUNDS))
        yield row("facts.diff", own, "s", baseline, "<= 0.1 s", own <= 0.1)


def build(_bench, row):
    """A build of a source with other headers than the build before it, everything in ccache."""
    source = sources.get(PAIR[0])
    builder = engine.Builder(source)
    with contextlib.ExitStack() as stack:
        stack.enter_context(builder.lock())
        for headers in (source.headers, PAIR[1]):
            builder.pair(tool.headers(headers), again=True)
        spent = _seconds(lambda: builder.pair(tool.headers(source.headers), again=True))
    yield row("facts.build.pair", spent, "s", 10, "<= 10 s, warm ccache", spent <= 10)
