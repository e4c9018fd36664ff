# SPDX-License-Identifier: BSD-2-Clause
"""One case's context: opens the device, makes the objects that a call needs, sends commands."""

import dataclasses

from verbs_abi.oracle import calls
from verbs_abi.oracle import write_table

EXTENDED_FLAG = 0x80000000
UHW_IN, UHW_OUT = 0x1000, 0x1001
MANDATORY = 1  # UVERBS_ATTR_F_MANDATORY


@dataclasses.dataclass
class Attr:
    """One attribute of an ioctl. data: Blob or number that fits the 8 bytes."""

    number: int
    length: int
    data: object = 0
    flags: int = MANDATORY
    reserved: int = 0

    def blob(self):
        return (calls.Blob.of(self.number, 2) + calls.Blob.of(self.length, 2) +
                calls.Blob.of(self.flags, 2) + calls.Blob.of(self.reserved, 2) +
                calls.Blob.of(self.data, 8))


@dataclasses.dataclass
class Shape:
    """How a command is sent; the defaults are a well-formed call."""

    values: dict = dataclasses.field(default_factory=dict)
    body: object = None  # instead of the struct made from the values
    extra_in: object = None  # driver input; None: zeros of rxe's own size
    extra_out: int = 0  # bytes more than rxe's reply
    reply: object = "&r"
    reply_place: str = "plain"
    reply_mapped: int = -1  # bytes of reply memory, where it is not what is claimed
    in_words: int = 0  # added to the right value
    out_words: int = 0
    core_out: int = 0  # bytes added to the core reply
    command: int = -1
    flags: int = 0
    count: int = 0  # added to the right count
    exact_count: int = -1
    request_place: str = "plain"
    request: str = "&q"
    provider_in: int = 0
    provider_out: int = 0
    reserved: int = 0
    op: str = "write"


