# SPDX-License-Identifier: BSD-2-Clause
"""Prefixes, package files and source trees as userlands: made of the libraries of 44.0 where real ones are needed."""

import errno
import gzip
import os
import pathlib
import shutil
import subprocess
import time

import pytest

from verbs_abi import errors, matrix, userlands
from verbs_abi.userlands import local, packages, rooted, sources

LIBRARIES = "usr/lib/x86_64-linux-gnu"


@pytest.fixture(name="release", scope="module")
def _release():
    return userlands.get("deb-44.0")


@pytest.fixture(name="cache")
def _cache(tmp_path, monkeypatch, release):
    """An empty cache folder; the release stays where it is."""
    assert release.root.is_dir()
    monkeypatch.setenv("VERBS_ABI_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(name="tree")
def _tree(tmp_path, release):
    """A prefix: the release's libraries and configuration."""
    root = tmp_path / "prefix"
    shutil.copytree(release.root / LIBRARIES, root / LIBRARIES, symlinks=True)
    shutil.copytree(release.root / "etc", root / "etc", symlinks=True)
    return root


def library(tree):
    return (tree / LIBRARIES / "libibverbs.so.1").resolve()


def deb(tree, folder, architecture="amd64"):
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN/control").write_text(f"Package: libibverbs1\nVersion: 44.0-2\nArchitecture: {architecture}\n"
                                         "Maintainer: Nobody <nobody@example.org>\nDescription: made for a test\n")
    folder.mkdir(exist_ok=True)
    path = folder / f"libibverbs1_44.0-2_{architecture}.deb"
    subprocess.run(["dpkg-deb", "-Znone", "--root-owner-group", "-b", str(tree), str(path)], check=True,
                   capture_output=True)
    shutil.rmtree(tree / "DEBIAN")
    return path


def rpm(tree, folder):
    spec = folder.parent / "libibverbs.spec"
    spec.write_text("Name: libibverbs\nVersion: 44.0\nRelease: 1\nSummary: made for a test\nLicense: none\n"
                    f"%define _rpmdir {folder}\n%define _build_id_links none\n%define __os_install_post %{{nil}}\n"
                    "AutoReqProv: no\n%description\nmade for a test\n"
                    f"%install\ncp -a {tree}/. %{{buildroot}}/\n%files\n/usr\n/etc\n")
    subprocess.run(["rpmbuild", "-bb", "--quiet", "--target", "x86_64", "--define", f"_topdir {folder.parent}/top",
                    str(spec)], check=True, capture_output=True)
    return next(folder.glob("**/*.rpm"))


def rpm_of_one_file(path, name):
    """An rpm whose payload has this one name: a lead, two empty headers, a cpio archive."""
    lead = b"\xed\xab\xee\xdb\x03" + bytes(91)
    header = b"\x8e\xad\xe8\x01" + bytes(12)

    def entry(name, data, mode):
        fields = [1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + name + b"\0"
        return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)

    cpio = entry(name.encode(), b"out", 0o100644) + entry(b"TRAILER!!!", b"", 0)
    path.write_bytes(lead + header + header + gzip.compress(cpio))
    return path


def ready(spec):
    return userlands.get(userlands.resolve(spec))


def leftovers(cache):
    return [str(path) for path in cache.glob("local/**/*") if path.is_file() and path.name != ".lock"]


# --- a prefix

def test_a_prefix_is_registered_and_used_by_name(cache, tree, release):
    name = userlands.resolve(f"prefix:{tree}")
    assert (cache / "registered" / f"{name}.json").is_file()
    assert name in matrix.names("userlands") and name not in matrix.shipped("userlands")
    found = userlands.get(name)
    assert (found.plugin_suffix, found.private_abi) == ("rdmav34", "IBVERBS_PRIVATE_34")
    assert found.redirects() == {"/etc/libibverbs.d": tree / "etc/libibverbs.d",
                                 f"/{LIBRARIES}/libibverbs": tree / LIBRARIES / "libibverbs"}
    assert found.digest != release.digest
    assert userlands.resolve(f"prefix:{tree}") == name


