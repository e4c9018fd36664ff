# SPDX-License-Identifier: BSD-2-Clause
"""How the answers of a cell are known: calibrated by a real kernel, read in its source, or inferred from headers."""

from verbs_abi import matrix


def of_kernel(name, part):
    """"calibrated", "source" or "headers" for "core" or a driver, as the kernel's file says."""
    data = matrix.get("kernels", name).data
    known = data.get("known_by", "headers")
    if known == "calibrated" and part not in data.get("calibrated", ()):
        return "source"
    return known


def of_cell(cell):
    """{"core": …, "driver": …} of a cell; of several drivers the weakest."""
    order = ("calibrated", "source", "headers")
    drivers = [of_kernel(cell.kernel, driver) for driver in cell.drivers]
    return {"core": of_kernel(cell.kernel, "core"), "driver": max(drivers, key=order.index)}
