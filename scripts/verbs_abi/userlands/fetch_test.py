# SPDX-License-Identifier: BSD-2-Clause
"""Fetching, pinning, unpacking, and everything that can go wrong with it, from a made-up archive.
"""

import contextlib
import errno
import functools
import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from verbs_abi import paths, userlands
from verbs_abi.errors import UserError
from verbs_abi.userlands import definition, store
from verbs_abi.userlands.fake_archive import FakeArchive, rdma_core, write_definition

NAME = "deb-test"


class World:
    """A made-up archive with rdma-core 65.0-1 and libnl3, a matrix that pins them, and an empty
    cache.
    """

    def __init__(self, folder):
        self.cache = folder / "cache"
        self.matrix = folder / "matrix"
        self.archive = FakeArchive(folder / "archive")
        self.rows = self.add_release("65.0-1")
        self.rows.append(
            self.archive.add(
                "libnl-3-200",
                "3.12",
                {"lib/x86_64-linux-gnu/libnl-3.so.200": "libnl"},
                source="libnl3",
            )
        )
        self.archive.publish()
        self.pin()

    def add_release(self, version, suffix="rdmav65"):
        return [
            self.archive.add(name, version, files, source="rdma-core")
            for name, files in rdma_core(version, suffix).items()
        ]

    def pin(self, **changes):
        return write_definition(self.matrix, NAME, self.rows, **changes)

    def row(self, name):
        return next(row for row in self.rows if row["name"] == name)

    def store(self):
        return store.Store(definition.load(NAME))

    def leftovers(self):
        """What is in the cache of the userland beside finished folders."""
        folder = self.cache / "userlands" / NAME
        return [path.name for path in folder.glob("*") if path.name.startswith(".tmp")]

    def start(self, code):
        """Runs Python code in a process of its own, with this world's environment."""
        return subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(paths.SCRIPTS)},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    """The folder over HTTP on the loopback; yields its URI."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(name="world", params=["file", "http"])
def _world(tmp_path, monkeypatch, request):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("VERBS_ABI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("VERBS_ABI_MATRIX", str(tmp_path / "matrix"))
    world = World(tmp_path)
    if request.param == "file":
        monkeypatch.setenv("VERBS_ABI_DEBIAN_MIRROR", world.archive.mirror)
        yield world
    else:
        with served(world.archive.folder) as uri:
            monkeypatch.setenv("VERBS_ABI_DEBIAN_MIRROR", f"[trusted=yes] {uri}")
            yield world


def test_pinned_packages_are_unpacked_into_one_root(world):
    assert world.store().state() == ("not fetched", "")
    userland = userlands.get(NAME)
    assert (
        userland.root / "usr/lib/x86_64-linux-gnu/libibverbs.so.1"
    ).read_text() == "libibverbs 65.0-1"
    assert (userland.config_dir / "mlx5.driver").exists()
    assert userland.source_version == "65.0-1"
    assert userland.substituted == ()
    assert world.store().state() == ("ready", "")
    assert world.store().damage() == []


def test_packages_from_before_the_usr_merge_land_in_usr(world):
    root = userlands.get(NAME).root
    assert (root / "lib").is_symlink()
    assert (root / "usr/lib/x86_64-linux-gnu/libnl-3.so.200").read_text() == "libnl"


def test_what_is_ready_needs_no_archive(world, capfd):
    userlands.get(NAME)
    shutil.rmtree(world.archive.folder)
    capfd.readouterr()
    userlands.get(NAME)
    assert capfd.readouterr().err == ""


def test_a_lost_root_is_unpacked_again_from_the_cached_packages(world):
    shutil.rmtree(userlands.get(NAME).root.parent)
    shutil.rmtree(world.archive.folder)
    assert userlands.get(NAME).config_dir.is_dir()


def test_another_pin_makes_it_stale_and_the_old_folder_stays(world):
    old = userlands.get(NAME).root
    world.rows = world.add_release("66.0-1", "rdmav66") + [world.row("libnl-3-200")]
    world.pin(plugin_suffix="rdmav66")
    assert world.store().state()[0] == "stale"
    new = userlands.get(NAME)
    assert (new.source_version, new.plugin_suffix) == ("66.0-1", "rdmav66")
    assert (old / "usr/lib/x86_64-linux-gnu/libibverbs.so.1").read_text() == "libibverbs 65.0-1"


def test_a_version_that_left_the_archive_is_replaced_with_all_of_its_source_and_a_notice(
    world, capfd
):
    world.archive.withdraw(world.row("libibverbs1"))
    world.add_release("66.0-1", "rdmav66")
    world.archive.publish()
    userland = userlands.get(NAME)
    assert {
        name: userland.versions[name] for name in userland.versions if name != "libnl-3-200"
    } == {"libibverbs1": "66.0-1", "ibverbs-providers": "66.0-1", "ibverbs-utils": "66.0-1"}
    assert userland.versions["libnl-3-200"] == "3.12"
    assert userland.plugin_suffix == "rdmav66"
    assert "notice: libibverbs1 66.0-1 instead of 65.0-1" in capfd.readouterr().err
    state, remark = world.store().state()
    assert state == "ready" and "libibverbs1 66.0-1 instead of 65.0-1" in remark


def test_the_pinned_version_is_taken_again_when_asked_for(world):
    row = world.row("libibverbs1")
    kept = (world.archive.folder / row["file"]).read_bytes()
    world.archive.withdraw(row)
    world.add_release("66.0-1")
    world.archive.publish()
    assert userlands.get(NAME).source_version == "66.0-1"
    (world.archive.folder / row["file"]).write_bytes(kept)
    assert userlands.get(NAME).source_version == "66.0-1"
    assert userlands.get(NAME, again=True).source_version == "65.0-1"


def test_a_required_package_that_is_gone_is_named_with_its_suite(world):
    world.archive.withdraw(world.row("ibverbs-providers"))
    world.archive.publish()
    with pytest.raises(UserError) as caught:
        userlands.get(NAME)
    text = str(caught.value)
    assert "ibverbs-providers 65.0-1 is no longer in Debian's suite sid" in text
    assert (
        "No other userland is in the cache yet; commands that run no userland still work." in text
    )
    assert world.store().state()[0] == "gone"
    assert world.store().manifest() is None
    assert world.leftovers() == []


def test_the_message_names_the_userlands_that_still_work(world):
    write_definition(world.matrix, "deb-other", world.rows)
    userlands.get("deb-other")
    shutil.rmtree(world.cache / "debs")
    world.archive.withdraw(world.row("ibverbs-providers"))
    world.archive.publish()
    with pytest.raises(UserError, match="these userlands still work: deb-other "):
        userlands.get(NAME)


def test_an_optional_package_that_is_gone_leaves_the_rest_usable(world, capfd):
    world.row("ibverbs-utils").update(required=False, purpose="ping-pongs")
    world.pin()
    world.archive.withdraw(world.archive.listed["ibverbs-utils"])
    world.archive.publish()
    userland = userlands.get(NAME)
    assert "ibverbs-utils" not in userland.versions
    assert "notice: ibverbs-utils is missing (ping-pongs)" in capfd.readouterr().err
    with pytest.raises(UserError) as caught:
        userland.find_program("ibv_nothing")
    assert "package ibverbs-utils is missing (ping-pongs)" in str(caught.value)


def test_a_package_that_is_not_the_pinned_one_is_refused(world):
    row = world.row("libibverbs1")
    (world.archive.folder / row["file"]).write_bytes(b"something else")
    with pytest.raises(UserError) as caught:
        userlands.get(NAME)
    assert "not the pinned package" in str(caught.value)
    assert f"libibverbs1: expected SHA-256 {row['sha256']}" in str(caught.value)
    assert world.store().state()[0] == "not fetched"
    assert not (world.cache / "debs" / f"{row['sha256']}.deb").exists()
    assert world.leftovers() == []


def test_a_damaged_file_in_the_cache_is_fetched_again(world):
    shutil.rmtree(userlands.get(NAME).root.parent)
    deb = world.cache / "debs" / f"{world.row('libibverbs1')['sha256']}.deb"
    deb.write_bytes(deb.read_bytes()[:100])
    assert userlands.get(NAME).source_version == "65.0-1"


def test_a_package_that_cannot_be_unpacked_is_named_and_leaves_nothing(world):
    row = world.row("ibverbs-providers")
    deb = world.archive.folder / row["file"]
    deb.write_bytes(deb.read_bytes()[:-700])
    row["sha256"] = userlands.fetch.archive.sha256_of(deb)
    world.pin()
    with pytest.raises(UserError) as caught:
        userlands.get(NAME)
    assert "package ibverbs-providers 65.0-1 cannot be unpacked" in str(caught.value)
    assert world.store().manifest() is None
    assert world.leftovers() == []
    assert not (world.cache / "debs" / f"{row['sha256']}.deb").exists()


@pytest.mark.parametrize("world", ["file"], indirect=True)
def test_without_a_network_the_message_names_package_suite_and_what_to_do(world, monkeypatch):
    monkeypatch.setenv("VERBS_ABI_DEBIAN_MIRROR", "http://127.0.0.1:9/debian")
    with pytest.raises(UserError) as caught:
        userlands.get(NAME)
    text = str(caught.value)
    assert "packages of Debian's sid could not be fetched, the archive does not answer" in text
    assert "libibverbs1 65.0-1 (sid): Could not connect to 127.0.0.1:9" in text
    assert "VERBS_ABI_DEBIAN_MIRROR" in text
    assert world.leftovers() == []


@pytest.mark.parametrize("world", ["file"], indirect=True)
def test_the_next_mirror_is_asked_for_what_the_first_does_not_give(world, monkeypatch):
    monkeypatch.setenv(
        "VERBS_ABI_DEBIAN_MIRROR", f"http://127.0.0.1:9/debian, {world.archive.mirror}"
    )
    assert userlands.get(NAME).source_version == "65.0-1"


def test_a_mirror_that_is_no_uri_is_refused(world, monkeypatch):
    monkeypatch.setenv("VERBS_ABI_DEBIAN_MIRROR", "not a mirror")
    with pytest.raises(UserError, match="VERBS_ABI_DEBIAN_MIRROR: 'not a mirror' is not a URI"):
        userlands.get(NAME)


@pytest.mark.parametrize("name", ["root/usr/lib/x86_64-linux-gnu/libibverbs/libmlx5-rdmav65.so",
                                  "root/usr/lib/x86_64-linux-gnu/libnl-3.so.200", "root/usr/bin/ibv_devices",
                                  "root/etc/libibverbs.d/mlx5.driver"])
def test_what_a_userland_runs_is_checked_at_each_use_and_mended(world, name):
    here = userlands.get(NAME).root.parent
    path = here / name
    content, status = path.read_bytes(), path.stat()
    path.chmod(0o755)
    # Of the same length and age: only the time of the change tells.
    path.write_bytes(bytes(len(content)))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert world.store().state() == ("stale", f"damaged: {name}: changed")
    assert userlands.get(NAME).root.parent == here and path.read_bytes() == content
    path.unlink()
    assert world.store().state()[0] == "stale"
    assert userlands.get(NAME).root.parent == here and path.read_bytes() == content
    assert world.store().state() == ("ready", "") and world.leftovers() == []


def test_a_cache_that_may_only_be_read_can_be_used(world, monkeypatch):
    root = userlands.get(NAME).root

    def refuse(*_arguments, **_more):
        raise OSError(errno.EROFS, "Read-only file system")

    for name in ("write_text", "replace", "touch"):
        monkeypatch.setattr(pathlib.Path, name, refuse)
    (world.cache / "userlands" / NAME / f"{root.parent.name}.seen").unlink(missing_ok=True)
    assert userlands.get(NAME).root == root and world.store().state() == ("ready", "")


def test_the_deep_check_finds_changed_missing_and_foreign_files_and_mends_them(world):
    userland = userlands.get(NAME)
    library = userland.root / "usr/lib/x86_64-linux-gnu/libibverbs.so.1"
    library.write_text("tampered")
    (userland.config_dir / "mlx5.driver").unlink()
    (userland.config_dir / "evil.driver").write_text("driver evil\n")
    assert world.store().is_ready()
    assert world.store().damage() == [
        "root/etc/libibverbs.d/mlx5.driver: missing",
        "root/usr/lib/x86_64-linux-gnu/libibverbs.so.1: changed",
        "root/etc/libibverbs.d/evil.driver: was not unpacked from a package",
    ]
    assert userlands.get(NAME, deep=True).root == userland.root
    assert world.store().damage() == []
    assert library.read_text() == "libibverbs 65.0-1"
    assert world.leftovers() == []


BLOCK_IN_UNPACK = f"""
import pathlib, sys, time
from verbs_abi import userlands
real = userlands.store._unpack
def slow(deb, root, package):
    real(deb, root, package)
    print("unpacked", flush=True)
    time.sleep(600)
