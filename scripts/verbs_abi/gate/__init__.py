# SPDX-License-Identifier: BSD-2-Clause
"""May one userland be released in place of another?

compare.py    what got worse, what got better, from two userlands' cells     command.py    verbs-abi gate
"""
