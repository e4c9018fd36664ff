# SPDX-License-Identifier: BSD-2-Clause
"""The call lists' language, and that lists come out the same every time."""

import re

import pytest

from verbs_abi.oracle import calls, facts, generate, kernels, write_table
from verbs_abi.oracle.session import Attr, Session, Shape

KERNEL = "debian-6.1.192"


@pytest.fixture(scope="module", name="known")
def _known():
    return facts.Facts(KERNEL)


def test_a_blob_writes_runs_symbols_and_addresses():
    blob = calls.Blob.of(0x0201, 2) + calls.zeros(6) + calls.Blob.of("$pd", 4) + \
        calls.Blob.of("&r+4", 8) + calls.filled(7)
    assert blob.text() == "0102,0*6,$pd:4,&r+4,a5*7"
    assert len(blob) == 27


def test_an_empty_blob_is_a_dash():
    assert calls.Blob().text() == "-"


def test_putting_replaces_and_drops_what_stood_there():
    blob = calls.Blob.of("$pd", 4) + calls.Blob.of("$cq", 4)
    assert blob.put(0, 7, 4).text() == "07000000,$cq:4"
    assert blob.put(2, 1, 4).text() == "0000010000000000"


def test_cutting_through_a_symbol_leaves_zeros():
    blob = calls.Blob.of(b"\1\2") + calls.Blob.of("$pd", 4)
    assert blob.cut(4).text() == "01020000"
    assert blob.cut(6).text() == "0102,$pd:4"


def test_a_struct_takes_dotted_fields_and_leaves_unknown_ones_out(known):
    blob = calls.struct(known, "ib_uverbs_create_ah", {"attr.port_num": 9, "no_such_field": 1})
    offset, _ = known.places("ib_uverbs_create_ah")["attr.port_num"]
    assert blob.data[offset] == 9 and sum(blob.data) == 9
    assert len(blob) == known.size("ib_uverbs_create_ah")


def test_ids_within_a_case_are_made_unique():
    case = calls.Case("a")
    for _ in range(3):
        case.call("x", "close", 1)
    assert re.findall(r"call (\S+)", case.text()) == ["x", "x~2", "x~3"]


def test_a_legacy_write_counts_words_of_four_and_puts_the_reply_address_first(known):
    case = calls.Case("a")
    session = Session(known, case)
    session.made = {"fd", "context"}
    session.write("x", write_table.BY_LABEL["query_port"], Shape())
    request = [line for line in case.lines if line.startswith("mem q")][0].split(" ")[2]
    # QUERY_PORT is command 2; header and request are 24 bytes, the reply 40.
    assert request.startswith("0200000006000a00,&r,01")
    assert "write $A &q 24" in case.lines[-1]


def test_an_extended_write_counts_words_of_eight(known):
    case = calls.Case("a")
    session = Session(known, case)
    session.made = {"fd", "context"}
    session.write("x", write_table.BY_LABEL["ex_query_device"], Shape())
    request = [line for line in case.lines if line.startswith("mem q")][0].split(" ")[2]
    words = known.size("ib_uverbs_ex_query_device_resp") // 8
    assert request.startswith(f"01000080{1:02x}00{words:02x}00,&r")


def test_an_ioctl_has_24_bytes_of_header_and_16_an_attribute(known):
    case = calls.Case("a")
    session = Session(known, case)
    session.ioctl("x", 7, 8, [Attr(2, 8, 0x55), Attr(3, 0, "$h")])
    line = [line for line in case.lines if line.startswith("mem q")][0]
    # length 56, object 7, method 8, two attributes; driver 14 (rxe); attribute 2 with 8 bytes
    assert line == "mem q 38000700080002,0*9,0e,0*7,020008000100000055,0*7,0300000001000000,$h:8"


@pytest.mark.parametrize("kernel", list(kernels.table()))
def test_every_kernel_has_at_least_3000_calls_with_ids_of_their_own(kernel):
    ids, case = set(), ""
    count = 0
    for line in generate.call_list(kernel).splitlines():
        if line.startswith("case "):
            assert line not in ids
            case = line[5:]
            ids.add(line)
        elif line.startswith("call "):
            name = f"{case}:{line.split(' ')[1]}"
            assert name not in ids
            ids.add(name)
            count += not line.startswith("call setup")
    assert count >= 3000


