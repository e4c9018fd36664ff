# SPDX-License-Identifier: BSD-2-Clause
"""Negotiation with the real libraries, where the outcome alone does not tell enough."""

import pytest

from verbs_abi.cells import ids, pool
from verbs_abi.userlands import mapped


def run(setup, cell):
    return pool.run_cell(setup, ids.parse(f"deb-44.0/debian-6.12.117/{cell}@negotiate"))


# A device that is mlx4's by its PCI ids and mlx5's (1) by its driver id. libibverbs/init.c: try_drivers.
@pytest.mark.parametrize("cell, taker, warnings", [
    ("mlx4/driver-id=1/provider-abi=1", "mlx5", 0),  # the id goes first
    ("mlx4/driver-id=1/provider-abi=4", "mlx4", 1),  # mlx5 refuses it once, then mlx4's turn comes before mlx5's second
    ("mlx4/driver-id=1/provider-abi=2", "mlx4", 1),
    ("mlx4/driver-id=1/provider-abi=9", None, 3),    # mlx5 by id, then both by their tables
    ("mlx4/driver-id=1/no-netlink/provider-abi=4", "mlx4", 0),
    ("mlx4/driver-id=1/no-netlink/provider-abi=1", None, 1),
])
def test_two_providers_for_one_device(setup, cell, taker, warnings):
    row = run(setup, cell)
    message = row["tests"][0]["message"]
    if taker is None:
        # Who of the two is asked first among the loaded ones is the order of readdir.
        assert message == f"not taken, {warnings} warnings"
    else:
        assert message.startswith(f"taken by {taker} ")


@pytest.mark.parametrize("bad", range(3))
def test_a_refused_device_hides_no_good_one(setup, bad):
    names = ["efa_0", "hns_0", "mlx4_0"]
    row = run(setup, f"efa_0=efa+hns_0=hns+mlx4_0=mlx4/provider-abi@{names[bad]}={2**31}")
    taken = [test["name"] for test in row["tests"] if test["message"].find(": taken by ") > 0]
    assert taken == [name for name in names if name != names[bad]]


# A vendor's kernel module shows an ABI version of its own (6); bnxt_re of every release here takes 0 to 1 or 1 alone. Two
# warnings a device, since libibverbs asks before and after it loads plug-ins; the good device is there. L2-02, L2-03,
# L2-17.
@pytest.mark.parametrize("release", ("deb-33.2", "deb-44.0", "deb-56.1", "deb-65.0"))
def test_a_vendors_abi_number_hides_no_other_device(setup, release):
    bad = "+".join(f"bnxt_re_{index}=bnxt_re" for index in range(8))
    overlays = "/".join(f"provider-abi@bnxt_re_{index}=6" for index in range(8))
    row = pool.run_cell(setup, ids.parse(f"{release}/debian-6.12.117/{bad}+mlx5_0=mlx5/{overlays}@negotiate"))
    told = {test["name"]: test["message"] for test in row["tests"]}
    assert "taken by mlx5" in told["mlx5_0"]
    for index in range(8):
        assert told[f"bnxt_re_{index}"].startswith("ABI 6: not taken, 2 warnings; ")
    assert row["outcome"] == "degraded"


# Where nothing is loaded there is nothing to say but the device's name. L2-11, L5-05, L5-11, L5-14: a plug-in that
# cannot be used is a warning, and leaves its device unclaimed.
@pytest.mark.parametrize("state, message", [
    ("missing", "couldn't load driver 'libefa-rdmav34.so'"),
    ("directory", "Is a directory"),
    ("empty", "file too short"),
    ("private-abi", "version `IBVERBS_PRIVATE_33' not found"),
    ("no-symbol", "not taken, 0 warnings"),
    ("vendor-symbol", "undefined symbol: ibv_exp_cmd_create_srq"),
    ("unconfigured", "not taken, 0 warnings"),
])
def test_plug_ins_that_cannot_be_used_are_told_of(setup, state, message):
    row = pool.run_cell(setup, ids.parse(f"deb-44.0/debian-6.12.117/efa/plugin={state}@negotiate"))
    assert (row["outcome"], row["verdict"]) == ("refused", "expected")
    assert message in row["message"]


def test_opening_what_is_not_modelled_says_so(setup):
    row = pool.run_cell(setup, ids.parse("deb-44.0/debian-6.12.117/cxgb4"))
    assert (row["outcome"], row["verdict"]) == ("unmodelled", "unexpected")
    assert "cxgb4" in row["message"]


