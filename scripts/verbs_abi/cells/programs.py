# SPDX-License-Identifier: BSD-2-Clause
"""Programs that run inside cells, built once per userland against its own headers and libraries.

A program is a row of PROGRAMS: a folder of sources and what to link. The result is kept in the cache under a digest
of sources, flags and userland. libstdc++ is linked in, so that a program built here runs on every libc of the axis.
What is built from one source with several kernels' headers shares it where the program sees no difference (headers.py).

A program with a `node` is linked to a stub of libibverbs that exports that version node's symbols and nothing else: it
is one program for all userlands, built without any headers of theirs.
"""

import concurrent.futures
import dataclasses
import functools
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from verbs_abi import children, locks, paths
from verbs_abi.cells import headers
from verbs_abi.errors import UserError
from verbs_abi.symbols import read


@dataclasses.dataclass(frozen=True)
class Program:
    """sources: folders or files below the project's root; flags and libraries for g++; node: see above."""

    sources: tuple
    flags: tuple = ()
    libraries: tuple = ("-libverbs",)
    node: str | None = None


# ccache is one of the packages that a build brings in; without it, it is only slower.
COMPILER = (*filter(None, [shutil.which("ccache")]), "g++")
COMMON = ("-std=c++20", "-O1", "-g1", "-Wall", "-Wextra", "-Werror", "-static-libstdc++", "-static-libgcc")

# What makes a program of the userland's architecture.
WIDTH = {"x86_64": (), "i386": ("-m32",)}

# GoogleTest is a package of the machine's own word size alone: for another one its sources are built along.
GOOGLETEST_SOURCES = pathlib.Path("/usr/src/googletest")
GOOGLETEST = {"-lgmock": "googlemock/src/gmock-all.cc", "-lgtest": "googletest/src/gtest-all.cc"}

# A release's facts that have the oldest nodes.
STUB_FACTS = "deb-33.2"

PROGRAMS = {
    "negotiate": Program(("harness/cells/negotiate", "harness/cells/journey/found.cc", "harness/cells/journey/mapped.cc"),
                         ("-fno-exceptions", "-fno-rtti"), ("-libverbs", "-ldl")),
    "journey": Program(("harness/cells/journey",), ("-fno-exceptions", "-fno-rtti"), ("-libverbs", "-ldl")),
    # A program of 2006, and one of tomorrow: each takes what one end of the history of versions has.
    "compat-1_0": Program(("harness/cells/compat_1_0", "harness/cells/journey/mapped.cc", "harness/cells/journey/step.cc"),
                          ("-fno-exceptions", "-fno-rtti"), ("-libverbs", "-Wl,-z,now"), node="IBVERBS_1.0"),
    "newest": Program(("harness/cells/newest", "harness/cells/journey/mapped.cc", "harness/cells/journey/step.cc"),
                      ("-fno-exceptions", "-fno-rtti"), ("-libverbs", "-Wl,-z,now")),
    "control": Program(("harness/cells/control", "harness/cells/asks", "harness/cells/journey/found.cc", "harness/cells/journey/mapped.cc",
                        "harness/cells/journey/open.cc", "harness/cells/journey/queue_pair.cc",
                        "harness/cells/journey/step.cc"), ("-fno-exceptions", "-fno-rtti"), ("-libverbs", "-ldl")),
    "bench": Program(("bench/verbs", "harness/cells/journey/queue_pair.cc", "harness/cells/journey/step.cc"),
                     ("-O2", "-fno-exceptions", "-fno-rtti")),
    "processes": Program(("bench/processes",), ("-O2", "-fno-exceptions", "-fno-rtti")),
    # GoogleTest of the machine that builds, linked in. Not optimised: half of the time to build, none to run.
    "conformance": Program(
        ("harness/conformance", "harness/conformance/framework/abi_test.cc", "harness/conformance/framework/cell.cc",
         "harness/conformance/framework/bitmap.cc", "harness/conformance/framework/fallback_table.cc",
         "harness/conformance/framework/needs.cc", "harness/conformance/framework/raw.cc",
         "harness/conformance/framework/raw_mlx5.cc", "harness/conformance/framework/requests.cc",
         "harness/conformance/framework/run.cc", "harness/conformance/framework/rc_pair.cc",
         "harness/conformance/framework/verbs.cc", "harness/trace/command.cc", "harness/trace/reader.cc",
         "harness/trace/trace.cc", "harness/trace/matchers.cc"),
        ("-O0",), ("-libverbs", "-lgmock", "-lgtest")),
}


def _files(program):
    found = []
    for name in program.sources:
        path = paths.ROOT / name
        found += sorted(path.glob("*.cc")) if path.is_dir() else [path]
    return found


def _headers(program):
    folders = {(paths.ROOT / name) if (paths.ROOT / name).is_dir() else (paths.ROOT / name).parent
               for name in program.sources}
    return sorted(header for folder in folders for header in folder.glob("*.h"))


