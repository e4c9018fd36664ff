# SPDX-License-Identifier: BSD-2-Clause
"""The conformance suites themselves: each test can fail.

A test is run in a world that behaves otherwise than its cell says: with a rule of the kernel taken away, or in the
world of another cell than the one whose facts it is told.
"""

import json

import pytest

from verbs_abi import userlands
from verbs_abi.cells import conformance, ids, programs, runner, worlds

# A rule of the kernel without which the test must fail.
RELAXED = [
    ("linux-4.4/mlx5", "mlx5.ucontext.length", "RequestLength.Mlx5On44ComesDownToTheShortestRequestWithoutFlags"),
    ("linux-4.10/mlx5", "mlx5.ucontext.tail", "RequestLength.Mlx5On410LeavesLibCapsOut"),
    ("linux-4.16/mlx5", "mlx5.ucontext.flags", "RequestLength.Mlx5Before419LeavesDevxOut"),
    ("linux-4.19/mlx5", "mlx5.ucontext.devx.link", "RequestLength.Mlx5On419HasNoDevxOnInfiniBand"),
    ("debian-6.1.192/rxe", "request.tail", "RequestLength.ALongerRequestMustEndInZeros"),
    ("debian-6.1.192/rxe", "write.response.short", "RequestLength.ALegacyReplyThatIsTooShortIsRefusedUntouched"),
    ("debian-6.1.192/rxe", "query_device.comp_mask", "CompMask.QueryDeviceKnowsNoBit"),
    ("debian-6.1.192/rxe", "cq.ex.comp_mask", "CompMask.CreateCqKnowsNoBit"),
    ("debian-6.1.192/rxe", "cq.ex.comp_mask", "CompMask.RefusedCallsMakeNothing"),
    ("debian-6.1.192/rxe", "qp.ex.comp_mask", "CompMask.CreateQpKnowsTheIndirectionTable"),
    ("debian-6.1.192/mlx5", "cq.modify.mask.unknown", "CompMask.ModifyCqKnowsModeration"),
    ("debian-6.1.192/rxe", "ioctl.flags.unknown", "CompMask.TheCqMethodKnowsTwoFlags"),
    ("debian-6.1.192/rxe", "ioctl.flags.unknown", "CompMask.TheQpMethodKnowsItsFlags"),
    ("debian-5.10.223/rxe", "qp.modify.mask", "CompMask.ModifyQpKnowsTheStandardBits"),
    ("debian-6.1.192/rxe", "ioctl.attr.unknown_mandatory", "CompMask.AnUnknownAttributeIsRefusedOnlyWhenMandatory"),
    ("debian-6.1.192/mlx5", "mlx5.ucontext.reserved", "CompMask.Mlx5ContextsKnowNoBit"),
    ("debian-6.1.192/mlx5", "mlx5.ucontext.flags", "CompMask.Mlx5ContextsKnowDevx"),
]

