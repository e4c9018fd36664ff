# SPDX-License-Identifier: BSD-2-Clause
"""Cells of the matrix: their names, their worlds, how they are run, and what came of them.

ids.py        names of cells            plans.py     which cells a plan has
worlds.py     worlds on disk            programs.py  what is run inside, built per userland
runner.py     one cell within limits    outcome.py   what its report and trace mean
features.py   what a fallback costs     expect.py    outcome to verdict
trace.py      reading traces            pool.py      many cells at once
"""
