# SPDX-License-Identifier: BSD-2-Clause
import json

import pytest

from verbs_abi import errors, matrix, paths
from verbs_abi.userlands import ranges

OPS = """#include "x.h"
#define V_PCI(d) VERBS_PCI_MATCH(0x1, d, NULL)
static const struct verbs_match_ent hca_table[] = {{
\tVERBS_DRIVER_ID(RDMA_DRIVER_X),
\tV_PCI(2),
\t{{}}
}};
static const struct verbs_device_ops x_dev_ops = {{
\t.name = "xx",
\t.match_min_abi_version = {min},
\t.match_max_abi_version = {max},
\t.match_table = hca_table,
}};
"""


def tree(root, **numbers):
    (root / "providers/x").mkdir(parents=True)
    (root / "kernel-headers/rdma").mkdir(parents=True)
    (root / "kernel-headers/rdma/x-abi.h").write_text("#define X_SHARED 7\nenum { X_ENUM = 6 };\n")
    (root / "providers/x/x.h").write_text("#define X_OWN\t(5)\n#define X_INDIRECT X_OWN\n")
    (root / "providers/x/x.c").write_text(OPS.format(**numbers))
    return root


@pytest.mark.parametrize("text, value", [
    ("3", 3), ("INT_MAX", 2**31 - 1), ("X_OWN", 5), ("X_INDIRECT", 5), ("X_SHARED", 7), ("X_ENUM", 6),
    ("sizeof(void *) == 8?1:2", 1)])
def test_numbers_are_looked_up(tmp_path, text, value):
    rows = ranges.of_source(tree(tmp_path, min="0", max=text))
    assert rows == {"x": {"name": "xx", "min": 0, "max": value, "by": ["driver_id", "pci"],
                          "where": "providers/x/x.c:10"}}


def test_a_number_may_depend_on_the_width_of_a_pointer(tmp_path):
    source = tree(tmp_path, min="sizeof(void *) == 8?1:2", max="2")
    assert [ranges.of_source(source, arch)["x"]["min"] for arch in ("x86_64", "i386")] == [1, 2]


def test_an_unknown_number_is_an_error(tmp_path):
    with pytest.raises(errors.UserError, match="the value of NOWHERE is not in the source"):
        ranges.of_source(tree(tmp_path, min="NOWHERE", max="1"))


def test_a_tree_without_providers_is_an_error(tmp_path):
    (tmp_path / "providers").mkdir()
    with pytest.raises(errors.UserError, match="no provider"):
        ranges.of_source(tmp_path)


# As the releases ship them: 15, 17, 17 and 18 providers; i40iw's last release, ionic's first.
def test_every_release_has_its_table():
    counts = {}
    for path in sorted((paths.matrix_dir() / "negotiation").glob("*.json")):
        data = json.loads(path.read_text())
        assert data["name"] == path.stem and path.stem in matrix.names("userlands")
        counts[path.stem] = len(data["providers"])
        assert all(row["min"] <= row["max"] and row["by"] for row in data["providers"].values())
    assert counts == {"deb-33.2": 15, "deb-44.0": 17, "deb-44.0-i386": 17, "deb-56.1": 17, "deb-65.0": 18}