class Session:
    """A device file in a case, with the objects made on it."""

    def __init__(self, facts, case, fd="A"):
        self.facts = facts
        self.case = case
        self.fd = fd
        self.made = set()

    # --- objects -------------------------------------------------------------------------------

    def open(self):
        self.case.call("", "open", "0x80002", caps=[f"{self.fd}:ret"])  # O_RDWR | O_CLOEXEC
        self.made = {"fd"}

    def need(self, *objects):
        for name in objects:
            if name not in self.made:
                getattr(self, f"_make_{name}")()
                self.made.add(name)

    def forget(self, *objects):
        self.made -= set(objects)

    def _command(self, label):
        self.need(*write_table.BY_LABEL[label].needs)
        self.write("", write_table.BY_LABEL[label])

    def _make_fd(self):
        self.open()

    def _make_context(self):
        self.need("fd")
        self._command("get_context")

    def _make_data(self):
        self.case.mem("data", calls.zeros(8192))

    def _make_udqp(self):
        self.need("pd", "cq")
        self.write("", write_table.BY_LABEL["create_qp"], Shape(values={"qp_type": 4}),
                   gives={"udqp": "qp_handle"})

    def _make_raw(self):
        """A QP whose number nothing else takes."""
        self.need("qp")

    def __getattr__(self, name):
        if name.startswith("_make_"):
            what = name.removeprefix("_make_")
            maker = {"pd": "alloc_pd", "cq": "create_cq", "qp": "create_qp", "ah": "create_ah",
                     "mr": "reg_mr", "mw": "alloc_mw", "srq": "create_srq",
                     "channel": "create_comp_channel", "xrcd": "open_xrcd"}[what]
            return lambda: self._command(maker)
        raise AttributeError(name)

    # --- write() ---------------------------------------------------------------------------------

    def _body(self, command, shape):
        if shape.body is not None:
            return calls.Blob.of(shape.body)
        values = {**command.values, **shape.values}
        body = calls.struct(self.facts, f"ib_uverbs_{command.request}", values)
        return body + (command.tail() if command.tail else b"")

    def _driver_input(self, command, shape):
        if shape.extra_in is None:
            return calls.zeros(self.facts.size_or_0(command.driver_in))
        return calls.Blob.of(shape.extra_in)

    def _reply_sizes(self, command):
        core = self.facts.size(f"ib_uverbs_{command.reply}") if command.reply else 0
        driver = self.facts.size_or_0(command.driver_out)
        return core, driver

    def masks(self, command, object_name="r", driver_object=None, core=None):
        """mask options for the command's reply; the driver's part follows the core's, whose size an
        extended write says itself."""
        result = []
        if core is None:
            core, _ = self._reply_sizes(command)
        for field, rule in command.masks.items():
            offset, size = self._leaf(f"ib_uverbs_{command.reply}", field)
            if offset + size <= core:
                result.append(f"{rule}:{object_name}:{offset}:{size}")
        for word in command.driver_masks if self.facts.has(command.driver_out) else ():
            field, rule = word.split(":")
            if field not in self.facts.places(command.driver_out):
                continue
            offset, size = self._leaf(command.driver_out, field)
            where = f"{driver_object}:{offset}" if driver_object else \
                f"{object_name}:{max(core, 0) + offset}"
            result.append(f"{rule}:{where}:{size}")
        return result

    def _leaf(self, struct, field):
        return self.facts.places(struct)[field]

    def captures(self, command, gives=None, object_name="r"):
        result = []
        for symbol, field in (command.gives if gives is None else gives).items():
            offset, size = self._leaf(f"ib_uverbs_{command.reply}", field)
            result.append(f"{symbol}:{object_name}:{offset}:{size}")
        return result

    def write(self, ident, command, shape=None, gives=None):
        """Sends by write(). Symbols are captured for set-up calls and where `gives` is given."""
        if shape is None and not ident and gives is None:
            self._set_up(command)
            return
        self._write(ident, command, shape or Shape(), gives)

    def _set_up(self, command):
        """The same few set-up calls are made thousands of times: their lines are kept."""
        known, key = self.facts.set_up_lines, (self.fd, command.label)
        if key not in known:
            scratch = Session(self.facts, calls.Case("scratch"), self.fd)
            scratch._write("", command, Shape(), None)
            *memory, call = scratch.case.lines
            known[key] = memory, call.split(" ", 2)[2]
        memory, call = known[key]
        self.case.lines += memory
        self.case.repeat(call)

    def _write(self, ident, command, shape, gives):
        core, driver = self._reply_sizes(command)
        core += shape.core_out
        total = max(core + driver + shape.extra_out, 0)
        mapped = shape.reply_mapped if shape.reply_mapped >= 0 else total
        self.case.mem("r", calls.filled(mapped), shape.reply_place)
        body = self._body(command, shape)
        number = self.facts.numbers.get(command.number_name, 0)
        if shape.command >= 0:
            number = shape.command
        extra = self._driver_input(command, shape)
        if command.extended:
            flags = EXTENDED_FLAG ^ shape.flags
            header = self._header(number | flags, len(body) // 8 + shape.in_words,
                                  core // 8 + shape.out_words)
            header += (calls.Blob.of(shape.reply if total or shape.reply != "&r" else 0, 8) +
                       calls.Blob.of(len(extra) // 8 + shape.provider_in, 2) +
                       calls.Blob.of((total - core) // 8 + shape.provider_out, 2) +
                       calls.Blob.of(shape.reserved, 4))
        else:
            if any(name == "response" for name, _, _ in
                   self.facts.fields(f"ib_uverbs_{command.request}")) and len(body) >= 8:
                body = body.put(0, shape.reply, 8)
            header = self._header(number ^ shape.flags,
                                  (8 + len(body) + len(extra)) // 4 + shape.in_words,
                                  total // 4 + shape.out_words)
        request = header + body + extra
        count = len(request) + shape.count if shape.exact_count < 0 else shape.exact_count
        if shape.request_place == "edge":
            self.case.mem("q", request.cut(count), "edge")
            count = len(request)
        else:
            self.case.mem("q", request, shape.request_place)
        caps = self.captures(command, gives) if gives is not None or not ident else []
        said = core + 8 * shape.out_words if command.extended else None
        self.case.call(ident, shape.op, f"${self.fd}", shape.request, count, caps=caps,
                       masks=self.masks(command, core=said) if command.reply else [])

    @staticmethod
    def _header(command, in_words, out_words):
        return (calls.Blob.of(command, 4) + calls.Blob.of(in_words & 0xffff, 2) +
                calls.Blob.of(out_words & 0xffff, 2))

    # --- ioctl() ---------------------------------------------------------------------------------

    def ioctl(self, ident, object_id, method_id, attrs, caps=(), masks=(), op="ioctl", **header):
        """Sends an ioctl. header: fields that differ from the right value (length, num_attrs,
        reserved1, driver_id, reserved2), `number` of the ioctl, `pointer`, `mapped` bytes."""
        number = header.get("number", self.facts.number("RDMA_VERBS_IOCTL"))
        blob = (calls.Blob.of(header.get("length", 24 + 16 * len(attrs)), 2) +
                calls.Blob.of(object_id, 2) + calls.Blob.of(method_id, 2) +
                calls.Blob.of(header.get("num_attrs", len(attrs)), 2) +
                calls.Blob.of(header.get("reserved1", 0), 8) +
                calls.Blob.of(header.get("driver_id", self.facts.driver_id), 4) +
                calls.Blob.of(header.get("reserved2", 0), 4))
        for attr in attrs:
            blob += attr.blob()
        if "mapped" in header:
            self.case.mem("q", blob.cut(header["mapped"]), "edge")
        else:
            self.case.mem("q", blob)
        self.case.call(ident, op, f"${self.fd}", number, header.get("pointer", "&q"), caps=caps,
                       masks=masks)

    @staticmethod
    def attr_in(case, name, number, blob, flags=MANDATORY):
        """An input attribute: inline up to 8 bytes, else through a memory object."""
        blob = calls.Blob.of(blob)
        if len(blob) <= 8:
            return Attr(number, len(blob), blob + bytes(8 - len(blob)), flags)
        case.mem(name, blob)
        return Attr(number, len(blob), f"&{name}", flags)

    def invoke(self, ident, command, shape=None, gives=None, **header):
        """Sends a write command through INVOKE_WRITE."""
        shape = shape or Shape()
        facts, case = self.facts, self.case
        core, driver = self._reply_sizes(command)
        core = max(core + shape.core_out, 0)
        number = facts.numbers.get(command.number_name, 0) if shape.command < 0 else shape.command
        number |= (EXTENDED_FLAG if command.extended else 0) ^ shape.flags
        body = self._body(command, shape)
        attrs = [Attr(facts.number("UVERBS_ATTR_WRITE_CMD"), 8, number)]
        case.mem("b", body)
        inline = len(body) <= 8
        attrs.append(Attr(facts.number("UVERBS_ATTR_CORE_IN"), len(body),
                          body + bytes(8 - len(body)) if inline else "&b"))
        if core:
            case.mem("r", calls.filled(shape.reply_mapped if shape.reply_mapped >= 0 else core),
                     shape.reply_place)
            attrs.append(Attr(facts.number("UVERBS_ATTR_CORE_OUT"), core, shape.reply))
        extra = self._driver_input(command, shape)
        if len(extra):
            attrs.append(self.attr_in(case, "u", UHW_IN, extra))
        if driver + shape.extra_out > 0:
            case.mem("d", calls.filled(driver + shape.extra_out))
            attrs.append(Attr(UHW_OUT, driver + shape.extra_out, "&d"))
        self.ioctl(ident, facts.number("UVERBS_OBJECT_DEVICE"),
                   facts.number("UVERBS_METHOD_INVOKE_WRITE"), attrs,
                   caps=self.captures(command, gives) if gives is not None else [],
                   masks=self.masks(command, driver_object="d") if command.reply else [], **header)
