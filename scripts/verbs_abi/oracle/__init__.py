# SPDX-License-Identifier: BSD-2-Clause
"""The measure: real kernels under emulation, and the fake kernel's agreement with them."""
