# SPDX-License-Identifier: BSD-2-Clause
"""Writes call lists: the language of harness/probe/probe_list.h, and the blobs in it."""

import re

# Why a field of a reply is not compared. Everything that is not masked has to agree.
MASKS = {
    "fd": "file descriptor numbers depend on what the process has open",
    "qpn": "rxe counts queue pair numbers on for as long as the device lives",
    "srqn": "rxe counts SRQ numbers on for as long as the device lives",
    "key": "rxe draws the low byte of memory keys at random and counts the rest on",
    "ah": "rxe counts address handles on for as long as the device lives",
    "offset": "rxe counts mmap offsets on for as long as the device lives",
    "guid": "made from the address of the network device below",
    "random": "siw draws the numbers of completion queues at random",
    "addr": "an address of the process",
}


class Blob:
    """Bytes with symbols and addresses in them. Immutable; `+` joins, `put` replaces.

    data: all bytes, zeros where a hole is; holes: (offset, width, text in the list), in order.
    """

    __slots__ = ("data", "holes")

    def __init__(self, data=b"", holes=()):
        self.data = data
        self.holes = holes

    @staticmethod
    def of(value, width=None):
        """Of a number, "$symbol", "&object", bytes or a Blob; width where the value has none."""
        kind = type(value)
        if kind is int:
            return Blob((value & ((1 << 8 * width) - 1)).to_bytes(width, "little"))
        if kind is Blob:
            return value
        if kind is bytes:
            return Blob(value)
        if value[0] == "$":
            return Blob(bytes(width), ((0, width, f"{value}:{width}"),))
        return Blob(bytes(8), ((0, 8, value),))

    def __add__(self, other):
        if type(other) is not Blob:
            other = Blob.of(other)
        if not other.holes:
            return Blob(self.data + other.data, self.holes)
        size = len(self.data)
        return Blob(self.data + other.data,
                    self.holes + tuple((offset + size, width, text)
                                       for offset, width, text in other.holes))

    def __len__(self):
        return len(self.data)

    def cut(self, length):
        """The first `length` bytes; a symbol or address that is cut through becomes zeros."""
        return Blob(self.data[:length],
                    tuple(hole for hole in self.holes if hole[0] + hole[1] <= length))

    def put(self, offset, value, width):
        """A blob with `value` at `offset`."""
        new = Blob.of(value, width)
        width = len(new.data)
        if not self.holes and not new.holes:
            return Blob(self.data[:offset] + new.data + self.data[offset + width:])
        kept = [hole for hole in self.holes
                if hole[0] + hole[1] <= offset or hole[0] >= offset + width]
        kept += [(offset + at, size, text) for at, size, text in new.holes]
        return Blob(self.data[:offset] + new.data + self.data[offset + width:],
                    tuple(sorted(kept)))

    def text(self):
        words, at = [], 0
        for offset, width, text in self.holes:
            words += _runs(self.data[at:offset])
            words.append(text)
            at = offset + width
        words += _runs(self.data[at:])
        return ",".join(words) or "-"


_RUN = re.compile(rb"(.)\1{5,}", re.DOTALL)


def _runs(data):
    """The bytes as words: hex, and BYTE*COUNT for six and more equal ones."""
    words, at = [], 0
    for match in _RUN.finditer(data):
        if match.start() > at:
            words.append(data[at:match.start()].hex())
        byte = data[match.start()]
        words.append(f"{'0' if byte == 0 else f'{byte:02x}'}*{match.end() - match.start()}")
        at = match.end()
    if at < len(data):
        words.append(data[at:].hex())
    return words


def zeros(count):
    return Blob(bytes(count))


def filled(count, byte=0xa5):
    return Blob(bytes([byte]) * count)


def struct(facts, name, values=None, tail=b""):
    """A struct's bytes. values: {dotted field: number, "$symbol", "&object" or bytes}; fields that
    this kernel's struct has not are left out."""
    blob = zeros(facts.size(name))
    known = facts.places(name)
    for field, value in (values or {}).items():
        if field in known:
            offset, size = known[field]
            blob = blob.put(offset, value, size)
    return blob + tail


class Case:
    """One case of the list: statements in order. `kind` is the class that agreement is told by."""

    def __init__(self, name):
        self.name = name
        self.lines = []
        self.count = 0
        self.taken = {}

    def mem(self, name, blob, place="plain"):
        line = f"mem {name} {Blob.of(blob).text()}"
        self.lines.append(line if place == "plain" else f"{line} {place}")

    def set(self, name, blob):
        self.lines.append(f"set {name} {Blob.of(blob).text()}")

    def _unique(self, base):
        number = self.taken[base] = self.taken.get(base, 0) + 1
        self.count += 1
        return base if number == 1 else f"{base}~{number}"

    def repeat(self, words):
        """A set-up call whose words after the id are known."""
        self.lines.append(f"call {self._unique('setup')} {words}")

    def call(self, ident, op, *arguments, caps=(), masks=()):
        """ident "" numbers set-up calls by themselves."""
        words = ["call", self._unique(ident or "setup"), op, *map(str, arguments)]
        words += [f"cap={cap}" for cap in caps] + [f"mask={mask}" for mask in masks]
        self.lines.append(" ".join(words))

    def text(self):
        return "\n".join([f"case {self.name}", *self.lines]) + "\n"
