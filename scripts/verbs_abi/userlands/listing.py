# SPDX-License-Identifier: BSD-2-Clause
"""`verbs-abi list userlands`."""

import sys

from verbs_abi import errors, matrix
from verbs_abi.userlands import definition, fetch, local, store

COLUMNS = ("name", "state", "suite", "version", "libc", "plugins", "remark")


def _row(entry, arguments):
    kind = entry.data.get("kind")
    if kind != "debian":
        here = local.from_entry(entry)
        state, remark = local.state(here)
        return {"name": entry.name, "kind": kind, "state": state, "title": here.title, "remark": remark or here.title}
    wanted = definition.from_entry(entry)
    remark = None
    if arguments.fetch:
        try:
            fetch.ensure(wanted, deep=arguments.deep, again=True)
        except errors.UserError as error:
            print(f"verbs-abi: {error}", file=sys.stderr)
            remark = str(error).splitlines()[0]
    place = store.Store(wanted)
    state, more = place.state()
    if state == "ready" and arguments.deep:
        damage = place.damage()
        if damage:
            state, more = "stale", "damaged: " + "; ".join(damage[:3])
    manifest = place.manifest() or {}
    versions = {name: row["version"] for name, row in manifest.get("packages", {}).items()}
    return {
        "name": entry.name,
        "state": state,
        "suite": wanted.suite,
        "kind": kind,
        "version": versions.get("libibverbs1", wanted.source_version),
        "libc": wanted.libc,
        "plugins": manifest.get("plugin_suffix", wanted.plugin_suffix),
        "title": wanted.title,
        "remark": more or remark or "",
        "packages": versions or {package.name: package.version for package in wanted.packages},
    }


def rows(arguments):
    """(columns, rows) of all userlands with their state in the cache."""
    return COLUMNS, [_row(entry, arguments) for entry in matrix.load("userlands").values()]
