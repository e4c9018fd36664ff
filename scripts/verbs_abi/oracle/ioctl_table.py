# SPDX-License-Identifier: BSD-2-Clause
"""The ioctl methods: their attributes, and a request that works on rxe where there is one.

Which objects, methods and attributes a kernel knows is read from its facts; what kind an attribute
is and what a working request holds stands here. Attributes that are not listed are probed all the
same, as 8-byte inputs.
"""

import dataclasses

from verbs_abi.oracle.calls import Blob
from verbs_abi.oracle.write_table import USER_HANDLE


@dataclasses.dataclass(frozen=True)
class Spec:
    """One attribute. kind: new, idr, fd, rawfd, in, out, const, flags, enum."""

    name: str  # without UVERBS_ATTR_
    kind: str
    value: object = 0  # what a working request holds
    size: int = 8  # in, out
    optional: bool = False
    mask: str = ""  # rule for a reply's bytes


@dataclasses.dataclass(frozen=True)
class Method:
    object: str  # without UVERBS_OBJECT_
    name: str  # without UVERBS_METHOD_
    specs: tuple
    needs: tuple = ("context",)
    consumes: bool = False
    driver_out: str = ""
    driver_masks: tuple = ()
    gives: str = ""  # symbol of the new handle

    @property
    def label(self):
        return f"{self.object.lower()}.{self.name.lower()}"


def new(name):
    return Spec(name, "new")


def idr(name, value, optional=False):
    return Spec(name, "idr", value, optional=optional)


def fd(name, value, optional=False):
    return Spec(name, "fd", value, optional=optional)


def get(name, size, value, optional=False):
    return Spec(name, "in", value, size, optional)


def out(name, size, optional=False, mask=""):
    return Spec(name, "out", 0, size, optional, mask)


def const(name, value, optional=False):
    return Spec(name, "const", value, optional=optional)


def flags(name, value=0, optional=True):
    return Spec(name, "flags", value, optional=optional)


QP_CAP = bytes.fromhex("10000000" "10000000" "01000000" "01000000" "00000000")


SGE = Blob.of("&data") + Blob.of(4096, 4) + Blob.of("$lkey", 4)


def destroy(object_name, method, attribute, needs, symbol, resp="", size=0):
    specs = (idr(attribute, symbol),) + ((out(resp, size),) if resp else ())
    return Method(object_name, method, specs, needs=needs, consumes=True)


