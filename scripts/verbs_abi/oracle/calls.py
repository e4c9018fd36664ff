# SPDX-License-Identifier: BSD-2-Clause
"""Writes call lists: the language of harness/probe/probe_list.h, and the blobs in it."""

UNTOUCHED = "a5"

# Why a field of a reply is not compared. Everything that is not masked has to agree.
MASKS = {
    "fd": "file descriptor numbers depend on what the process has open",
    "qpn": "rxe counts queue pair numbers on for as long as the device lives",
    "srqn": "rxe counts SRQ numbers on for as long as the device lives",
    "key": "rxe draws the low byte of memory keys at random and counts the rest on",
    "ah": "rxe counts address handles on for as long as the device lives",
    "offset": "rxe counts mmap offsets on for as long as the device lives",
    "guid": "made from the address of the network device below",
    "addr": "an address of the process",
}


def hexed(data):
    return bytes(data).hex()


class Blob:
    """Bytes with symbols and addresses in them. Immutable; `+` joins, `put` replaces."""

    def __init__(self, parts=()):
        self.parts = tuple(parts)  # bytes, ("$", symbol, width), ("&", object, offset)

    @staticmethod
    def of(value, width=None):
        if isinstance(value, Blob):
            return value
        if isinstance(value, bytes):
            return Blob([value])
        if isinstance(value, str) and value.startswith("$"):
            return Blob([("$", value[1:], width)])
        if isinstance(value, str) and value.startswith("&"):
            name, _, offset = value[1:].partition("+")
            return Blob([("&", name, int(offset or 0))])
        return Blob([(value & ((1 << 8 * width) - 1)).to_bytes(width, "little")])

    def __add__(self, other):
        return Blob(self.parts + Blob.of(other).parts)

    def __len__(self):
        return sum(len(part) if isinstance(part, bytes) else 8 if part[0] == "&" else part[2]
                   for part in self.parts)

    def cut(self, length):
        """The first `length` bytes; a symbol or address that is cut through becomes zeros."""
        return self._slice(0, length)

    def _slice(self, start, end):
        out, at = [], 0
        for part in self.parts:
            size = len(Blob([part]))
            low, high = max(start - at, 0), min(end - at, size)
            if low < high:
                if isinstance(part, bytes):
                    out.append(part[low:high])
                elif (low, high) == (0, size):
                    out.append(part)
                else:
                    out.append(bytes(high - low))
            at += size
        return Blob(out)

    def put(self, offset, value, width):
        """A blob with `value` at `offset`."""
        new = Blob.of(value, width)
        return Blob(self._slice(0, offset).parts + new.parts +
                    self._slice(offset + width, len(self)).parts)

    def text(self):
        words, pending = [], b""

        def flush():
            nonlocal pending
            at = 0
            while at < len(pending):
                run = at
                while run < len(pending) and pending[run] == pending[at]:
                    run += 1
                if run - at >= 6:
                    byte = "0" if pending[at] == 0 else f"{pending[at]:02x}"
                    words.append(f"{byte}*{run - at}")
                    at = run
                    continue
                stop = at
                while stop < len(pending) and not (
                        stop + 6 <= len(pending) and len(set(pending[stop:stop + 6])) == 1):
                    stop += 1
                words.append(hexed(pending[at:stop]))
                at = stop
            pending = b""

        for part in self.parts:
            if isinstance(part, bytes):
                pending += part
                continue
            flush()
            if part[0] == "$":
                words.append(f"${part[1]}:{part[2]}")
            else:
                words.append(f"&{part[1]}" + (f"+{part[2]}" if part[2] else ""))
        flush()
        return ",".join(words) or "-"


def zeros(count):
    return Blob([bytes(count)])


def filled(count, byte=0xa5):
    return Blob([bytes([byte]) * count])


def struct(facts, name, values=None, tail=b""):
    """A struct's bytes. values: {dotted field: number, "$symbol", "&object" or bytes}; fields that
    this kernel's struct has not are left out."""
    blob = zeros(facts.size(name))
    known = {field: (offset, size) for field, offset, size in facts.leaves(name)}
    known.update({field: (offset, size) for field, offset, size in facts.fields(name)})
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
        self.taken = set()

    def mem(self, name, blob, place="plain"):
        line = f"mem {name} {Blob.of(blob).text()}"
        self.lines.append(line if place == "plain" else f"{line} {place}")

    def set(self, name, blob):
        self.lines.append(f"set {name} {Blob.of(blob).text()}")

    def call(self, ident, op, *arguments, caps=(), masks=()):
        """ident "" numbers set-up calls by themselves."""
        base = ident or "setup"
        unique, number = base, 1
        while unique in self.taken:
            number += 1
            unique = f"{base}~{number}"
        self.taken.add(unique)
        words = ["call", unique, op, *map(str, arguments)]
        words += [f"cap={cap}" for cap in caps] + [f"mask={mask}" for mask in masks]
        self.lines.append(" ".join(words))
        self.count += 1

    def text(self):
        return "\n".join([f"case {self.name}", *self.lines]) + "\n"