userlands.store._unpack = slow
userlands.get({NAME!r})
"""


def test_a_run_killed_while_unpacking_leaves_nothing_that_the_next_one_takes_for_ready(world):
    with world.start(BLOCK_IN_UNPACK) as killed:
        assert killed.stdout.readline() == "unpacked\n"
        killed.send_signal(signal.SIGKILL)
    assert world.store().state() == ("not fetched", "")
    assert world.leftovers() != []
    assert userlands.get(NAME).source_version == "65.0-1"
    assert world.store().damage() == []
    assert world.leftovers() == []


def test_the_second_of_two_runs_waits_and_takes_what_the_first_unpacked(world):
    with world.start(BLOCK_IN_UNPACK.replace("600", "0.3")) as first:
        assert first.stdout.readline() == "unpacked\n"
        with world.start(
            f"from verbs_abi import userlands; print(userlands.get({NAME!r}).root)"
        ) as second:
            out, err = second.communicate(timeout=60)
        first.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 0)
    assert out.strip() == str(userlands.get(NAME).root)
    assert err == "userland deb-test: waiting for another run that is fetching deb-test\n"
    folders = [
        path
        for path in (world.cache / "userlands" / NAME).iterdir()
        if path.is_dir() and not path.is_symlink()
    ]
    assert len(folders) == 1


def test_a_cache_that_cannot_be_written_is_told(world):
    world.cache.mkdir()
    (world.cache / "userlands").write_text("in the way")
    with pytest.raises(UserError) as caught:
        userlands.get(NAME)
    assert f"userland 'deb-test' cannot be put into the cache {world.cache}" in str(caught.value)


def test_an_unknown_userland_ends_with_the_nearest_names(world):
    with pytest.raises(UserError) as caught:
        userlands.get("deb-tset")
    assert str(caught.value) == "unknown userland 'deb-tset'\nNearest: deb-test"


def test_a_prefix_without_its_path_is_refused_by_name(world):
    path = world.matrix / "userlands" / "my-tree.json"
    path.write_text(
        json.dumps(
            {
                "name": "my-tree",
                "kind": "prefix",
                "title": "mine",
                "stack": "rdma-core",
                "arch": "x86_64",
            }
        )
    )
    with pytest.raises(UserError, match="my-tree.json: /path: is missing"):
        userlands.get("my-tree")


def test_a_cache_path_that_the_dynamic_linker_would_split_is_refused(world, monkeypatch, tmp_path):
    monkeypatch.setenv("VERBS_ABI_CACHE", str(tmp_path / "a:b"))
    with pytest.raises(UserError, match="the cache folder's path has one of"):
        userlands.get(NAME)