METHODS = (
    Method("DEVICE", "GET_CONTEXT", (out("GET_CONTEXT_NUM_COMP_VECTORS", 4, True),
                                     out("GET_CONTEXT_CORE_SUPPORT", 8, True)),
           needs=("fd",), consumes=True),
    Method("DEVICE", "QUERY_CONTEXT", (out("QUERY_CONTEXT_NUM_COMP_VECTORS", 4, True),
                                       out("QUERY_CONTEXT_CORE_SUPPORT", 8, True))),
    Method("DEVICE", "INFO_HANDLES", (const("INFO_OBJECT_ID", 1),
                                      out("INFO_TOTAL_HANDLES", 4, True),
                                      out("INFO_HANDLES_LIST", 16, True)), needs=("pd", "cq")),
    Method("DEVICE", "QUERY_PORT", (const("QUERY_PORT_PORT_NUM", 1), out("QUERY_PORT_RESP", 48))),
    Method("DEVICE", "QUERY_PORT_SPEED", (const("QUERY_PORT_SPEED_PORT_NUM", 1),
                                          out("QUERY_PORT_SPEED_RESP", 8))),
    Method("DEVICE", "QUERY_GID_TABLE", (const("QUERY_GID_TABLE_ENTRY_SIZE", 32),
                                         flags("QUERY_GID_TABLE_FLAGS"),
                                         out("QUERY_GID_TABLE_RESP_ENTRIES", 128),
                                         out("QUERY_GID_TABLE_RESP_NUM_ENTRIES", 8))),
    Method("DEVICE", "QUERY_GID_ENTRY", (const("QUERY_GID_ENTRY_PORT", 1),
                                         const("QUERY_GID_ENTRY_GID_INDEX", 0),
                                         flags("QUERY_GID_ENTRY_FLAGS", 0, False),
                                         out("QUERY_GID_ENTRY_RESP_ENTRY", 32))),
    Method("DEVICE", "QUERY_COMP_CNTR_CAPS", (out("QUERY_COMP_CNTR_CAPS_MAX_COUNTERS", 4, True),
                                              out("QUERY_COMP_CNTR_CAPS_MAX_VALUE", 8, True))),
    Method("ASYNC_EVENT", "ASYNC_EVENT_ALLOC", (Spec("ASYNC_EVENT_ALLOC_FD_HANDLE", "new"),)),
    Method("CQ", "CQ_CREATE", (new("CREATE_CQ_HANDLE"), get("CREATE_CQ_CQE", 4, 16),
                               get("CREATE_CQ_USER_HANDLE", 8, USER_HANDLE),
                               get("CREATE_CQ_COMP_VECTOR", 4, 0),
                               flags("CREATE_CQ_FLAGS"), out("CREATE_CQ_RESP_CQE", 4),
                               fd("CREATE_CQ_COMP_CHANNEL", "$channel", True),
                               fd("CREATE_CQ_EVENT_FD", "$async", True)),
           needs=("context", "channel"), driver_out="rxe_create_cq_resp",
           driver_masks=("mi.offset:offset", "cq_id:random")),
    destroy("CQ", "CQ_DESTROY", "DESTROY_CQ_HANDLE", ("cq",), "$cq", "DESTROY_CQ_RESP", 8),
    Method("QP", "QP_CREATE", (new("CREATE_QP_HANDLE"), idr("CREATE_QP_PD_HANDLE", "$pd"),
                               idr("CREATE_QP_SEND_CQ_HANDLE", "$cq"),
                               idr("CREATE_QP_RECV_CQ_HANDLE", "$cq"),
                               idr("CREATE_QP_SRQ_HANDLE", "$srq", True),
                               get("CREATE_QP_USER_HANDLE", 8, USER_HANDLE),
                               get("CREATE_QP_CAP", 20, QP_CAP), const("CREATE_QP_TYPE", 2),
                               flags("CREATE_QP_FLAGS"),
                               get("CREATE_QP_SOURCE_QPN", 4, 0, True),
                               fd("CREATE_QP_EVENT_FD", "$async", True),
                               out("CREATE_QP_RESP_CAP", 20),
                               out("CREATE_QP_RESP_QP_NUM", 4, mask="qpn")),
           needs=("pd", "cq", "srq"), driver_out="rxe_create_qp_resp",
           driver_masks=("rq_mi.offset:offset", "sq_mi.offset:offset")),
    destroy("QP", "QP_DESTROY", "DESTROY_QP_HANDLE", ("qp",), "$qp", "DESTROY_QP_RESP", 4),
    Method("QP", "QP_ATTACH_COMP_CNTR", (idr("QP_ATTACH_COMP_CNTR_HANDLE", "$qp"),
                                         idr("QP_ATTACH_COMP_CNTR_CNTR_HANDLE", "$pd"),
                                         flags("QP_ATTACH_COMP_CNTR_OP_MASK", 1, False)),
           needs=("qp",)),
    Method("SRQ", "SRQ_CREATE", (new("CREATE_SRQ_HANDLE"), idr("CREATE_SRQ_PD_HANDLE", "$pd"),
                                 const("CREATE_SRQ_TYPE", 0),
                                 get("CREATE_SRQ_USER_HANDLE", 8, USER_HANDLE),
                                 get("CREATE_SRQ_MAX_WR", 4, 16),
                                 get("CREATE_SRQ_MAX_SGE", 4, 1), get("CREATE_SRQ_LIMIT", 4, 0),
                                 get("CREATE_SRQ_MAX_NUM_TAGS", 4, 0, True),
                                 idr("CREATE_SRQ_CQ_HANDLE", "$cq", True),
                                 fd("CREATE_SRQ_EVENT_FD", "$async", True),
                                 out("CREATE_SRQ_RESP_MAX_WR", 4),
                                 out("CREATE_SRQ_RESP_MAX_SGE", 4),
                                 out("CREATE_SRQ_RESP_SRQ_NUM", 4, True, "srqn")),
           needs=("pd", "cq"), driver_out="rxe_create_srq_resp",
           driver_masks=("mi.offset:offset", "srq_num:srqn")),
    destroy("SRQ", "SRQ_DESTROY", "DESTROY_SRQ_HANDLE", ("srq",), "$srq", "DESTROY_SRQ_RESP", 4),
    Method("WQ", "WQ_CREATE", (new("CREATE_WQ_HANDLE"), idr("CREATE_WQ_PD_HANDLE", "$pd"),
                               const("CREATE_WQ_TYPE", 0),
                               get("CREATE_WQ_USER_HANDLE", 8, USER_HANDLE),
                               get("CREATE_WQ_MAX_WR", 4, 16), get("CREATE_WQ_MAX_SGE", 4, 1),
                               flags("CREATE_WQ_FLAGS", 0, False),
                               idr("CREATE_WQ_CQ_HANDLE", "$cq"),
                               out("CREATE_WQ_RESP_MAX_WR", 4), out("CREATE_WQ_RESP_MAX_SGE", 4)),
           needs=("pd", "cq")),
    destroy("WQ", "WQ_DESTROY", "DESTROY_WQ_HANDLE", ("pd",), "$pd", "DESTROY_WQ_RESP", 4),
    destroy("PD", "PD_DESTROY", "DESTROY_PD_HANDLE", ("pd",), "$pd"),
    destroy("AH", "AH_DESTROY", "DESTROY_AH_HANDLE", ("ah",), "$ah"),
    destroy("MW", "MW_DESTROY", "DESTROY_MW_HANDLE", ("mw",), "$mw"),
    destroy("FLOW", "FLOW_DESTROY", "DESTROY_FLOW_HANDLE", ("pd",), "$pd"),
    destroy("XRCD", "XRCD_DESTROY", "DESTROY_XRCD_HANDLE", ("pd",), "$pd"),
    destroy("RWQ_IND_TBL", "RWQ_IND_TBL_DESTROY", "DESTROY_RWQ_IND_TBL_HANDLE", ("pd",), "$pd"),
    destroy("FLOW_ACTION", "FLOW_ACTION_DESTROY", "DESTROY_FLOW_ACTION_HANDLE", ("pd",), "$pd"),
    destroy("MR", "MR_DESTROY", "DESTROY_MR_HANDLE", ("mr",), "$mr"),
    Method("MR", "ADVISE_MR", (idr("ADVISE_MR_PD_HANDLE", "$pd"), const("ADVISE_MR_ADVICE", 0),
                               flags("ADVISE_MR_FLAGS", 0, False),
                               get("ADVISE_MR_SGE_LIST", 16, SGE)), needs=("mr",)),
    Method("MR", "QUERY_MR", (idr("QUERY_MR_HANDLE", "$mr"),
                              out("QUERY_MR_RESP_LKEY", 4, mask="key"),
                              out("QUERY_MR_RESP_RKEY", 4, mask="key"),
                              out("QUERY_MR_RESP_LENGTH", 8),
                              out("QUERY_MR_RESP_IOVA", 8, True, "addr")), needs=("mr",)),
    Method("MR", "DM_MR_REG", (new("REG_DM_MR_HANDLE"), get("REG_DM_MR_OFFSET", 8, 0),
                               get("REG_DM_MR_LENGTH", 8, 4096), idr("REG_DM_MR_PD_HANDLE", "$pd"),
                               flags("REG_DM_MR_ACCESS_FLAGS", 1, False),
                               idr("REG_DM_MR_DM_HANDLE", "$pd"),
                               out("REG_DM_MR_RESP_LKEY", 4, mask="key"),
                               out("REG_DM_MR_RESP_RKEY", 4, mask="key")), needs=("pd",)),
    Method("MR", "REG_DMABUF_MR", (new("REG_DMABUF_MR_HANDLE"),
                                   idr("REG_DMABUF_MR_PD_HANDLE", "$pd"),
                                   get("REG_DMABUF_MR_OFFSET", 8, 0),
                                   get("REG_DMABUF_MR_LENGTH", 8, 4096),
                                   get("REG_DMABUF_MR_IOVA", 8, 0),
                                   get("REG_DMABUF_MR_FD", 4, 0),
                                   flags("REG_DMABUF_MR_ACCESS_FLAGS", 1, False),
                                   out("REG_DMABUF_MR_RESP_LKEY", 4, mask="key"),
                                   out("REG_DMABUF_MR_RESP_RKEY", 4, mask="key")), needs=("pd",)),
    Method("MR", "REG_MR", (new("REG_MR_HANDLE"), idr("REG_MR_PD_HANDLE", "$pd"),
                            get("REG_MR_IOVA", 8, "&data"), get("REG_MR_LENGTH", 8, 4096),
                            flags("REG_MR_ACCESS_FLAGS", 1, False),
                            get("REG_MR_ADDR", 8, "&data"),
                            out("REG_MR_RESP_LKEY", 4, mask="key"),
                            out("REG_MR_RESP_RKEY", 4, mask="key"),
                            idr("REG_MR_DMA_HANDLE", "$pd", True),
                            get("REG_MR_FD_OFFSET", 8, 0, True),
                            Spec("REG_MR_FD", "rawfd", 0, optional=True)), needs=("pd", "data")),
    Method("DM", "DM_ALLOC", (new("ALLOC_DM_HANDLE"), get("ALLOC_DM_LENGTH", 8, 4096),
                              get("ALLOC_DM_ALIGNMENT", 4, 0))),
    destroy("DM", "DM_FREE", "FREE_DM_HANDLE", ("pd",), "$pd"),
    Method("COUNTERS", "COUNTERS_CREATE", (new("CREATE_COUNTERS_HANDLE"),)),
    destroy("COUNTERS", "COUNTERS_DESTROY", "DESTROY_COUNTERS_HANDLE", ("pd",), "$pd"),
    Method("COUNTERS", "COUNTERS_READ", (idr("READ_COUNTERS_HANDLE", "$pd"),
                                         out("READ_COUNTERS_BUFF", 32),
                                         flags("READ_COUNTERS_FLAGS")), needs=("pd",)),
    Method("DMAH", "DMAH_ALLOC", (new("ALLOC_DMAH_HANDLE"),
                                  get("ALLOC_DMAH_CPU_ID", 4, 0, True),
                                  get("ALLOC_DMAH_PH", 1, 0, True))),
    destroy("DMAH", "DMAH_FREE", "FREE_DMA_HANDLE", ("pd",), "$pd"),
    Method("DMABUF", "DMABUF_ALLOC", (Spec("ALLOC_DMABUF_HANDLE", "new"),
                                      get("ALLOC_DMABUF_PGOFF", 8, 0))),
    Method("COMP_CNTR", "COMP_CNTR_CREATE", (new("CREATE_COMP_CNTR_HANDLE"),)),
    destroy("COMP_CNTR", "COMP_CNTR_DESTROY", "DESTROY_COMP_CNTR_HANDLE", ("pd",), "$pd"),
    Method("COMP_CNTR", "COMP_CNTR_MODIFY", (idr("MODIFY_COMP_CNTR_HANDLE", "$pd"),
                                             const("MODIFY_COMP_CNTR_ENTRY", 0),
                                             const("MODIFY_COMP_CNTR_OP", 0),
                                             get("MODIFY_COMP_CNTR_VALUE", 8, 0)), needs=("pd",)),
    Method("COMP_CNTR", "COMP_CNTR_READ", (idr("READ_COMP_CNTR_HANDLE", "$pd"),
                                           const("READ_COMP_CNTR_ENTRY", 0),
                                           out("READ_COMP_CNTR_RESP_VALUE", 8)), needs=("pd",)),
)
