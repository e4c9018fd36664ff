# SPDX-License-Identifier: BSD-2-Clause
"""What the end of a cell means: full, degraded, refused, broken or unmodelled.

full      all steps went well, and the cell's own trace shows the route and the data that it claims
degraded  all steps went well over a fallback: what was lost is told
refused   the first step that failed did so with the very errno that the kernel answered, or with the library's own
          message, and nothing else went wrong
broken    everything else: wrong bytes, a wrong status, another errno than the kernel's, a crash, a hang
"""

import dataclasses
import json
import re

from verbs_abi.cells import features, trace

# Steps of the journey without which a run is no proof that data moved.
DATA_STEPS = ("data:send", "data:write", "data:read", "data:wrap", "data:channel")

# How a device or a kernel says that it has not got something.
NOT_OFFERED = ("EOPNOTSUPP", "ENOSYS", "EPROTONOSUPPORT")

# What the drivers of the newest kernel have of the journey's optional steps (hw/mlx5/main.c, sw/rxe/rxe_verbs.c: their
# ib_device_ops in 7.3): where an older kernel or library says that there is none, it is lost.
OFFERED = {
    "mlx5": {"ah", "ud", "srq", "xrcd", "mw", "cq_ex", "resize_cq", "rereg_mr", "dm", "counters", "raw_packet", "flow",
             "wq", "rwq_ind_table", "rss"},
    # No "ah": on Ethernet libmlx4 resolves addresses through the machine's own routes (providers/mlx4/verbs.c).
    "irdma": {"ah", "ud", "resize_cq"},
    "mlx4": {"ud", "srq", "mw", "cq_ex", "resize_cq", "rereg_mr"},
    "rxe": {"ah", "ud", "srq", "mw", "cq_ex", "resize_cq"},
    "siw": {"srq"},
    "erdma": set(),
    "efa": {"ah", "ud"},
    # HIP08, which knows neither datagrams nor address handles.
    "hns": {"srq", "rereg_mr"},
}

# What libibverbs and the providers print when they refuse a device or an ABI.
MESSAGE = re.compile(r"^(libibverbs: .*|[a-z0-9_]+: .*(?:ABI|version|unsupported).*|No IB devices found.*"
                     r"|Failed to .*)$", re.M | re.I)


@dataclasses.dataclass
class Outcome:
    """One cell's result, as results.json holds it (less the verdict)."""

    outcome: str
    route: str | None = None
    discovery: str | None = None
    lost: list = dataclasses.field(default_factory=list)
    fallbacks: list = dataclasses.field(default_factory=list)
    features: list = dataclasses.field(default_factory=list)
    rule: str | None = None
    errno: str | None = None
    by: str | None = None
    message: str | None = None
    trace_digest: str | None = None
    tests: list = dataclasses.field(default_factory=list)


def rows_of(text):
    """The JSON objects among the lines of a program's output; what else it or a library prints is left out."""
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def steps_of(text):
    """The report of a journey: (steps, values)."""
    steps, values = [], {}
    for row in rows_of(text):
        if "step" in row:
            steps.append(row)
        elif "value" in row:
            values[row["value"]] = row["is"]
    return steps, values


def _is_loss(cell, step):
    """What no such device offers is no loss; what is offered and fails is, and what only older kernels lack. What was asked
    to learn the answer is none."""
    if not step.get("optional") or step.get("asked") or step["ok"]:
        return False
    # The journey opens the first device.
    return step["step"] in OFFERED.get(cell.devices[0].provider, ()) or step.get("errno") not in (None, *NOT_OFFERED)


def _tests(steps):
    rows, seen = [], {}
    for step in steps:
        if step.get("optional") and not step["ok"]:
            result = "skipped"
        else:
            result = "passed" if step["ok"] else "failed"
        seen[step["step"]] = seen.get(step["step"], 0) + 1
        count = seen[step["step"]]
        text = " ".join(filter(None, [step.get("errno"), step.get("note")]))
        rows.append({"name": step["step"] + (f"#{count}" if count > 1 else ""), "result": result,
                     "message": text or None})
    return rows


