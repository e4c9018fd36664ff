# SPDX-License-Identifier: BSD-2-Clause
import pytest

from verbs_abi import matrix, paths, userlands
from verbs_abi.cells import expect, ids, negotiation, outcome


@pytest.mark.parametrize("source, release", [("src-33.2", "deb-33.2"), ("src-44.0", "deb-44.0"), ("src-56.1", "deb-56.1"),
                                             ("src-65.0", "deb-65.0")])
def test_what_is_built_of_a_releases_source_is_expected_to_be_what_the_release_is(source, release):
    headers = matrix.get("sources", source).data["headers"]
    for rest in ("debian-5.10.223/rxe", "debian-6.1.192/rxe", "debian-7.3.4/hns@control", "debian-6.12.117/mlx5@conformance"):
        assert expect.expectation(ids.parse(f"{source}+headers={headers}/{rest}")) == expect.expectation(
            ids.parse(f"{release}/{rest}"))


def test_a_row_of_one_release_is_not_one_of_another():
    name, row = expect.expectation(ids.parse("src-33.2+headers=debian-6.1.192/debian-6.1.192/rxe"))
    assert (name, row["outcome"]) == ("rxe-33", "degraded")
    name, row = expect.expectation(ids.parse("src-44.0+headers=debian-6.1.192/debian-6.1.192/rxe"))
    assert row["outcome"] == "full"


@pytest.mark.parametrize("cell, rule", [
    ("src-44.0+headers=debian-7.2.13/debian-7.2.13/bnxt_re@control", "bnxt_re.request.comp_mask"),
    ("src-44.0+headers=debian-6.12.117/debian-6.12.117/bnxt_re@control", None),
    ("src-65.0+headers=debian-7.3.4/debian-7.3.4/bnxt_re@control", None),
    ("deb-44.0/debian-7.2.13/bnxt_re@control", None),
    ("src-44.0+headers=debian-7.3.4/debian-7.2.13/irdma@control", "irdma.ucontext.comp_mask"),
    ("src-56.1+headers=debian-7.3.4/debian-7.2.13/irdma@control", None),
])
def test_what_newer_headers_append_and_an_older_library_leaves_as_the_stack_was_is_refused(cell, rule):
    _, row = expect.expectation(ids.parse(cell))
    assert (row["outcome"], row.get("rule")) == (("refused", rule) if rule else ("full", None))


@pytest.fixture(name="tree")
def _tree(tmp_path, monkeypatch):
    """What a source tree needs to be one; told(version): it with that version."""
    monkeypatch.setenv("VERBS_ABI_CACHE", str(tmp_path / "cache"))
    (tmp_path / "tree/libibverbs").mkdir(parents=True)
    (tmp_path / "tree/providers").mkdir()
    (tmp_path / "tree/libibverbs/CMakeLists.txt").touch()

    def told(version):
        (tmp_path / "tree/CMakeLists.txt").write_text(f'project(rdma-core C)\nset(PACKAGE_VERSION "{version}")\n')
        return userlands.resolve(f"src:{tmp_path}/tree")

    return told


@pytest.mark.parametrize("version, release", [
    ("44.0", "deb-44.0"), ("44.2", "deb-44.0"), ("56.0", "deb-44.0"), ("56.1", "deb-56.1"), ("66.0", "deb-65.0"),
    ("33.2", "deb-33.2"), ("33.1", "deb-33.2"), ("15", "deb-33.2"), ("100", "deb-65.0")])
@pytest.mark.parametrize("rest", ["debian-5.10.223/rxe", "debian-6.1.192/rxe", "linux-4.4/rxe", "debian-7.3.4/hns@control"])
def test_a_source_tree_is_expected_to_be_what_the_release_at_or_below_its_version_is(tree, version, release, rest):
    assert expect.expectation(ids.parse(f"{tree(version)}/{rest}")) == expect.expectation(ids.parse(f"{release}/{rest}"))


def test_the_expectation_says_which_release_it_speaks_of(tree):
    cell = ids.parse(f"{tree('45.0')}/debian-5.10.223/rxe")
    _, told = expect.verdict(cell, outcome.Outcome("degraded", lost=["ah"]))
    assert told["name"] == "rxe-address-handles" and told["reason"].startswith("As deb-44.0: On kernels before 5.15")
    assert expect.verdict(cell, outcome.Outcome("full"))[0] == "fixed"
    _, told = expect.verdict(ids.parse("deb-44.0/debian-5.10.223/rxe"), outcome.Outcome("full"))
    assert told["reason"].startswith("On kernels before 5.15")


