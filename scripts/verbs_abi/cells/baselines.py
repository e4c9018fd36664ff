# SPDX-License-Identifier: BSD-2-Clause
"""What each test of a client came to when it was looked at last: matrix/baselines/SCENARIO.USERLAND.json.

    {"name": "diags.deb-44.0", "worlds": {"mlx5,link=roce": {"kernels": ["linux-4.16", …], "tests": {"ibstat": "pp…"}}}}

A letter for each kernel: p passed, s skipped, f failed, c crashed, h hung, - no such test. A test that passed there and
does not now has failed, whatever it says, and its cell is broken: so a kernel model that loses tests is seen, also where
the tests themselves only say that something is not supported.

For maintainers: `python3 -m verbs_abi.cells.baselines RESULTS.json` (in scripts/) writes the cells of a run into the
files; others are kept. Read the difference before it is committed: a p that turns is a test that a kernel has lost.
"""

import json
import pathlib
import sys

from verbs_abi import matrix, paths

LETTERS = {"passed": "p", "skipped": "s", "failed": "f", "crashed": "c", "hung": "h"}


def key_of(cell):
    """The baseline's name for a cell's devices and overlays."""
    return "/".join([cell.provider, *cell.overlays])


def _letters(worlds):
    """The "worlds" of a file as {world: {test: {kernel: letter}}}."""
    return {key: {test: dict(zip(world["kernels"], letters)) for test, letters in world["tests"].items()}
            for key, world in worlds.items()}


def read(scenario, userland):
    """{world: {test: {kernel: letter}}}; empty when there is no such file."""
    name = f"{scenario}.{userland}"
    if name not in matrix.names("baselines"):
        return {}
    return _letters(matrix.get("baselines", name).data["worlds"])


def of_cell(cell):
    """{test: letter} for the cell; empty when nothing is known of it."""
    world = read(cell.scenario, cell.userland).get(key_of(cell), {})
    return {test: kernels[cell.kernel] for test, kernels in world.items() if kernels.get(cell.kernel, "-") != "-"}


def letter_of(row):
    return row.get("x_letter") or LETTERS[row["result"]]


def compare(rows, known):
    """What is worse than the baseline (those rows become failed), and what fails as it did: two lists of names.

    rows: of results.json; known: {test: letter}.
    """
    worse, as_before = [], []
    for row in rows:
        before, now = known.get(row["name"]), letter_of(row)
        if before == "p" and now != "p":
            row["x_letter"] = now
            row["result"] = "failed"
            row["message"] = f"passed when the baseline was written; now {row['message']}"
            worse.append(row["name"])
        elif row["result"] == "failed":
            (as_before if before == now else worse).append(row["name"])
    told = {row["name"] for row in rows}
    for name in sorted(set(known) - told):
        rows.append({"name": name, "result": "failed", "x_letter": "-",
                     "message": "in the baseline, but nothing was told of it"})
        worse.append(name)
    return worse, as_before


def _with(old, rows):
    """The "worlds" of a baseline, with the cells (rows of results.json) put into it."""
    from verbs_abi.cells import ids  # which asks for scenarios, which ask for us

    table = _letters(old)
    for row in rows:
        world = table.setdefault(key_of(ids.parse(row["id"])), {})
        for letters in world.values():
            letters.pop(row["kernel"], None)
        for test in row["tests"]:
            world.setdefault(test["name"], {})[row["kernel"]] = letter_of(test)
    made = {}
    for key, world in sorted(table.items()):
        there = {kernel for kernels in world.values() for kernel in kernels}
        kernels = [kernel for kernel in ids.kernels() if kernel in there]
        made[key] = {"kernels": kernels, "tests": {
            test: "".join(letters.get(kernel, "-") for kernel in kernels)
            for test, letters in sorted(world.items()) if letters}}
    return made


def write(rows):
    """Puts cells (rows of results.json) into the files; returns their paths."""
    mine = {}
    for row in rows:
        if row.get("scenario") in matrix.names("scenarios") and row.get("tests"):
            mine.setdefault(f"{row['scenario']}.{row['userland']}", []).append(row)
    written = []
    for name, found in sorted(mine.items()):
        path = paths.matrix_dir() / "baselines" / f"{name}.json"
        old = matrix.read_json(path)["worlds"] if path.exists() else {}
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"name": name, "worlds": _with(old, found)}, indent=1) + "\n", encoding="utf-8")
        written.append(path)
    return written


def main():
    for path in write(json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))["cells"]):
        print(path)


if __name__ == "__main__":
    main()