def _last_refusal(records, errno=None):
    """The last command that the kernel side refused, with that errno when one is given."""
    for record in reversed(records):
        if record.get("result", 0) < 0 and (errno is None or record.get("errno") == errno):
            return record
    return None


def _messages(ended):
    return [match.group(0) for match in MESSAGE.finditer(ended.stderr)]


def judge(cell, ended, records, must=DATA_STEPS):
    """The Outcome of a cell that ran a journey or the like; must: the steps that prove it, none for a shipped program."""
    steps, _ = steps_of(ended.stdout)
    result = Outcome("broken", route=features.route(records), discovery=features.discovery(records),
                     trace_digest=trace.digest(records), tests=_tests(steps))
    for feature, instead, record in features.lost(records):
        result.lost.append(feature)
        result.fallbacks.append({"lost": feature, "instead": instead, "rule": record.get("rule"),
                                 "errno": record.get("errno"), "command": record.get("name")})
    for step in steps:
        if _is_loss(cell, step):
            result.lost.append(step["step"])
            result.fallbacks.append({"lost": step["step"], "instead": "nothing", "rule": None,
                                     "errno": step.get("errno"), "command": None})
    result.features = sorted({step["step"].removeprefix("data:") for step in steps if step["ok"]})

    missing = next(filter(None, map(trace.unmodelled, records)), None)
    if missing is not None:
        result.outcome = "unmodelled"
        result.message = missing
        return result
    if ended.limit:
        result.message = {"time": f"no end after {ended.seconds:.0f} s", "output": "too much output"}[ended.limit]
        return result
    if ended.signal:
        result.message = f"crashed: {ended.signal_name}" + _after(steps)
        return result
    return _judge_steps(result, steps, ended, records, must)


def _after(steps):
    return f" after step {steps[-1]['step']}" if steps else " before its first step"


def _judge_steps(result, steps, ended, records, must):
    messages = _messages(ended)
    failed = [step for step in steps if not step["ok"] and not step.get("optional")]
    if ended.status == 0 and not failed:
        done = {step["step"] for step in steps if step["ok"]}
        lacking = [name for name in must if name not in done]
        if lacking or result.route is None and must:
            result.message = f"ended well without {', '.join(lacking) or 'a single command'}"
            return result
        if result.lost:
            result.outcome = "degraded"
            first = result.fallbacks[0]
            result.rule, result.errno, result.by = first["rule"], first["errno"], "kernel"
            result.message = "; ".join(f"{row['lost']} → {row['instead']}" for row in result.fallbacks)
        else:
            result.outcome = "full"
        return result

    first = failed[0] if failed else None
    if first is None:
        result.message = (messages or [f"exit status {ended.status}"])[0]
        result.outcome = "refused" if messages else "broken"
        result.by = "libibverbs" if messages else None
        return result
    result.errno = first.get("errno")
    text = f"{first['step']}: " + " ".join(filter(None, [first.get("errno"), first.get("note")]))
    result.message = f"{text.rstrip(': ')}" + (f" ({messages[0]})" if messages else "")
    refusal = _last_refusal(records, first.get("errno"))
    others = [step for step in failed[1:] if step["step"].startswith(("data:", "error:", "destroy", "de", "close"))]
    clean = first.get("errno") is not None and not first["step"].startswith(("data:", "error:")) and not others
    if refusal is not None and clean:
        result.outcome, result.by, result.rule = "refused", "kernel", refusal.get("rule") or refusal.get("fault")
    elif messages and not others:
        result.outcome, result.by = "refused", "libibverbs"
    elif first["step"] in ("find_device", "device_list", "open_device") and not others:
        result.outcome, result.by = "refused", "libibverbs"
    elif first["step"] in ("port_active", "query_gid") and not others:
        result.outcome, result.by = "refused", "program"
    return result
