# SPDX-License-Identifier: BSD-2-Clause
"""What `verbs-abi test` does beside running tests: relaxed rules, style, clang-tidy, sanitizers, fuzzing."""
