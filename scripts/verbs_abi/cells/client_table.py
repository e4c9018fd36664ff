# SPDX-License-Identifier: BSD-2-Clause
"""The table of clients in docs/clients.md, made of matrix/baselines: which runs where, and what stops it.

    python3 -m verbs_abi.cells.client_table        (in scripts/; writes the page)

A test holds the page to what this makes.
"""

from verbs_abi import matrix, paths
from verbs_abi.cells import baselines, clients, ids

PAGE = paths.ROOT / "docs/clients.md"
BEGIN, END = "<!-- table of clients: python3 -m verbs_abi.cells.client_table -->\n", "<!-- end of the table -->\n"
# The oldest, the one in the middle, the newest.
KERNELS = ("linux-4.4", "debian-6.12.117", "debian-7.3.4")
WORLDS = ("mlx5", "mlx5,link=roce", "rxe")


def _reason(name, cell, test):
    """Why a test of a scenario is skipped there, from the scenario's own rows."""
    row = next((row for row in clients.get(name).data.get("tests", []) if row["name"] == test), {})
    if "only" in row and not clients.holds(row["only"], cell):
        return row["only"]["reason"]
    found = [lack["reason"] for lack in row.get("lacks", []) if clients.holds(lack, cell)]
    return found[0] if found else None


def field(name, userland, world, kernel, notes):
    """The text of one field; reasons are put into `notes` (a list) and numbered."""
    cell = ids.Cell(userland, kernel, ids.devices(world), (), name)
    letters = baselines.of_cell(cell)
    if not letters:
        return "–"
    passed = sum(letter == "p" for letter in letters.values())
    text = f"{passed} of {len(letters)}"
    bad = {word: sum(letter == mark for letter in letters.values()) for word, mark in baselines.LETTERS.items()
           if word not in ("passed", "skipped")}
    text += "".join(f", {count} {word}" for word, count in bad.items() if count)
    marks = []
    for test, letter in letters.items():
        reason = _reason(name, cell, test) if letter == "s" else None
        if reason is not None:
            if reason not in notes:
                notes.append(reason)
            marks.append(notes.index(reason) + 1)
    return text + "".join(f" ({mark})" for mark in sorted(set(marks)))


def command(name, userland, world):
    kernels = " ".join(f"--kernel {kernel}" for kernel in KERNELS)
    return f"./verbs-abi run --userland {userland} {kernels} --provider {world} --scenario {name}"


def render():
    notes, lines = [], []
    lines += ["| client | rdma-core | device | " + " | ".join(KERNELS) + " |", "|---" * (3 + len(KERNELS)) + "|"]
    commands = []
    for entry in matrix.names("baselines"):
        name, _, userland = entry.partition(".")
        for world in WORLDS:
            fields = [field(name, userland, world, kernel, notes) for kernel in KERNELS]
            if set(fields) == {"–"}:
                continue
            lines.append(f"| {name} | {userland} | {world} | " + " | ".join(fields) + " |")
            commands.append(command(name, userland, world))
    text = "Tests that passed, of all; what did not pass was skipped for the reason of that number, unless the field says "\
        "otherwise (pyverbs' own reasons: below). `–`: not looked at, or no such driver.\n\n"
    text += "\n".join(lines) + "\n\n" + "".join(f"{number}. {note}\n" for number, note in enumerate(notes, 1))
    return text + "\nThe lines of the table, in their order:\n\n" + "".join(f"    {line}\n" for line in commands)


def page(text):
    """The page with the table in its place."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + render() + "\n" + END + rest.split(END)[1]


def main():
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
