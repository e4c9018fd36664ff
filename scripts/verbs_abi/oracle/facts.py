# SPDX-License-Identifier: BSD-2-Clause
"""A kernel's ABI facts (reference-headers/) as the call lists need them: sizes, fields, numbers."""

import dataclasses
import json

from verbs_abi.oracle import kernels

FOLDER = kernels.SOURCE_ROOT / "reference-headers"

# Where the calls of the probe are declared, beside the driver's own header.
HEADERS = ("rdma/ib_user_verbs.h", "rdma/ib_user_ioctl_cmds.h", "rdma/ib_user_ioctl_verbs.h",
           "rdma/rdma_user_ioctl_cmds.h", "rdma/rdma_netlink.h")


@dataclasses.dataclass(frozen=True)
class Driver:
    """structs: what stands for rxe's struct in a call, {rxe's: (own, {rxe's field: own field})}."""

    number: str
    header: str
    structs: dict = dataclasses.field(default_factory=dict)


# rxe is the driver that every recorded kernel can run; siw has to be built.
DRIVERS = {
    "rxe": Driver("RDMA_DRIVER_RXE", "rdma/rdma_user_rxe.h"),
    "siw": Driver("RDMA_DRIVER_SIW", "rdma/siw-abi.h", {
        "rxe_create_cq_resp": ("siw_uresp_create_cq", {"mi.offset": "cq_key", "cq_id": "cq_id"}),
        "rxe_create_qp_resp": ("siw_uresp_create_qp", {"rq_mi.offset": "rq_key",
                                                       "sq_mi.offset": "sq_key"}),
        "rxe_create_srq_resp": ("siw_uresp_create_srq", {"mi.offset": "srq_key"}),
    }),
}


class Facts:
    """Structs and enumerations of one snapshot."""

    def __init__(self, name, folder=FOLDER, driver="rxe"):
        index = json.loads((folder / f"{name}.json").read_text())
        self.name = name
        self.driver = driver
        self.structs = {}
        self.enums = {}
        self.numbers = {}
        # Session's: (file, command): lines before a set-up call, the call without its id. Of these facts alone:
        # another driver's replies have other lengths.
        self.set_up_lines = {}
        self._leaves = {}
        self._places = {}
        about = DRIVERS[driver]
        for header in (*HEADERS, about.header):
            digest = index["headers"].get(header)
            if digest:
                self._add(json.loads((folder / "headers" / f"{header}.{digest}.json").read_text()))
        self.driver_id = self.numbers[about.number]
        for name, (own, fields) in about.structs.items():
            self.structs[name] = self.structs[own]
            self._places[name] = {field: self.places(own)[place]
                                  for field, place in fields.items()}

    def _add(self, document):
        for decl in document["decls"]:
            for kind in ("struct", "union"):
                if decl.get(kind):
                    self.structs[decl[kind]] = decl
            if "enum" in decl:
                values = dict(decl["values"])
                self.numbers.update(values)
                name = decl["enum"] or "@" + next(iter(values), "")
                self.enums[name] = values
            if "macro" in decl and "value" in decl:
                self.numbers[decl["macro"]] = decl["value"]

    def has(self, struct):
        return struct in self.structs

    def size(self, struct):
        return self.structs[struct]["size"]

    def size_or_0(self, struct):
        return self.size(struct) if self.has(struct) else 0

    def number(self, name):
        return self.numbers[name]

    def fields(self, struct):
        """[(name, offset, size)] of the fixed part, in order; a nested struct is one field."""
        return [(field["n"], field["o"], field["s"]) for field in self.structs[struct]["fields"]
                if field.get("s") and field["o"] < self.size(struct)]

    def field(self, struct, name):
        for found, offset, size in self.fields(struct):
            if found == name:
                return offset, size
        raise KeyError(f"{self.name}: {struct} has no field {name}")

    def type_of(self, struct, name):
        for field in self.structs[struct]["fields"]:
            if field["n"] == name:
                return field["t"].removeprefix("struct ")
        raise KeyError(name)

    def leaves(self, struct):
        """Fields with nested structs opened: [(dotted name, offset, size)]."""
        if struct not in self._leaves:
            result = []
            for name, offset, size in self.fields(struct):
                inner = self.type_of(struct, name)
                if inner in self.structs and self.size(inner) == size:
                    result += [(f"{name}.{leaf}", offset + at, width)
                               for leaf, at, width in self.leaves(inner)]
                else:
                    result.append((name, offset, size))
            self._leaves[struct] = result
        return self._leaves[struct]

    def places(self, struct):
        """{name: (offset, size)} of leaves and of whole nested structs."""
        if struct not in self._places:
            self._places[struct] = {name: (offset, size) for name, offset, size in
                                    self.leaves(struct) + self.fields(struct)}
        return self._places[struct]
