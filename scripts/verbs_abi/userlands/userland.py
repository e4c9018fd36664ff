# SPDX-License-Identifier: BSD-2-Clause
"""A userland that is ready to run programs."""

import dataclasses
import os
import pathlib
import shutil

from verbs_abi.errors import EXIT_CANNOT_RUN, EXIT_NOT_FOUND, UserError
from verbs_abi.userlands import elf, mapped

# Depth of scripts whose interpreter is a script, as the kernel allows.
SHEBANG_DEPTH = 4

# Where a userland's programs are, below its root.
PROGRAM_DIRS = ("usr/bin", "usr/sbin", "bin", "sbin")


@dataclasses.dataclass(frozen=True)
class Userland:
    """Paths are absolute and without symbolic links, as /proc/PID/maps shows them.

    root           rdma-core and what it links to
    libc_root      its own C library, or None: the machine's
    library_dirs   where the dynamic linker looks, in order; with its own C library's, if any
    loader         the ld.so that programs are started with, or None: the machine's
    providers_dir  the plug-ins, lib*-SUFFIX.so
    config_dir     the *.driver files
    include_dir    the headers
    plugin_suffix  "rdmav34"; as found in the root: a substitution may have brought another
    substituted    rows {name, wanted, got, purpose}: packages not at the pinned version
    shares_programs  with others of its source, where programs see no difference between their headers
    """

    name: str
    stack: str
    arch: str
    source_version: str
    digest: str
    root: pathlib.Path
    libc_root: pathlib.Path | None
    library_dirs: tuple
    loader: pathlib.Path | None
    providers_dir: pathlib.Path
    config_dir: pathlib.Path
    include_dir: pathlib.Path
    plugin_suffix: str
    private_abi: str
    versions: dict
    substituted: tuple
    shares_programs: bool = False
    # What programs see in place of providers_dir; None: providers_dir itself.
    providers_view: pathlib.Path | None = None
    # {folder that libibverbs was built to look into: where it is}; None: as Debian's packages are built.
    built_paths: dict | None = None

    @property
    def python_path(self):
        """The folder of its pyverbs, or None."""
        path = self.root / "usr/lib/python3/dist-packages"
        return path if (path / "pyverbs").is_dir() else None

    def redirects(self):
        """{path that rdma-core was built with: the same below the root}."""
        if self.built_paths is not None:
            here = dict(self.built_paths)
            if self.providers_view:
                here[str(self.providers_dir)] = self.providers_view
            return here
        here = {"/etc/libibverbs.d": self.config_dir}
        library_dir = self.providers_dir.relative_to(self.root)
        here[f"/{library_dir}"] = self.providers_view or self.providers_dir
        return here

    def find_program(self, name):
        """The path of a program: the root's own first, then $PATH. When there is none, the statuses of a shell."""
        if "/" in name:
            path = os.path.abspath(name)
            if os.path.isdir(path):
                raise UserError(f"{name} is a folder, no program", status=EXIT_CANNOT_RUN)
            if not os.path.exists(path):
                raise UserError(f"no program {name}", status=EXIT_NOT_FOUND)
            if not os.path.isfile(path):
                raise UserError(f"{name} is no file that could be run", status=EXIT_CANNOT_RUN)
            if not os.access(path, os.X_OK):
                raise UserError(f"{name} may not be executed", hint=f"For example: chmod +x {name}",
                                status=EXIT_CANNOT_RUN)
            return path
        found = self.own_program(name) or shutil.which(name)
        if found is None:
            lost = [row for row in self.substituted if row.get("got") is None]
            raise UserError(
                f"no program '{name}' in userland '{self.name}' nor in PATH",
                details=[f"package {row['name']} is missing ({row['purpose']})" for row in lost],
                status=EXIT_NOT_FOUND,
            )
        return found

    def own_program(self, name):
        """The path of a program that the userland brings along; None: it has none of that name."""
        paths = (self.root / folder / name for folder in PROGRAM_DIRS)
        return next((str(path) for path in paths if path.is_file()), None)

    def search_path(self, path):
        """$PATH by which a shell finds what find_program finds."""
        own = [str(self.root / folder) for folder in PROGRAM_DIRS if (self.root / folder).is_dir()]
        return ":".join([*own, path])

    def command(self, argv, shim, env=None):
        """(argv, env) that start argv[0] in this userland with the shim preloaded.

        shim: path of the library to preload, or None for none. env: the environment to start from
        (default: ours). Raises elf.NotInterceptable for static programs, other C libraries and
        other machines.
        """
        env = dict(os.environ if env is None else env)
        program, words = self._resolve(argv)
        libraries = list(map(str, self.library_dirs))
        libraries += [path for path in env.get("LD_LIBRARY_PATH", "").split(":") if path]
        preload = []
        if shim is not None:
            shim = os.path.abspath(shim)
            # ld.so splits its lists of preloads at colons and spaces; the library path only at
            # colons.
            if any(mark in shim for mark in " :;"):
                libraries.append(os.path.dirname(shim))
                shim = os.path.basename(shim)
            preload.append(shim)

        python = env.get("PYTHONPATH", "")
        if self.python_path:
            env["PYTHONPATH"] = f"{self.python_path}:{python}" if python else str(self.python_path)
        env["VERBS_ABI_REDIRECT"] = ":".join(
            f"{old}={new}" for old, new in self.redirects().items()
        )

        if self.loader is None:
            env.pop("VERBS_ABI_LOADER", None)
            env.pop("VERBS_ABI_LIBRARY_PATH", None)
            env["LD_LIBRARY_PATH"] = ":".join(libraries)
            if preload:
                env["LD_PRELOAD"] = ":".join(preload + list(filter(None, [env.get("LD_PRELOAD")])))
            return [program, *words], env

        env["VERBS_ABI_LOADER"] = str(self.loader)
        env["VERBS_ABI_LIBRARY_PATH"] = ":".join(libraries)
        start = [str(self.loader)]
        if preload:
            start += ["--preload", ":".join(preload)]
        start += ["--library-path", ":".join(libraries), "--argv0", program]
        return [*start, program, *words], env

    def mapped_ok(self, maps_text):
        """Are all RDMA libraries in a /proc/PID/maps this userland's own? A mapped.Mapped."""
        return mapped.check(maps_text, self.root, self.libc_root, netlink=self._has_netlink())

    def _has_netlink(self):
        """Does it bring libnl along? A prefix and a build use this machine's."""
        return any(path.name.startswith("libnl-3.so") for folder in self.library_dirs if folder.is_dir()
                   for path in folder.iterdir())

    def _resolve(self, argv):
        """The program that the kernel would start for argv, and its arguments."""
        program, words = self.find_program(argv[0]), list(argv[1:])
        for _ in range(SHEBANG_DEPTH):
            try:
                line = elf.shebang(program)
                if line is None:
                    elf.check_interceptable(program, self.arch)
                    return program, words
            except OSError as error:
                of = "" if program == argv[0] else f", the interpreter of {argv[0]}"
                # As a shell: also an interpreter that is not there makes "not found".
                missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
                raise UserError(f"{program}{of}: {error.strerror}",
                                status=EXIT_NOT_FOUND if missing else EXIT_CANNOT_RUN) from error
            except elf.NotInterceptable as error:
                raise elf.NotInterceptable(f"not interceptable: {program} {error}") from error
            words = [*line[1:], program, *words]
            program = self._interpreter(line[0])
        raise elf.NotInterceptable(f"not interceptable: {argv[0]}: scripts upon scripts")


    def _interpreter(self, path):
        """The program that a script's first line names: of a userland of another word size than the machine's, its own
        where it brings one (a shell)."""
        own = self.root / path.lstrip("/")
        return str(own) if self.arch != "x86_64" and own.is_file() else path


def from_store(store):
    """The Userland in a store that is ready."""
    wanted, manifest = store.definition, store.manifest()
    here = store.current()
    root = here / "root"
    libc_root = here / "libc" if wanted.own_libc else None
    library_dirs = [root / wanted.library_dir, root / wanted.providers_dir]
    if libc_root:
        library_dirs.append(libc_root / wanted.library_dir)
    versions = {name: row["version"] for name, row in manifest["packages"].items()}
    return Userland(
        name=wanted.name,
        stack=wanted.stack,
        arch=wanted.arch,
        source_version=versions.get("libibverbs1", wanted.source_version),
        digest=manifest["digest"],
        root=root,
        libc_root=libc_root,
        library_dirs=tuple(library_dirs),
        loader=(libc_root / wanted.loader).resolve() if libc_root else None,
        providers_dir=root / wanted.providers_dir,
        config_dir=root / wanted.config_dir,
        include_dir=root / "usr/include",
        plugin_suffix=manifest["plugin_suffix"],
        private_abi=wanted.private_abi,
        versions=versions,
        substituted=tuple(manifest["substituted"]),
    )
