# SPDX-License-Identifier: BSD-2-Clause
"""Recordings: packed, unpacked, replaced whole; dumps as answers."""

import concurrent.futures
import json

import pytest

from verbs_abi.oracle import dumps, kernels, record, store

ANSWERS = {"write.a.length:setup": "fd 0", "write.a.length:exact": "16 0 r+0=00",
           "write.a.length:setup~2": "-1 EBUSY", "write.a.length:in+4.x": "-1 EINVAL",
           "write.a.length:end": "exit 0", "ioctl.b.c.attr_d:len=1": "-1 EINVAL",
           "ioctl.b.c.attr_d:end": "exit 0"}


def test_packing_keeps_everything_but_set_up_calls_that_worked():
    back = store.unpack(store.pack(ANSWERS))
    assert back == {name: answer for name, answer in ANSWERS.items()
                    if name != "write.a.length:setup"}


def test_a_recording_takes_the_old_ones_place_whole(tmp_path):
    recording = store.Recording("k", tmp_path)
    assert not recording.exists()
    recording.replace(ANSWERS, "list one", 0, {"p": "1"}, {"netlink.txt": "x\n", "old.txt": ""}, {})
    about = recording.replace({"a:b": "0 0"}, "list two", 3, {"p": "2"}, {"netlink.txt": "y\n"}, {})
    assert recording.answers() == {"a:b": "0 0"}
    assert recording.about() == about and about["calls"] == 1 and about["seed"] == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k"]
    assert not (recording.folder / "old.txt").exists()


def test_two_that_store_the_same_recording_at_once_take_turns(tmp_path, monkeypatch):
    monkeypatch.setenv("VERBS_ABI_CACHE", str(tmp_path / "cache"))
    recording = store.Recording("k", tmp_path / "room")
    files = {f"userland-{number}.txt": "x" for number in range(40)}

    def often(seed):
        for _ in range(20):
            recording.replace({"a:b": "0 0"}, "list", seed, {}, files, {})

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(often, range(4)))  # raises where one takes the other's folder away
    assert sorted(path.name for path in (tmp_path / "room").iterdir()) == ["k"]
    assert len(list(recording.folder.iterdir())) == 43 and recording.answers() == {"a:b": "0 0"}


@pytest.mark.parametrize("name, text, said", (
    ("answers.txt", "case a\nb 0 0\n", "answers.txt holds the answers of 1 calls, 2 were recorded"),
    ("answers.txt", "", "answers.txt holds the answers of 0 calls, 2 were recorded"),
    ("answers.txt", b"\xff\xfe", "answers.txt cannot be read"),
    ("answers.txt", None, "answers.txt cannot be read: No such file"),
    ("recording.json", "{\"kernel\": ", "recording.json is broken"),
    ("recording.json", "[]", "recording.json is broken"),
    ("recording.json", "{\"seed\": 0}", "recording.json is broken: 'packages'"),
    ("recording.json", "SEED", "recording.json is broken: seed")))
def test_a_recording_that_is_cut_short_or_broken_is_told_with_its_file(tmp_path, name, text, said):
    recording = store.Recording("k", tmp_path)
    recording.replace({"a:b": "0 0", "a:c": "0 0"}, "list", 0, {}, {}, {})
    assert len(recording.answers()) == 2
    path = recording.folder / name
    if text == "SEED":
        text = json.dumps({**json.loads(path.read_text()), "seed": "none"})
    path.unlink()
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(kernels.OracleError) as error:
        recording.answers()
    assert said in str(error.value) and str(recording.folder) in str(error.value)


def test_calls_that_crashed_are_known_again_only_for_the_same_package_and_call(tmp_path):
    recording = store.Recording("k", tmp_path)
    recording.replace(ANSWERS, "list", 0, {"p": "1"}, {},
                      {"case:bad": {"case": "d1", "console": "BUG"}})
    assert recording.lethal({"case": "d1"}, {"p": "1"}) == {
        "case:bad": {"case": "d1", "console": "BUG"}}
    assert recording.lethal({"case": "d2"}, {"p": "1"}) == {}
    assert recording.lethal({"case": "d1"}, {"p": "2"}) == {}


def test_only_changed_cases_are_asked_again_and_merged_in_the_lists_order():
    text = "case a\ncall 1 close 1\ncase b\ncall 1 close 2\ncase c\ncall 1 close 3\n"
    digests = store.case_digests(text)
    assert list(digests) == ["a", "b", "c"] and len(set(digests.values())) == 3
    assert record.only_cases(text, ["b"]) == "case b\ncall 1 close 2\n"
    assert record.only_cases(text, digests) == text
    old = {"a:1": "old", "b:1": "old", "gone:1": "old", "c:1": "old"}
    assert list(record.merged(digests, ["b"], old, {"b:1": "new"}).items()) == [
        ("a:1", "old"), ("b:1", "new"), ("c:1", "old")]


def test_netlink_dumps_become_one_answer_a_question():
    text = ("netlink get.dump\n reply type 0x1401 flags 0x2 len 8\n    attr 1 len 4 00000000\n"
            " done 0 flags 0x2 len 4\nnetlink chardev.x\n    attr 72 len 8 7c0a000000000000\n"
            "netlink chardev.y\n    attr 72 len 8 040a100000000000\n"
            "netlink chardev.z\n    attr 72 len 8 c0e7000000000000\n")
    assert dumps.netlink(text) == {
        "netlink:get.dump": "reply type 0x1401 flags 0x2 len 8; attr 1 len 4 00000000; "
                            "done 0 flags 0x2 len 4",
        "netlink:chardev.x": "attr 72 len 8 [minor]", "netlink:chardev.y": "attr 72 len 8 [minor]",
        "netlink:chardev.z": "attr 72 len 8 c0e7000000000000"}


def test_counters_in_sysfs_are_compared_without_their_values():
    text = 'file /s/rxe0/fw_ver 0444 "\\n"\nfile /s/ports/1/hw_counters/sent 0444 "12\\n"\nfolder /s \n'
    assert dumps.tree(text) == {"sysfs:/s/rxe0/fw_ver file": '0444 "\\n"',
                                "sysfs:/s/ports/1/hw_counters/sent file": "0444",
                                "sysfs:/s folder": ""}


def test_devinfo_is_compared_label_by_label():
    text = dumps.section("== deb-1 ibv_devices\nx: 1\n== deb-1 ibv_devinfo -v\nhca_id:\trxe0\n"
                         "\tGID[  0]:\t\tfe80::1, RoCE v2\n\tGID[  0]:\tb\nstatus 0\n== deb-1 y\nz: 1\n",
                         "deb-1 ibv_devinfo -v")
    assert dumps.devinfo("deb-1", text) == {
        "program:deb-1 hca_id": "rxe0", "program:deb-1 GID[_0]": "fe80::1, RoCE v2",
        "program:deb-1 GID[_0]~2": "b", "program:deb-1 status_0": ""}
