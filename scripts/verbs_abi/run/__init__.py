# SPDX-License-Identifier: BSD-2-Clause
"""The commands that run cells: run, exec, explain."""
