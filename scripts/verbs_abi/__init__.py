# SPDX-License-Identifier: BSD-2-Clause
"""The driver behind the verbs-abi command."""
