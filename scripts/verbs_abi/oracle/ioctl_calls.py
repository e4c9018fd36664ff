# SPDX-License-Identifier: BSD-2-Clause
"""Cases about the ioctl: its header, its attribute array, every object × method × attribute."""

import dataclasses

from verbs_abi.oracle import calls
from verbs_abi.oracle import ioctl_table
from verbs_abi.oracle.session import MANDATORY, UHW_IN, UHW_OUT, Attr, Session

ABSENT = 0x7ffffff0
IOWR = 0xc0000000


@dataclasses.dataclass
class Call:
    """A call under construction: attributes with the objects, masks and symbols they need."""

    session: Session
    method: ioctl_table.Method
    attrs: list = dataclasses.field(default_factory=list)
    masks: list = dataclasses.field(default_factory=list)
    specs: list = dataclasses.field(default_factory=list)  # of the same index; None for UHW

    def index(self, spec):
        return self.specs.index(spec)

    def add(self, attr, spec=None):
        self.attrs.append(attr)
        self.specs.append(spec)

    def where(self, index):
        """Offset of an attribute in the request."""
        return 24 + 16 * index


class Maker:
    """Makes the cases of the ioctl front end."""

    def __init__(self, facts, rng=None):
        self.facts = facts
        self.rng = rng

    def shuffled(self, items):
        items = list(items)
        if self.rng:
            self.rng.shuffle(items)
        return items

    def number(self, spec):
        return self.facts.number(f"UVERBS_ATTR_{spec.name}")

    def known(self):
        return [method for method in ioctl_table.METHODS
                if f"UVERBS_METHOD_{method.name}" in self.facts.numbers
                and f"UVERBS_OBJECT_{method.object}" in self.facts.numbers]

    def specs(self, method):
        return [spec for spec in method.specs if f"UVERBS_ATTR_{spec.name}" in self.facts.numbers]

    # --- building ------------------------------------------------------------------------------

    def attribute(self, case, spec, slot):
        """(Attr, mask or "") of a working attribute; reply memory gets the object name o<slot>."""
        number = self.number(spec)
        if spec.kind == "new":
            is_fd = spec.name.endswith(("FD_HANDLE", "DMABUF_HANDLE"))
            return Attr(number, 0, 0), "fd-handle" if is_fd else ""
        if spec.kind in ("idr", "fd", "rawfd"):
            return Attr(number, 0, spec.value), ""
        if spec.kind in ("const", "flags"):
            return Attr(number, 8, spec.value), ""
        if spec.kind == "in":
            return Session.attr_in(case, f"i{slot}", number,
                                   calls.Blob.of(spec.value, spec.size)), ""
        case.mem(f"o{slot}", calls.filled(spec.size))
        mask = f"{spec.mask}:o{slot}:0:{spec.size}" if spec.mask else ""
        return Attr(number, spec.size, f"&o{slot}"), mask

    def working(self, session, method, optional=()):
        """The working request; optional: names of optional attributes that are to be there."""
        call = Call(session, method)
        for slot, spec in enumerate(self.specs(method)):
            if spec.optional and spec.name not in optional and spec.kind != "out":
                continue
            attr, mask = self.attribute(session.case, spec, slot)
            if mask == "fd-handle":
                mask = f"fd:q:{call.where(len(call.attrs)) + 8}:8"
            call.add(attr, spec)
            if mask:
                call.masks.append(mask)
        size = self.facts.size_or_0(method.driver_out)
        if size:
            session.case.mem("d", calls.filled(size))
            call.add(Attr(UHW_OUT, size, "&d"))
            for word in method.driver_masks:
                field, rule = word.split(":")
                if field not in self.facts.places(method.driver_out):
                    continue
                offset, width = session._leaf(method.driver_out, field)
                call.masks.append(f"{rule}:d:{offset}:{width}")
        return call

    def prepare(self, session, method):
        if method.consumes:
            last = method.needs[-1]
            session.forget(last, *(("context",) if last == "fd" else ()))
        session.need("fd")
        session.need(*method.needs)

    def send(self, label, call, caps=(), **header):
        method = call.method
        masks = []
        for mask in call.masks:  # fd masks follow the attribute in a changed order elsewhere
            masks.append(mask)
        call.session.ioctl(label, self.facts.number(f"UVERBS_OBJECT_{method.object}"),
                           self.facts.number(f"UVERBS_METHOD_{method.name}"), call.attrs,
                           caps=caps, masks=masks, **header)

    # --- attributes ------------------------------------------------------------------------------

    def attribute_variants(self, spec):
        """(label, change): change(case, attr) makes the attribute of the call another one."""
        def setting(**values):
            def change(_, attr):
                for key, value in values.items():
                    setattr(attr, key, value)
            return change

        yield from ((f"reserved={value:#x}", setting(reserved=value))
                    for value in (1, 0x100, 0x8000))
        yield from ((f"flags={value:#x}", setting(flags=value)) for value in (0, 2, 3, 4, 0xffff))
        if self.rng:
            yield "reserved=random", setting(reserved=self.rng.randrange(1, 1 << 16))
            yield "flags=random", setting(flags=self.rng.randrange(1 << 16))
            if spec.kind not in ("in", "out"):
                yield "len=random", setting(length=self.rng.randrange(1, 1 << 16))
            if spec.kind in ("const", "flags", "idr"):
                yield from ((f"value=random{number}", setting(data=self.rng.randrange(1 << 33)))
                            for number in range(3))
        if spec.kind in ("new", "idr", "fd", "rawfd"):
            yield from ((f"len={size}", setting(length=size)) for size in (1, 4, 8))
        if spec.kind == "idr":
            wrong = "$cq" if spec.value != "$cq" else "$pd"
            yield from ((f"handle={label}", setting(data=value)) for label, value in (
                ("absent", ABSENT), ("ones32", 0xffffffff), ("minus1", -1), ("wrong_kind", wrong),
                ("high", 1 << 32), ("int_max", 0x7fffffff)))
        if spec.kind in ("fd", "rawfd"):
            yield from ((f"fd={label}", setting(data=value)) for label, value in (
                ("minus1", -1), ("closed", 999), ("device", "$A"), ("async", "$async"),
                ("channel", "$channel"), ("high", 1 << 32), ("int_min", -(1 << 31))))
        if spec.kind == "new":
            yield "data=ones", setting(data=-1)
        if spec.kind in ("const", "flags"):
            yield from ((f"len={size}", setting(length=size)) for size in (0, 1, 2, 4, 7, 9, 16))
            values = [("high", 1 << 32), ("minus1", -1)]
            values += [(f"bit{bit}", 1 << bit) for bit in range(0, 32)] \
                if spec.kind == "flags" else [(str(value), value) for value in range(12)] + [
                    ("255", 255), ("256", 256), ("65536", 65536)]
            yield from ((f"value={label}", setting(data=value)) for label, value in values)
        if spec.kind == "in":
            yield from self._input_variants(spec)
        if spec.kind == "out":
            yield from self._output_variants(spec, setting)

    def _input_variants(self, spec):
        exact = calls.Blob.of(spec.value, spec.size)

        def with_blob(blob, place="plain"):
            def change(case, attr):
                attr.length = len(blob)
                if len(blob) <= 8:
                    attr.data = blob + bytes(8 - len(blob))
                else:
                    case.mem("v", blob, place)
                    attr.data = "&v"
            return change

        def length(size, data=None):
            def change(_, attr):
                attr.length = size
                if data is not None:
                    attr.data = data
            return change

        for size in sorted({0, 1, spec.size // 2, spec.size - 1}):
            yield f"len={size}", with_blob(exact.cut(size))
        for extra in (1, 4, 8, 64):
            yield f"len+{extra}z", with_blob(exact + bytes(extra))
            yield f"len+{extra}n", with_blob(exact + b"\x5a" * extra)
        if self.rng:
            size = self.rng.randrange(2 * spec.size + 64)
            yield "len=random", with_blob((exact + bytes(size)).cut(size))
            if spec.size <= 8 and not isinstance(spec.value, bytes):
                yield "value=random", with_blob(calls.Blob.of(self.rng.randrange(1 << 8 * spec.size), spec.size))
        yield "len=ffff", length(0xffff)
        long = max(spec.size, 9)
        for name in ("null", "bad", "kernel"):
            yield f"ptr={name}", length(long, f"&{name}")
        yield "edge", with_blob((exact + bytes(16)).cut(max(spec.size, 12)), "edge")
        if spec.size <= 8 and not isinstance(spec.value, bytes):
            top = (1 << 8 * spec.size) - 1
            for label, value in (("0", 0), ("1", 1), ("7f", top >> 1), ("ff", top)):
                yield f"value={label}", with_blob(calls.Blob.of(value, spec.size))

    def _output_variants(self, spec, setting):
        for size in sorted({0, 1, spec.size // 2, spec.size - 1, spec.size + 1, spec.size + 8,
                            spec.size + 64, 0xffff, *self.random_lengths(spec)} - {spec.size}):
            def change(case, attr, size=size):
                case.mem("v", calls.filled(min(size, 512)))
                attr.length, attr.data = size, "&v"
            yield f"len={size}", change
        for name in ("null", "bad", "kernel"):
            yield f"ptr={name}", setting(data=f"&{name}")

        def place(kind, size):
            def change(case, attr):
                case.mem("v", calls.filled(size), kind)
                attr.data = "&v"
            return change
        yield "ro", place("ro", spec.size)
        yield "edge", place("edge", spec.size)
        yield "edge-1", place("edge", max(spec.size - 1, 0))

    def random_lengths(self, spec):
        return [self.rng.randrange(2 * spec.size + 128) for _ in range(2)] if self.rng else []

    def attributes(self):
        """One case per method and attribute."""
        for method in self.known():
            for spec in self.specs(method):
                case = calls.Case(f"ioctl.{method.label}.attr_{spec.name.lower()}")
                session = Session(self.facts, case)
                session.need("fd")
                if method.name != "GET_CONTEXT":
                    session.need("context", "pd", "cq", "channel")
                else:
                    for symbol in ("async", "channel"):
                        case.set(symbol, calls.Blob.of(0, 4))
                optional = (spec.name,)

                def start():
                    self.prepare(session, method)
                    return self.working(session, method, optional)

                def masked(call):
                    # The attribute under test writes into "v" then.
                    if spec.mask:
                        call.masks.append(f"{spec.mask}:v:0:{spec.size}")

                for label, change in self.shuffled(self.attribute_variants(spec)):
                    call = start()
                    change(case, call.attrs[call.index(spec)])
                    masked(call)
                    self.send(label, call)
                call = start()
                self.send("present", call)
                call = start()
                del call.attrs[call.index(spec)]
                call.masks = [mask for mask in call.masks if ":q:" not in mask]
                self.send("missing", call)
                call = start()
                call.attrs.append(dataclasses.replace(call.attrs[call.index(spec)]))
                self.send("duplicate", call)
                yield case

    def orders(self):
        """Per method: order and number of attributes, strangers among them, no context."""
        for method in self.known():
            case = calls.Case(f"ioctl.{method.label}.order")
            session = Session(self.facts, case)

            def start():
                self.prepare(session, method)
                call = self.working(session, method)
                call.masks = [mask for mask in call.masks if ":q:" not in mask] + \
                    [f"fd:q:{call.where(index) + 8}:8" for index in range(len(call.attrs))
                     if any(":q:" in mask for mask in call.masks)]
                return call

            self.send("exact", start())
            call = start()
            call.attrs.reverse()
            call.masks = [mask for mask in call.masks if ":q:" not in mask]
            self.send("reversed", call)
            random = [("random", self.rng.randrange(1 << 16))] if self.rng else []
            for label, number in (*random, ("past_end", 60), ("0xfff", 0xfff), ("driver", 0x1005),
                                  ("uhw_in", UHW_IN), ("uhw_out", UHW_OUT), ("0x8000", 0x8000),
                                  ("0xffff", 0xffff)):
                for flags in (0, MANDATORY):
                    for first in (False, True):
                        call = start()
                        stranger = Attr(number, 8, 0, flags)
                        if number == UHW_OUT:
                            case.mem("x", calls.filled(8))
                            stranger.data = "&x"
                            call.attrs = [attr for attr in call.attrs if attr.number != UHW_OUT]
                        call.attrs.insert(0 if first else len(call.attrs), stranger)
                        if first:
                            call.masks = [mask for mask in call.masks if ":q:" not in mask]
                        self.send(f"extra_{label}_flags{flags}_{'first' if first else 'last'}",
                                  call)
            call = start()
            call.attrs = []
            self.send("none", call)
            if method.driver_out:
                for size in (0, 4, 8, 64):
                    for kind, fill in (("z", b"\0"), ("n", b"\x5a")):
                        call = start()
                        call.attrs.append(Session.attr_in(case, "u", UHW_IN,
                                                          calls.Blob.of(fill * size)))
                        self.send(f"uhw_in={size}{kind}", call)
                for size in (0, 8, 15, 17, 128):
                    call = start()
                    case.mem("d", calls.filled(size))
                    for attr in call.attrs:
                        if attr.number == UHW_OUT:
                            attr.length = size
                    self.send(f"uhw_out={size}", call)
            yield case

    def without_context(self):
        case = calls.Case("ioctl.all.no_context")
        session = Session(self.facts, case)
        session.need("fd")
        for symbol in ("pd", "cq", "qp", "srq", "mr", "mw", "ah", "async", "channel"):
            case.set(symbol, calls.Blob.of(0, 4))
        case.mem("data", calls.zeros(4096))
        for method in self.shuffled(self.known()):
            if method.name != "GET_CONTEXT":
                self.send(method.label, self.working(session, method))
        yield case

    # --- header --------------------------------------------------------------------------------

    def headers(self):
        """Header fields wrong one by one, on a method without and one with a destroyed object."""
        by_name = {method.name: method for method in ioctl_table.METHODS}
        for name in ("QUERY_PORT", "PD_DESTROY", "MR_DESTROY", "CQ_CREATE", "GET_CONTEXT"):
            method = by_name[name]
            if f"UVERBS_METHOD_{name}" not in self.facts.numbers:
                continue
            case = calls.Case(f"ioctl.{method.label}.header")
            session = Session(self.facts, case)
            variants = []
            size = 24 + 16 * len(self.specs(method))
            variants += [(f"length={length}", {"length": length}) for length in
                         (0, 1, 8, 23, 24, 25, 32, 40, 4096, 4097, 4104, 0xffff)]
            variants += [(f"length{delta:+}", {"length": size + delta})
                         for delta in (-16, -8, -1, 1, 8, 16)]
            variants += [(f"num_attrs={count}", {"num_attrs": count})
                         for count in (0, 1, 2, 3, 4, 5, 254, 255, 256, 0xffff)]
            variants += [(f"reserved1={value:#x}", {"reserved1": value})
                         for value in (1, 0x80000000, 1 << 63)]
            variants += [(f"reserved2={value:#x}", {"reserved2": value})
                         for value in (1, 0x80000000)]
            variants += [(f"driver_id={value:#x}", {"driver_id": value})
                         for value in (*range(0, 26), 0xffffffff)]
            variants += [(f"number={value:#x}", {"number": value}) for value in (
                IOWR | 24 << 16 | 0x1b02, IOWR | 24 << 16 | 0x1b00, IOWR | 16 << 16 | 0x1b01,
                0x40000000 | 24 << 16 | 0x1b01, 0x1b01, 0, 0x5401, 0xffffffff)]
            variants += [(f"pointer={value}", {"pointer": f"&{value}"})
                         for value in ("null", "bad", "kernel")]
            variants += [(f"mapped={count}", {"mapped": count})
                         for count in (1, 8, 16, 23, 24, 30, 39, 40)]
            two_wrong = {"length": 23, "reserved1": 1, "driver_id": 99}
            if self.rng:
                variants += [(f"{field}=random{number}", {field: self.rng.randrange(bound)})
                             for field, bound in (("length", 1 << 12), ("num_attrs", 1 << 16),
                                                  ("reserved1", 1 << 64), ("reserved2", 1 << 32),
                                                  ("driver_id", 1 << 32))
                             for number in range(2)]
            variants += [("length+reserved", {"length": 23, "reserved1": 1}),
                         ("length+driver", {"length": 23, "driver_id": 99}),
                         ("reserved+driver", {"reserved1": 1, "driver_id": 99}),
                         ("all_wrong", two_wrong)]
            for label, header in self.shuffled(variants):
                self.prepare(session, method)
                self.send(label, self.working(session, method), **header)
            yield case

    def strangers(self):
        """Objects × methods, known to the kernel or not: bare calls, and with one attribute."""
        case = calls.Case("ioctl.unknown.object_method")
        session = Session(self.facts, case)
        session.need("context", "pd", "cq", "qp", "srq", "mr")
        objects = [*range(0, 26), 0xff, 0xfff, 0x1000, 0x1001, 0x1010, 0x2000, 0xffff]
        for object_id in self.shuffled(objects):
            for method_id in (*range(0, 10), 0xff, 0xfff, 0x1000, 0x1001, 0x1010, 0xffff):
                session.ioctl(f"{object_id:#x}.{method_id:#x}", object_id, method_id, [])
        yield case
        case = calls.Case("ioctl.unknown.object_method_attribute")
        session = Session(self.facts, case)
        session.need("context", "pd", "cq", "qp", "srq", "mr")
        for object_id in self.shuffled(range(0, 20)):
            for method_id in range(0, 8):
                for number in (0, 1, 3, 63):
                    case.mem("v", calls.filled(8))
                    session.ioctl(f"{object_id:#x}.{method_id:#x}.{number:#x}", object_id,
                                  method_id, [Attr(number, 0, ABSENT)])
        yield case

    def enumerated(self):
        """Every attribute id that the headers name or leave free, on every method that works:
        8-byte inputs of zero beside the working ones."""
        for method in self.known():
            case = calls.Case(f"ioctl.{method.label}.any_attribute")
            session = Session(self.facts, case)
            used = {self.number(spec) for spec in self.specs(method)}
            for number in self.shuffled(range(0, 20)):
                if number in used:
                    continue
                for length in (0, 8, 16):
                    for flags in (0, MANDATORY):
                        self.prepare(session, method)
                        call = self.working(session, method)
                        call.masks = [mask for mask in call.masks if ":q:" not in mask] + \
                            [mask for mask in call.masks if ":q:" in mask]
                        case.mem("x", calls.zeros(16))
                        call.attrs.append(Attr(number, length, "&x" if length > 8 else 0, flags))
                        self.send(f"{number}.len{length}.flags{flags}", call)
            yield case

    def all(self):
        yield from self.headers()
        yield from self.orders()
        yield from self.attributes()
        yield from self.enumerated()
        yield from self.strangers()
        yield from self.without_context()
