# SPDX-License-Identifier: BSD-2-Clause
import pytest

from verbs_abi.facts.builds import causes

# As ninja and gcc 12 print it; names are those of rdma-core.
OUTPUT = """ninja: Entering directory `build'
[1/9] Building C object libibverbs/CMakeFiles/ibverbs.dir/init.c.o
FAILED: providers/rxe/CMakeFiles/rxe-rdmav34.dir/rxe.c.o
ccache cc -c rxe.c
/t/providers/rxe/rxe.c: In function ‘post’:
/t/providers/rxe/rxe.c:12:7: warning: unused variable ‘x’ [-Wunused-variable]
/t/providers/rxe/rxe.c:1000:32: error: ‘struct rxe_dma_info’ has no member named ‘atomic_wr’
/t/providers/rxe/rxe.c:1001:32: error: second
[3/9] Building C object b.o
FAILED: lib/libefa.so.1.3.44.0
: && cc -o lib/libefa.so.1.3.44.0
/usr/bin/ld: efa.c: undefined reference to `efa_missing'
ninja: build stopped: cannot make progress due to previous errors.
"""


def test_the_first_error_of_each_failed_step_is_told():
    first, second = causes.failures(OUTPUT)
    assert first.target == "rxe-rdmav34"
    assert first.error == "‘struct rxe_dma_info’ has no member named ‘atomic_wr’"
    assert first.cause == "missing field rxe_dma_info.atomic_wr"
    assert second.outputs == ("lib/libefa.so.1.3.44.0",)
    assert second.cause == "missing symbol efa_missing"


def test_a_build_without_failure_has_none():
    assert causes.failures("[1/2] a\n[2/2] b\n") == []


@pytest.mark.parametrize("error, cause", [
    ("#error rdma/mana-abi.h is not among these headers", "missing header rdma/mana-abi.h"),
    ("rdma/x.h: No such file or directory", "missing header rdma/x.h"),
    ("‘RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK’ undeclared (first use in this function)",
     "missing symbol RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK"),
    ("'struct a' has no member named 'b'; did you mean 'c'?", "missing field a.b"),
    ("storage size of ‘cmd’ isn’t known", "missing type cmd"),
    ("invalid application of ‘sizeof’ to incomplete type ‘struct hns_x’", "missing type hns_x"),
    ("invalid use of undefined type ‘const struct ib_uverbs_clock_info’", "missing type ib_uverbs_clock_info"),
    ("expected specifier-qualifier-list before ‘_STRUCT_mana_ib_resp’", "missing type mana_ib_resp"),
    ("field ‘uapi’ has incomplete type", "missing type uapi"),
    ("unknown type name ‘new_t’", "missing type new_t"),
    ('static assertion failed: "offset"', 'static assertion: "offset"'),
    ("implicit declaration of function ‘f’ [-Werror]", "missing symbol f"),
    ("redefinition of ‘struct s’", "declared twice: struct s"),
    ("expected ‘;’ before ‘}’ token", None),
])
def test_causes_come_from_the_compilers_words(error, cause):
    assert causes.cause_of(error) == cause
