# SPDX-License-Identifier: BSD-2-Clause
"""Cases about moved data and its events, by hand on rxe's mapped queues.

Two QPs of one process are connected to each other. What is compared: completions byte by byte, the
data, the QPs' states, completion and asynchronous events as they are read, and what destroying reports.
"""

from verbs_abi.oracle import calls
from verbs_abi.oracle import qp_calls
from verbs_abi.oracle import write_table
from verbs_abi.oracle.session import Session, Shape

BY_LABEL = write_table.BY_LABEL
POLLIN, F_SETFL, O_NONBLOCK = 1, 4, 0o4000
HEAD = 384  # struct rxe_queue_buf, also where the headers do not tell it yet (rxe_queue.h)
PRODUCER, CONSUMER = 128, 256
SIGNALED, SOLICITED, INLINE, FENCE = 2, 4, 8, 1
OPCODES = {"write": 0, "write_imm": 1, "send": 2, "send_imm": 3, "read": 4, "cmp_swap": 5,
           "fetch_add": 6, "local_inv": 7, "bind_mw": 8, "send_inv": 9}
ALL_ACCESS = 0xf
BUFFER = 8192
MASKED_WC = ("qpn:c:28:4", "qpn:c:32:4")


class Maker:
    """Makes the cases."""

    def __init__(self, facts, rng=None):
        self.facts = facts
        self.rng = rng
        self.qps = qp_calls.Maker(facts, rng)
        self.receiver = "b"

    # --- setting up ------------------------------------------------------------------------------

    def _mapped(self, session, command, values, gives, queues):
        """Sends a creating command and maps its queues: {symbol: mminfo field}."""
        case = session.case
        session.write("", command, Shape(values=values), gives=gives)
        core, _ = session._reply_sizes(command)
        caps = []
        for symbol, field in queues.items():
            offset, width = session._leaf(command.driver_out, f"{field}.offset")
            caps += [f"cap=off_{symbol}:r:{core + offset}:{width}",
                     f"cap=size_{symbol}:r:{core + offset + 8}:4"]
        case.lines[-1] = " ".join([case.lines[-1], *caps])
        for symbol in queues:
            case.call("", "mmap", f"${session.fd}", f"$size_{symbol}", 3, 1, f"$off_{symbol}",
                      caps=[f"{symbol}:ret"])

    def start(self, name, access=ALL_ACCESS, srq=False, connect=True, own=False):
        """A case with an MR, a channel, a CQ and two RC QPs, A connected to B, on that CQ. A sends,
        B receives; own: one QP that is connected to itself does both."""
        case = calls.Case(name)
        session = Session(self.facts, case)
        session.need("context", "pd", "channel")
        pattern = bytes(range(1, 251)) * (BUFFER // 250 + 1)
        case.mem("data", pattern[:BUFFER], "quiet")
        session.write("", BY_LABEL["reg_mr"], Shape(values={"length": BUFFER,
                                                            "access_flags": access}),
                      gives={"mr": "mr_handle", "lkey": "lkey", "rkey": "rkey"})
        self._mapped(session, BY_LABEL["create_cq"], {"comp_channel": "$channel",
                                                      "user_handle": 0xc0ffee},
                     {"cq": "cq_handle"}, {"cqmap": "mi"})
        session.made |= {"cq", "mr", "data"}
        extra = {}
        if srq:
            self._mapped(session, BY_LABEL["create_srq"], {"user_handle": 0x5e9},
                         {"srq": "srq_handle"}, {"srqmap": "mi"})
            extra = {"is_srq": 1, "srq_handle": "$srq", "max_recv_wr": 0, "max_recv_sge": 0}
        self.receiver = "a" if own else "b"
        names = ("a",) if own else ("a", "b")
        for qp in names:
            queues = {f"sq{qp}": "sq_mi"}
            if not (srq and qp == self.receiver):
                queues[f"rq{qp}"] = "rq_mi"
            self._mapped(session, BY_LABEL["create_qp"],
                         {"user_handle": 0x9a if qp == "a" else 0x9b,
                          **(extra if qp == self.receiver else {})},
                         {f"qp{qp}": "qp_handle", f"qpn{qp}": "qpn"}, queues)
        session.made.add("qp")
        for name in ("cqmap", "sqa", "rqa"):
            if not (srq and own and name == "rqa"):
                case.mem("c", calls.filled(8))
                case.call(f"{name}_head", "load", f"${name}", 0, "&c", 8)
        if connect:
            for qp, peer in zip(names, reversed(names)):
                whole = {"dest_qp_num": f"$qpn{peer}", "rq_psn": 100, "sq_psn": 100,
                         "qp_access_flags": access, "rnr_retry": 0, "retry_cnt": 7, "timeout": 18,
                         "qp_handle": f"$qp{qp}"}
                for before, after in (("reset", "init"), ("init", "rtr"), ("rtr", "rts")):
                    mask = qp_calls.STATE | qp_calls.NEEDED["rc"][before, after]
                    self.qps.modify(session, "", qp_calls.STATES[after], mask, **whole)
        return case, session

    # --- work ------------------------------------------------------------------------------------

    def receive(self, case, index, address, length, key="$lkey", queue=None):
        """Puts a receive WQE at that index of the receiver's ring and moves the producer."""
        queue = queue or f"rq{self.receiver}"
        work = calls.struct(self.facts, "rxe_recv_wqe",
                            {"wr_id": 0x4000 + index, "dma.length": length, "dma.resid": length,
                             "dma.num_sge": 1, "num_sge": 1})
        work += calls.Blob.of(address, 8) + calls.Blob.of(length, 4) + calls.Blob.of(key, 4)
        case.mem("w", work)
        case.call("", "store", f"${queue}", HEAD + index * 64, "&w", len(work))
        case.mem("w", calls.Blob.of(index + 1, 4))
        case.call("", "store", f"${queue}", PRODUCER, "&w", 4)

    def send(self, session, index, opcode, address="&data", length=64, key="$lkey",
             flags=SIGNALED, remote="&data+4096", rkey="$rkey", extra=None):
        """Puts a send WQE at that index, moves the producer and rings the doorbell."""
        case = session.case
        values = {"wr.wr_id": 0x8000 + index, "wr.opcode": OPCODES[opcode], "wr.send_flags": flags,
                  "wr.ex": (0x01020304).to_bytes(4, "big"), "wr.num_sge": 1,
                  "dma.length": length, "dma.resid": length, "dma.num_sge": 1}
        work = calls.struct(self.facts, "rxe_send_wqe", values)
        if opcode in ("write", "write_imm", "read"):
            work = work.put(24, remote, 8).put(32, rkey, 4).put(152, remote, 8)
        if opcode in ("cmp_swap", "fetch_add"):
            work = work.put(24, remote, 8).put(32, 7, 8).put(40, 9, 8).put(48, rkey, 4) \
                .put(152, remote, 8)
        for offset, value, width in extra or ():
            work = work.put(offset, value, width)
        work += calls.Blob.of(address, 8) + calls.Blob.of(length, 4) + calls.Blob.of(key, 4)
        case.mem("w", work)
        # The element size is a power of two that holds the WQE and its one SGE.
        case.call("", "store", "$sqa", HEAD + index * 256, "&w", len(work))
        case.mem("w", calls.Blob.of(index + 1, 4))
        case.call("", "store", "$sqa", PRODUCER, "&w", 4)
        session.write(f"doorbell{index}", BY_LABEL["post_send"],
                      Shape(values={"qp_handle": "$qpa", "wqe_size": 56}))

    def settle(self, case, expected):
        """Until the CQ holds that many completions; a call is not to outlast its own limit."""
        for _ in range(4):
            case.call("", "settle", "$cqmap", PRODUCER, expected, 300)
        case.call("", "pause-ms", 20)

    def look(self, session, completions, data=(), label="", shown=0):
        """Waits for completions; shows rings, completions, data, QP state and events."""
        case = session.case
        self.settle(case, completions)
        completions = max(completions, shown)
        case.mem("c", calls.filled(8))
        case.call(f"{label}cq_producer", "load", "$cqmap", PRODUCER, "&c", 4)
        # An element is 64 bytes on some kernels and 128 on others: all that may hold one are shown.
        for index in range(2 * completions - 1 if completions else 0):
            case.mem("c", calls.filled(48))
            case.call(f"{label}cqe{index}", "load", "$cqmap", HEAD + index * 64, "&c", 48,
                      masks=MASKED_WC)
        for offset, length in data:
            case.mem("c", calls.filled(length))
            case.call(f"{label}data{offset}", "load", "&data", offset, "&c", length)
        for qp in sorted({"a", self.receiver}):
            session.write(f"{label}query_qp_{qp}", BY_LABEL["query_qp"],
                          Shape(values={"qp_handle": f"$qp{qp}"}))
            case.lines[-1] += " mask=qpn:r:96:4"
        case.mem("v", calls.filled(64))
        for name in ("channel", "async"):
            case.call("", "fcntl", f"${name}", F_SETFL, O_NONBLOCK)
            case.call(f"{label}{name}.poll", "poll", f"${name}", POLLIN, 0)
            case.mem("v", calls.filled(64))
            case.call(f"{label}{name}.read", "read", f"${name}", "&v", 64)

    def to_err(self, session):
        """Both QPs to ERR, the sender first."""
        for qp in sorted({"a", self.receiver}):
            self.qps.modify(session, f"to_err_{qp}", qp_calls.STATES["err"], qp_calls.STATE,
                            qp_handle=f"$qp{qp}")

    def destroy(self, session):
        for qp in sorted({"a", self.receiver}):
            session.write(f"destroy_qp_{qp}", BY_LABEL["destroy_qp"],
                          Shape(values={"qp_handle": f"$qp{qp}"}))

    def notify(self, session, solicited=0):
        session.write("notify", BY_LABEL["req_notify_cq"],
                      Shape(values={"cq_handle": "$cq", "solicited_only": solicited}))

    # --- cases -----------------------------------------------------------------------------------

    def transfers(self):
        """Every RC operation that works."""
        for opcode, length, done in (("send", 64, 2), ("send", 3000, 2), ("send_imm", 64, 2),
                                     ("write", 64, 1), ("write_imm", 64, 2), ("read", 64, 1),
                                     ("read", 3000, 1), ("cmp_swap", 8, 1), ("fetch_add", 8, 1),
                                     ("send", 0, 2)):
            case, session = self.start(f"data.rc.{opcode}_{length}")
            self.receive(case, 0, "&data+4096", 4096)
            self.notify(session)
            remote = "&data+4096"
            self.send(session, 0, opcode, length=length, remote=remote)
            self.look(session, done, [(0, 72), (4096, 72)], shown=2)
            self.to_err(session)
            self.look(session, 2, label="err.", shown=3)
            yield case

    def with_itself(self):
        """One QP that sends to itself."""
        for opcode, done in (("send", 2), ("write", 1), ("read", 1)):
            case, session = self.start(f"data.rc_self.{opcode}", own=True)
            self.receive(case, 0, "&data+4096", 4096)
            self.notify(session)
            self.send(session, 0, opcode)
            self.look(session, done, [(0, 72), (4096, 72)], shown=2)
            yield case

    def failures(self):
        """Operations that end in an error, and what it makes of the QP."""
        table = {
            "send_no_receive": {"opcode": "send"},
            "send_bad_lkey": {"opcode": "send", "key": 0x12345678},
            "send_too_long": {"opcode": "send", "length": 4097, "post": 4096},
            "receive_bad_lkey": {"opcode": "send", "post": 64, "post_key": 0x12345678},
            "write_bad_rkey": {"opcode": "write", "rkey": 0x12345678},
            "write_beyond": {"opcode": "write", "length": 64, "remote": "&data+8160"},
            "read_bad_rkey": {"opcode": "read", "rkey": 0x12345678},
            "read_beyond": {"opcode": "read", "remote": "&data+8160"},
            "atomic_unaligned": {"opcode": "fetch_add", "length": 8, "remote": "&data+4097"},
            "lkey_beyond": {"opcode": "send", "address": "&data+8160", "post": 64},
        }
        for name, row in table.items():
            row = dict(row)
            done = 2 if "post" in row else 1
            case, session = self.start(f"data.rc_error.{name}")
            if "post" in row:
                self.receive(case, 0, "&data+4096", row.pop("post"),
                             row.pop("post_key", "$lkey"))
            self.notify(session)
            self.send(session, 0, **row)
            self.look(session, done, [(4096, 16)], shown=2)
            yield case
        for access, opcode in ((1, "write"), (1, "read"), (1, "fetch_add"), (5, "write"),
                               (3, "read")):
            case, session = self.start(f"data.rc_error.access{access}_{opcode}", access)
            self.notify(session)
            self.send(session, 0, opcode, length=8)
            self.look(session, 1, [(4096, 16)], shown=2)
            yield case

    def flushes(self):
        """Work that is outstanding when the QP goes to ERR or RESET."""
        for target in ("err", "reset"):
            case, session = self.start(f"data.rc.flush_{target}", own=True)
            self.receive(case, 0, "&data+4096", 64)
            self.receive(case, 1, "&data+4096", 64)
            self.notify(session)
            self.qps.modify(session, "change", qp_calls.STATES[target], qp_calls.STATE,
                            qp_handle="$qpa")
            done = 2 if target == "err" else 0
            self.look(session, done, shown=3)
            self.send(session, 0, "send")
            self.look(session, done + (target == "err"), label="after.", shown=3)
            yield case
        case, session = self.start("data.rc.send_in_reset", connect=False)
        self.send(session, 0, "send")
        self.look(session, 0, shown=1)
        yield case

    def event_reads(self):
        """Completion events: arming, solicited, odd sizes of reading, what destroying reports."""
        case, session = self.start("data.events.sizes")
        case.call("", "fcntl", "$channel", F_SETFL, O_NONBLOCK)
        for index in range(3):
            self.receive(case, index, "&data+4096", 64)
        self.notify(session)
        self.send(session, 0, "send")
        self.settle(case, 2)
        for events in (1, 4, 5):
            case.call(f"poll{events}", "poll", "$channel", events, 0)
        for size in (0, 1, 4, 7):
            case.mem("v", calls.filled(64))
            case.call(f"read{size}", "read", "$channel", "&v", size)
        for target in ("bad", "null"):
            case.call(f"read_{target}", "read", "$channel", f"&{target}", 8)
        case.call("poll_left", "poll", "$channel", POLLIN, 0)
        case.mem("v", calls.filled(64))
        case.call("read8", "read", "$channel", "&v", 8)
        case.call("read8_again", "read", "$channel", "&v", 8)
        self.destroy(session)
        session.write("destroy_cq", BY_LABEL["destroy_cq"])
        yield case
        case, session = self.start("data.events.solicited")
        for index in range(4):
            self.receive(case, index, "&data+4096", 64)
        self.notify(session, 1)
        self.send(session, 0, "send")
        self.look(session, 2, label="plain.")
        self.send(session, 1, "send", flags=SIGNALED | SOLICITED)
        self.look(session, 4, label="solicited.")
        self.notify(session)
        self.look(session, 4, label="armed_late.")
        self.send(session, 2, "send", flags=0)
        self.look(session, 5, label="unsignalled.")
        self.destroy(session)
        session.write("destroy_cq", BY_LABEL["destroy_cq"])
        yield case
        case, session = self.start("data.events.destroyed_unread")
        self.receive(case, 0, "&data+4096", 64)
        self.notify(session)
        self.send(session, 0, "send")
        self.settle(case, 2)
        self.destroy(session)
        session.write("destroy_cq", BY_LABEL["destroy_cq"])
        case.call("", "fcntl", "$channel", F_SETFL, O_NONBLOCK)
        case.mem("v", calls.filled(64))
        case.call("poll", "poll", "$channel", POLLIN, 0)
        case.call("read", "read", "$channel", "&v", 64)
        yield case

    def shared_receive(self):
        """An SRQ: receiving through it, its limit event, the last-WQE event."""
        case, session = self.start("data.srq.limit", srq=True)
        for index in range(2):
            self.receive(case, index, "&data+4096", 64, queue="srqmap")
        session.write("arm_limit", BY_LABEL["modify_srq"],
                      Shape(values={"attr_mask": 2, "srq_limit": 2, "max_wr": 16}))
        session.write("query_srq", BY_LABEL["query_srq"])
        self.send(session, 0, "send")
        self.look(session, 2, [(4096, 16)])
        session.write("query_srq_after", BY_LABEL["query_srq"])
        self.to_err(session)
        self.look(session, 2, label="err.")
        session.write("destroy_srq_busy", BY_LABEL["destroy_srq"])
        self.destroy(session)
        session.write("destroy_srq", BY_LABEL["destroy_srq"])
        yield case

    def all(self):
        yield from self.transfers()
        yield from self.with_itself()
        yield from self.failures()
        yield from self.flushes()
        yield from self.event_reads()
        yield from self.shared_receive()
