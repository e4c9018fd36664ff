# SPDX-License-Identifier: BSD-2-Clause
"""`verbs-abi facts`: ABI facts of kernels, by the program vabi-facts."""
