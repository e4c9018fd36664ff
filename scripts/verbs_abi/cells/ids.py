# SPDX-License-Identifier: BSD-2-Clause
"""Names of cells: userland/kernel/provider[/overlay…][@scenario].

The provider's place names one device with its usual name and link ("mlx5"), a link ("mlx5,link=roce"), or several
devices with names of their own ("mlx5_0=mlx5+rxe0=rxe"). An overlay may hold an @ itself ("errno@CREATE_CQ=EIO"):
a scenario is what stands behind the last @ when it is the name of one.
"""

import collections.abc
import dataclasses
import hashlib
import re

from verbs_abi import matrix, userlands
from verbs_abi.errors import UserError, unknown

# Scenario, what is run. The usual one is not written in a cell's name.
_BUILT_IN = {
    "journey": "what every application does: open, make objects, move data with every byte checked",
    "control": "the control path without data: open, make each kind of object, all states of a queue pair",
    "devinfo": "ibv_devinfo -v, as shipped",
    "devices": "ibv_devices, as shipped",
    "negotiate": "which devices are found, and which provider takes each",
    "abi-sweep": "a device for each ABI version from 0 to 10 and at the ends of signed and unsigned numbers: which are taken",
    "conformance": "the conformance suites that hold for this cell",
    "old-app": "the journey, built with 33.2's headers and libraries",
    "old-suites": "the conformance suites, built with 33.2's headers and libraries",
    "new-app": "the journey, built with 65.0's headers and libraries",
    "newest": "a program that refers to a symbol of each of 65.0's version nodes",
    "compat-1_0": "a program of 2006, linked to IBVERBS_1.0 alone: data, and events of its own objects",
    "compat-1_0-query-port": "the same: a port's attributes stay within 1.0's structure",
    "compat-1_0-query-qp": "the same: the attributes of a queue pair without a shared receive queue",
}
USUAL = "journey"


class _Scenarios(collections.abc.Mapping):
    """All scenarios and what they are: those above, and one for each file of matrix/scenarios."""

    def __getitem__(self, name):
        if name in _BUILT_IN:
            return _BUILT_IN[name]
        if name in matrix.names("scenarios"):
            return matrix.get("scenarios", name).data["about"]
        raise KeyError(name)

    def __iter__(self):
        yield from _BUILT_IN
        yield from matrix.names("scenarios")

    def __len__(self):
        return len(_BUILT_IN) + len(matrix.names("scenarios"))


SCENARIOS = _Scenarios()


@dataclasses.dataclass(frozen=True)
class Device:
    """One device of a world; name and link are empty for the provider's usual ones."""

    provider: str
    name: str = ""
    link: str = ""

    @classmethod
    def parse(cls, text):
        head, *options = text.split(",")
        name, equals, provider = head.partition("=")
        if not equals:
            name, provider = "", head
        link = ""
        for option in options:
            key, _, value = option.partition("=")
            if key != "link" or not value:
                raise UserError(f"device '{text}': unknown option '{option}'",
                                hint="A device is PROVIDER or NAME=PROVIDER, then ,link=ib|roce|iw.")
            link = value
        if provider not in matrix.names("providers"):
            raise unknown("provider", provider, matrix.names("providers"))
        links = matrix.get("providers", provider).data.get("links", [])
        if link and link not in links:
            raise UserError(f"device '{text}': {provider} has no link '{link}'", hint="It has: " + ", ".join(links))
        return cls(provider, name, link)

    def __str__(self):
        head = f"{self.name}={self.provider}" if self.name else self.provider
        return f"{head},link={self.link}" if self.link else head

    def spec(self):
        return {"provider": self.provider, "name": self.name, "link": self.link}


@dataclasses.dataclass(frozen=True)
class Cell:
    """One cell. devices: a tuple of Device; overlays: texts, in order."""

    userland: str
    kernel: str
    devices: tuple
    overlays: tuple = ()
    scenario: str = USUAL

    @property
    def provider(self):
        return "+".join(map(str, self.devices))

    @property
    def drivers(self):
        return tuple(dict.fromkeys(device.provider for device in self.devices))

    @property
    def id(self):
        parts = [self.userland, self.kernel, self.provider, *self.overlays]
        return "/".join(parts) + ("" if self.scenario == USUAL else f"@{self.scenario}")

    def in_shard(self, index, count):
        """By a hash of the name, so that a new kernel moves no other cell. index from 1."""
        digest = hashlib.sha256(self.id.encode()).digest()
        return int.from_bytes(digest[:8], "big") % count == index - 1