@pytest.mark.parametrize("version", ["", "unknown", "master"])
def test_a_tree_without_a_version_is_no_release(tree, version):
    assert expect.expectation(ids.parse(f"{tree(version)}/debian-5.10.223/rxe"))[1]["outcome"] == "full"


def test_abi_ranges_of_a_tree_are_its_own(tree, tmp_path):
    name = tree("44.0")
    told = ids.parse(f"{name}/debian-6.1.192/rxe/provider-abi=9")
    assert not negotiation.takes_told_abi(told) and negotiation.accepted(name) == {}
    (tmp_path / "other/libibverbs").mkdir(parents=True)
    (tmp_path / "other/libibverbs/CMakeLists.txt").touch()
    (tmp_path / "other/CMakeLists.txt").write_text('set(PACKAGE_VERSION "44.0")\n')
    (tmp_path / "other/providers/rxe").mkdir(parents=True)
    (tmp_path / "other/providers/rxe/rxe.c").write_text(
        "static const struct verbs_match_ent hca_table[] = {\n\tVERBS_DRIVER_ID(RDMA_DRIVER_RXE),\n\t{},\n};\n"
        'static const struct verbs_device_ops rxe_dev_ops = {\n\t.name = "rxe",\n\t.match_min_abi_version = 1,\n'
        "\t.match_max_abi_version = 9,\n\t.match_table = hca_table,\n};\n")
    other = userlands.resolve(f"src:{tmp_path}/other")
    assert negotiation.takes_told_abi(ids.parse(f"{other}/debian-6.1.192/rxe/provider-abi=9"))
    assert negotiation.accepted(other)["rxe"]["max"] == 9


def test_a_range_of_userlands_is_of_releases(tree, monkeypatch):
    name = tree("65.0")
    row = {"userlands": {"from": "deb-56.1"}, "outcome": "refused", "reason": "of a test"}
    monkeypatch.setattr(expect, "_rows", lambda: [("test", row)])
    expect._order.cache_clear()
    assert expect.expectation(ids.parse(f"{name}/debian-6.1.192/rxe"))[1] is row
    assert expect.expectation(ids.parse(f"{tree('44.0')}/debian-6.1.192/rxe"))[1] is not row


@pytest.mark.parametrize("kernel", ["linux-4.4", "debian-5.10.223", "debian-6.1.192"])
@pytest.mark.parametrize("overlay, wanted", [
    ("errno@REG_MR=ENOMEM", "refused"), ("errno@ALLOC_PD=EIO", "refused"), ("errno@CREATE_AH=ENOMEM", "degraded"),
    ("errno@DESTROY_QP=EIO", "broken"), ("errno@MR.MR_DESTROY=EIO", "broken"), ("errno@DEREG_MR=EIO", "broken"),
    ("errno@DEVICE.GET_CONTEXT=EIO", "refused"), ("missing-method=ASYNC_EVENT.ALLOC", "refused")])
def test_a_fault_is_expected_whatever_else_the_device_lacks(kernel, overlay, wanted):
    for provider in ("rxe", "mlx5"):
        assert expect.expectation(ids.parse(f"deb-44.0/{kernel}/{provider}/{overlay}"))[1]["outcome"] == wanted


def _struck(name, errno, inner=None, fault="errno"):
    return {"via": "ioctl", "name": name, "inner": inner, "result": -12, "errno": errno, "fault": fault}


@pytest.mark.parametrize("overlays, records, idle", [
    (("errno@REG_MR=ENOMEM",), [_struck("REG_MR", "ENOMEM")], ()),
    (("errno@REG_MR=ENOMEM",), [_struck("DEVICE.INVOKE_WRITE", "ENOMEM", "REG_MR")], ()),
    (("errno@REG_MR=ENOMEM",), [_struck("REG_MR", "ENOMEM", fault="errno-once")], ("errno@REG_MR=ENOMEM",)),
    (("errno@REG_MR=ENOMEM",), [{"name": "REG_MR", "result": -12, "errno": "ENOMEM", "rule": "x"}], ("errno@REG_MR=ENOMEM",)),
    (("no-ioctl", "errno@CREATE_CQ=EIO", "errno-once@ALLOC_PD=EPERM"), [_struck("CREATE_CQ", "EIO")],
     ("errno-once@ALLOC_PD=EPERM",)),
    (("no-ioctl", "mmap-fails=UAR"), [], ("mmap-fails=UAR",)),
    (("mmap-fails=UAR",), [{"via": "mmap", "name": "mmap:UAR", "errno": "ENOMEM", "fault": "mmap"}], ()),
    (("mmap-fails=NONE",), [{"via": "mmap", "name": "mmap:UAR", "errno": "ENOMEM", "rule": "x"}], ("mmap-fails=NONE",))])
