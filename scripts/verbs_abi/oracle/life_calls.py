# SPDX-License-Identifier: BSD-2-Clause
"""Cases about objects over time: destroy orders, foreign handles, contexts, fork, events, mmap."""

from verbs_abi.oracle import calls
from verbs_abi.oracle import ioctl_calls
from verbs_abi.oracle import ioctl_table
from verbs_abi.oracle import write_table
from verbs_abi.oracle.session import Session, Shape

BY_LABEL = write_table.BY_LABEL
O_RDWR, O_NONBLOCK, F_GETFL, F_SETFL, POLLIN, POLLOUT = 2, 0o4000, 3, 4, 1, 4
PROT_READ, PROT_WRITE, MAP_SHARED, MAP_PRIVATE = 1, 2, 1, 2

# kind: (creating command, destroying command, its handle field, ioctl object, method, attribute)
KINDS = {
    "pd": ("alloc_pd", "dealloc_pd", "pd_handle", "PD_DESTROY"),
    "mr": ("reg_mr", "dereg_mr", "mr_handle", "MR_DESTROY"),
    "cq": ("create_cq", "destroy_cq", "cq_handle", "CQ_DESTROY"),
    "qp": ("create_qp", "destroy_qp", "qp_handle", "QP_DESTROY"),
    "srq": ("create_srq", "destroy_srq", "srq_handle", "SRQ_DESTROY"),
    "ah": ("create_ah", "destroy_ah", "ah_handle", "AH_DESTROY"),
    "mw": ("alloc_mw", "dealloc_mw", "mw_handle", "MW_DESTROY"),
}