def _digest(program, userland):
    digest = hashlib.sha256()
    for path in _files(program) + _headers(program):
        digest.update(str(path.relative_to(paths.ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    if program.node:
        made_for = _stub_symbols(program.node)
    elif userland.shares_programs:
        made_for = (userland.plugin_suffix, _seen(program, userland.include_dir))
    else:
        made_for = userland.digest
    digest.update(repr((COMMON, program.flags, program.libraries, made_for, *WIDTH[userland.arch])).encode())
    return digest.hexdigest()[:24]


@functools.cache
def _seen(program, include_dir):
    """What the program sees below a folder of headers; asked for each cell and each build of it."""
    return headers.seen(include_dir, _files(program) + _headers(program), paths.ROOT)


def _include_dir(program, userland, folder):
    """The folder that a program takes a userland's headers from.

    For those that share programs, its name says what is in it, so that ccache knows it again.
    """
    if not userland.shares_programs:
        return userland.include_dir
    texts = _seen(program, userland.include_dir)
    place = folder / f"headers-{hashlib.sha256(repr(texts).encode()).hexdigest()[:24]}"
    if not place.exists():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            new = pathlib.Path(scratch) / "new"
            for name, text in texts.items():
                (new / name).parent.mkdir(parents=True, exist_ok=True)
                (new / name).write_text(text)
            try:
                new.rename(place)
            except OSError:
                if not place.is_dir():  # another process was first
                    raise
    return place


def _stub_symbols(node):
    """What libibverbs exports under a node, by the stored facts."""
    library = read.stored(STUB_FACTS)["libraries"]["libibverbs.so.1"]
    return [name for name, versions in library["symbols"].items() if node in (version.rstrip("@") for version in versions)]


def _make_stub(node, folder, width):
    """A libibverbs.so in `folder` whose only symbols are the node's; the linker asks no more of it."""
    symbols = _stub_symbols(node)
    folder.mkdir()
    (folder / "stub.c").write_text("".join(f"void {name}(void);\nvoid {name}(void) {{}}\n" for name in symbols))
    (folder / "stub.map").write_text(f"{node} {{ global: {'; '.join(symbols)}; local: *; }};\n")
    _run(["gcc", *width, "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libibverbs.so.1",
          f"-Wl,--version-script,{folder / 'stub.map'}", str(folder / "stub.c"), "-o", str(folder / "libibverbs.so")])


def path_of(name, userland):
    """Where the program for this userland stands, or will."""
    program = PROGRAMS[name]
    owner = userland.name.partition("+")[0] if userland.shares_programs else userland.name
    if program.node:
        owner = program.node
    if program.node and userland.arch != "x86_64":
        owner += f"-{userland.arch}"
    return paths.cache_dir() / "programs" / f"{name}-{owner}-{_digest(program, userland)}"


def build(name, userland, progress=None):
    """The path of the program for this userland; built when it is not there yet."""
    target = path_of(name, userland)
    if target.exists():
        return target
    target.parent.mkdir(exist_ok=True)
    with locks.exclusive(target.parent / f".{target.name}.lock", f"building {name} for {userland.name}", seconds=600):
        if target.exists():
            return target

        def told(done, files):
            if progress:
                progress.update(f"building {name} for {userland.name}: {done}/{files}")

        _compile(PROGRAMS[name], userland, target, told)
    return target


def _compile(program, userland, target, told):
    files = list(_files(program))
    width, more = WIDTH[userland.arch], ()
    libraries = [name for name in program.libraries if not width or name not in GOOGLETEST]
    if len(libraries) < len(program.libraries):
        files += [GOOGLETEST_SOURCES / source for name, source in GOOGLETEST.items() if name in program.libraries]
        more = [word for part in ("googletest", "googlemock") for word in
                ("-isystem", str(GOOGLETEST_SOURCES / part / "include"), "-isystem", str(GOOGLETEST_SOURCES / part))]
    public = () if program.node else ("-isystem", str(_include_dir(program, userland, target.parent)))
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        def compiled(source):
            made = pathlib.Path(scratch) / (source.stem + ".o")
            _run([*COMPILER, *width, *COMMON[:-2], *program.flags, *public, *more, "-I", str(paths.ROOT), "-c", str(source),
                  "-o", str(made)])
            return str(made)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = []
            told(0, len(files))
            for compiled_file in pool.map(compiled, files):
                objects.append(compiled_file)
                told(len(objects), len(files))
        made = pathlib.Path(scratch) / target.name
        library_dir = userland.library_dirs[0]
        if program.node:
            library_dir = pathlib.Path(scratch) / "stub"
            _make_stub(program.node, library_dir, width)
        _run(["g++", *width, *objects, "-static-libstdc++", "-static-libgcc", "-L", str(library_dir),
              "-Wl,--allow-shlib-undefined", *libraries, "-o", str(made)])
        os.replace(made, target)


def _run(command):
    # ccache takes what another clone of the tree compiled.
    env = {**os.environ, "CCACHE_BASEDIR": str(paths.ROOT), "CCACHE_NOHASHDIR": "1"}
    result = children.run(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          env=env, cwd=paths.ROOT)
    if result.returncode:
        raise UserError(f"{pathlib.Path(command[-1]).name} could not be built", details=result.stderr.splitlines()[:40])
