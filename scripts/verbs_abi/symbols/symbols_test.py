# SPDX-License-Identifier: BSD-2-Clause
"""Symbols of the four real releases: the stored facts, dlvsym by each version, and Debian's minimum versions."""

import json
import os
import random
import subprocess

import pytest

from verbs_abi import cli, errors, userlands
from verbs_abi.symbols import compare, minimums, read

RELEASES = ("deb-33.2", "deb-44.0", "deb-56.1", "deb-65.0")

# Asks the dynamic linker for each symbol by each version node, for its own node's name under every other node of the
# library, and for a version that no library has.
DLVSYM = """
import ctypes, json, sys
find = ctypes.CDLL(None).dlvsym
find.restype = ctypes.c_void_p
find.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
asked = wrong = 0
for library, row in json.load(open(sys.argv[1])).items():
    handle = ctypes.CDLL(library)._handle
    for name, versions in row["symbols"].items():
        has = {version.rstrip("@") for version in versions}
        for node in [*row["nodes"], "NONE_9.9"]:
            asked += 1
            if (find(handle, name.encode(), node.encode()) is not None) != (node in has):
                wrong += 1
                print("wrong:", library, name, node)
print("asked", asked, "wrong", wrong)
"""


@pytest.fixture(name="release", params=RELEASES, scope="module")
def _release(request):
    return userlands.get(request.param)


def test_the_stored_facts_are_the_librarys(release):
    if release.substituted:
        pytest.skip("not at the pinned version")
    assert read.of_userland(release) == read.stored(release.name)


def test_dlvsym_finds_each_symbol_by_its_versions_alone(release, tmp_path):
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(read.of_userland(release)["libraries"]))
    argv, env = release.command(["/usr/bin/python3", "-c", DLVSYM, str(path)], None, dict(os.environ))
    told = subprocess.run(argv, env=env, text=True, capture_output=True, timeout=60, check=False)
    assert told.returncode == 0, told.stderr
    assert told.stdout.endswith(" wrong 0\n"), told.stdout[-2000:]
    assert int(told.stdout.split()[-3]) > 2000


def test_dlvsym_can_be_wrong(tmp_path):
    release = userlands.get("deb-44.0")
    path = tmp_path / "facts.json"
    path.write_text(json.dumps({"libibverbs.so.1": {"nodes": ["IBVERBS_1.0"], "symbols": {"ibv_open_device": ["IBVERBS_1.5@"]}}}))
    argv, env = release.command(["/usr/bin/python3", "-c", DLVSYM, str(path)], None, dict(os.environ))
    told = subprocess.run(argv, env=env, text=True, capture_output=True, timeout=60, check=True).stdout
    assert told.splitlines()[-1] == "asked 2 wrong 1"


# libibverbs/libibverbs.map.in: the nodes of 44.0; ibv_open_device is in compat-1_0.c and device.c.
def test_what_44_exports():
    facts = read.stored("deb-44.0")
    library = facts["libraries"]["libibverbs.so.1"]
    assert library["nodes"] == sorted(
        [f"IBVERBS_1.{n}" for n in (0, 1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)] + ["IBVERBS_PRIVATE_34"])
    assert library["symbols"]["ibv_open_device"] == ["IBVERBS_1.0", "IBVERBS_1.1@"]
    assert library["symbols"]["ibv_reg_dmabuf_mr"] == ["IBVERBS_1.12@"]


def test_what_changed_from_33_to_65():
    found = compare.compare(read.stored("deb-33.2"), read.stored("deb-65.0"))
    assert [str(one) for one in found if one.severity != "news"] == [
        "provider-removed: i40iw",
        "private-abi: libibverbs.so.1: private ABI IBVERBS_PRIVATE_33 → IBVERBS_PRIVATE_65"]


# L5-07: Documentation/versioning.md of rdma-core wants another number for a changed private ABI. 44.0 and 56.1 have one
# number, and two symbols between them.
def test_a_private_abi_that_changed_under_its_number_is_told():
    found = compare.compare(read.stored("deb-44.0"), read.stored("deb-56.1"))
    assert [str(one) for one in found if one.severity != "news"] == [
        "private-unnumbered: libibverbs.so.1: IBVERBS_PRIVATE_34 ibv_cmd_create_cq_ex2, ibv_wr_opcode_str"]
    assert compare.compare(read.stored("deb-44.0"), read.stored("deb-44.0")) == []


# L5-06: the name of what plug-ins call first carries the number, so that one linked without versions finds none either.
@pytest.mark.parametrize("name", RELEASES)
def test_the_first_call_of_plug_ins_carries_the_private_number(name):
    facts = read.stored(name)
    number = facts["private_abi"].rpartition("_")[2]
    found = {symbol: where for symbol, where in facts["libraries"]["libibverbs.so.1"]["symbols"].items()
             if symbol.startswith("verbs_register_driver")}
    assert found == {f"verbs_register_driver_{number}": [f"IBVERBS_PRIVATE_{number}@"]}


# L5-03: mlx5dv_init_obj changed its meaning in v15, and kept the old one under its old version.
@pytest.mark.parametrize("name", RELEASES)
def test_both_meanings_of_mlx5dv_init_obj_are_there(name):
    assert read.stored(name)["libraries"]["libmlx5.so.1"]["symbols"]["mlx5dv_init_obj"] == ["MLX5_1.0", "MLX5_1.2@"]


