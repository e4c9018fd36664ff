# SPDX-License-Identifier: BSD-2-Clause
"""rdma-core sources built against kernels' headers: does it build, and does it still speak to them."""
