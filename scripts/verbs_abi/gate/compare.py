# SPDX-License-Identifier: BSD-2-Clause
"""From the cells and symbols of two userlands to one answer."""

from verbs_abi.cells import negotiation
from verbs_abi.symbols import compare as symbols

# From best to worst. Absent cells are the same for both: no userland changes which driver a kernel has. Nobody knows
# where an unmodelled one stands.
RANK = {"full": 0, "degraded": 1, "refused": 2, "broken": 3}
UNMODELLED = "unmodelled"


def _key(row):
    return row["kernel"], row["provider"], tuple(row["overlays"]), row.get("scenario")


def _failed(row):
    return {test["name"] for test in row.get("tests", ()) if test["result"] == "failed"}


def _asked(row, granted=False):
    """What the cell asked to learn the answer (harness/cells/asks), or what of it was granted."""
    return {test["name"] for test in row.get("tests", ())
            if test["name"].startswith("ask:") and (test["result"] == "passed" or not granted)}


def pairs(rows, old, new):
    """[(old row, new row)] of the same scenario."""
    there = {_key(row): row for row in rows if row["userland"] == new}
    return [(row, there[_key(row)]) for row in rows if row["userland"] == old and _key(row) in there]


def _change(before, after):
    """(-1 worse, 0 equal, 1 better, detail) of one scenario."""
    was, now = RANK.get(before["outcome"]), RANK.get(after["outcome"])
    if was is None or now is None:
        return 0, None
    if was != now:
        return (1 if now < was else -1), after.get("message") or before.get("message")
    # What only the newer library asks for, and an old kernel has not got, is no loss: the older one did without it.
    lost = set(after.get("lost") or ()) - set(before.get("lost") or ())
    lost = {name for name in lost if not name.startswith("method ")}
    won = set(before.get("lost") or ()) - set(after.get("lost") or ())
    won = {name for name in won if not name.startswith("method ")}
    failed, mended = _failed(after) - _failed(before), _failed(before) - _failed(after)
    # What only one of both asks for says nothing: its headers name more.
    both = _asked(before) & _asked(after)
    granted_before, granted_after = (both & _asked(row, granted=True) for row in (before, after))
    refuses, grants = granted_before - granted_after, granted_after - granted_before
    # A sweep is full whatever range its provider takes: one that nobody has read the source of is held to no table.
    versions_before, versions_after = negotiation.versions_taken(before), negotiation.versions_taken(after)
    refuses |= _versions(versions_before - versions_after)
    taken = _versions(versions_after - versions_before)
    worse = {"lost": lost, "fails": failed, "refuses": refuses}
    if any(worse.values()):
        return -1, _told(worse)
    better = {"has": won, "passes": mended, "grants": grants, "takes": taken}
    if any(better.values()):
        return 1, _told(better)
    return 0, None


def _versions(found):
    return {negotiation.TAKEN + negotiation.versions_text(found)} if found else set()


def _told(changes):
    return ", ".join(f"{word}: {name.removeprefix('ask:')}" for word, names in changes.items() for name in sorted(names))


def _row(before, after, detail):
    return {"id": after["id"], "was": before["outcome"], "is": after["outcome"], "detail": (detail or "")[:300] or None}


def cells(rows, old, new):
    """(worse, better, unknown): rows as results.json holds them. unknown: one of both had no model, nothing is compared."""
    worse, better, unknown = [], [], []
    for before, after in pairs(rows, old, new):
        lacking = [row for row in (after, before) if row["outcome"] == UNMODELLED]
        if lacking:
            unknown.append(_row(before, after, lacking[0].get("message")))
            continue
        change, detail = _change(before, after)
        if change:
            (worse if change < 0 else better).append(_row(before, after, detail))
    return worse, better, unknown


def _findings(differences):
    return [{"what": f"{one.library}: {one.name}" if one.library else one.name, "class": one.kind,
             "detail": " → ".join(filter(None, (one.old, one.new))) or one.meaning, "stops": one.severity == "breaks"}
            for one in differences]


def ranges(old, new):
    """Findings about ABI ranges of providers: rows of matrix/negotiation of both, {} where nobody has read the source."""
    for library in sorted({*old, *new}) if old and new else ():
        if library not in new or library not in old:
            continue  # told by the symbols' part
        before, after = old[library], new[library]
        text = f"{before['min']} to {before['max']} → {after['min']} to {after['max']}"
        if (before["min"], before["max"]) != (after["min"], after["max"]):
            narrower = after["min"] > before["min"] or after["max"] < before["max"]
            yield {"what": library, "class": "range-narrowed" if narrower else "range-widened", "detail": text,
                   "stops": narrower}
        for kind in sorted(set(before["by"]) - set(after["by"])):
            yield {"what": library, "class": "match-removed", "detail": f"no longer by {kind}", "stops": True}
        for kind in sorted(set(after["by"]) - set(before["by"])):
            yield {"what": library, "class": "match-added", "detail": f"also by {kind}", "stops": False}


def answer(old, new, rows, facts, accepted, turning=(), headers=()):
    """The gate object of results.json.

    old, new: names; rows: all cells of both; facts: (old, new) symbols; accepted: (old, new) ABI ranges; headers: findings
    about the kernel's headers.
    """
    worse, better, unknown = cells(rows, old, new)
    differences = symbols.compare(*facts)
    providers = [one for one in differences if one.kind.startswith("provider-")]
    listed = _findings(providers) + list(ranges(*accepted))
    exported = _findings([one for one in differences if one not in providers])
    reasons = []
    for rows_of, what in ((exported, "symbols"), (listed, "negotiation")):
        stops = [row for row in rows_of if row["stops"]]
        reasons += [f"{what}: {row['what']} {row['class']}" for row in stops[:20]]
        if len(stops) > 20:
            reasons.append(f"{what}: and {len(stops) - 20} more")
    if worse:
        reasons.append(f"{len(worse)} cells got worse")
    # What was seen to be worse is worse, whatever else was not seen.
    result = "fail" if reasons else "pass"
    left = [row for row in rows if row["userland"] in (old, new) and row["verdict"] == "not_run"]
    if left:
        reasons.append(f"{len(left)} cells could not be run: {left[0].get('message') or ''}".rstrip(": ").splitlines()[0])
    if unknown:
        first = f"{len(unknown)} cells have no model: {unknown[0]['id']}: {unknown[0]['detail'] or ''}"
        reasons.append(first.rstrip(": ").splitlines()[0])
    if (left or unknown) and result == "pass":
        result = "not_run"
    return {"old": old, "new": new, "result": result, "reasons": reasons, "worse": worse, "better": better,
            "symbols": exported, "facts": list(headers), "negotiation": listed, "x_turning": list(turning),
            "x_unmodelled": unknown}