# L5-15: what is younger than a release is not found there by its version, nor by an older one.
def test_dmabuf_is_found_by_one_version_alone():
    where = {name: read.stored(name)["libraries"]["libibverbs.so.1"]["symbols"].get("ibv_reg_dmabuf_mr") for name in RELEASES}
    assert where == {"deb-33.2": None, **{name: ["IBVERBS_1.12@"] for name in RELEASES[1:]}}


# L5-04.
@pytest.mark.parametrize("release", RELEASES)
def test_debians_minimum_versions_cover_what_is_exported(release):
    found = minimums.of_userland(release)
    if not found:
        pytest.skip("the packages are not in the cache")
    version = release.removeprefix("deb-")
    assert set(found) >= {"libibverbs.so.1", "librdmacm.so.1", "libmlx5.so.1", "libibumad.so.3"}
    assert list(minimums.problems(read.stored(release), found, version)) == []


# debian/libibumad3.symbols and libibmad5.symbols of 56.1 give the soname's version as the minimum, which is lower than
# any release's: a program that uses these symbols may be installed beside 33.2 or 44.0, where it does not start.
TOO_LOW = {"libibumad.so.3": {"IBUMAD_1.3", "umad_open_smi_port"},
           "libibmad.so.5": {"mad_dump_linkspeedext2", "mad_dump_linkspeedexten2", "mad_dump_linkspeedextsup2", "IBMAD_1.4"}}


# L5-04.
@pytest.mark.parametrize("newer", RELEASES[1:])
@pytest.mark.parametrize("older", RELEASES[:-1])
def test_a_program_is_not_installed_beside_a_release_that_lacks_its_symbols(older, newer):
    found = minimums.of_userland(newer)
    if not found or older >= newer:
        pytest.skip("nothing to compare")
    told = list(minimums.too_low(read.stored(older), older.removeprefix("deb-"), found))
    unknown = [text for text in told if not any(
        text.startswith(library) and any(f" {name}@" in text for name in names) for library, names in TOO_LOW.items())]
    assert unknown == []


def test_a_missing_minimum_is_told():
    facts = {"libraries": {"libx.so.1": {"nodes": ["V_1"], "symbols": {"f": ["V_1@"], "g": ["V_1@"]}}}}
    rows = minimums.parse("libx.so.1 libx1 #MINVER#\n* Build-Depends-Package: x\n V_1@V_1 1\n f@V_1 9\n h@V_1 1-2\n")
    assert list(minimums.problems(facts, rows, "5.0")) == [
        "libx.so.1: g@V_1 has no minimum version", "libx.so.1: h@V_1 has a minimum version, but is not exported",
        "libx.so.1: f@V_1 asks for 9, which is newer than the release itself"]
    assert list(minimums.too_low({"libraries": {"libx.so.1": {"nodes": [], "symbols": {}}}}, "4.0", rows)) == [
        "libx.so.1: V_1@V_1 asks for 1, but 4.0 has not got it", "libx.so.1: h@V_1 asks for 1-2, but 4.0 has not got it"]


def test_what_is_no_library_is_said(tmp_path):
    (tmp_path / "libibverbs.so.1").write_text("text")
    with pytest.raises(errors.UserError, match="the symbols of .*libibverbs.so.1 cannot be read"):
        read.of_library(tmp_path / "libibverbs.so.1")


def _damaged(content, chance, kind):
    """A library that was cut off, or whose header, tables or first third have bytes of chance."""
    spoilt = bytearray(content)
    tables = int.from_bytes(content[40:48], "little")
    if kind == "cut":
        return spoilt[:chance.randrange(len(content))]
    first, last, count = {"header": (0, 64, 3), "sections": (tables, len(content), 6), "text": (0, len(content) // 3, 300)}[kind]
    for _ in range(count):
        spoilt[chance.randrange(first, last)] = chance.randrange(256)
    return spoilt


@pytest.mark.parametrize("kind", ["cut", "header", "sections", "text"])
def test_damaged_libraries_are_told_as_such(tmp_path, kind):
    content = (userlands.get("deb-44.0").library_dirs[0] / "libefa.so.1").read_bytes()
    chance, told = random.Random(1), 0
    for _ in range(60):
        (tmp_path / "libefa.so.1").write_bytes(_damaged(content, chance, kind))
        try:
            assert read.of_library(tmp_path / "libefa.so.1")["symbols"]
        except errors.UserError as error:
            assert error.what.startswith(f"the symbols of {tmp_path}/libefa.so.1 cannot be read: ")
            told += 1
    assert told >= 20


def test_a_damaged_note_in_the_cache_is_made_anew(tmp_path, monkeypatch):
    facts = read.facts("deb-44.0")
    userland = userlands.get("deb-44.0")
    monkeypatch.setattr(userlands, "get", lambda name: userland)
    monkeypatch.setenv("VERBS_ABI_CACHE", str(tmp_path))
    assert read.facts("deb-44.0") == facts
    (note,) = (tmp_path / "symbols").iterdir()
    for text in ("", "[]", "{}", "\0"):
        note.write_text(text)
        assert read.facts("deb-44.0") == facts and json.loads(note.read_text()) == facts


def test_the_same_twice_is_said(capsys):
    assert cli.main(["symbols", "deb-44.0", "deb-44.0"]) == 0
    assert capsys.readouterr().out == "deb-44.0 and deb-44.0 export the same\n"
