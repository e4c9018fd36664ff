# SPDX-License-Identifier: BSD-2-Clause
import pytest

from verbs_abi import errors
from verbs_abi.cells import ids, plans


def test_an_overlay_stands_once():
    with pytest.raises(errors.UserError, match="overlay 'no-ioctl' stands twice"):
        ids.parse("deb-44.0/debian-6.1.192/mlx5/no-ioctl/no-netlink/no-ioctl")
    with pytest.raises(errors.UserError, match="overlay 'no-ioctl' stands twice"):
        plans.made(["deb-44.0"], ["debian-6.1.192"], ["mlx5"], (), ["no-ioctl", "no-ioctl"], ())
    cell = ids.parse("deb-44.0/debian-6.1.192/mlx5/errno@CREATE_CQ=EIO/errno@CREATE_QP=EIO")
    assert cell.overlays == ("errno@CREATE_CQ=EIO", "errno@CREATE_QP=EIO")
