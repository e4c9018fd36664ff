# SPDX-License-Identifier: BSD-2-Clause
"""An rdma-core in a folder that Debian's packages did not lay out: where its parts are, and what it was built for."""

import dataclasses
import hashlib
import os
import pathlib
import re
import struct

from verbs_abi.errors import UserError
from verbs_abi.userlands.userland import Userland

LIBRARY = "libibverbs.so.1"
# Below a root: /opt/x, a Debian or Fedora tree, a build folder of rdma-core.
LIBRARY_DIRS = ("lib", "lib64", "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib")
INCLUDE_DIRS = ("include", "usr/include")
# Texts that libibverbs was built with (VERBS_PROVIDER_DIR, VERBS_PROVIDER_SUFFIX, IBV_CONFIG_DIR in buildlib/config.h).
PLUGIN = re.compile(rb"(?<![\x20-\x7e])(/[\x20-\x7e]{1,400})/lib%s-(rdmav\d+)\.so\0")
SUFFIX = re.compile(rb"lib%s-(rdmav\d+)\.so\0")
CONFIG = re.compile(rb"(?<![\x20-\x7e])(/[\x20-\x7e]{1,400}?/libibverbs\.d)\0")
PRIVATE = re.compile(rb"(IBVERBS_PRIVATE_\d+)\0")
# libibverbs.so.1.14.44.0: of the ABI 1.14, of rdma-core 44.0 (buildlib/rdma_functions.cmake: rdma_library).
VERSIONED = re.compile(r"libibverbs\.so\.1\.\d+\.(\d+(?:\.\d+)*)")
# What else of a root makes a userland another one.
DIGESTED = re.compile(r"lib(ibverbs|rdmacm|ibumad|ibmad|ibnetdisc|mlx\d|efa|hns|mana|ionic|bnxt_re)\.so\.[0-9.]+|lib.+-rdmav\d+\.so")
EM_X86_64 = 62
ET_DYN = 3
NEEDED_LIBC = re.compile(rb"GLIBC_2\.(\d{1,3})[.\0]")
# What the dynamic linker's and the shim's variables separate paths with.
MARKS = ":;=\n"


@dataclasses.dataclass(frozen=True)
class Parts:
    """Absolute, without symbolic links. built_*: the folders that libibverbs was built to look into."""

    library_dir: pathlib.Path
    providers_dir: pathlib.Path
    config_dir: pathlib.Path
    include_dir: pathlib.Path
    plugin_suffix: str
    private_abi: str
    built_providers: str | None
    built_config: str | None
    digest: str
    needs_libc: int


def _library(root, name, where=None):
    for folder in LIBRARY_DIRS:
        path = root / folder / LIBRARY
        if path.is_symlink() and not path.exists():
            raise UserError(f"userland '{name}': {path} is a link to {os.readlink(path)}, which is not there",
                            hint="Was the unpacking interrupted?")
        if path.exists():
            return path
    raise UserError(f"userland '{name}': there is no {LIBRARY} " + (f"in {where}" if where else f"below {root}"),
                    details=["looked in " + ", ".join(LIBRARY_DIRS)],
                    hint="Packages with the providers alone are not enough." if where else
                    "The folder must be one that rdma-core was installed or unpacked into.")


def version(root, name):
    """"44.0" of what is installed below `root`, as its library's file is called; "unknown" where it is called otherwise."""
    found = VERSIONED.fullmatch(os.path.basename(os.path.realpath(_library(pathlib.Path(root), name))))
    return found[1] if found else "unknown"


def _check_machine(path, content, name):
    if content[:4] != b"\x7fELF" or len(content) < 64:
        raise UserError(f"userland '{name}': {path} is not a library", hint="Was the unpacking interrupted?")
    order = {1: "little", 2: "big"}.get(content[5])
    kind, machine = (int.from_bytes(content[at:at + 2], order or "little") for at in (16, 18))
    if (content[4], order, machine) != (2, "little", EM_X86_64):
        told = ", ".join([{1: "32-bit", 2: "64-bit"}.get(content[4], f"ELF class {content[4]}"), f"ELF machine {machine}",
                          *(["big-endian"] if order == "big" else [])])
        raise UserError(f"userland '{name}': {path} is for another machine ({told})",
                        hint="Only x86-64 libraries can be used here.")
    if kind != ET_DYN:
        raise UserError(f"userland '{name}': {path} is no shared library (ELF type {kind} instead of {ET_DYN})",
                        hint="Was another file put in its place?")
    # An ELF file ends with its section headers, so half a file is noticed.
    end = struct.unpack_from("<Q", content, 40)[0] + struct.unpack_from("<HH", content, 58)[0] * struct.unpack_from(
        "<H", content, 60)[0]
    if end > len(content):
        raise UserError(f"userland '{name}': {path} is cut off: {len(content)} bytes of {end}",
                        hint="Was the unpacking interrupted?")


