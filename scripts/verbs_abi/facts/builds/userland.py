# SPDX-License-Identifier: BSD-2-Clause
"""What was built is run: src-44.0+headers=debian-6.12.117 is a userland."""

import re

from verbs_abi import matrix
from verbs_abi.errors import UserError, unknown
from verbs_abi.facts import tool
from verbs_abi.facts.builds import engine, sources
from verbs_abi.progress import Progress
from verbs_abi.userlands import built, userland


def parts(name):
    """(source, headers) of a pair's name; unknown ones are told with their nearest names."""
    source, _, headers = name.partition(built.MARK)
    if source not in matrix.names("sources"):
        raise unknown("source", source, matrix.names("sources"))
    if headers not in tool.names():
        raise unknown("set of headers", headers, tool.names())
    return source, headers


def get(name):
    """The Userland of a pair's name, built when it is not there yet."""
    source_name, headers = parts(name)
    with Progress(f"userland {name}") as progress:
        source = sources.get(source_name, progress)
        builder = engine.Builder(source, progress=progress)
        with builder.lock():
            pair = builder.pair(tool.headers(headers))
    return of_pair(name, source, pair)


def of_pair(name, source, pair):
    """The Userland in a pair's root."""
    verbs = next((library for library in pair.libraries if library.name == "libibverbs"), None)
    if verbs is None or verbs.file is None:
        raise UserError(f"userland '{name}' cannot be run: libibverbs does not build with these headers",
                        details=[f"{verbs.cause}: {verbs.error}"] if verbs else [],
                        hint=f"./verbs-abi facts build --source {source.name} --headers {pair.headers} tells of every library.")
    root = pair.root.resolve()
    library_dir = root / engine.LIBRARY_DIR
    plugins = library_dir / "libibverbs"
    number = re.sub(r"\D", "", pair.plugin_suffix)
    return userland.Userland(
        name=name, stack="rdma-core", arch="x86_64", source_version=source.version, digest=pair.digest, root=root,
        libc_root=None, library_dirs=(library_dir, plugins), loader=None, providers_dir=plugins,
        config_dir=root / "etc/libibverbs.d", include_dir=root / "usr/include", plugin_suffix=pair.plugin_suffix,
        private_abi=f"IBVERBS_PRIVATE_{number}", versions={"libibverbs1": source.version}, substituted=(),
        shares_programs=True)