def split_scenario(text):
    head, at, tail = text.rpartition("@")
    if at and tail in SCENARIOS and not head.endswith("/"):
        return head, tail
    if at and "=" not in tail and "/" not in tail and "=" not in head.rpartition("/")[2]:
        name = head.rpartition("/")[2]
        if name not in matrix.names("overlays"):
            raise unknown("scenario", tail, SCENARIOS)
    return text, USUAL


def parse(text):
    """The Cell of a name; every part of it is looked up, so that a wrong one is told with its nearest names."""
    head, scenario = split_scenario(text.strip())
    parts = head.split("/")
    if len(parts) < 3 or not all(parts):
        raise UserError(f"'{text}' is no cell", hint="A cell is USERLAND/KERNEL/PROVIDER[/OVERLAY…][@SCENARIO], "
                        "for example deb-44.0/debian-6.1.192/mlx5/no-ioctl")
    userland, kernel, provider, *overlays = parts
    check_userland(userland)
    check_kernel(kernel)
    check_overlays(overlays)
    return Cell(userland, kernel, devices(provider), tuple(overlays), scenario)


def check_userland(name):
    userlands.check(name)


def kernels():
    """{name: Entry} of the kernels that can stand in a cell, in release order."""
    entries = matrix.load("kernels")
    return {name: entries[name] for name in sorted(entries, key=release_key) if not entries[name].data.get("abstract")}


def release_key(name):
    """Sorts kernels by version; look-alikes, which have none, come last."""
    numbers = [int(part) for part in re.findall(r"\d+", name)]
    return (not numbers, numbers, name)


def check_kernel(name):
    known = kernels()
    if name in known:
        return
    if name in matrix.names("kernels"):
        heirs = [heir for heir, entry in known.items() if entry.data.get("parent") == name]
        raise UserError(f"'{name}' is no kernel to run on: its file only holds what others have in common",
                        hint="Those that have it as parent: " + ", ".join(heirs) if heirs else
                        "verbs-abi list kernels tells which there are")
    raise unknown("kernel", name, known)


def check_overlay(text):
    name, at, step = text.partition("=")[0].partition("@")
    entry = matrix.get("overlays", name)
    if at and not (step and entry.data.get("step")):
        raise UserError(f"overlay '{text}': " + ("nothing follows @" if entry.data.get("step") else "takes no @"),
                        hint="verbs-abi list overlays tells how each is written")
    if ("value" in entry.data) != ("=" in text):
        wants = entry.data.get("value")
        raise UserError(f"overlay '{text}': " + (f"needs a value: {wants}" if wants else "takes no value"),
                        hint=f"For example: {name}=…" if wants else None)


def check_overlays(texts):
    """Each overlay is one that there is, and none stands twice."""
    for index, text in enumerate(texts):
        check_overlay(text)
        if text in texts[:index]:
            raise UserError(f"overlay '{text}' stands twice", hint="Once is enough.")


def devices(text):
    """The Devices of a provider's place: one, or several with + between."""
    return tuple(Device.parse(part) for part in text.split("+"))


def check_names(arguments):
    """Every --userland, --kernel, --provider, --device, --overlay and --scenario of a command line is one that there is;
    those that a command has not are left out. Each holds a list or, where a command takes one, a text."""
    def given(option):
        value = getattr(arguments, option, None) or ()
        return (value,) if isinstance(value, str) else value

    for name in given("userland"):
        check_userland(name)
    for name in given("kernel"):
        check_kernel(name)
    for name in (*given("provider"), *given("device")):
        devices(name)
    for name in given("overlay"):
        check_overlay(name)
    for name in given("scenario"):
        if name not in SCENARIOS:
            raise unknown("scenario", name, SCENARIOS)
