# SPDX-License-Identifier: BSD-2-Clause
"""Reports: results.json in, results.json, junit.xml, summary.md, index.html and history out."""

from .merging import MergeError, merge
from .schema import ResultsError, validate
from .store import load
from .write import sweep, write_all

__all__ = ["MergeError", "ResultsError", "load", "merge", "sweep", "validate", "write_all"]