# The cell whose facts the test is told, the one in whose world it runs.
DECEIVED = [
    ("6.1.192/rxe/no-ioctl", "6.1.192/rxe", "Fallback.EnottyMarksTheWholeContext"),
    ("6.1.192/rxe/no-ioctl", "6.1.192/rxe", "Fallback.AfterEnottyEveryObjectIsWritten"),
    ("6.1.192/mlx5/no-ioctl", "6.1.192/mlx5", "Fallback.AfterEnottyOnlyMethodsWithoutAWrittenFormAreTried"),
    ("6.1.192/rxe/missing-method=CQ.CREATE", "6.1.192/rxe", "Fallback.AMissingMethodIsTriedOnce"),
    ("6.1.192/rxe/missing-method=CQ.CREATE", "6.1.192/rxe/no-ioctl", "Fallback.AMissingMethodLeavesTheOthersAlone"),
    ("6.1.192/rxe/missing-method=PD.DESTROY", "6.1.192/rxe", "Fallback.EachContextFindsOutForItself"),
    ("6.1.192/rxe/missing-method=DEVICE.GET_CONTEXT", "6.1.192/rxe", "Fallback.AMissingGetContextIsWritten"),
    ("6.1.192/rxe", "6.1.192/rxe/missing-method=DEVICE.GET_CONTEXT",
     "Fallback.AContextThroughIoctlAsksForItsEventFile"),
    ("6.1.192/rxe/missing-method=DEVICE.QUERY_GID_ENTRY", "6.1.192/rxe", "Fallback.TheGidMethodsShareOneBit"),
    ("6.1.192/rxe/errno@CQ.CREATE=EINVAL", "6.1.192/rxe/errno@CQ.CREATE=EPROTONOSUPPORT",
     "Fallback.OtherErrnosAreFinal"),
    ("6.1.192/rxe/errno@DEVICE.GET_CONTEXT=EIO", "6.1.192/rxe/errno@DEVICE.GET_CONTEXT=EPROTONOSUPPORT",
     "Fallback.OtherErrnosOfGetContextEndTheOpen"),
    ("6.1.192/rxe/errno@CQ.CREATE=ENOTTY", "6.1.192/rxe/errno@CQ.CREATE=EPROTONOSUPPORT",
     "Fallback.ALateEnottyMarksTheWholeContextToo"),
    ("6.1.192/rxe", "6.1.192/rxe/no-invoke-write", "Fallback.TheProbeFindsInvokeWrite"),
    ("6.1.192/rxe/no-invoke-write", "6.1.192/rxe", "Fallback.WithoutInvokeWriteCommandsAreWritten"),
    ("6.1.192/rxe/errno-once@DEVICE.INVOKE_WRITE=EINVAL", "6.1.192/rxe/errno-once@DEVICE.INVOKE_WRITE=ENOTTY",
     "Fallback.AnyOtherErrnoOfTheProbeMeansThatInvokeWriteIsThere"),
    ("6.1.192/rxe/errno-once@DEVICE.INVOKE_WRITE=ENOTTY", "6.1.192/rxe/no-ioctl", "Fallback.TheProbeMarksNothing"),
    ("6.1.192/mlx5/missing-method=CQ.CREATE", "6.1.192/mlx5", "Fallback.WhatHasNoWrittenFormIsNotSupported"),
    ("6.1.192/rxe/no-netlink/global-abi=3", "6.1.192/rxe/no-netlink/global-abi=7",
     "Negotiation.GlobalAbiFromThreeToSixIsTaken"),
    ("6.1.192/rxe/no-netlink/global-abi=7", "6.1.192/rxe/no-netlink/global-abi=6",
     "Negotiation.GlobalAbiOutsideIsFatalAndToldOnce"),
    ("6.1.192/rxe/no-netlink/global-abi=missing", "6.1.192/rxe/no-netlink/global-abi=garbage",
     "Negotiation.GlobalAbiThatCannotBeReadIsFatalInSilence"),
    ("6.1.192/rxe/global-abi=7", "6.1.192/rxe/no-netlink/global-abi=7",
     "Negotiation.NetlinkMakesTheGlobalAbiSixWhateverSysfsSays"),
    ("6.1.192/rxe/provider-abi=0", "6.1.192/rxe/no-netlink/provider-abi=0",
     "Negotiation.RxeWithAnotherDriverAbiIsWarnedOfTwiceOnNetlink"),
    ("6.1.192/mlx5/no-netlink/provider-abi=0", "6.1.192/mlx5/provider-abi=0",
     "Negotiation.Mlx5WithAnotherDriverAbiIsWarnedOfOnceOnSysfs"),
    ("6.1.192/rxe/no-netlink/provider-abi=no-newline", "6.1.192/rxe/no-netlink/provider-abi=garbage",
     "Negotiation.ADriverAbiWithoutNewlineIsReadAllTheSame"),
    ("6.1.192/mlx5_0=mlx5+rxe0=rxe/provider-abi@rxe0=9", "6.1.192/mlx5_0=mlx5+rxe0=rxe",
     "Negotiation.ABadDeviceLeavesTheGoodOneAlone"),
    ("5.10.223/rxe", "6.1.192/rxe", "DataPath.AWrongRemoteKeyIsNotAnsweredByOldRxe"),
    ("6.1.192/rxe", "5.10.223/rxe", "DataPath.AWrongRemoteKeyIsARemoteAccessErrorOfRxe"),
    ("6.1.192/mlx5", "6.1.192/mlx5/mmap-fails=UAR", "DataPath.SendArrivesByteForByte"),
]


def run(compiler, facts, world, test, relax=()):
    """(selected, rows) of one test in the world of one cell with the facts of another."""
    facts, world = ids.parse(facts), ids.parse(world)
    userland = userlands.get(world.userland)
    with worlds.run_folder() as folder:
        trace = folder / "trace.jsonl"
        (folder / "told").mkdir()
        told = compiler.tell(facts, folder / "told", trace)
        real = compiler.tell(world, folder, trace, relax, model=False)
        argv, env = userland.command([str(programs.build("conformance", userland)), test], worlds.shim())
        env |= conformance.write_facts(folder, facts, userland, told, trace)
        ended = runner.run(argv, worlds.environment(real["world"], env), cwd=folder)
    rows = conformance.rows_of(ended.stdout)
    assert [row["name"] for row in rows] == [test], ended.stderr
    return rows[0]


@pytest.mark.parametrize("cell, rule, test", RELAXED)
def test_fails_without_the_rule(compiler, cell, rule, test):
    cell = f"deb-44.0/{cell}"
    assert run(compiler, cell, cell, test)["result"] == "passed"
    assert run(compiler, cell, cell, test, [rule])["result"] == "failed"


@pytest.mark.parametrize("facts, world, test", DECEIVED)
def test_fails_in_another_world(compiler, facts, world, test):
    facts, world = f"deb-44.0/debian-{facts}", f"deb-44.0/debian-{world}"
    assert run(compiler, facts, facts, test)["result"] == "passed"
    assert run(compiler, facts, world, test)["result"] == "failed"


def test_a_failure_tells_the_trace_around_it(compiler):
    row = run(compiler, "deb-44.0/debian-6.1.192/rxe/no-ioctl", "deb-44.0/debian-6.1.192/rxe",
              "Fallback.EnottyMarksTheWholeContext")
    assert "fallback_test.cc:" in row["message"]
    assert "DEVICE.INVOKE_WRITE, refused with ENOTTY" in row["message"]
    assert "ioctl CQ.CREATE" in row["message"].partition("the trace of this test:")[2]
    assert json.dumps(row)