def test_a_prefix_may_have_a_name_of_its_own(cache, tree):
    assert userlands.resolve(f"mine=prefix:{tree}") == "mine"
    with pytest.raises(errors.UserError, match="'deb-44.0' is a userland of the matrix already"):
        userlands.resolve(f"deb-44.0=prefix:{tree}")


def test_a_changed_prefix_is_noticed(cache, tree):
    name = userlands.resolve(f"prefix:{tree}")
    with open(library(tree), "ab") as file:
        file.write(b"\0")
    with pytest.raises(errors.UserError, match="holds other libraries than those that were registered"):
        userlands.get(name)
    assert local.state(local.from_entry(matrix.get("userlands", name)))[0] == "stale"
    assert userlands.get(userlands.resolve(f"prefix:{tree}")).name == name


def test_a_prefix_that_went_away_is_said(cache, tree):
    name = userlands.resolve(f"prefix:{tree}")
    shutil.rmtree(tree)
    with pytest.raises(errors.UserError, match=f"userland '{name}' is gone"):
        userlands.get(name)


def _no_library(tree):
    library(tree).unlink()


def _cut(tree):
    path = library(tree)
    path.write_bytes(path.read_bytes()[:path.stat().st_size // 2])


def _other_machine(tree):
    content = bytearray(library(tree).read_bytes())
    content[18:20] = (183).to_bytes(2, "little")
    library(tree).write_bytes(content)


def _no_plugins(tree):
    shutil.rmtree(tree / LIBRARIES / "libibverbs")


def _no_configuration(tree):
    shutil.rmtree(tree / "etc")


def _text(tree):
    library(tree).write_text("not a library")


def _newer_libc(tree):
    with open(library(tree), "ab") as file:
        file.write(b"\0GLIBC_2.99\0")


def _folder_instead(tree):
    (tree / LIBRARIES / "libibverbs.so.1").unlink()
    (tree / LIBRARIES / "libibverbs.so.1").mkdir()


def _pipe_instead(tree):
    path = library(tree)
    path.unlink()
    os.mkfifo(path)


def _program_instead(tree):
    content = bytearray(library(tree).read_bytes())
    content[16] = 2
    library(tree).write_bytes(content)


def _plugin(tree):
    return tree / LIBRARIES / "libibverbs/libmlx5-rdmav34.so"


def _cut_plugin(tree):
    path = _plugin(tree).resolve()
    path.write_bytes(path.read_bytes()[:5000])


def _lost_plugin(tree):
    _plugin(tree).resolve().unlink()


def _plugin_from_elsewhere(tree):
    _plugin(tree).unlink()
    _plugin(tree).symlink_to("/bin/sh")


@pytest.mark.parametrize("spoil, message", [
    (_folder_instead, r"libibverbs.so.1 is no file"),
    (_pipe_instead, r"libibverbs.so.1 is no file"),
    (_program_instead, r"is no shared library \(ELF type 2 instead of 3\)"),
    (_cut_plugin, r"libmlx5.so.1 is cut off: 5000 bytes of"),
    (_lost_plugin, r"libmlx5.so.1 is a link to libmlx5.so.1.24.44.0, which is not there"),
    (_plugin_from_elsewhere, r"libmlx5-rdmav34.so leads to .*, which is outside of"),
    (_no_library, r"libibverbs.so.1 is a link to libibverbs.so.1.14.44.0, which is not there"),
    (_cut, r"is cut off"),
    (_text, r"is not a library"),
    (_other_machine, r"is for another machine \(64-bit, ELF machine 183\)"),
    (_no_plugins, r"there is no plug-in lib\*-rdmav34.so"),
    (_no_configuration, r"there are no \*.driver files"),
    (_newer_libc, r"need glibc 2.99"),
])
def test_an_unusable_prefix_is_told_plainly(cache, tree, spoil, message):
    spoil(tree)
    with pytest.raises(errors.UserError, match=message):
        ready(f"prefix:{tree}")


@pytest.mark.parametrize("text, message", [
    ("prefix:", "no place is named"), ("deb:,,", "no place is named"),
    ("..=prefix:{tree}", "'..' cannot be a userland's name"), ("-x=prefix:{tree}", "'-x' cannot be a userland's name"),
    ("a" * 101 + "=prefix:{tree}", "cannot be a userland's name"), ("=prefix:{tree}", "'' cannot be a userland's name"),
    ("a b=prefix:{tree}", "'a b' cannot be a userland's name"), ("x+headers=prefix:{tree}", "built with others' headers"),
    ("prefix:{tree}/a:b", "the path has ':' in it"), ("prefix:{tree}/a\nb", r"the path has '\\n' in it"),
])
def test_names_and_places_that_cannot_be_used_are_told_and_not_registered(cache, tree, text, message):
    for name in ("a:b", "a\nb"):
        (tree / name).mkdir()
    with pytest.raises(errors.UserError, match=message):
        userlands.resolve(text.format(tree=tree))
    assert list(cache.glob("registered/*")) == [] and list(matrix.load("userlands")) == matrix.shipped("userlands")


@pytest.mark.parametrize("name", ["a b", "a%b", "ü", "a,b", "q'\"$x"])
def test_folders_of_any_other_name_can_be_used(cache, tree, name):
    shutil.move(tree, tree.parent / name)
    assert ready(f"prefix:{tree.parent}/{name}").library_dirs[0] == tree.parent / name / LIBRARIES


def test_a_registration_is_whole_or_not_at_all(cache, tree, monkeypatch):
    name = userlands.resolve(f"mine=prefix:{tree}")
    before = (cache / "registered/mine.json").read_text()

    def full(path, _text):
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(pathlib.Path, "write_text", full)
    assert userlands.resolve(f"mine=prefix:{tree}") == name  # nothing is new
    with pytest.raises(errors.UserError, match="cannot be registered in .*: No space left on device"):
        userlands.resolve(f"other=prefix:{tree}")
    assert [path.name for path in (cache / "registered").iterdir()] == ["mine.json"]
    assert (cache / "registered/mine.json").read_text() == before


# --- package files

def test_packages_of_two_releases_are_no_userland(cache, tree, tmp_path):
    path = deb(tree, tmp_path / "debs")
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN/control").write_text("Package: libibverbs1\nVersion: 56.1-2\nArchitecture: amd64\n"
                                         "Maintainer: Nobody <nobody@example.org>\nDescription: made for a test\n")
    subprocess.run(["dpkg-deb", "-Znone", "-b", str(tree), str(path.parent / "other.deb")], check=True, capture_output=True)
    with pytest.raises(errors.UserError, match="two versions of libibverbs1") as caught:
        ready(f"deb:{path.parent}")
    assert caught.value.details == (f"44.0: {path}", f"56.1: {path.parent}/other.deb")
    assert leftovers(cache) == []


def test_the_version_is_told_whatever_the_file_is_called(cache, tree, tmp_path):
    path = deb(tree, tmp_path / "debs").rename(tmp_path / "any, name.deb")
    name = userlands.resolve(f"deb:{path}")
    assert local.version(local.from_entry(matrix.get("userlands", name))) == "unknown"
    assert userlands.get(name).source_version == "44.0"
    assert local.version(local.from_entry(matrix.get("userlands", name))) == "44.0"


def test_a_damaged_note_of_what_was_unpacked(cache, tree, tmp_path):
    name = userlands.resolve(f"deb:{deb(tree, tmp_path / 'debs')}")
    manifest = userlands.get(name).root.parent / "manifest.json"
    for text in ("", "[]", "{}", '{"files": []}'):
        manifest.write_text(text)
        with pytest.raises(errors.UserError, match="manifest.json is damaged"):
            userlands.get(name)


def test_deb_files(cache, tree, tmp_path):
    found = ready(f"deb:{deb(tree, tmp_path / 'debs').parent}")
    assert (found.source_version, found.plugin_suffix) == ("44.0", "rdmav34")
    assert str(found.root).startswith(str(cache / "local"))


def test_rpm_files(cache, tree, tmp_path):
    found = ready(f"rpm:{rpm(tree, tmp_path / 'rpms')}")
    assert (found.source_version, found.plugin_suffix) == ("44.0", "rdmav34")


def test_a_program_runs_in_it(cache, tree, tmp_path, release):
    shutil.copytree(release.root / "usr/bin", tree / "usr/bin")
    found = ready(f"rpm:{rpm(tree, tmp_path / 'rpms')}")
    argv, env = found.command(["ibv_devices"], None)
    env["LD_TRACE_LOADED_OBJECTS"] = "1"
    told = subprocess.run(argv, env=env, text=True, capture_output=True, timeout=30, check=True).stdout
    assert str(found.root / LIBRARIES / "libibverbs.so.1") in told


def test_a_path_that_leaves_the_root_is_refused(cache, tmp_path):
    path = rpm_of_one_file(tmp_path / "evil.x86_64.rpm", "../../../../evil")
    with pytest.raises(errors.UserError, match="has a path in it that leaves its root"):
        ready(f"rpm:{path}")
    assert leftovers(cache) == []


def test_another_name_in_the_same_rpm_is_unpacked(cache, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    packages.unpack(rpm_of_one_file(tmp_path / "good.x86_64.rpm", "./good"), root)
    assert (root / "good").read_text() == "out"


@pytest.mark.parametrize("kind", ["deb", "rpm"])
def test_a_damaged_package_leaves_nothing(cache, tree, tmp_path, kind):
    path = deb(tree, tmp_path / "p") if kind == "deb" else rpm(tree, tmp_path / "p")
    path.write_bytes(path.read_bytes()[:path.stat().st_size // 3])
    with pytest.raises(errors.UserError, match="cannot be unpacked"):
        ready(f"{kind}:{path}")
    assert leftovers(cache) == []


def test_another_machines_package_is_refused(cache, tree, tmp_path):
    with pytest.raises(errors.UserError, match="is for another machine: arm64"):
        ready(f"deb:{deb(tree, tmp_path / 'debs', 'arm64')}")


def test_a_package_that_changed_since_is_refused(cache, tree, tmp_path):
    path = deb(tree, tmp_path / "debs")
    name = userlands.resolve(f"deb:{path}")
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(errors.UserError, match="is not the file that was registered"):
        userlands.get(name)


def test_a_package_that_went_away_is_gone_unless_it_is_unpacked(cache, tree, tmp_path):
    path = deb(tree, tmp_path / "debs")
    name = userlands.resolve(f"deb:{path}")
    path.rename(path.with_suffix(".away"))
    assert local.state(local.from_entry(matrix.get("userlands", name)))[0] == "gone"
    with pytest.raises(errors.UserError, match="is gone"):
        userlands.get(name)
    path.with_suffix(".away").rename(path)
    userlands.get(name)
    path.unlink()
    assert local.state(local.from_entry(matrix.get("userlands", name)))[0] == "ready"
    userlands.get(name)


def test_changed_files_in_the_cache_are_noticed(cache, tree, tmp_path):
    name = userlands.resolve(f"deb:{deb(tree, tmp_path / 'debs')}")
    root = userlands.get(name).root
    netlink = next((root / LIBRARIES).glob("libnl-3.so.200.*"))
    content = netlink.read_bytes()
    netlink.write_bytes(bytes(len(content)))
    with pytest.raises(errors.UserError, match="its unpacked files were changed") as caught:
        userlands.get(name)
    assert caught.value.details == (f"root/{LIBRARIES}/{netlink.name}: changed",)
    netlink.write_bytes(content)
    userlands.get(name)
    library(root).unlink()
    with pytest.raises(errors.UserError, match=r"libibverbs.so.1.14.44.0: missing"):
        userlands.get(name)


def test_no_space_is_said_and_leaves_nothing(cache, tree, tmp_path, monkeypatch):
    path = deb(tree, tmp_path / "debs")

    def full(_path, root):
        (root / "half").write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(packages, "unpack", full)
    with pytest.raises(errors.UserError, match="cannot be put into the cache .*No space left"):
        ready(f"deb:{path}")
    assert leftovers(cache) == []


def test_a_folder_that_may_not_be_read_is_not_an_empty_one(cache, tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(errors.UserError, match=f"--userland deb:{tmp_path}: {tmp_path}: Permission denied"):
        userlands.resolve(f"deb:{tmp_path}")


def test_a_folder_without_packages_and_a_missing_file(cache, tmp_path):
    with pytest.raises(errors.UserError, match="there is no .rpm file in that folder"):
        ready(f"rpm:{tmp_path}")
    with pytest.raises(errors.UserError, match="there is no file"):
        ready(f"rpm:{tmp_path}/none.rpm")


# --- source trees

def test_a_folder_that_is_no_source_tree(cache, tmp_path):
    with pytest.raises(errors.UserError, match="is no source tree of rdma-core: there is no CMakeLists.txt"):
        ready(f"src:{tmp_path}")


def test_ioctl_modes_are_userlands_of_their_own(cache, tmp_path):
    for name in ("libibverbs/CMakeLists.txt", "CMakeLists.txt", "providers/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    names = {userlands.resolve(f"src:{tmp_path}{option}") for option in ("", ",ioctl_mode=write", ",ioctl_mode=ioctl")}
    assert len(names) == 3
    with pytest.raises(errors.UserError, match="unknown option 'ioctl_mode=none'"):
        userlands.resolve(f"src:{tmp_path},ioctl_mode=none")


def test_a_name_may_go_on_to_another_tree(cache, tmp_path):
    """CMake refuses a build folder that was configured for other sources."""
    for tree in ("one", "two"):
        for name in ("libibverbs/CMakeLists.txt", "CMakeLists.txt", "providers/x"):
            (tmp_path / tree / name).parent.mkdir(exist_ok=True, parents=True)
            (tmp_path / tree / name).write_text("cmake_minimum_required(VERSION 3.10)\nproject(x C)\n")
        with pytest.raises(errors.UserError, match="there is no libibverbs.so.1 below"):  # it builds, and nothing
            ready(f"mine=src:{tmp_path}/{tree}")


def _state(stat):
    """The letter of a process by /proc, X where there is none."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def test_a_build_without_end_is_ended_with_all_that_it_started(cache, tmp_path, monkeypatch):
    mark = tmp_path / "pid"
    for name in ("libibverbs/CMakeLists.txt", "CMakeLists.txt", "providers/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f'execute_process(COMMAND sh -c "echo $$ > {mark}; exec sleep 100")\n')
    monkeypatch.setattr(sources, "SECONDS", 3)
    with pytest.raises(errors.UserError, match=r"configuring .* was ended after 3 s"):
        ready(f"src:{tmp_path}")
    if mark.exists():  # a starved machine may not have come so far
        stat = pathlib.Path("/proc", mark.read_text().strip(), "stat")
        # On a busy machine one that was killed needs a moment to die, and who takes up orphans may let them lie for a while.
        deadline = time.monotonic() + 10
        while (left := _state(stat)) not in "ZX" and time.monotonic() < deadline:
            time.sleep(0.05)
        assert left in "ZX"


def test_a_build_that_fails_tells_its_errors(cache, tmp_path, monkeypatch):
    for name in ("libibverbs/CMakeLists.txt", "CMakeLists.txt", "providers/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('message(FATAL_ERROR "no such thing")\n')
    with pytest.raises(errors.UserError, match="configuring .* failed") as caught:
        ready(f"src:{tmp_path}")
    assert "no such thing" in str(caught.value) or "CMake Error" in str(caught.value)
    del monkeypatch


def test_a_name_is_no_place():
    assert not local.is_spec("deb-44.0") and local.is_spec("src:.") and local.is_spec("x=rpm:a.rpm")


def test_parts_are_found_in_other_layouts(tmp_path, release):
    """lib64 without Debian's triplet, as Fedora and /opt have it."""
    shutil.copytree(release.root / LIBRARIES, tmp_path / "lib64", symlinks=True)
    shutil.copytree(release.root / "etc", tmp_path / "etc")
    parts = rooted.find(tmp_path, "x")
    assert parts.library_dir == pathlib.Path(os.path.realpath(tmp_path)) / "lib64"
    assert sources.OPTIONS
