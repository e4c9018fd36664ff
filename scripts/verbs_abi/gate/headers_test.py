# SPDX-License-Identifier: BSD-2-Clause
import pytest

from verbs_abi import userlands
from verbs_abi.facts import tool
from verbs_abi.gate import headers

HEADER = """
#include <linux/types.h>
struct ib_uverbs_thing {
	__u32 first;
	%s
};
"""


@pytest.fixture(name="cache", autouse=True)
def _cache(tmp_path, monkeypatch):
    tool.path()
    monkeypatch.setenv("VERBS_ABI_CACHE", str(tmp_path / "cache"))


def tree(folder, members, version="44.0"):
    """The name of a userland that is a source tree with one header of the kernel's."""
    for name, text in {"CMakeLists.txt": f'set(PACKAGE_VERSION "{version}")\n', "libibverbs/CMakeLists.txt": "",
                       "providers/x": "", "kernel-headers/rdma/ib_user_verbs.h": HEADER % members}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return userlands.resolve(f"src:{folder}")


# kernel-headers/rdma/ib_user_ioctl_cmds.h of rdma-core: both stand there up to 44.0, neither in 56.1.
def test_what_newer_headers_have_not_got_is_told_and_stops_nothing():
    found = headers.findings("deb-44.0", "deb-56.1")
    assert [(row["what"], row["class"], row["stops"]) for row in found] == [
        (f"rdma/ib_user_ioctl_cmds.h: UVERBS_UDATA_DRIVER_DATA_{name}", "removed", False) for name in ("FLAG", "NS")]


# kernel-headers/rdma/i40iw-abi.h went in v34; kernel-headers/rdma/rdma_user_rxe.h: struct rxe_send_wr.
def test_a_header_that_went_and_a_member_that_got_longer_are_told():
    found = {row["what"]: row["class"] for row in headers.findings("deb-33.2", "deb-44.0")}
    assert found["rdma/i40iw-abi.h"] == "removed"
    assert found["rdma/rdma_user_rxe.h: rxe_send_wqe.wr"] == "resized"


def test_equal_headers_are_no_finding():
    assert headers.findings("deb-44.0", "deb-44.0-i386") == []
    assert headers.findings("src-44.0+headers=debian-6.1.192", "src-33.2+headers=debian-6.1.192") == []


def test_a_source_trees_own_headers_are_read(tmp_path):
    old = tree(tmp_path / "old", "__u32 second; __u32 third;")
    assert headers.findings(old, tree(tmp_path / "same", "__u32 second; __u32 third;")) == []
    swapped = headers.findings(old, tree(tmp_path / "new", "__u32 third; __u32 second;"))
    assert {row["what"] for row in swapped} == {
        f"rdma/ib_user_verbs.h: ib_uverbs_thing.{name}" for name in ("second", "third")}
    assert {row["class"] for row in swapped} == {"moved"}


def test_package_files_have_their_releases_headers_and_a_name_without_a_version_none(tmp_path, monkeypatch):
    name = tree(tmp_path / "any", "__u32 second;")
    place = headers.local.Local(name, "packages", "deb any")
    monkeypatch.setattr(headers.local, "from_entry", lambda _: place)
    for version, want in (("56.1", "rdma-core-v56"), ("unknown", None), ("999.0", None)):
        monkeypatch.setattr(headers.local, "version", lambda _, told=version: told)
        assert headers.of(name) == want
    assert headers.findings(name, "deb-44.0") == [
        {"what": name, "class": "unknown-headers", "detail": "tells no version whose headers are known", "stops": False}]