def test_a_program_on_another_userlands_libraries_breaks_its_cell(setup):
    """The same cell, but the userland believes its root to be elsewhere."""
    cell = ids.parse("deb-44.0/debian-6.12.117/mlx5@negotiate")
    good = pool.run_cell(setup, cell)
    assert good["outcome"] == "full"
    userland = setup.userland("deb-44.0")
    moved = pool.Setup(None, setup.compiler, {"deb-44.0": Elsewhere(userland)})
    row = pool.run_cell(moved, cell)
    assert (row["outcome"], row["verdict"]) == ("broken", "unexpected")
    assert "ran on another userland's libraries" in row["message"] and "libibverbs.so.1" in row["message"]
    assert "libmlx5.so.1" in row["message"]


class Elsewhere:
    """A userland whose libraries are taken for another's."""

    def __init__(self, userland):
        self._userland = userland

    def __getattr__(self, name):
        return getattr(self._userland, name)

    def mapped_ok(self, text):
        return mapped.check(text, "/nowhere")


# Who reads the texts of sysfs: libibverbs of a kernel without GET_CHARDEV, or where netlink tells nothing of the node
# (libibverbs/ibdev_nl.c: find_sysfs_devs_nl; init.c: check_abi_version, setup_sysfs_uverbs). Else nobody does.
@pytest.mark.parametrize("kernel, overlays, outcome, errno", [
    ("linux-5.0", "provider-abi=missing", "refused", "ENODEV"),
    ("linux-5.3", "provider-abi=missing", "degraded", None),
    ("debian-6.12.117", "provider-abi=missing", "full", None),
    ("debian-6.12.117", "provider-abi=garbage", "full", None),
    ("debian-6.12.117", "no-netlink-chardev/provider-abi=garbage", "refused", "ENODEV"),
    ("debian-6.12.117", "provider-abi=no-newline", "full", None),
    ("linux-5.0", "global-abi=empty", "refused", "ENOSYS"),
    ("linux-5.3", "global-abi=7", "degraded", None),
    ("debian-6.12.117", "global-abi=empty", "full", None),
    ("debian-6.12.117", "no-netlink-chardev/global-abi=unreadable", "refused", "ENOSYS"),
    ("debian-6.12.117", "no-netlink/global-abi=5", "degraded", None),
    # ABI 4's CREATE_QP has a shorter reply (libibverbs/cmd_qp.c: ibv_icmd_create_qp).
    ("linux-5.0", "global-abi=4", "refused", "ENOSPC"),
    ("linux-5.7", "no-netlink/global-abi=4", "refused", "ENOSPC"),
    ("linux-5.8", "no-netlink/global-abi=4", "degraded", None),
])
def test_who_reads_the_texts_of_sysfs(setup, kernel, overlays, outcome, errno):
    row = pool.run_cell(setup, ids.parse(f"deb-44.0/{kernel}/mlx5/{overlays}"))
    assert (row["outcome"], row["verdict"]) == (outcome, "expected")
    assert errno is None or row["errno"] == errno


# What opens a device tells of all that were listed, too.
def test_a_program_that_opens_a_device_is_held_to_who_took_each(setup):
    row = pool.run_cell(setup, ids.parse("deb-44.0/debian-6.12.117/mlx4_0=mlx4+efa_0=efa@control"))
    assert row["outcome"] == "full" and {"mlx4_0 by mlx4", "efa_0 by efa"} <= set(row["features"])


@pytest.mark.parametrize("name, outcome, message", [
    # Of the releases 33.2 alone has this provider (matrix/negotiation).
    ("deb-33.2/linux-4.10/i40iw/plugin=private-abi@negotiate", None, "has libi40iw"),
    ("deb-44.0/debian-6.1.192/mlx5/plugin=missing/plugin=empty@negotiate", None, "contradict each other"),
    ("deb-44.0/debian-6.1.192/mlx5/plugin=nonsense@negotiate", None, "unknown state of a plug-in 'nonsense'"),
    ("deb-33.2/debian-6.1.192/mlx5/plugin=private-abi@negotiate", "refused", "couldn't load driver")])
def test_states_of_a_plug_in_that_cannot_be_had_are_not_run(setup, name, outcome, message):
    row = pool.run_cell(setup, ids.parse(name))
    assert (row["outcome"], row["verdict"]) == (outcome, "expected" if outcome else "not_run") and message in row["message"]


def test_a_refused_device_beside_a_good_one_is_expected(setup):
    row = pool.run_cell(setup, ids.parse("deb-44.0/debian-6.1.192/mlx5_0=mlx5+rxe0=rxe/provider-abi@rxe0=9@negotiate"))
    assert (row["outcome"], row["verdict"], row["lost"]) == ("degraded", "expected", ["device rxe0"])
    assert row["features"] == ["mlx5_0 by mlx5"]