def _contents(folders, root, name, where):
    """(path, content) of rdma-core's libraries in these folders, each checked: a file, or a link to one below `root`."""
    for folder in sorted(set(folders)):
        for path in sorted(folder.iterdir()):
            if not DIGESTED.fullmatch(path.name):
                continue
            here = pathlib.Path(os.path.realpath(path))
            shown = f"{path.relative_to(root)} of {where}" if where else path
            if root not in here.parents:
                raise UserError(f"userland '{name}': {shown} leads to {here}, which is outside of " +
                                ("them" if where else str(root)), hint="A userland runs with its own libraries alone.")
            if not here.is_file():
                raise UserError(f"userland '{name}': {shown} " + (f"is a link to {os.readlink(path)}, which is not there"
                                                                 if path.is_symlink() else "is no file"),
                                hint="Was the unpacking interrupted?")
            content = here.read_bytes()
            _check_machine(shown, content, name)
            yield path, content


def _digest(folders, root, name, where):
    """(digest over names and contents of rdma-core's libraries in these folders, the N of the newest GLIBC_2.N they need)."""
    total, libc = hashlib.sha256(), 0
    for path, content in _contents(folders, root, name, where):
        total.update(path.name.encode() + b"\0" + hashlib.sha256(content).digest())
        libc = max([libc, *(int(found) for found in NEEDED_LIBC.findall(content))])
    return total.hexdigest()[:16], libc


def find(root, name, where=None):
    """The Parts below `root`. Ends with a sentence when it holds no usable rdma-core. where: what to call the root."""
    root = pathlib.Path(os.path.realpath(root))
    for mark in set(MARKS) & set(str(root)):
        raise UserError(f"userland '{name}': the path has {mark!r} in it, which separates paths: {root}",
                        hint="Rename the folder, or bind it to another place.")
    library = _library(root, name, where)
    if not library.is_file():
        raise UserError(f"userland '{name}': {library} is no file", hint="Was the unpacking interrupted?")
    content = library.read_bytes()
    _check_machine(f"{library.relative_to(root)} of {where}" if where else library, content, name)
    plugin, suffix = PLUGIN.search(content), SUFFIX.search(content)
    if suffix is None:
        raise UserError(f"userland '{name}': {library} does not tell the names of its plug-ins",
                        hint="Only releases of rdma-core since v15 can be used.")
    suffix = suffix[1].decode()
    library_dir = pathlib.Path(os.path.realpath(library.parent))
    choices = [library_dir / "libibverbs", library_dir]
    providers = next((folder for folder in choices if list(folder.glob(f"lib*-{suffix}.so"))), None)
    if providers is None:
        raise UserError(f"userland '{name}': there is no plug-in lib*-{suffix}.so in {choices[0]}",
                        hint="The providers are a package of their own on most systems (ibverbs-providers, libibverbs).")
    built = CONFIG.search(content)
    built = built[1].decode() if built else None
    configs = [root / "etc/libibverbs.d", root.parent / "etc/libibverbs.d"]
    if built:
        configs.insert(0, root / built.lstrip("/"))
        # Installed where it was built for: its configuration may stand elsewhere (/etc for /usr/local).
        if plugin and os.path.realpath(plugin[1].decode()) == os.path.realpath(providers):
            configs.append(pathlib.Path(built))
    config = next((folder for folder in configs if list(folder.glob("*.driver"))), None)
    if config is None:
        raise UserError(f"userland '{name}': there are no *.driver files",
                        details=[f"looked in {folder}" for folder in dict.fromkeys(configs)],
                    hint="Without them libibverbs loads no provider; etc/libibverbs.d belongs to the userland.")
    private = PRIVATE.search(content)
    include = next((root / folder for folder in INCLUDE_DIRS if (root / folder / "infiniband/verbs.h").exists()),
                   root / INCLUDE_DIRS[0])
    digest, needs_libc = _digest((library_dir, pathlib.Path(os.path.realpath(providers))), root, name, where)
    return Parts(library_dir=library_dir, providers_dir=pathlib.Path(os.path.realpath(providers)),
                 config_dir=pathlib.Path(os.path.realpath(config)), include_dir=include, plugin_suffix=suffix,
                 private_abi=private[1].decode() if private else "", built_config=built,
                 built_providers=plugin[1].decode() if plugin else None, digest=digest, needs_libc=needs_libc)


def userland(name, root, *, version, libc_root=None, loader=None, stack="rdma-core"):
    """A Userland of what stands below `root`."""
    parts = find(root, name)
    root = pathlib.Path(os.path.realpath(root))
    if libc_root is None:
        have = int(os.confstr("CS_GNU_LIBC_VERSION").split(".")[1])
        if parts.needs_libc > have:
            raise UserError(f"userland '{name}': its libraries need glibc 2.{parts.needs_libc}, this machine has 2.{have}",
                            hint="Give the C library's packages too (libc6, libgcc-s1 or glibc, libgcc).")
    directories = [parts.library_dir, parts.providers_dir]
    if libc_root is not None:
        directories += [folder for folder in (libc_root / below for below in LIBRARY_DIRS) if folder.is_dir()]
    redirects = {}
    for built, here in ((parts.built_config, parts.config_dir), (parts.built_providers, parts.providers_dir)):
        if built and os.path.realpath(built) != str(here):
            redirects[built] = here
    return Userland(
        name=name, stack=stack, arch="x86_64", source_version=version, digest=parts.digest, root=root,
        libc_root=libc_root, library_dirs=tuple(dict.fromkeys(directories)), loader=loader,
        providers_dir=parts.providers_dir, config_dir=parts.config_dir, include_dir=parts.include_dir,
        plugin_suffix=parts.plugin_suffix, private_abi=parts.private_abi, versions={"rdma-core": version}, substituted=(),
        built_paths=redirects)
