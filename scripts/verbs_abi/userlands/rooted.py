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


def _library(root, name):
    for folder in LIBRARY_DIRS:
        path = root / folder / LIBRARY
        if path.exists():
            return path
    raise UserError(f"userland '{name}': there is no {LIBRARY} below {root}",
                    details=["looked in " + ", ".join(LIBRARY_DIRS)],
                    hint="The folder must be one that rdma-core was installed or unpacked into.")


def version(root, name):
    """"44.0" of what is installed below `root`, as its library's file is called; "unknown" where it is called otherwise."""
    found = VERSIONED.fullmatch(os.path.basename(os.path.realpath(_library(pathlib.Path(root), name))))
    return found[1] if found else "unknown"


def _check_machine(path, content, name):
    if content[:4] != b"\x7fELF" or len(content) < 64:
        raise UserError(f"userland '{name}': {path} is not a library", hint="Was the unpacking interrupted?")
    machine = struct.unpack_from("<H", content, 18)[0]
    if content[4] != 2 or machine != EM_X86_64:
        width = "64" if content[4] == 2 else "32"
        raise UserError(f"userland '{name}': {path} is for another machine ({width}-bit, ELF machine {machine})",
                        hint="Only x86-64 libraries can be used here.")
    # An ELF file ends with its section headers, so half a file is noticed.
    end = struct.unpack_from("<Q", content, 40)[0] + struct.unpack_from("<HH", content, 58)[0] * struct.unpack_from(
        "<H", content, 60)[0]
    if end > len(content):
        raise UserError(f"userland '{name}': {path} is cut off: {len(content)} bytes of {end}",
                        hint="Was the unpacking interrupted?")


def digest_of(*folders):
    """One digest over rdma-core's libraries in these folders: names and contents."""
    total = hashlib.sha256()
    for folder in sorted(set(folders)):
        for path in sorted(folder.iterdir()):
            if DIGESTED.fullmatch(path.name) and path.is_file():
                total.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def find(root, name):
    """The Parts below `root`. Ends with a sentence when it holds no usable rdma-core."""
    root = pathlib.Path(os.path.realpath(root))
    library = _library(root, name)
    content = library.read_bytes()
    _check_machine(library, content, name)
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
                        details=[f"looked in {folder}" for folder in configs])
    private = PRIVATE.search(content)
    include = next((root / folder for folder in INCLUDE_DIRS if (root / folder / "infiniband/verbs.h").exists()),
                   root / INCLUDE_DIRS[0])
    return Parts(library_dir=library_dir, providers_dir=pathlib.Path(os.path.realpath(providers)),
                 config_dir=pathlib.Path(os.path.realpath(config)), include_dir=include, plugin_suffix=suffix,
                 private_abi=private[1].decode() if private else "", built_config=built,
                 built_providers=plugin[1].decode() if plugin else None, digest=digest_of(library_dir, providers))


def needed_libc(path):
    """The highest GLIBC_2.N that a library names, as N."""
    return max((int(found) for found in re.findall(rb"GLIBC_2\.(\d+)[.\0]", path.read_bytes())), default=0)


def userland(name, root, *, version, libc_root=None, loader=None, stack="rdma-core"):
    """A Userland of what stands below `root`."""
    parts = find(root, name)
    root = pathlib.Path(os.path.realpath(root))
    if libc_root is None:
        have = int(os.confstr("CS_GNU_LIBC_VERSION").split(".")[1])
        need = needed_libc(parts.library_dir / LIBRARY)
        if need > have:
            raise UserError(f"userland '{name}': its {LIBRARY} needs glibc 2.{need}, this machine has 2.{have}",
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
