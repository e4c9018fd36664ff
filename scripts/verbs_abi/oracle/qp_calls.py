# SPDX-License-Identifier: BSD-2-Clause
"""Cases about queue pairs: state × state × attribute mask, kinds of QP, posting."""

from verbs_abi.oracle import calls
from verbs_abi.oracle import write_table
from verbs_abi.oracle.session import Session, Shape

BY_LABEL = write_table.BY_LABEL

STATES = {"reset": 0, "init": 1, "rtr": 2, "rts": 3, "sqd": 4, "sqe": 5, "err": 6}

# Bits of ib_qp_attr_mask.
STATE, CUR_STATE, EN_SQD, ACCESS, PKEY, PORT, QKEY, AV, MTU, TIMEOUT, RETRY, RNR_RETRY, RQ_PSN, \
    MAX_RD, ALT_PATH, MIN_RNR, SQ_PSN, MAX_DEST_RD, MIG, CAP, DEST_QPN = (1 << bit
                                                                         for bit in range(21))
ALL_BITS = [*range(0, 22), 24, 25, 26, 31]

# What each kind of QP has to be given on the way up (the InfiniBand specification's tables).
NEEDED = {
    "rc": {("reset", "init"): PKEY | PORT | ACCESS,
           ("init", "rtr"): AV | MTU | DEST_QPN | RQ_PSN | MAX_DEST_RD | MIN_RNR,
           ("rtr", "rts"): TIMEOUT | RETRY | RNR_RETRY | SQ_PSN | MAX_RD},
    "uc": {("reset", "init"): PKEY | PORT | ACCESS, ("init", "rtr"): AV | MTU | DEST_QPN | RQ_PSN,
           ("rtr", "rts"): SQ_PSN},
    "ud": {("reset", "init"): PKEY | PORT | QKEY, ("init", "rtr"): 0, ("rtr", "rts"): SQ_PSN},
}
QP_TYPES = {"rc": 2, "uc": 3, "ud": 4}
UP = ("reset", "init", "rtr", "rts")

VALUES = {"port_num": 1, "qp_access_flags": 7, "qkey": 0x11111111, "path_mtu": 3, "rq_psn": 100,
          "sq_psn": 100, "dest_qp_num": 17, "max_rd_atomic": 1, "max_dest_rd_atomic": 1,
          "min_rnr_timer": 12, "timeout": 14, "retry_cnt": 7, "rnr_retry": 7,
          "dest.dgid": bytes.fromhex("00000000000000000000ffff0a000001"), "dest.is_global": 1,
          "dest.port_num": 1, "dest.sgid_index": 1, "dest.hop_limit": 1}


