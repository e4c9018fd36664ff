# SPDX-License-Identifier: BSD-2-Clause
"""Benchmarks of whole processes, each beside its baseline in the same run."""
