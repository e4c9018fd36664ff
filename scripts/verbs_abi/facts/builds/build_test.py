# SPDX-License-Identifier: BSD-2-Clause
"""A small tree of rdma-core's shape, built with its own headers, with others and with ones that someone changed."""

import os
import subprocess

import pytest

from verbs_abi import paths
from verbs_abi.cells import programs
from verbs_abi.errors import UserError
from verbs_abi.facts import tool
from verbs_abi.facts.builds import command, engine, rows, sources, userland

CMAKE = """
cmake_minimum_required(VERSION 3.11)
project(rdma-core C)
set(PACKAGE_VERSION "44.0")
set(IBVERBS_PABI_VERSION "34")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
include_directories("${CMAKE_BINARY_DIR}/include")
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/include/rdma" "${CMAKE_BINARY_DIR}/include/infiniband"
     "${CMAKE_BINARY_DIR}/etc/libibverbs.d")
file(CREATE_LINK "${CMAKE_SOURCE_DIR}/kernel-headers/rdma/own-abi.h" "${CMAKE_BINARY_DIR}/include/rdma/own-abi.h" SYMBOLIC)
file(CREATE_LINK "${CMAKE_SOURCE_DIR}/kernel-headers/rdma/efa-abi.h" "${CMAKE_BINARY_DIR}/include/rdma/efa-abi.h" SYMBOLIC)
file(WRITE "${CMAKE_BINARY_DIR}/etc/libibverbs.d/rxe.driver" "driver ${CMAKE_BINARY_DIR}/lib/librxe\\n")
file(WRITE "${CMAKE_BINARY_DIR}/include/infiniband/verbs.h" "int ibv_own(void);\\n")
add_library(ibverbs SHARED libibverbs/verbs.c)
set_target_properties(ibverbs PROPERTIES VERSION 1.14.44.0 SOVERSION 1)
add_library(efa SHARED providers/efa.c)
set_target_properties(efa PROPERTIES VERSION 1.2.44.0 SOVERSION 1)
target_link_libraries(efa ibverbs)
add_library(rxe-rdmav34 MODULE providers/rxe.c)
target_link_libraries(rxe-rdmav34 ibverbs)
add_executable(ibv_devices libibverbs/main.c)
add_executable(ibv_devinfo libibverbs/main.c)
"""
OWN = "#include <linux/types.h>\nstruct own_req {\n\t__u32 first;\n\t__u32 second;\n};\nenum { OWN_NEW = 1 };\n"
EFA = "#include <linux/types.h>\nstruct efa_req {\n\t__u32 flags;\n};\n"
FILES = {
    "CMakeLists.txt": CMAKE,
    "kernel-headers/rdma/own-abi.h": OWN,
    "kernel-headers/rdma/efa-abi.h": EFA,
    "libibverbs/verbs.c": "#include <rdma/own-abi.h>\nint ibv_own(void) { struct own_req r = {0}; return r.second; }\n",
    "libibverbs/main.c": "int main(void) { return 0; }\n",
    "providers/efa.c": "#include <rdma/efa-abi.h>\nint efa(struct efa_req *r) { return r->flags; }\n",
    "providers/rxe.c": "#include <rdma/own-abi.h>\nint rxe(struct own_req *r) { return r->second + OWN_NEW; }\n",
}


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(name="cache", scope="module", autouse=True)
def fixture_cache(tmp_path_factory):
    """A cache of this module's own; ccache keeps to what it has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERBS_ABI_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield paths.cache_dir()


@pytest.fixture(name="built", scope="module")
def fixture_built(cache, tmp_path_factory):
    """{name of headers: (Pair, rows)}; each held against the headers called "kernel"."""
    folder = tmp_path_factory.mktemp("mini")
    tree = write(folder / "mini", FILES)
    header_sets = {
        "kernel": {"rdma/own-abi.h": OWN, "rdma/efa-abi.h": EFA},
        "moved": {"rdma/own-abi.h": OWN.replace("\t__u32 first;\n\t__u32 second;", "\t__u32 second;\n\t__u32 first;"),
                  "rdma/efa-abi.h": EFA},
        "no-efa": {"rdma/own-abi.h": OWN},
        "no-field": {"rdma/own-abi.h": OWN.replace("second", "other"), "rdma/efa-abi.h": EFA},
        "no-symbol": {"rdma/own-abi.h": OWN.replace("OWN_NEW", "OWN_OLD"), "rdma/efa-abi.h": EFA},
        "grown": {"rdma/own-abi.h": OWN.replace("second;\n", "second;\n\t__u32 third;\n"), "rdma/efa-abi.h": EFA},
    }
    source = sources.get(str(tree))
    builder = engine.Builder(source)
    found = {}
    for name, headers in header_sets.items():
        tool.extract(write(folder / name, headers), name)
        with builder.lock():
            pair = builder.pair(tool.headers(name))
        found[name] = pair, rows.rows_of(pair, source, ["kernel"])
    return found


def by_library(told):
    return {row["library"]: row for row in told}


def test_all_libraries_build_and_agree_with_their_kernel(built):
    _, told = built["kernel"]
    assert {row["library"]: row["result"] for row in told} == {
        "libibverbs": "built", "libefa": "built", "librxe": "built"}
    assert {row["verdict"] for row in told} == {"expected"}


# L1-10: what is built reads the headers that were put into its tree, and no others.
def test_a_field_that_moved_is_silent_drift(built):
    _, told = built["moved"]
    row = by_library(told)["libibverbs"]
    assert (row["result"], row["verdict"]) == ("drift", "unexpected")
    assert [(one["type"], one["class"]) for one in row["drift"]] == [("own_req.second", "moved"), ("own_req.first", "moved")]
    assert "kernel has __u32 second @4, the library __u32 second @0" in row["drift"][0]["detail"]
    assert by_library(told)["libefa"]["result"] == "built"


def test_growth_at_the_end_is_no_drift(built):
    assert {row["result"] for row in built["grown"][1]} == {"built"}


@pytest.mark.parametrize("headers, library, cause", [
    ("no-efa", "libefa", "missing header rdma/efa-abi.h"),
    ("no-symbol", "librxe", "missing symbol OWN_NEW"),
    ("no-field", "libibverbs", "missing field own_req.second"),
])
def test_what_does_not_build_has_its_cause(built, headers, library, cause):
    row = by_library(built[headers][1])[library]
    assert (row["result"], row["cause"], row["verdict"]) == ("failed", cause, "expected")


def test_what_links_to_a_failed_library_is_told_apart(built):
    row = by_library(built["no-field"][1])["libefa"]
    assert row["cause"] == "what it links to does not build: ibverbs"


def test_one_failure_does_not_hide_the_others_libraries(built):
    assert by_library(built["no-efa"][1])["librxe"]["result"] == "built"


def test_rows_follow_the_schema_of_the_results(built):
    import jsonschema

    schema = tool.json.loads((paths.ROOT / "reports/results.schema.json").read_text())
    check = jsonschema.Draft202012Validator({"$ref": "#/$defs/build", "$defs": schema["$defs"]})
    for _, told in built.values():
        for row in told:
            check.validate(row)


def test_a_pair_is_a_userland(built):
    pair, _ = built["kernel"]
    source = sources.Source("src-mini", "44.0", None, "d", None, ())
    found = userland.of_pair("src-mini+headers=kernel", source, pair)
    assert found.plugin_suffix == "rdmav34" and found.private_abi == "IBVERBS_PRIVATE_34"
    plugins = sorted(path.name for path in found.providers_dir.iterdir())
    assert plugins == ["libefa-rdmav34.so", "librxe-rdmav34.so"]
    assert (found.providers_dir / "libefa-rdmav34.so").resolve().name == "libefa.so.1.2.44.0"
    assert (found.library_dirs[0] / "libibverbs.so.1").exists()
    assert (found.config_dir / "rxe.driver").read_text() == "driver rxe\n"
    assert (found.include_dir / "infiniband/verbs.h").exists()


def test_pairs_whose_programs_see_equal_headers_share_them(built):
    source = sources.Source("src-mini", "44.0", None, "d", None, ())
    one, two = (userland.of_pair(f"src-mini+headers={name}", source, built[name][0]) for name in ("kernel", "moved"))
    assert one.digest != two.digest and one.include_dir != two.include_dir
    assert programs.path_of("journey", one) == programs.path_of("journey", two)


def test_without_libibverbs_there_is_no_userland(built):
    pair, _ = built["no-field"]
    with pytest.raises(UserError, match="libibverbs does not build"):
        userland.of_pair("x", sources.Source("x", "44.0", None, "d", None, ()), pair)


def test_what_was_built_is_not_built_again(built, monkeypatch):
    pair, _ = built["moved"]
    assert pair.fresh
    source = sources.Source("mini", "44.0", None, pair.root.parents[2].name.removesuffix(f"-{engine.LAYOUT}"), None, ())
    monkeypatch.setattr(engine.Builder, "_ninja", lambda self: pytest.fail("built again"))
    with engine.Builder(source).lock():
        assert not engine.Builder(source).pair(tool.headers("moved")).fresh


def test_renamed_fields_come_from_the_facts():
    # rdma-core 56 against headers that renamed efa_ibv_alloc_ucontext_cmd.comp_mask.
    source = sources.Source("src-56.1", "56.1", None, "d", "rdma-core-v56", ())
    pair = engine.Pair("src-56.1", "debian-7.2.13", "d", None, (), 1.0, "rdmav34", True)
    renames = rows._renames(source, pair)
    assert rows.renamed_cause("missing field efa_alloc_ucontext.comp_mask", renames) == (
        "renamed field efa_alloc_ucontext.comp_mask: these headers call it supported_caps")
    assert rows.renamed_cause("missing field mlx5_x.comp_mask", renames) == "missing field mlx5_x.comp_mask"


def test_a_field_with_another_name_is_told_as_renamed():
    assert rows.renamed_cause("missing field a.b", {"a.b": "c"}) == "renamed field a.b: these headers call it c"
    assert rows.renamed_cause("missing field a.b", {}) == "missing field a.b"
    assert rows.renamed_cause(None, {"a.b": "c"}) is None


def test_drift_that_was_looked_into_is_expected_and_says_why(monkeypatch):
    monkeypatch.setattr(rows, "_known", lambda: [
        {"member": "s.m", "classes": ["removed"], "kernels": ["debian-7.*"], "reason": "nobody reads it"}])
    def verdict(**other):
        one = {"type": "s.m", "class": "removed", "x_kernels": ["debian-7.2.13"], "detail": "", **other}
        return rows._verdict_of_drift([one])
    assert verdict()["verdict"] == "expected" and verdict()["drift"][0]["x_reason"] == "nobody reads it"
    assert verdict(type="s.n")["verdict"] == "unexpected"
    assert verdict(**{"class": "moved"})["verdict"] == "unexpected"
    assert verdict(x_kernels=["debian-7.2.13", "debian-6.1.192"])["verdict"] == "unexpected"


def test_a_folder_that_is_no_rdma_core_is_told(tmp_path):
    with pytest.raises(UserError, match="is no rdma-core tree: it has no kernel-headers/rdma"):
        sources.get(str(tmp_path))
    with pytest.raises(UserError, match="git:PATH@REVISION"):
        sources.get("git:nothing")


def test_a_git_revision_is_a_source(tmp_path):
    tree = write(tmp_path / "repository", FILES)
    def git(*words):
        subprocess.run(["git", "-C", str(tree), "-c", "user.name=t", "-c", "user.email=t@example.org", *words], check=True,
                       capture_output=True)
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    git("tag", "v44.0")
    (tree / "CMakeLists.txt").write_text("changed\n")
    source = sources.get(f"git:{tree}@v44.0")
    assert (source.name, source.version) == ("src-44.0", "44.0")
    assert (source.tree / "CMakeLists.txt").read_text() == CMAKE


def test_a_tree_that_changes_is_another_source(tmp_path):
    tree = write(tmp_path / "tree", FILES)
    before = sources.get(str(tree)).digest
    os.utime(tree / "providers/rxe.c", (1, 1))
    assert sources.get(str(tree)).digest != before


def test_an_unknown_source_is_told_with_its_nearest():
    arguments = type("A", (), {"plan": None, "source": ["src-44"], "headers": [], "name": None})
    with pytest.raises(UserError, match="src-44"):
        command.choose(arguments)
