# SPDX-License-Identifier: BSD-2-Clause
"""Names, orders and words that every report shares. Standard library only."""

from __future__ import annotations

import re

# From best to worst news: a place that can show only one of several cells shows the last.
OUTCOMES = ("absent", "full", "degraded", "refused", "unmodelled", "broken")
VERDICTS = ("expected", "fixed", "not_run", "unexpected")

OUTCOME_MEANING = {
    "full": "works, with everything this kernel offers",
    "degraded": "works, but features are lost or a fallback is used",
    "refused": "does not work, and says so cleanly",
    "broken": "wrong answer, corrupt data, crash or hang",
    "unmodelled": "the fake kernel has no answer: no statement",
    "absent": "this pair cannot exist",
    None: "not run: no statement",
}
VERDICT_WORDS = {
    "expected": "as expected",
    "unexpected": "unexpected",
    "fixed": "fixed",
    "not_run": "not run",
}
VERDICT_MEANING = {
    "expected": "the outcome that the expectations say",
    "unexpected": "another outcome than the expectations say: look at it",
    "fixed": "a known defect that no longer shows: take its expectation out",
    "not_run": "no statement, for example because a package is gone",
}
ALIKE_MEANING = "Cells of one userland and scenario whose worlds are equal count once"
KNOWN_MEANING = {
    "calibrated": "the real kernel answered so",
    "source": "read in the kernel's source",
    "headers": "inferred from the kernel's headers",
}


def plain_id(cell):
    """The cell's id without its scenario."""
    return "/".join([cell["userland"], cell["kernel"], cell["provider"], *cell["overlays"]])


def outcome_word(outcome):
    return outcome or "not run"


def variant(cell):
    """What sets this cell apart from others of its userland, kernel and provider."""
    words = list(cell["overlays"])
    if cell["id"] != plain_id(cell):
        words.append("@" + cell["scenario"])
    return " ".join(words)


def version_key(text):
    """Sorts 4.4 before 4.16, and 5.10 before 5.10.223."""
    return [
        (1, int(part), "") if part.isdigit() else (0, 0, part)
        for part in re.findall(r"\d+|[^\d.\-_+~]+", text)
    ]


def axis_key(name, about):
    """Sort key of a name within its axis: by release, look-alikes and versionless names last."""
    version = about.get("version")
    if version is None:
        found = re.search(r"\d+(?:\.\d+)*", name)
        version = found.group(0) if found else None
    last = about.get("kind") == "look-alike" or version is None
    return (last, version_key(version or ""), version_key(name), name)


def axis_order(results, axis):
    """The names of `axis` (kernels, userlands, providers) that cells use, in the order to show."""
    field = axis[:-1]
    about = results.get("axes", {}).get(axis, {})
    names = {cell[field] for cell in results["cells"]}
    if axis == "providers":
        return sorted(names)
    return sorted(names, key=lambda name: axis_key(name, about.get(name, {})))


def severity(cell):
    """Higher is worse news. An unexpected cell always outranks one that is as expected."""
    outcome = cell["outcome"]
    rank = OUTCOMES.index(outcome) if outcome in OUTCOMES else -1
    return (VERDICTS.index(cell["verdict"]), rank)


def groups(results):
    """Cells by (provider, kernel, userland), each list with the plainest cell first."""
    found = {}
    for cell in results["cells"]:
        found.setdefault((cell["provider"], cell["kernel"], cell["userland"]), []).append(cell)
    for cells in found.values():
        cells.sort(key=lambda cell: (len(variant(cell)) > 0, len(cell["overlays"]), variant(cell)))
    return found


def headline(cells):
    """The cell that speaks for its group: the one without overlays, else the worst."""
    plain = [cell for cell in cells if not variant(cell)]
    return plain[0] if plain else max(cells, key=severity)


def summarise(cells, wall_s):
    """The summary object. Cells of one userland and scenario whose worlds are equal count once,
    with the worst verdict among them."""
    counted = {}
    for cell in cells:
        world = cell.get("world_digest")
        # The devices are part of the world; the suites that run depend on the provider's name too.
        key = (
            (cell["userland"], cell["arch"], cell["provider"], cell.get("scenario"), world)
            if world
            else cell["id"]
        )
        if key not in counted or severity(cell) > severity(counted[key]):
            counted[key] = cell
    summary = {"cells": len(counted)}
    summary["distinct_traces"] = len(
        {cell["trace_digest"] for cell in cells if cell.get("trace_digest")}
    )
    for verdict in ("expected", "unexpected", "fixed", "not_run"):
        summary[verdict] = sum(cell["verdict"] == verdict for cell in counted.values())
    summary["unmodelled"] = sum(cell["outcome"] == "unmodelled" for cell in counted.values())
    summary["wall_s"] = wall_s
    return summary