class Maker:
    """Makes the cases."""

    def __init__(self, facts, rng=None):
        self.facts = facts
        self.rng = rng
        self.methods = {method.name: method for method in ioctl_table.METHODS}
        self.ioctls = ioctl_calls.Maker(facts, rng)

    def shuffled(self, items):
        items = list(items)
        if self.rng:
            self.rng.shuffle(items)
        return items

    # --- helpers ---------------------------------------------------------------------------------

    def start(self, name, *objects):
        case = calls.Case(name)
        session = Session(self.facts, case)
        session.need("context", *objects)
        return case, session

    def destroy(self, session, label, kind, route, handle=None):
        """Destroys by write, INVOKE_WRITE or the method of its own."""
        _, command, field, method = KINDS[kind]
        handle = handle or f"${kind}"
        if route == "ioctl":
            call = self.ioctls.working(session, self.methods[method])
            call.attrs[0].data = handle
            self.ioctls.send(label, call)
        else:
            send = Session.write if route == "write" else Session.invoke
            send(session, label, BY_LABEL[command], Shape(values={field: handle}))

    # --- classes ---------------------------------------------------------------------------------

    def destroy_orders(self):
        """Every object destroyed while others use it, then all in another order, then again."""
        kinds = [kind for kind in KINDS]
        for route in ("write", "invoke", "ioctl"):
            for number, order in enumerate((kinds, list(reversed(kinds)),
                                            ["qp", "srq", "pd", "cq", "mr", "ah", "mw"])):
                case, session = self.start(f"life.{route}.destroy_order{number}", *kinds)
                for again in range(3):
                    for kind in self.shuffled(order):
                        self.destroy(session, f"{kind}#{again}", kind, route)
                yield case

    def wrong_kinds(self):
        """Every destroying call with a handle of every kind."""
        for route in ("write", "invoke", "ioctl"):
            case, session = self.start(f"life.{route}.wrong_kind", *KINDS)
            for kind in self.shuffled(KINDS):
                for other in KINDS:
                    if other != kind:
                        self.destroy(session, f"{kind}<-{other}", kind, route, f"${other}")
            yield case

    def uses_after(self):
        """Commands that take a handle, with one that was destroyed."""
        case, session = self.start("life.write.after_destroy", *KINDS, "udqp")
        for kind in ("qp", "srq", "ah", "mw", "mr", "cq", "pd"):
            self.destroy(session, f"destroy_{kind}", kind, "write")
        for command in self.shuffled(write_table.COMMANDS):
            if command.needs and command.needs[-1] in KINDS and command.number_name in \
                    self.facts.numbers:
                session.write(command.label, command)
                session.invoke(f"invoke.{command.label}", command)
        yield case

    def reuse(self):
        """Which handle an object gets after others have gone."""
        for kind, count in (("pd", 6), ("cq", 5), ("mr", 5)):
            case, session = self.start(f"life.write.handle_reuse_{kind}", "pd", "cq", "data")
            create = BY_LABEL[KINDS[kind][0]]
            for index in range(count):
                session.write(f"create{index}", create, gives={f"h{index}": KINDS[kind][2]})
            for index in (1, 3, 2):
                self.destroy(session, f"destroy{index}", kind, "write", f"$h{index}")
            for index in range(4):
                session.write(f"again{index}", create)
            yield case

    def contexts(self):
        """Two files: handles, channels and event files of one used on the other."""
        case, one = self.start("context.write.foreign", *KINDS, "channel")
        two = Session(self.facts, case, fd="B")
        two.open()
        case.set("mine", calls.Blob.of("$async", 4))
        two.write("second_context", BY_LABEL["get_context"], gives={"async2": "async_fd"})
        two.made |= {"context", "pd", "cq", "qp", "udqp", "srq", "mr", "ah", "mw", "data"}
        for command in self.shuffled(write_table.COMMANDS):
            if command.number_name in self.facts.numbers and command.needs \
                    and command.needs[-1] in KINDS:
                two.write(command.label, command)
        two.write("create_cq.foreign_channel", BY_LABEL["create_cq"],
                  Shape(values={"comp_channel": "$channel"}))
        for kind in KINDS:
            self.destroy(two, f"ioctl.{kind}", kind, "ioctl")
        yield case
        case, session = self.start("context.write.twice")
        session.write("again", BY_LABEL["get_context"])
        session.invoke("again_invoke", BY_LABEL["get_context"])
        call = self.ioctls.working(session, self.methods["GET_CONTEXT"])
        self.ioctls.send("again_ioctl", call)
        session.write("pd_after", BY_LABEL["alloc_pd"])
        yield case
        case = calls.Case("context.ioctl.after_invoke")
        session = Session(self.facts, case)
        session.open()
        session.invoke("invoke", BY_LABEL["get_context"], gives={"async": "async_fd"})
        session.write("pd_after", BY_LABEL["alloc_pd"], gives={"pd": "pd_handle"})
        session.write("again", BY_LABEL["get_context"])
        case.call("poll_async", "poll", "$async", POLLIN, 0)
        yield case

    def processes(self):
        """Forked children and changed credentials."""
        case, session = self.start("process.write.fork", "pd")
        session.write("child_write", BY_LABEL["query_port"], Shape(op="fork-write"))
        session.write("child_alloc", BY_LABEL["alloc_pd"], Shape(op="fork-write"))
        session.invoke("child_invoke", BY_LABEL["query_port"], op="fork-ioctl")
        call = self.ioctls.working(session, self.methods["QUERY_PORT"])
        self.ioctls.send("child_ioctl", call, op="fork-ioctl")
        session.write("parent_write", BY_LABEL["query_port"])
        case.call("child_close", "fork-close", "$A")
        session.write("parent_after", BY_LABEL["alloc_pd"])
        case.call("dup", "dup", "$A", caps=["D:ret"])
        case.call("close", "close", "$A")
        session.fd = "D"
        session.write("through_dup", BY_LABEL["alloc_pd"])
        yield case
        case, session = self.start("process.write.seteuid", "pd")
        case.call("away", "seteuid", 65534)
        session.write("write_as_other", BY_LABEL["query_port"])
        session.invoke("invoke_as_other", BY_LABEL["query_port"])
        case.call("back", "seteuid", 0)
        session.write("write_as_before", BY_LABEL["query_port"])
        session.invoke("invoke_as_before", BY_LABEL["query_port"])
        yield case

    def file_operations(self):
        """What the files themselves answer: odd sizes, poll, mmap where nothing is."""
        case = calls.Case("file.device.operations")
        session = Session(self.facts, case)
        session.open()
        case.mem("v", calls.filled(64))
        for size in (0, 1, 8, 64):
            case.call(f"read{size}", "read", "$A", "&v", size)
        for events in (POLLIN, POLLOUT, POLLIN | POLLOUT):
            case.call(f"poll{events}", "poll", "$A", events, 0)
        case.call("getfl", "fcntl", "$A", F_GETFL, 0)
        for stage in ("before", "after"):
            for offset in (0, 4096, 1 << 20, 1 << 40):
                for length in (1, 4096, 8192):
                    case.call(f"mmap_{stage}_{offset:#x}_{length}", "mmap", "$A", length,
                              PROT_READ | PROT_WRITE, MAP_SHARED, offset)
            if stage == "before":
                session.need("context")
        case.call("mmap_private", "mmap", "$A", 4096, PROT_READ, MAP_PRIVATE, 0)
        case.call("close", "close", "$A")
        case.call("close_again", "close", "$A")
        session.write("write_closed", BY_LABEL["query_port"])
        yield case
        case = calls.Case("file.device.open_modes")
        for label, flags in (("rdonly", 0), ("wronly", 1), ("rdwr", 2), ("nonblock", 0o4002),
                             ("append", 0o2002), ("excl", 0o302), ("directory", 0o200002),
                             ("trunc", 0o1002)):
            case.call(label, "open", flags, caps=["A:ret"])
            session = Session(self.facts, case)
            session.made = {"fd"}
            session.write(f"{label}.get_context", BY_LABEL["get_context"])
            session.invoke(f"{label}.invoke", BY_LABEL["query_port"])
        yield case

    def event_files(self):
        """The completion channel and the async event file, empty."""
        for name in ("channel", "async"):
            case, session = self.start(f"event.{name}.empty", "channel")
            file = f"${name}"
            case.mem("v", calls.filled(64))
            for events in (POLLIN, POLLOUT, POLLIN | POLLOUT):
                case.call(f"poll{events}", "poll", file, events, 0)
            case.call("getfl", "fcntl", file, F_GETFL, 0)
            case.call("read_blocking", "read", file, "&v", 64)
            case.call("read_blocking_small", "read", file, "&v", 1)
            case.call("nonblock", "fcntl", file, F_SETFL, O_NONBLOCK)
            for size in (0, 1, 7, 8, 15, 16, 64):
                case.call(f"read{size}", "read", file, "&v", size)
            for target in ("bad", "null"):
                case.call(f"read_{target}", "read", file, f"&{target}", 64)
            case.call("write", "write", file, "&v", 8)
            case.call("mmap", "mmap", file, 4096, PROT_READ, MAP_SHARED, 0)
            case.call("ioctl", "ioctl", file, self.facts.number("RDMA_VERBS_IOCTL"), "&v")
            session.write("create_cq", BY_LABEL["create_cq"],
                          Shape(values={"comp_channel": file}), gives={"cq": "cq_handle"})
            session.write("notify", BY_LABEL["req_notify_cq"], Shape(values={"cq_handle": "$cq"}))
            case.call("close", "close", file)
            session.write("create_cq_closed", BY_LABEL["create_cq"],
                          Shape(values={"comp_channel": file}))
            self.destroy(session, "destroy_cq", "cq", "write")
            yield case
        case, session = self.start("event.channel.device_closed", "channel", "cq")
        case.mem("v", calls.filled(64))
        case.call("close_device", "close", "$A")
        for file in ("channel", "async"):
            case.call(f"{file}_poll", "poll", f"${file}", POLLIN, 0)
            case.call(f"{file}_nonblock", "fcntl", f"${file}", F_SETFL, O_NONBLOCK)
            case.call(f"{file}_read", "read", f"${file}", "&v", 64)
        yield case

    def queue_maps(self):
        """mmap of a queue by its reply's offset: lengths, protections, twice, after destroy."""
        case, session = self.start("mmap.cq.queue")
        core, _ = session._reply_sizes(BY_LABEL["create_cq"])
        command = BY_LABEL["create_cq"]

        def create(label):
            session.write(label, command, gives={"cq": "cq_handle"})
            words = case.lines[-1].split(" ")
            case.lines[-1] = " ".join([*words, f"cap=off:r:{core}:8", f"cap=size:r:{core + 8}:4"])

        for label, length in (("size", "$size"), ("one", 1), ("page", 4096), ("two_pages", 8192),
                              ("three_pages", 12288), ("megabyte", 1 << 20)):
            create(f"create_{label}")
            case.call(f"map_{label}", "mmap", "$A", length, PROT_READ | PROT_WRITE, MAP_SHARED,
                      "$off")
            case.call(f"again_{label}", "mmap", "$A", length, PROT_READ | PROT_WRITE, MAP_SHARED,
                      "$off")
        create("create_private")
        case.call("map_private", "mmap", "$A", "$size", PROT_READ | PROT_WRITE, MAP_PRIVATE, "$off")
        create("create_readonly")
        case.call("map_readonly", "mmap", "$A", "$size", PROT_READ, MAP_SHARED, "$off")
        create("create_destroyed")
        self.destroy(session, "destroy", "cq", "write")
        case.call("map_destroyed", "mmap", "$A", "$size", PROT_READ | PROT_WRITE, MAP_SHARED,
                  "$off")
        create("create_foreign")
        other = Session(self.facts, case, fd="B")
        other.open()
        case.call("map_no_context", "mmap", "$B", "$size", PROT_READ | PROT_WRITE, MAP_SHARED,
                  "$off")
        other.write("", BY_LABEL["get_context"])
        case.call("map_foreign", "mmap", "$B", "$size", PROT_READ | PROT_WRITE, MAP_SHARED, "$off")
        yield case

    def handles_listed(self):
        """INFO_HANDLES of every kind of object, with objects made and gone."""
        case, session = self.start("life.ioctl.info_handles", *KINDS, "channel")
        method = self.methods["INFO_HANDLES"]
        for stage in ("full", "less"):
            for object_id in self.shuffled(range(0, 22)):
                call = self.ioctls.working(session, method)
                call.attrs[0].data = object_id
                self.ioctls.send(f"{stage}.{object_id}", call)
            if stage == "full":
                for kind in ("qp", "ah", "mw"):
                    self.destroy(session, f"destroy_{kind}", kind, "write")
        yield case

    def multicast(self):
        """Attach and detach: twice, unknown, of the wrong QP type, with odd groups."""
        case, session = self.start("mcast.write.groups", "pd", "cq", "qp", "udqp")
        attach, detach = BY_LABEL["attach_mcast"], BY_LABEL["detach_mcast"]
        groups = {"good": bytes.fromhex("ff0e000000000000000000000000000a"),
                  "other": bytes.fromhex("ff0e000000000000000000000000000b"),
                  "ipv4": bytes.fromhex("00000000000000000000ffffe0000001"),
                  "unicast": bytes.fromhex("fe800000000000000000000000000001"), "zero": bytes(16)}
        for name, gid in groups.items():
            for action, command in (("attach", attach), ("attach_again", attach),
                                    ("detach", detach), ("detach_again", detach)):
                session.write(f"{name}.{action}", command, Shape(values={"gid": gid}))
        for mlid in (0, 1, 0xbfff, 0xc000, 0xfffe, 0xffff):
            session.write(f"mlid{mlid:#x}.attach", attach, Shape(values={"mlid": mlid}))
            session.write(f"mlid{mlid:#x}.detach", detach, Shape(values={"mlid": mlid}))
        for label, command in (("attach", attach), ("detach", detach)):
            session.write(f"rc.{label}", command, Shape(values={"qp_handle": "$qp"}))
        session.write("before_destroy", attach)
        session.write("destroy", BY_LABEL["destroy_qp"], Shape(values={"qp_handle": "$udqp"}))
        yield case

    def all(self):
        yield from self.destroy_orders()
        yield from self.wrong_kinds()
        yield from self.uses_after()
        yield from self.reuse()
        yield from self.contexts()
        yield from self.processes()
        yield from self.file_operations()
        yield from self.event_files()
        yield from self.queue_maps()
        yield from self.handles_listed()
        yield from self.multicast()
