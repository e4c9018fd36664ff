# SPDX-License-Identifier: BSD-2-Clause
"""The write() commands: their structs, a request that works on rxe, and what comes back.

What a command is made of (names, numbers, structs) is read from the facts. What a working request
holds is knowledge of verbs and stands here, once, for write(), INVOKE_WRITE and all variants.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Command:
    """One command of the write interface."""

    name: str  # as in IB_USER_VERBS_CMD_… or IB_USER_VERBS_EX_CMD_…
    request: str  # struct, without the prefix ib_uverbs_
    reply: str = ""
    extended: bool = False
    needs: tuple = ()  # objects that must be there before
    values: dict = dataclasses.field(default_factory=dict)
    driver_in: str = ""  # rxe's struct, siw's where rxe has none
    driver_out: str = ""
    gives: dict = dataclasses.field(default_factory=dict)  # symbol: reply field
    masks: dict = dataclasses.field(default_factory=dict)  # reply field: rule
    driver_masks: tuple = ()  # fields of rxe's reply that are mmap offsets and the like
    consumes: bool = False  # a second time it would meet a destroyed object
    tail: object = None  # what follows the struct, as a blob maker

    @property
    def number_name(self):
        return f"IB_USER_VERBS_{'EX_' if self.extended else ''}CMD_{self.name}"

    @property
    def label(self):
        return f"{'ex_' if self.extended else ''}{self.name.lower()}"


USER_HANDLE = 0x1122334455667788

QP_CAPS = {"max_send_wr": 16, "max_recv_wr": 16, "max_send_sge": 1, "max_recv_sge": 1,
           "max_inline_data": 0}
QP = {"user_handle": USER_HANDLE, "pd_handle": "$pd", "send_cq_handle": "$cq",
      "recv_cq_handle": "$cq", "qp_type": 2, **QP_CAPS}
# IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS: RESET to INIT
TO_INIT = {"qp_handle": "$qp", "attr_mask": 0x1 | 0x10 | 0x20 | 0x8, "qp_state": 1, "port_num": 1}
AH = {"user_handle": USER_HANDLE, "pd_handle": "$pd", "attr.is_global": 1, "attr.port_num": 1,
      "attr.grh.sgid_index": 1, "attr.grh.hop_limit": 1,
      "attr.grh.dgid": bytes.fromhex("00000000000000000000ffff0a000001")}

COMMANDS = (
    Command("GET_CONTEXT", "get_context", "get_context_resp", gives={"async": "async_fd"},
            masks={"async_fd": "fd"}, consumes=True, driver_out="siw_uresp_alloc_ctx"),
    Command("QUERY_DEVICE", "query_device", "query_device_resp",
            needs=("context",), masks={"node_guid": "guid", "sys_image_guid": "guid"}),
    Command("QUERY_PORT", "query_port", "query_port_resp", needs=("context",),
            values={"port_num": 1}),
    Command("ALLOC_PD", "alloc_pd", "alloc_pd_resp", needs=("context",),
            gives={"pd": "pd_handle"}),
    Command("DEALLOC_PD", "dealloc_pd", needs=("pd",), values={"pd_handle": "$pd"}, consumes=True),
    Command("CREATE_AH", "create_ah", "create_ah_resp", needs=("pd",), values=AH,
            driver_out="rxe_create_ah_resp", driver_masks=("ah_num:ah",),
            gives={"ah": "ah_handle"}),
    Command("DESTROY_AH", "destroy_ah", needs=("ah",), values={"ah_handle": "$ah"}, consumes=True),
    Command("REG_MR", "reg_mr", "reg_mr_resp", needs=("pd", "data"),
            values={"start": "&data", "length": 4096, "hca_va": "&data", "pd_handle": "$pd",
                    "access_flags": 7},
            gives={"mr": "mr_handle", "lkey": "lkey"}, masks={"lkey": "key", "rkey": "key"},
            driver_in="siw_ureq_reg_mr", driver_out="siw_uresp_reg_mr",
            driver_masks=("stag:key",)),
    Command("REREG_MR", "rereg_mr", "rereg_mr_resp", needs=("mr",),
            values={"mr_handle": "$mr", "flags": 4, "start": "&data", "length": 4096,
                    "hca_va": "&data", "pd_handle": "$pd", "access_flags": 1},
            masks={"lkey": "key", "rkey": "key"}),
    Command("DEREG_MR", "dereg_mr", needs=("mr",), values={"mr_handle": "$mr"}, consumes=True),
    Command("ALLOC_MW", "alloc_mw", "alloc_mw_resp", needs=("pd",),
            values={"pd_handle": "$pd", "mw_type": 1}, gives={"mw": "mw_handle"},
            masks={"rkey": "key"}),
    Command("DEALLOC_MW", "dealloc_mw", needs=("mw",), values={"mw_handle": "$mw"}, consumes=True),
    Command("CREATE_COMP_CHANNEL", "create_comp_channel", "create_comp_channel_resp",
            needs=("context",), gives={"channel": "fd"}, masks={"fd": "fd"}),
    Command("CREATE_CQ", "create_cq", "create_cq_resp", needs=("context",),
            values={"user_handle": USER_HANDLE, "cqe": 16, "comp_channel": -1},
            driver_out="rxe_create_cq_resp", driver_masks=("mi.offset:offset", "cq_id:random"),
            gives={"cq": "cq_handle"}),
    Command("RESIZE_CQ", "resize_cq", "resize_cq_resp", needs=("cq",),
            values={"cq_handle": "$cq", "cqe": 32}, driver_out="rxe_resize_cq_resp",
            driver_masks=("mi.offset:offset",)),
    Command("DESTROY_CQ", "destroy_cq", "destroy_cq_resp", needs=("cq",),
            values={"cq_handle": "$cq"}, consumes=True),
    Command("POLL_CQ", "poll_cq", "poll_cq_resp", needs=("cq",),
            values={"cq_handle": "$cq", "ne": 1}),
    Command("PEEK_CQ", "req_notify_cq", needs=("cq",), values={"cq_handle": "$cq"}),
    Command("REQ_NOTIFY_CQ", "req_notify_cq", needs=("cq",), values={"cq_handle": "$cq"}),
    Command("CREATE_QP", "create_qp", "create_qp_resp", needs=("pd", "cq"), values=QP,
            driver_out="rxe_create_qp_resp",
            driver_masks=("rq_mi.offset:offset", "sq_mi.offset:offset"),
            gives={"qp": "qp_handle", "qpn": "qpn"}, masks={"qpn": "qpn"}),
    Command("QUERY_QP", "query_qp", "query_qp_resp", needs=("qp",),
            values={"qp_handle": "$qp", "attr_mask": 0x1fffff}),
    Command("MODIFY_QP", "modify_qp", needs=("qp",), values=TO_INIT),
    Command("DESTROY_QP", "destroy_qp", "destroy_qp_resp", needs=("qp",),
            values={"qp_handle": "$qp"}, consumes=True),
    Command("POST_SEND", "post_send", "post_send_resp", needs=("qp",),
            values={"qp_handle": "$qp", "wqe_size": 56}),
    Command("POST_RECV", "post_recv", "post_recv_resp", needs=("qp",),
            values={"qp_handle": "$qp", "wqe_size": 16}),
    Command("ATTACH_MCAST", "attach_mcast", needs=("udqp",),
            values={"qp_handle": "$udqp", "mlid": 0xc001,
                    "gid": bytes.fromhex("ff0e000000000000000000000000000a")}),
    Command("DETACH_MCAST", "detach_mcast", needs=("udqp",),
            values={"qp_handle": "$udqp", "mlid": 0xc001,
                    "gid": bytes.fromhex("ff0e000000000000000000000000000a")}),
    Command("CREATE_SRQ", "create_srq", "create_srq_resp", needs=("pd",),
            values={"user_handle": USER_HANDLE, "pd_handle": "$pd", "max_wr": 16, "max_sge": 1},
            driver_out="rxe_create_srq_resp",
            driver_masks=("mi.offset:offset", "srq_num:srqn"),
            gives={"srq": "srq_handle"}, masks={"srqn": "srqn"}),
    Command("MODIFY_SRQ", "modify_srq", needs=("srq",),
            values={"srq_handle": "$srq", "attr_mask": 2, "srq_limit": 1},
            driver_in="rxe_modify_srq_cmd"),
    Command("QUERY_SRQ", "query_srq", "query_srq_resp", needs=("srq",),
            values={"srq_handle": "$srq"}),
    Command("DESTROY_SRQ", "destroy_srq", "destroy_srq_resp", needs=("srq",),
            values={"srq_handle": "$srq"}, consumes=True),
    Command("POST_SRQ_RECV", "post_srq_recv", "post_srq_recv_resp", needs=("srq",),
            values={"srq_handle": "$srq", "wqe_size": 16}),
    Command("OPEN_XRCD", "open_xrcd", "open_xrcd_resp", needs=("context",),
            values={"fd": -1, "oflags": 0o100}, gives={"xrcd": "xrcd_handle"}),
    Command("CLOSE_XRCD", "close_xrcd", needs=("context",), values={"xrcd_handle": 0}),
    Command("CREATE_XSRQ", "create_xsrq", "create_srq_resp", needs=("pd", "cq"),
            values={"user_handle": USER_HANDLE, "srq_type": 0, "pd_handle": "$pd", "max_wr": 16,
                    "max_sge": 1},
            driver_out="rxe_create_srq_resp",
            driver_masks=("mi.offset:offset", "srq_num:srqn"), masks={"srqn": "srqn"}),
    Command("OPEN_QP", "open_qp", "create_qp_resp", needs=("qp",),
            values={"user_handle": USER_HANDLE, "pd_handle": "$pd", "qpn": "$qpn", "qp_type": 3}),
    Command("QUERY_DEVICE", "ex_query_device", "ex_query_device_resp", extended=True,
            needs=("context",), masks={"base.node_guid": "guid", "base.sys_image_guid": "guid"}),
    Command("CREATE_CQ", "ex_create_cq", "ex_create_cq_resp", extended=True, needs=("context",),
            values={"user_handle": USER_HANDLE, "cqe": 16, "comp_channel": -1},
            driver_out="rxe_create_cq_resp", driver_masks=("mi.offset:offset", "cq_id:random"),
            gives={"cq": "base.cq_handle"}),
    Command("CREATE_QP", "ex_create_qp", "ex_create_qp_resp", extended=True, needs=("pd", "cq"),
            values=QP, driver_out="rxe_create_qp_resp",
            driver_masks=("rq_mi.offset:offset", "sq_mi.offset:offset"),
            masks={"base.qpn": "qpn"}),
    Command("MODIFY_QP", "ex_modify_qp", "ex_modify_qp_resp", extended=True, needs=("qp",),
            values={f"base.{field}": value for field, value in TO_INIT.items()}),
    Command("CREATE_FLOW", "create_flow", "create_flow_resp", extended=True, needs=("qp",),
            values={"qp_handle": "$qp", "flow_attr.port": 1}),
    Command("DESTROY_FLOW", "destroy_flow", extended=True, needs=("context",)),
    Command("CREATE_WQ", "ex_create_wq", "ex_create_wq_resp", extended=True, needs=("pd", "cq"),
            values={"user_handle": USER_HANDLE, "pd_handle": "$pd", "cq_handle": "$cq",
                    "max_wr": 16, "max_sge": 1}),
    Command("MODIFY_WQ", "ex_modify_wq", extended=True, needs=("context",),
            values={"attr_mask": 1}),
    Command("DESTROY_WQ", "ex_destroy_wq", "ex_destroy_wq_resp", extended=True,
            needs=("context",)),
    Command("CREATE_RWQ_IND_TBL", "ex_create_rwq_ind_table", "ex_create_rwq_ind_table_resp",
            extended=True, needs=("context",), tail=lambda: bytes(8)),
    Command("DESTROY_RWQ_IND_TBL", "ex_destroy_rwq_ind_table", extended=True, needs=("context",)),
    Command("MODIFY_CQ", "ex_modify_cq", extended=True, needs=("cq",),
            values={"cq_handle": "$cq", "attr_mask": 1, "attr.cq_count": 1, "attr.cq_period": 1}),
)

BY_LABEL = {command.label: command for command in COMMANDS}