def percent(agreement):
    """'99.7 %'. Never rounded up to 100: one disagreement in ten thousand must show."""
    cases, agree = agreement["cases"], agreement["agree"]
    if cases == 0:
        return "no cases"
    if agree == cases:
        return "100 %"
    return f"{min(agree * 1000 // cases, 999) / 10:.1f} %"


def known_words(known_by, agreement=None):
    """'core calibrated 99.7 %, driver source', or one word where both are known alike."""
    if known_by is None:
        return ""
    if isinstance(known_by, str):
        parts = {"": known_by}
    elif known_by.get("core") == known_by.get("driver"):
        parts = {"": known_by["core"]}
    else:
        parts = known_by
    words = []
    for part in ("", "core", "driver"):
        word = parts.get(part)
        if word is None:
            continue
        share = f" {agreement}" if word == "calibrated" and agreement and part != "driver" else ""
        words.append(f"{part} {word}{share}".strip())
    return ", ".join(words)


def kernel_agreement(results, kernel):
    """Agreement of one kernel over its drivers in words, None when it was not recorded."""
    drivers = results.get("oracle", {}).get(kernel)
    if not drivers:
        return None
    return percent(
        {
            "cases": sum(one["cases"] for one in drivers.values()),
            "agree": sum(one["agree"] for one in drivers.values()),
        }
    )


def detail(cell):
    """The few words beside an outcome: what is lost, over which route, or who refused and why."""
    words = []
    outcome = cell["outcome"]
    if outcome not in ("full", "degraded"):
        if cell.get("signal"):
            words.append(cell["signal"])
        if cell.get("limit"):
            words.append(f"{cell['limit']} limit")
        if cell.get("unmodelled"):
            words.append(", ".join(cell["unmodelled"][:3]))
        if cell.get("errno"):
            words.append(cell["errno"] + (f" from {cell['by']}" if cell.get("by") else ""))
        if cell.get("rule"):
            words.append(cell["rule"])
        if not words and cell.get("message"):
            words.append(cell["message"].strip().splitlines()[0] if cell["message"].strip() else "")
    else:
        if cell.get("route") and outcome == "degraded":
            words.append(f"over {cell['route']}")
        if cell.get("lost"):
            words.append("no " + ", ".join(cell["lost"]))
    return "; ".join(word for word in words if word)


def verdict_sentence(summary):
    """'264 as expected', or what is not."""
    words = [
        f"{summary[verdict]} {VERDICT_WORDS[verdict]}"
        for verdict in ("unexpected", "fixed", "not_run", "expected")
        if summary[verdict] or verdict == "expected"
    ]
    if summary["unmodelled"]:
        words.append(f"{summary['unmodelled']} without a model")
    return ", ".join(words)


def gate_sentence(gate):
    """The gate's answer in a line: a page whose cells are all as expected may still say no."""
    worse = len(gate.get("worse", []))
    more = f": {worse} cell{'' if worse == 1 else 's'} got worse" if worse else ""
    return {
        "pass": f"Yes, {gate['new']} may replace {gate['old']}",
        "fail": f"No, {gate['new']} may not replace {gate['old']}{more}",
        "not_run": f"Whether {gate['new']} may replace {gate['old']} was not seen",
    }[gate["result"]]


def missing_part(results):
    """Why these results are not the whole run, as a sentence; None when nothing is missing."""
    run = results.get("run", {})
    missing = []
    for count in sorted({int(shard.split("/")[1]) for shard in run.get("shards", [])}):
        have = {
            int(shard.split("/")[0]) for shard in run["shards"] if int(shard.split("/")[1]) == count
        }
        missing += [f"{index}/{count}" for index in range(1, count + 1) if index not in have]
    if len(missing) > 6:
        return f"Only a part of the run: {len(missing)} shards are not in it, {missing[0]} the first."
    if missing:
        names = f"shards {', '.join(missing)} are" if len(missing) > 1 else f"shard {missing[0]} is"
        return f"Only a part of the run: {names} not in it."
    if run.get("complete") is False:
        planned = run.get("planned")
        done = (
            f"{len(results['cells'])} of {planned} cells"
            if planned
            else f"{len(results['cells'])} cells"
        )
        command = run.get("command") or "./verbs-abi run"
        again = command if "--resume" in command.split() else f"{command} --resume"
        return f"The run was interrupted: {done} are done. {again} goes on."
    return None
