# SPDX-License-Identifier: BSD-2-Clause
"""The NVMe-oF journey: only one that came to its end is kept."""

import pytest

from verbs_abi.oracle import journey, kernels, vm

NAMES = ("target", "fabrics", "discovery_connect", "discovery_disconnect", "connect", "namespace", "write", "read_back",
         "disconnect")
WHOLE = "".join(f"{name} ok\n" for name in NAMES)


def guest(ended, text):
    return vm.Result(ended, "console's end", b"", {"stdout": text.encode(), "stderr": b"cmp: differ"}, 1.0)


@pytest.fixture(name="boots")
def _boots(monkeypatch):
    """What the guests come to, one a boot."""
    left = []
    monkeypatch.setattr(journey.boot, "run", lambda *_, **__: left.pop(0))
    monkeypatch.setattr(journey, "_modules", lambda _: b"")
    monkeypatch.setattr(kernels, "Unpacked", lambda _: type("U", (), {"prepare": lambda self: self})())
    return left


def test_the_script_has_the_steps_that_are_looked_for():
    assert journey.STEPS == len(NAMES)
    assert all(f"\nstep {name} " in journey.SCRIPT for name in NAMES)


@pytest.mark.parametrize("first", (guest("timeout", ""), guest("done", WHOLE.replace("read_back ok", "read_back failed 1")),
                                   guest("done", "target ok\n")))
def test_a_journey_that_does_not_come_to_its_end_is_tried_again(boots, first):
    boots += [first, guest("done", WHOLE)]
    told = []
    assert journey.nvmeof("debian-6.1.192", told.append) == {"journey-nvmeof.txt": WHOLE}
    assert not boots and len(told) == 1


def test_one_that_fails_twice_is_no_recording(boots):
    boots += [guest("done", WHOLE.replace("read_back ok", "read_back failed 1"))] * 2
    with pytest.raises(kernels.OracleError, match=r"debian-6.1.192: NVMe-oF .*twice .*read_back failed 1 cmp: differ"):
        journey.nvmeof("debian-6.1.192")
