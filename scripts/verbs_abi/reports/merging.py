# SPDX-License-Identifier: BSD-2-Clause
"""Shards to one result. Every rule below picks a maximum of a total order or a union, so that
merging is idempotent and neither order nor grouping matters."""

from __future__ import annotations

import json

from . import model


class MergeError(ValueError):
    """Results that must not be put together, with the JSON pointer of the first difference."""


def _canonical(value):
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _latest(values):
    return max((value for value in values if value is not None), default=None)


def _cell_key(cell):
    # Something that ran beats what did not; then the later one; of two without a time the worse
    # one, because a merge must not hide a failure.
    return (
        cell["verdict"] != "not_run",
        cell.get("finished") or "",
        model.severity(cell),
        _canonical(cell),
    )


def _build_key(build):
    return (build["result"] != "not_run", _canonical(build))


def _measurement_key(one):
    return (one.get("met") is False, _canonical(one))


def _agreement_key(one):
    return (one.get("recorded") or "", one["cases"], -one["agree"], _canonical(one))


def _pick(items, identity, key):
    best = {}
    for item in items:
        name = identity(item)
        if name not in best or key(item) > key(best[name]):
            best[name] = item
    return [best[name] for name in sorted(best, key=_canonical)]


def _same(parts, pointer, read):
    """The one value that all parts have; None where none has it."""
    values = {_canonical(value): value for value in map(read, parts) if value is not None}
    if len(values) > 1:
        shown = " and ".join(sorted(values))
        raise MergeError(
            f"{pointer}: {shown[:300]} differ: these results are not parts of one run; "
            "run the shards again from one revision"
        )
    return next(iter(values.values()), None)


def _join_maps(parts, pointer, read):
    joined = {}
    for name in sorted({name for part in parts for name in (read(part) or {})}):
        joined[name] = _same(
            parts, f"{pointer}/{name}", lambda part, name=name: (read(part) or {}).get(name)
        )
    return joined


def _provenance(parts):
    def field(name):
        return _same(parts, f"/provenance/{name}", lambda part: part["provenance"].get(name))

    def digests(name):
        return _join_maps(parts, f"/provenance/{name}", lambda part: part["provenance"][name])

    facts_are_maps = all(isinstance(part["provenance"]["facts"], dict) for part in parts)
    provenance = {
        "shim": field("shim"),
        "facts": digests("facts") if facts_are_maps else field("facts"),
        "userlands": digests("userlands"),
        "kernels": digests("kernels"),
    }
    for name in ("version", "commit"):
        if field(name) is not None:
            provenance[name] = field(name)
    hosts = sorted(
        {host for part in parts for host in part["provenance"].get("host", "").split(", ") if host}
    )
    if hosts:
        provenance["host"] = ", ".join(hosts)
    return provenance


def _run(parts):
    runs = [part["run"] for part in parts if "run" in part]
    if not runs:
        return None
    run = {"plan": _same(runs, "/run/plan", lambda one: one.get("plan"))}
    shards = sorted(
        {shard for one in runs for shard in one.get("shards", [])}, key=model.version_key
    )
    if shards:
        run["shards"] = shards
    starts = [one["started"] for one in runs if "started" in one]
    ends = [one["finished"] for one in runs if "finished" in one]
    if starts:
        run["started"] = min(starts)
    if ends:
        run["finished"] = max(ends)
    for name in ("command", "jobs"):  # tell nothing where the parts differ
        values = {_canonical(one.get(name)): one.get(name) for one in runs}
        value = next(iter(values.values()))
        if len(values) == 1 and value is not None:
            run[name] = value
    # Whether all shards are there is seen from run.shards, not told here: a later merge may bring
    # them.
    if any("complete" in one for one in runs):
        run["complete"] = all(one.get("complete", True) for one in runs)
    return run


def merge(parts):
    """One valid result from several valid results of one run (its shards, or a resumed part).

    Raises MergeError when they come from different shims, facts, userlands, kernels or plans.
    """
    parts = list(parts)
    if not parts:
        raise MergeError("nothing to merge")
    merged = {
        "schema_version": _same(parts, "/schema_version", lambda part: part["schema_version"]),
        "stack": _same(parts, "/stack", lambda part: part["stack"]),
    }
    generated = _latest(part.get("generated") for part in parts)
    if generated:
        merged["generated"] = generated
    run = _run(parts)
    if run:
        merged["run"] = run
    merged["provenance"] = _provenance(parts)
    axes = {}
    for axis in sorted({axis for part in parts for axis in part.get("axes", {})}):
        names = {}
        for name in sorted({name for part in parts for name in part.get("axes", {}).get(axis, {})}):
            entries = [
                part["axes"][axis][name]
                for part in parts
                if name in part.get("axes", {}).get(axis, {})
            ]
            names[name] = max(entries, key=_canonical)
        axes[axis] = names
    if axes:
        merged["axes"] = axes
    merged["summary"] = None  # its place; counted below
    merged["cells"] = _pick(
        (cell for part in parts for cell in part["cells"]), lambda cell: cell["id"], _cell_key
    )
    merged["summary"] = model.summarise(
        merged["cells"], max(part["summary"]["wall_s"] for part in parts)
    )
    builds = [build for part in parts for build in part.get("builds", [])]
    if builds:
        merged["builds"] = _pick(
            builds,
            lambda one: [one["source"], one["headers"], one["library"], one.get("arch")],
            _build_key,
        )
    gate = _same(parts, "/gate", lambda part: part.get("gate"))
    if gate:
        merged["gate"] = gate
    oracle = {}
    for kernel in sorted({kernel for part in parts for kernel in part.get("oracle", {})}):
        drivers = {}
        for part in parts:
            for driver, one in part.get("oracle", {}).get(kernel, {}).items():
                if driver not in drivers or _agreement_key(one) > _agreement_key(drivers[driver]):
                    drivers[driver] = one
        oracle[kernel] = dict(sorted(drivers.items()))
    if oracle:
        merged["oracle"] = oracle
    bench = [one for part in parts for one in part.get("bench", [])]
    if bench:
        merged["bench"] = _pick(bench, lambda one: one["name"], _measurement_key)
    return merged
