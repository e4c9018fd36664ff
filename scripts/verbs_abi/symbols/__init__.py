# SPDX-License-Identifier: BSD-2-Clause
"""What libraries export, by version node: facts of a userland, and what changed between two.

read.py        facts of a userland's libraries      compare.py    differences with classes
minimums.py    Debian's .symbols files              command.py    verbs-abi symbols
"""