def test_a_fault_that_nothing_met_is_known_by_the_trace(overlays, records, idle):
    cell = ids.Cell("deb-44.0", "debian-6.1.192", (ids.Device("rxe"),), overlays)
    assert expect.idle(cell, records) == idle


def test_a_fault_that_nothing_met_changes_no_expectation():
    cell = ids.parse("deb-44.0/debian-6.1.192/rxe/errno@CREATE_CQ=ENOMEM")
    assert expect.verdict(cell, outcome.Outcome("full"))[0] == "unexpected"
    verdict, told = expect.verdict(cell, outcome.Outcome("full"), cell.overlays)
    assert verdict == "expected" and told["reason"].endswith("; what errno@CREATE_CQ=ENOMEM makes fail is never asked for here")
    old = ids.parse("deb-44.0/debian-5.10.223/rxe/errno@CREATE_CQ=ENOMEM")
    assert expect.verdict(old, outcome.Outcome("degraded"), old.overlays)[1]["name"] == "rxe-address-handles"


def test_between_two_releases_it_may_be_as_either(tree):
    """libhns asks for a context as 7.2 wants it since some release between 44.0 and 56.1."""
    def verdict(version, found):
        return expect.verdict(ids.parse(f"{tree(version)}/debian-7.3.4/hns@devinfo"), outcome.Outcome(found))

    assert verdict("50.0", "refused")[0] == "expected" and verdict("50.0", "refused")[1]["reason"].startswith("As deb-44.0: ")
    assert verdict("50.0", "full")[0] == "expected" and verdict("50.0", "full")[1]["reason"].startswith("As deb-56.1: ")
    assert verdict("50.0", "broken")[0] == "unexpected" and verdict("50.0", "broken")[1]["outcome"] == "refused"
    assert [verdict(version, "full")[0] for version in ("44.0", "56.1", "60.0")] == ["unexpected", "expected", "expected"]
    assert [verdict(version, "refused")[0] for version in ("44.0", "33.0", "56.1")] == ["expected", "expected", "unexpected"]


def test_a_mended_defect_is_told_by_what_would_be_without_it():
    cell = ids.parse("deb-56.1/debian-5.10.223/bnxt_re/no-ioctl@control")
    assert expect.verdict(cell, outcome.Outcome("broken"))[0] == "expected"
    # no-ioctl alone makes it degraded.
    assert expect.verdict(cell, outcome.Outcome("degraded"))[0] == "fixed"
    assert expect.verdict(cell, outcome.Outcome("refused"))[0] == "unexpected"


def test_a_known_defect_has_a_link(tmp_path):
    schema = matrix.read_json(paths.matrix_dir() / "schema/expectations.json")
    row = {"outcome": "broken", "reason": "known", "defect": True}
    matrix.check(tmp_path, {"name": "rows", "rows": [{**row, "link": "https://example.org/1"}]}, schema)
    with pytest.raises(matrix.MatrixError, match="beside defect also link"):
        matrix.check(tmp_path, {"name": "rows", "rows": [row]}, schema)


@pytest.mark.parametrize("mode, rest, expected", [
    ("both", "debian-6.1.192/rxe/no-ioctl", "degraded"), ("write", "debian-6.1.192/rxe/no-ioctl", "full"),
    ("ioctl", "debian-6.1.192/rxe/no-ioctl", "refused"), ("both", "linux-5.8/mlx5", "degraded"),
    ("write", "linux-5.8/mlx5", "full"), ("ioctl", "linux-5.8/mlx5", "refused"),
    ("write", "debian-6.1.192/rxe/port-down", "refused"), ("ioctl", "debian-6.1.192/rxe", "full"),
    ("write", "gvisor-rdmaproxy/mlx5", "refused")])
def test_a_tree_of_one_route_is_expected_to_have_no_other(tree, tmp_path, mode, rest, expected):
    tree("44.0")
    name = userlands.resolve(f"src:{tmp_path}/tree,ioctl_mode={mode}")
    assert expect.expectation(ids.parse(f"{name}/{rest}"))[1]["outcome"] == expected
