# SPDX-License-Identifier: BSD-2-Clause
"""The table of a sensitivity run: sensitivity.json, sensitivity.md, and the terminal."""

import json

# Of what noticed one defect; the JSON has all.
SHOWN = 4


def data(plan, source, sound, findings, seconds):
    """What sensitivity.json holds. sound: the rows of the source as it is."""
    return {
        "plan": plan, "source": source, "wall_s": round(seconds, 1), "cells": len(sound),
        "sound": [{"id": row["id"], "outcome": row["outcome"], "message": row.get("message")} for row in sound],
        "defects": [{
            "name": finding.defect.name, "layer": finding.defect.layer, "file": finding.defect.file, "in": finding.defect.where,
            "swap": f"{finding.defect.old} → {finding.defect.new or 'nothing'}", "why": finding.defect.why,
            "caught": finding.caught, "by": finding.by, "error": finding.error} for finding in findings],
        "holes": [finding.defect.name for finding in findings if not finding.caught]}


def markdown(told):
    """The table as Markdown."""
    lines = [f"# Sensitivity of the suites: {told['source']}", "",
             f"{len(told['defects']) - len(told['holes'])} of {len(told['defects'])} defects were noticed, by {told['cells']} cells "
             f"each; {told['wall_s']:.0f} s.", "", "| defect | layer | where | swap | noticed by |", "|---|---|---|---|---|"]
    for row in told["defects"]:
        by = "; ".join(row["by"][:SHOWN]) + (f"; and {len(row['by']) - SHOWN} more" if len(row["by"]) > SHOWN else "")
        cells = [f"{row['name']}: {row['why']}", row["layer"], f"{row['file']}: {row['in']}", f"`{row['swap']}`",
                 by or f"**{row['error'] or 'nothing'}**"]
        lines.append("| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |")
    return "\n".join(lines) + "\n"


def write(told, out):
    (out / "sensitivity.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    (out / "sensitivity.md").write_text(markdown(told))


def show(told, out):
    width = max(len(row["name"]) for row in told["defects"])
    for row in told["defects"]:
        first = row["by"][0] if row["by"] else row["error"] or "NOTHING noticed it"
        print(f"  {row['name']:{width}}  {row['layer']:12}  {len(row['by']):4}  {first[:110]}")
    for name in told["holes"]:
        print(f"hole: nothing noticed {name}")
    print(f"{len(told['defects']) - len(told['holes'])} of {len(told['defects'])} defects noticed, {told['cells']} cells each, "
          f"{told['wall_s']:.0f} s.   Report: {out / 'sensitivity.md'}")