def test_a_seed_changes_the_list_and_the_same_seed_does_not():
    plain = generate.call_list(KERNEL, only="ioctl.cq")
    one, again = (generate.call_list(KERNEL, 1, only="ioctl.cq") for _ in range(2))
    assert one == again
    assert one != plain
    assert generate.call_list(KERNEL, 2, only="ioctl.cq") != one


def test_a_seed_adds_values_lengths_and_flags_that_nobody_thought_of():
    def labels(seed, only):
        return set(re.findall(r"^call (\S+) ", generate.call_list(KERNEL, seed, only=only), re.MULTILINE))

    for only, wanted in (("write.create_qp.length", {"in_random0", "random_flag1", "random_in_words0"}),
                         ("write.modify_qp.field", {"attr_mask=random0"}),
                         ("invoke.ex_create_cq.length", {"core_random0", "in_random1"}),
                         ("ioctl.mr.advise_mr", {"flags=random", "value=random0", "len=random"}),
                         ("ioctl.device.query_port.header", {"length=random0", "driver_id=random1"})):
        found = labels(5, only)
        assert wanted <= found, only
        assert not [label for label in labels(0, only) if "random" in label]


def test_the_mask_rules_that_lists_use_are_explained():
    used = set(re.findall(r" mask=([a-z]+):", generate.call_list(KERNEL)))
    used |= set(re.findall(r" mask=([a-z]+):", generate.call_list("debian-6.12.117", driver="siw")))
    assert used and used <= set(calls.MASKS)


def test_nothing_of_the_recordings_is_read_for_a_list():
    # The list is made before anything is recorded, and on machines that have no recording.
    source = (kernels.SOURCE_ROOT / "scripts/verbs_abi/oracle")
    for name in ("generate", "calls", "session", "write_calls", "ioctl_calls", "life_calls",
                 "qp_calls", "data_calls", "write_table", "ioctl_table", "facts"):
        text = (source / f"{name}.py").read_text()
        assert "store" not in re.findall(r"from verbs_abi.oracle import (\w+)", text)


def test_siw_is_asked_with_its_own_driver_number_and_structs():
    known = facts.Facts("debian-6.12.117", driver="siw")
    assert known.driver_id == 18  # enum rdma_driver_id
    # struct siw_uresp_create_cq: cq_id, num_cqe, cq_key; the key is what is mapped.
    assert known.size("rxe_create_cq_resp") == 16
    assert known.places("rxe_create_cq_resp") == {"mi.offset": (8, 8), "cq_id": (0, 4)}
    text = generate.call_list("debian-6.12.117", only="write.create_cq.length", driver="siw")
    assert " mask=offset:r:16:8" in text  # behind ib_uverbs_create_cq_resp's 8 bytes
    # driver_id as the ioctl header has it
    ioctls = generate.call_list("debian-6.12.117", only="ioctl.pd", driver="siw")
    assert ",12,0*" in ioctls
    assert "data." not in generate.call_list("debian-6.12.117", only="data.", driver="siw")


def test_a_list_does_not_depend_on_what_was_made_before_it():
    def siw():
        return generate.call_list("debian-6.12.117", only="write.query_device", driver="siw")

    def rxe():
        return generate.call_list("debian-6.12.117", only="write.query_device")

    lists = rxe(), siw(), rxe(), siw()
    assert lists[:2] == lists[2:]
    # The first set-up call: GET_CONTEXT with room for ib_uverbs_get_context_resp, 8 bytes, and siw's own 8.
    replies = [text.split("mem r a5*", 1)[1].split("\n", 1)[0] for text in lists[:2]]
    assert replies == ["8", "16"]


def test_rxe_is_asked_without_siws_structs():
    known = facts.Facts("debian-6.12.117")
    assert known.driver_id == 14
    assert not known.has("siw_uresp_alloc_ctx") and not known.has("siw_ureq_reg_mr")
