# SPDX-License-Identifier: BSD-2-Clause
"""Cases about the write commands: lengths, pointers, header fields, every field of every request."""

from verbs_abi.oracle import calls
from verbs_abi.oracle import write_table
from verbs_abi.oracle.session import EXTENDED_FLAG, Session, Shape

ABSENT = 0x7ffffff0

# Handles of another kind, per kind of handle field.
WRONG_KIND = {"pd_handle": "cq", "cq_handle": "pd", "send_cq_handle": "pd", "recv_cq_handle": "pd",
              "qp_handle": "cq", "srq_handle": "cq", "mr_handle": "pd", "mw_handle": "pd",
              "ah_handle": "pd", "xrcd_handle": "pd", "wq_handle": "pd", "flow_handle": "pd",
              "ind_tbl_handle": "pd", "rwq_ind_tbl_handle": "pd"}


def ones(size):
    return (1 << 8 * size) - 1


def field_values(name, size, rng):
    """(label, value) to put into a field, beside the working one."""
    last = name.split(".")[-1]
    if last in WRONG_KIND:
        return [("absent", ABSENT), ("ones", ones(4)), ("wrong_kind", "$" + WRONG_KIND[last])]
    if last == "comp_mask" or last.endswith("attr_mask") or last in ("create_flags", "flags",
                                                                     "access_flags"):
        return [(f"bit{bit}", 1 << bit) for bit in range(8 * size)] + [("ones", ones(size))] + \
            [(f"random{number}", rng.randrange(1, ones(size))) for number in range(3 if rng else 0)]
    if last.startswith(("reserved", "resv")):
        odd = ones(size) if size > 8 else 1 << (8 * size - 1)
        if size > 8:
            return [("first", b"\1" + bytes(size - 1)), ("last", bytes(size - 1) + b"\1")]
        return [("one", 1), ("high", odd)] + ([("random", rng.randrange(1, ones(size)))] if rng else [])
    if last in ("user_handle",):
        return [("ones", ones(size))]
    if last in ("comp_channel", "fd"):
        return [("zero", 0), ("closed", 999), ("device", "$A"), ("async", "$async"),
                ("minus2", -2)]
    if last in ("start", "hca_va"):
        return [("null", 0), ("bad", "&bad"), ("odd", "&data+1"), ("kernel", "&kernel")]
    if size > 8:
        return [("ones", b"\xff" * size)]
    top = ones(size)
    values = [("0", 0), ("1", 1), ("2", 2), ("3", 3), ("7f", top >> 1), ("ff", top)]
    if rng:
        values.append(("random", rng.randrange(top)))
    if last in ("qp_type", "qp_state", "cur_qp_state", "mw_type", "srq_type", "wq_type"):
        values = [(str(value), value) for value in range(12)] + [("ff", top)]
    return values


