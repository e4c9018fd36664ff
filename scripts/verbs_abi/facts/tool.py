# SPDX-License-Identifier: BSD-2-Clause
"""The program vabi-facts, and snapshots of headers by name."""

import dataclasses
import functools
import hashlib
import json
import pathlib
import subprocess

from verbs_abi import errors, matrix, paths
from verbs_abi.setup import build

PROGRAM = "vabi-facts"
REFERENCE = paths.ROOT / "reference-headers"
SECONDS = 300


@dataclasses.dataclass(frozen=True)
class Headers:
    """A snapshot. folder: where its facts are; digest: of all of them."""

    name: str
    folder: pathlib.Path
    digest: str


@functools.cache
def path():
    """The program, built when needed."""
    return build.ensure(targets=(PROGRAM,)) / "harness" / "facts" / PROGRAM


def own_folder():
    """Where snapshots that the user made are kept."""
    return paths.cache_dir() / "headers"


def call(words, folder=REFERENCE, statuses=(0,)):
    """The standard output of the program; a status that is not expected is the user's error."""
    result = subprocess.run([str(path()), "--reference", str(folder), *map(str, words)], text=True, capture_output=True,
                            stdin=subprocess.DEVNULL, check=False, timeout=SECONDS)
    if result.returncode not in statuses:
        told = result.stderr.strip().splitlines() or [f"{PROGRAM} ended with status {result.returncode}"]
        raise errors.UserError(told[0].removeprefix(f"{PROGRAM}: "), details=told[1:10])
    return result.stdout


def names():
    """All snapshots: those of the project, then the user's own."""
    found = [entry.stem for folder in (REFERENCE, own_folder()) if folder.is_dir()
             for entry in sorted(folder.glob("*.json")) if ".schema" not in entry.name]
    return list(dict.fromkeys(found))


def headers(name):
    """The Headers of a snapshot, or of a kernel in matrix/kernels: those that it was modelled with."""
    for folder in (REFERENCE, own_folder()):
        file = folder / f"{name}.json"
        if file.is_file() and ".schema" not in file.name:
            data = json.loads(file.read_text())
            digest = hashlib.sha256(json.dumps(data["headers"], sort_keys=True).encode()).hexdigest()
            return Headers(name, folder, digest)
    if name in matrix.names("kernels"):
        return headers(of_kernel(name))
    raise errors.unknown("set of headers", name, names())


def of_kernel(name):
    """The snapshot that a kernel of the matrix has, its own or its ancestors'."""
    for entry in matrix.lineage(name):
        if entry.data.get("headers"):
            return entry.data["headers"]
    raise errors.UserError(f"kernel {name} names no headers")


def generate(one, folder):
    """Writes C headers of a snapshot below the folder."""
    call(["headers", one.name, folder], folder=one.folder)


def extract(source, name):
    """Facts of headers in a folder or package, as a snapshot of the user's own. Returns its Headers."""
    target = own_folder()
    target.mkdir(parents=True, exist_ok=True)
    if (REFERENCE / f"{name}.json").exists():
        raise errors.UserError(f"'{name}' is a snapshot of the project already", hint="Give yours another name.")
    call(["extract", "--name", name, "-o", target, source])
    return headers(name)


def diff(old, new):
    """The differences of two Headers, as `facts diff --json` tells them."""
    a, b = (one.folder / f"{one.name}.json" for one in (old, new))
    return json.loads(call(["diff", "--json", a, b], statuses=(0, 1)))


def between(old, new):
    """The same of two snapshots of the project by name, or of what `facts extract` takes."""
    return json.loads(call(["diff", "--json", old, new], statuses=(0, 1)))


def layout(libraries, against):
    """The report of `facts layout --json`: libraries (paths) against Headers."""
    words = [word for one in against for word in ("--against", one.folder / f"{one.name}.json")]
    return json.loads(call(["layout", "--json", *words, *libraries], statuses=(0, 1)))