class Maker:
    """Makes the cases."""

    def __init__(self, facts, rng=None):
        self.facts = facts
        self.rng = rng

    def shuffled(self, items):
        items = list(items)
        if self.rng:
            self.rng.shuffle(items)
        return items

    def modify(self, session, label, state, mask, kind="modify_qp", **values):
        prefix = "base." if kind.startswith("ex_") else ""
        whole = {**VALUES, "qp_state": state, "attr_mask": mask, "qp_handle": "$q", **values}
        session.write(label, BY_LABEL[kind],
                      Shape(values={prefix + field: value for field, value in whole.items()}))

    def create(self, session, qp_type):
        session.write("", BY_LABEL["create_qp"], Shape(values={"qp_type": QP_TYPES[qp_type]}),
                      gives={"q": "qp_handle"})

    def bring(self, session, qp_type, target):
        """A new QP in the target state."""
        self.create(session, qp_type)
        if target == "err":
            self.modify(session, "", STATES["init"], STATE | NEEDED[qp_type]["reset", "init"])
            self.modify(session, "", STATES["err"], STATE)
            return
        goal = "rts" if target == "sqd" else target
        for before, after in zip(UP, UP[1:]):
            if before == goal:
                break
            self.modify(session, "", STATES[after], STATE | NEEDED[qp_type][before, after])
        if target == "sqd":
            self.modify(session, "", STATES["sqd"], STATE)
            # Until the send queue has drained, other answers are given: the event tells when. siw has no
            # such state.
            if session.facts.driver == "rxe":
                session.case.call("", "poll", "$async", 1, 350)
                session.case.mem("e", calls.filled(16))
                session.case.call("", "read", "$async", "&e", 16)

    def transitions(self):
        """From every state to every state, with the needed mask, then with every bit toggled."""
        for qp_type in QP_TYPES:
            for source in ("reset", "init", "rtr", "rts", "sqd", "err"):
                case = calls.Case(f"qp.{qp_type}.from_{source}")
                session = Session(self.facts, case)
                session.need("context", "pd", "cq")
                for target, number in STATES.items():
                    base = STATE | NEEDED[qp_type].get((source, target), 0)
                    masks = [("needed", base)]
                    if qp_type != "uc" or target in ("init", "rtr", "rts"):
                        masks += [(f"bit{bit}", base ^ (1 << bit)) for bit in ALL_BITS]
                    for label, mask in self.shuffled(masks):
                        self.bring(session, qp_type, source)
                        self.modify(session, f"{target}.{label}", number, mask)
                        session.write("", BY_LABEL["destroy_qp"],
                                      Shape(values={"qp_handle": "$q"}))
                for number in (7, 15, 255):
                    self.bring(session, qp_type, source)
                    self.modify(session, f"state{number}", number, STATE)
                self.bring(session, qp_type, source)
                self.modify(session, "no_state", 0, 0)
                session.write("query", BY_LABEL["query_qp"], Shape(values={"qp_handle": "$q"}))
                yield case

    def values(self):
        """Odd values of each attribute on the way up, and current-state checks."""
        odd = {"init": {"port_num": (0, 2, 255), "pkey_index": (1, 0xffff),
                        "qp_access_flags": (0x10, 0x80, 0xffff)},
               "rtr": {"path_mtu": (0, 1, 5, 6, 255), "max_dest_rd_atomic": (0, 128, 129, 255),
                       "min_rnr_timer": (0, 31, 32, 255), "dest_qp_num": (0, 1, 0xffffff,
                                                                         0x1000000, 0xffffffff),
                       "rq_psn": (0xffffff, 0xffffffff), "dest.sgid_index": (0, 2, 3, 200, 255),
                       "dest.is_global": (0, 2), "dest.port_num": (0, 2, 255),
                       "dest.dgid": (bytes(16), b"\xff" * 16), "dest.hop_limit": (0, 255)},
               "rts": {"timeout": (0, 31, 32, 255), "retry_cnt": (0, 8, 255),
                       "rnr_retry": (0, 8, 255), "max_rd_atomic": (0, 128, 129, 255),
                       "sq_psn": (0xffffff, 0xffffffff)}}
        for target, fields in odd.items():
            case = calls.Case(f"qp.rc.values_{target}")
            session = Session(self.facts, case)
            session.need("context", "pd", "cq")
            source = UP[UP.index(target) - 1]
            for field, values in fields.items():
                for value in values:
                    text = value.hex() if isinstance(value, bytes) else value
                    self.bring(session, "rc", source)
                    self.modify(session, f"{field}={text}", STATES[target],
                                STATE | NEEDED["rc"][source, target], **{field: value})
                    session.write(f"{field}={text}.query", BY_LABEL["query_qp"],
                                  Shape(values={"qp_handle": "$q"}))
            for current in range(8):
                self.bring(session, "rc", source)
                self.modify(session, f"cur_state={current}", STATES[target],
                            STATE | CUR_STATE | NEEDED["rc"][source, target],
                            cur_qp_state=current)
            yield case

    def extended(self):
        """The extended MODIFY_QP: the same steps, the rate limit, its longer mask."""
        case = calls.Case("qp.rc.ex_modify")
        session = Session(self.facts, case)
        session.need("context", "pd", "cq")
        for target in UP[1:]:
            source = UP[UP.index(target) - 1]
            base = STATE | NEEDED["rc"][source, target]
            for label, mask in (("needed", base), ("rate_limit", base | 1 << 25),
                                ("bit26", base | 1 << 26), ("bit27", base | 1 << 27),
                                ("bit31", base | 1 << 31), ("bit21", base | 1 << 21)):
                self.bring(session, "rc", source)
                self.modify(session, f"{target}.{label}", STATES[target], mask, "ex_modify_qp")
        yield case

    def kinds(self):
        """CREATE_QP of every type with SRQ, without CQs, with odd sizes."""
        case = calls.Case("qp.create.kinds")
        session = Session(self.facts, case)
        session.need("context", "pd", "cq", "srq")
        for qp_type in self.shuffled([*range(0, 18), 254, 255]):
            for label, values in (("plain", {}), ("srq", {"is_srq": 1, "srq_handle": "$srq"}),
                                  ("no_send", {"max_send_wr": 0, "max_send_sge": 0}),
                                  ("no_recv", {"max_recv_wr": 0, "max_recv_sge": 0}),
                                  ("inline", {"max_inline_data": 64})):
                session.write(f"type{qp_type}.{label}", BY_LABEL["create_qp"],
                              Shape(values={"qp_type": qp_type, **values}))
        for field in ("max_send_wr", "max_recv_wr", "max_send_sge", "max_recv_sge",
                      "max_inline_data"):
            for value in (0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 100, 512, 513, 1024, 4096, 16384,
                          16385, 65536, 0x100000, 0x100001, 0x7fffffff):
                session.write(f"{field}={value}", BY_LABEL["create_qp"],
                              Shape(values={field: value}))
        yield case
        case = calls.Case("qp.create.capacities_srq_cq")
        session = Session(self.facts, case)
        session.need("context", "pd", "cq")
        for value in (0, 1, 15, 16, 31, 32, 33, 64, 1000, 4096, 32767, 32768, 0x100000, 0x7fffffff):
            session.write(f"srq.max_wr={value}", BY_LABEL["create_srq"],
                          Shape(values={"max_wr": value}))
            session.write(f"srq.max_sge={value}", BY_LABEL["create_srq"],
                          Shape(values={"max_sge": value}))
            session.write(f"cq.cqe={value}", BY_LABEL["create_cq"], Shape(values={"cqe": value}))
            session.write(f"resize.cqe={value}", BY_LABEL["resize_cq"],
                          Shape(values={"cqe": value}))
        for vector in (0, 1, 2, 3, 255, 0xffffffff):
            session.write(f"cq.vector={vector}", BY_LABEL["create_cq"],
                          Shape(values={"comp_vector": vector}))
        yield case

    def srq_limits(self):
        case = calls.Case("srq.modify.limits")
        session = Session(self.facts, case)
        session.need("context", "pd", "srq")
        for mask in range(0, 8):
            for max_wr in (0, 1, 16, 31, 32, 64, 0x7fffffff):
                for limit in (0, 1, 15, 16, 31, 32):
                    session.write(f"mask{mask}.wr{max_wr}.limit{limit}", BY_LABEL["modify_srq"],
                                  Shape(values={"attr_mask": mask, "max_wr": max_wr,
                                                "srq_limit": limit}))
        session.write("query", BY_LABEL["query_srq"])
        yield case

    def posting(self):
        """POST_SEND, POST_RECV and POST_SRQ_RECV: sizes, counts, opcodes, what lies behind."""
        for label, record in (("post_send", 56), ("post_recv", 16), ("post_srq_recv", 16)):
            command = BY_LABEL[label]
            case = calls.Case(f"post.{label}.sizes")
            session = Session(self.facts, case)
            session.need("context", *command.needs)
            variants = []
            for size in (0, 1, 8, 15, 16, 24, 48, 55, 56, 57, 64, 128, 0x7fffffff, 0xffffffff):
                variants.append((f"wqe_size={size}", {"wqe_size": size}, b""))
                variants.append((f"wr1.wqe_size={size}", {"wqe_size": size, "wr_count": 1},
                                 bytes(min(size, 128))))
            for count in (0, 1, 2, 0x7fffffff, 0xffffffff):
                for sges in (0, 1, 0x10000000, 0xffffffff):
                    for tail in (0, record, record + 16, 2 * record + 32):
                        variants.append((f"wr{count}.sge{sges}.tail{tail}",
                                         {"wr_count": count, "sge_count": sges}, bytes(tail)))
            for name, values, tail in self.shuffled(variants):
                fields = session._body(command, Shape(values=values))
                session.write(name, command, Shape(body=fields + tail))
            yield case
        for qp_type in ("rc", "ud"):
            case = calls.Case(f"post.post_send.opcodes_{qp_type}")
            session = Session(self.facts, case)
            session.need("context", "pd", "cq")
            for state in ("reset", "rts"):
                self.bring(session, qp_type, state)
                command = BY_LABEL["post_send"]
                for opcode in self.shuffled([*range(0, 18), 255]):
                    head = session._body(command, Shape(values={"qp_handle": "$q", "wr_count": 1}))
                    work = calls.struct(self.facts, "ib_uverbs_send_wr",
                                        {"wr_id": 1, "opcode": opcode})
                    session.write(f"{state}.opcode{opcode}", command, Shape(body=head + work))
            yield case

    def all(self):
        yield from self.transitions()
        yield from self.values()
        yield from self.extended()
        yield from self.kinds()
        yield from self.srq_limits()
        yield from self.posting()