def length_shapes(command, facts):
    """(label, Shape): lengths, words, pointers."""
    size = facts.size(f"ib_uverbs_{command.request}")
    step = 8 if command.extended else 4
    result = [("exact", {}), ("no_driver_in", {"extra_in": b""})]
    result += [(f"in_words{delta:+}", {"in_words": delta}) for delta in (-2, -1, 1, 2, 0x4000)]
    result += [(f"out_words{delta:+}", {"out_words": delta}) for delta in (-2, -1, 1, 2, 0x3000)]
    result += [(f"count{delta:+}", {"count": delta}) for delta in (-8, -4, -1)]
    result += [(f"count={count}", {"exact_count": count})
               for count in (0, 1, 7, 8, 9, 12, 16, 23, 24)]
    result += [(f"in+{extra}{kind}", {"extra_in": fill * extra})
               for extra in (step, 8, 16, 64) for kind, fill in (("z", b"\0"), ("n", b"\x5a"))]
    if command.extended:
        result += [(f"core+{extra}{kind}", {"core": fill * extra})
                   for extra in (8, 16, 64) for kind, fill in (("z", b"\0"), ("n", b"\x5a"))]
    result += [(f"core{-short:+}", {"short": short})
               for short in sorted({4, 8, 16, size // 2, size}) if 0 < short <= size
               and (not command.extended or short % 8 == 0)]
    for name in ("null", "bad", "kernel"):
        result.append((f"request={name}", {"request": f"&{name}"}))
    result.append(("request=ro", {"request_place": "ro"}))
    for cut in (4, 8, 12, 20, 24, 28):
        result.append((f"request_edge={cut}", {"request_place": "edge", "exact_count": cut}))
    if command.reply:
        result += [(f"out{delta:+}", {"extra_out": delta}) for delta in (4, 8, 64)
                   if not command.extended or delta % 8 == 0]
        driver = facts.size_or_0(command.driver_out)
        if driver:
            result += [("no_driver_out", {"extra_out": -driver}),
                       ("driver_out-8", {"extra_out": -8})]
        core = facts.size(f"ib_uverbs_{command.reply}")
        result += [(f"reply{-cut:+}", {"core_out": -cut})
                   for cut in sorted({4, 8, core // 2 // 8 * 8, core // 8 * 8})
                   if cut and core >= cut and (not command.extended or cut % 8 == 0)]
        for name in ("null", "bad", "kernel"):
            result.append((f"reply={name}", {"reply": f"&{name}"}))
        result.append(("reply=ro", {"reply_place": "ro"}))
        result += [(f"reply_edge={keep}", {"reply_place": "edge", "reply_mapped": keep})
                   for keep in sorted({0, 4, core // 2, core}) if keep <= core]
    if command.extended:
        result += [("reserved=1", {"reserved": 1}), ("reserved=high", {"reserved": 1 << 31}),
                   ("provider_in+1", {"provider_in": 1}), ("provider_in-1", {"provider_in": -1}),
                   ("provider_out+1", {"provider_out": 1}), ("reply=0", {"reply": 0}),
                   ("reply=0,out=0", {"reply": 0, "core_out": -4096})]
    result += [(f"flag={flag:x}", {"flags": flag})
               for flag in (EXTENDED_FLAG, 0x40000000, 0x20000000, 0x01000000, 0x00800000, 0x100)]
    return result


def random_shapes(command, rng):
    """As length_shapes, of lengths, contents and flags that nobody has thought of."""
    if not rng:
        return []
    step = 8 if command.extended else 4

    def some(most):
        """Driver input or a tail: mostly zeros, as those are what kernels let pass."""
        data = bytearray(step * rng.randrange(1, most // step))
        for _ in range(rng.randrange(3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data)

    result = [(f"random_{field}{number}", {field: rng.choice((-1, 1)) * rng.randrange(1, 64)})
              for field in ("in_words", "out_words") for number in range(2)]
    result += [(f"random_count{number}", {"exact_count": rng.randrange(64)}) for number in range(3)]
    result += [(f"in_random{number}", {"extra_in": some(160)}) for number in range(2)]
    result += [(f"random_flag{number}", {"flags": rng.randrange(1 << 24) << 8}) for number in range(2)]
    if command.extended:
        result += [(f"core_random{number}", {"core": some(160)}) for number in range(2)]
        result += [("random_reserved", {"reserved": rng.randrange(1, 1 << 32)}),
                   ("random_provider_in", {"provider_in": rng.randrange(1, 64)}),
                   ("random_provider_out", {"provider_out": rng.randrange(1, 64)})]
    if command.reply:
        result.append(("out_random", {"extra_out": step * rng.randrange(1, 40)}))
    return result


def shape_of(session, command, spec):
    spec = dict(spec)
    shape = Shape()
    if "short" in spec or "core" in spec:
        body = session._body(command, shape)
        if "short" in spec:
            shape.body = body.cut(max(len(body) - spec.pop("short"), 0))
        else:
            shape.body = body + spec.pop("core")
    for key, value in spec.items():
        setattr(shape, key, value)
    if shape.core_out == -4096:
        core, driver = session._reply_sizes(command)
        shape.core_out, shape.extra_out = -core, -driver
    return shape


class Maker:
    """Makes the cases of one route (write or INVOKE_WRITE) for every command."""

    def __init__(self, facts, rng=None):
        self.facts = facts
        self.rng = rng

    def shuffled(self, items):
        items = list(items)
        if self.rng:
            self.rng.shuffle(items)
        return items

    def known(self):
        return [command for command in write_table.COMMANDS
                if command.number_name in self.facts.numbers
                and self.facts.has(f"ib_uverbs_{command.request}")]

    def prepare(self, session, command):
        """What the command needs, anew where the last variant may have used it up."""
        if command.consumes:
            if command.name == "GET_CONTEXT":
                session.forget("fd", "context")
            session.forget(command.needs[-1] if command.needs else "fd")
        session.need("fd")
        session.need(*command.needs)

    def case(self, name, command, variants, send):
        """One case with a call per variant: variants is [(label, Shape maker)]."""
        case = calls.Case(name)
        session = Session(self.facts, case)
        for label, make in self.shuffled(variants):
            self.prepare(session, command)
            send(session, label, command, make(session))
        return case

    def shapes(self, command):
        return length_shapes(command, self.facts) + random_shapes(command, self.rng)

    def lengths(self):
        for command in self.known():
            variants = [(label, lambda session, spec=spec: shape_of(session, command, spec))
                        for label, spec in self.shapes(command)]
            yield self.case(f"write.{command.label}.length", command, variants, Session.write)

    def invoked_lengths(self):
        keep = ("exact", "no_driver", "in+", "in_random", "core", "out", "no_driver", "driver_out", "reply", "flag=")
        for command in self.known():
            variants = []
            for label, spec in self.shapes(command):
                if not label.startswith(keep) or "words" in label or label == "reply=0":
                    continue
                variants.append((label,
                                 lambda session, spec=spec: shape_of(session, command, spec)))
            yield self.case(f"invoke.{command.label}.length", command, variants, Session.invoke)

    def field_variants(self, command):
        struct = f"ib_uverbs_{command.request}"
        for name, _, size in self.facts.leaves(struct):
            if name == "response":
                continue
            for label, value in field_values(name, size, self.rng):
                yield name, label, value

    def fields(self, route="write"):
        send = Session.write if route == "write" else Session.invoke
        for command in self.known():
            variants = []
            for name, label, value in self.field_variants(command):
                # INVOKE_WRITE shares the handlers: one value a field shows that it does.
                if route == "invoke" and label not in ("absent", "one", "bit31", "ff"):
                    continue
                variants.append((f"{name}={label}",
                                 lambda _, n=name, v=value: Shape(values={n: v})))
            case = calls.Case(f"{route}.{command.label}.field")
            session = Session(self.facts, case)
            session.need("fd")
            if command.name != "GET_CONTEXT":
                session.need("context", "pd", "cq", "data")
            for label, make in self.shuffled(variants):
                self.prepare(session, command)
                send(session, label, command, make(session))
            if variants:
                yield case

    def numbers(self):
        """Every command number that there is not, in both forms."""
        for extended in (False, True):
            case = calls.Case(f"write.{'ex_' if extended else ''}unknown.command")
            session = Session(self.facts, case)
            session.need("context")
            known = {command.number_name: command for command in self.known()}
            taken = {self.facts.number(name) for name, command in known.items()
                     if command.extended == extended}
            template = write_table.BY_LABEL["ex_query_device" if extended else "query_device"]
            for number in self.shuffled([*range(0, 0x48), 0x60, 0x7f, 0x80, 0xfe, 0xff]):
                if number not in taken:
                    session.write(f"{number:#x}", template, Shape(command=number))
            yield case
        case = calls.Case("invoke.unknown.command")
        session = Session(self.facts, case)
        session.need("context")
        for label in ("query_device", "ex_query_device"):
            template = write_table.BY_LABEL[label]
            for number in self.shuffled([*range(0x29, 0x48), 0x60, 0xff, 0x100, 0x10001]):
                if number not in (0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39):
                    session.invoke(f"{label}.{number:#x}", template, Shape(command=number))
        yield case

    def without_context(self):
        """Every command on a file where GET_CONTEXT was never called."""
        for route, send in (("write", Session.write), ("invoke", Session.invoke)):
            case = calls.Case(f"{route}.all.no_context")
            session = Session(self.facts, case)
            session.need("fd")
            for symbol in ("pd", "cq", "qp", "udqp", "srq", "mr", "mw", "ah", "qpn"):
                case.set(symbol, calls.Blob.of(0, 4))
            session.need("data")
            for command in self.shuffled(self.known()):
                if command.name != "GET_CONTEXT":
                    send(session, command.label, command)
            yield case

    def all(self):
        yield from self.lengths()
        yield from self.fields()
        yield from self.invoked_lengths()
        yield from self.fields("invoke")
        yield from self.numbers()
        yield from self.without_context()
