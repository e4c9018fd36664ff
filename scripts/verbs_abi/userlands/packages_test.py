# SPDX-License-Identifier: BSD-2-Clause
"""Packages that are not what they should be: what is said, and that nothing stays."""

import gzip
import io
import os
import signal
import stat
import struct
import subprocess
import sys
import tarfile
import time

import pytest

from verbs_abi import errors, paths
from verbs_abi.userlands import packages

CONTROL = "Package: libibverbs1\nVersion: {version}\nArchitecture: {machine}\nMaintainer: N <n@example.org>\nDescription: of a test\n"


def tar(*entries):
    """An archive of (name, type, mode, link or content)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, kind, mode, more in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, mode
            if kind == tarfile.REGTYPE:
                info.size = len(more)
            elif more is not None:
                info.linkname = more
            archive.addfile(info, io.BytesIO(more) if kind == tarfile.REGTYPE else None)
    return out.getvalue()


def deb(path, *entries, machine="amd64", version="44.0-2", data=None):
    """A .deb of these entries; data: (name, bytes) of the member that holds them."""
    control = tar(("./control", tarfile.REGTYPE, 0o644, CONTROL.format(machine=machine, version=version).encode()))
    content = b"!<arch>\n"
    for name, body in (("debian-binary", b"2.0\n"), ("control.tar", control), data or ("data.tar", tar(*entries))):
        content += f"{name:16}{0:<12}{0:<6}{0:<6}{'100644':8}{len(body):<10}`\n".encode() + body + b"\n" * (len(body) % 2)
    path.write_bytes(content)
    return path


def file(name, content=b"x", mode=0o644):
    return name, tarfile.REGTYPE, mode, content


def link(name, target, kind=tarfile.SYMTYPE):
    return name, kind, 0o777, target


@pytest.fixture(name="root")
def _root(tmp_path):
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.mark.parametrize("entries, message", [
    ([file("./../../evil")], "has a path in it that leaves its root"),
    ([link("./out", "{outside}"), file("./out/evil")], "has a path in it that leaves its root"),
    ([link("./hard", "../../../../../../etc/passwd", tarfile.LNKTYPE)], "has a path in it that leaves its root"),
    ([("./dev/null", tarfile.CHRTYPE, 0o666, None)], "something other than files in it: dev/null"),
    ([("./pipe", tarfile.FIFOTYPE, 0o666, None)], "something other than files in it: pipe"),
])
def test_what_a_package_may_not_have(tmp_path, root, entries, message):
    outside = tmp_path / "outside"
    outside.mkdir()
    entries = [(name, kind, mode, more.format(outside=outside) if isinstance(more, str) else more)
               for name, kind, mode, more in entries]
    with pytest.raises(errors.UserError, match=message):
        packages.unpack(deb(tmp_path / "x.deb", *entries), root)
    assert list(outside.iterdir()) == [] and not (tmp_path / "evil").exists()


def test_an_absolute_path_stays_below_the_root(tmp_path, root):
    packages.unpack(deb(tmp_path / "x.deb", file("/usr/lib/here")), root)
    assert (root / "usr/lib/here").read_bytes() == b"x"


def test_nobody_runs_as_another_user_and_all_can_be_read(tmp_path, root):
    packages.unpack(deb(tmp_path / "x.deb", file("./su", mode=0o6755), ("./locked", tarfile.DIRTYPE, 0, None),
                        file("./locked/in", mode=0)), root)
    modes = [stat.S_IMODE((root / name).lstat().st_mode) for name in ("su", "locked", "locked/in")]
    assert modes[0] & 0o7000 == 0 and modes[0] & 0o100 and modes[1] & 0o700 == 0o700 and modes[2] & 0o400


@pytest.mark.parametrize("length", [0, 1, 60, 100, 500, 2000, -1, -600])
def test_half_a_package_is_told_in_one_sentence(tmp_path, root, length):
    path = deb(tmp_path / "x.deb", file("./a", os.urandom(4000)), file("./b", os.urandom(4000)))
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(errors.UserError) as caught:
        packages.read(path)
        packages.unpack(path, root)
    assert (caught.value.what, caught.value.details) == (f"{path} cannot be unpacked: its end is missing", ())


def test_damaged_contents_are_told_in_one_sentence(tmp_path, root):
    body = bytearray(gzip.compress(tar(file("./a", os.urandom(100000)))))
    body[50000:50064] = bytes(64)
    with pytest.raises(errors.UserError) as caught:
        packages.unpack(deb(tmp_path / "x.deb", data=("data.tar.gz", bytes(body))), root)
    assert caught.value.what.startswith(f"{tmp_path}/x.deb cannot be unpacked: ") and not caught.value.details


@pytest.mark.parametrize("kind", ["deb", "rpm"])
def test_a_package_that_would_fill_the_disk_is_not_unpacked(tmp_path, root, monkeypatch, kind):
    monkeypatch.setattr(packages, "BYTES", 4 << 20)
    path = tmp_path / f"x.{kind}"
    if kind == "deb":
        deb(path, data=("data.tar.gz", gzip.compress(tar(file("./zeros", bytes(40 << 20))))))
    else:
        path.write_bytes(rpm(cpio=[("./zeros", bytes(40 << 20))]))
    monkeypatch.setattr(packages, "BYTES", 4 << 20)
    with pytest.raises(errors.UserError, match="its files are more than"):
        packages.unpack(path, root)
    assert sum(512 * found.stat().st_blocks for found in root.rglob("*")) <= 8 << 20


def test_no_space_left_is_said(tmp_path, root, monkeypatch):
    """/dev/full answers ENOSPC to every write."""
    monkeypatch.setitem(packages._WRITERS, ".deb", ["sh", "-c", "cat > /dev/full || { cat > /dev/null; exit 2; }"])
    with pytest.raises(errors.UserError, match=f"no space is left in {paths.cache_dir()}"):
        packages.unpack(deb(tmp_path / "x.deb", file("./a", bytes(100000))), root)


def test_an_end_is_waited_for_only_so_long(tmp_path, root, monkeypatch):
    monkeypatch.setattr(packages, "SECONDS", 0.3)
    monkeypatch.setitem(packages._READERS, ".deb", lambda _path: ["sleep", "60"])
    begin = time.monotonic()
    with pytest.raises(errors.UserError, match="no end after"):
        packages.unpack(deb(tmp_path / "x.deb"), root)
    assert time.monotonic() - begin < 50


def test_what_a_deb_says_of_itself(tmp_path):
    found = packages.read(deb(tmp_path / "any name.deb", version="1:56.1-2~bpo12"))
    assert (found.name, found.version, found.machine) == ("libibverbs1", "56.1", "amd64")
    with pytest.raises(errors.UserError, match="is for another machine: i386"):
        packages.read(deb(tmp_path / "x.deb", machine="i386"))


def rpm(tags=(), cpio=(), lead_type=0):
    """An rpm with these header strings {tag: text} and files."""
    def header(strings):
        index, store = b"", b""
        for tag, text in strings:
            index += struct.pack(">IIII", tag, 6, len(store), 1)
            store += text.encode() + b"\0"
        return b"\x8e\xad\xe8\x01" + bytes(4) + struct.pack(">II", len(strings), len(store)) + index + store

    def entry(name, data, mode=0o100644):
        fields = [1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)

    signature = header([(1000, "of the signature, which is no name")])
    signature += bytes(-len(signature) % 8)
    payload = b"".join(entry(*one) for one in cpio) + entry("TRAILER!!!", b"", 0)
    return (b"\xed\xab\xee\xdb\x03\0" + struct.pack(">H", lead_type) + bytes(88) + signature + header(list(tags))
            + gzip.compress(payload))


@pytest.mark.parametrize("tags, lead, name, told", [
    ([(1000, "libibverbs"), (1001, "54.0"), (1022, "x86_64")], 0, "x.rpm", ("libibverbs", "54.0", "x86_64")),
    ([], 0, "rdma-core-44.0-2.el9.x86_64.rpm", ("rdma-core", "44.0", "x86_64")),
    ([(1022, "aarch64")], 0, "rdma-core-44.0-2.el9.x86_64.rpm", "is for another machine: aarch64"),
    ([(1022, "x86_64")], 1, "rdma-core-44.0-2.el9.src.rpm", "is for another machine: source"),
    ([], 0, "x.rpm", "is for another machine: it does not say which"),
])
def test_what_an_rpm_says_of_itself(tmp_path, tags, lead, name, told):
    (tmp_path / name).write_bytes(rpm(tags, lead_type=lead))
    if isinstance(told, str):
        with pytest.raises(errors.UserError, match=told):
            packages.read(tmp_path / name)
    else:
        found = packages.read(tmp_path / name)
        assert (found.name, found.version, found.machine) == told


@pytest.mark.parametrize("content, message", [
    (b"", "does not start as an rpm"), (b"text", "does not start as an rpm"),
    (rpm()[:50], "its end is missing"), (rpm()[:100], "its header is damaged or missing"),
    (rpm([(1000, "name")])[:-30], None), (rpm()[:96] + b"\x8e\xad\xe8\x01" + bytes(4) + b"\xff" * 8, "no package has"),
    (rpm()[:96] + b"\x8e\xad\xe8\x01" + bytes(4) + struct.pack(">II", 9, 9), "its end is missing"),
])
def test_damaged_rpms(tmp_path, root, content, message):
    path = tmp_path / "libibverbs-44.0-1.x86_64.rpm"
    path.write_bytes(content)
    with pytest.raises(errors.UserError, match=message or "cannot be unpacked"):
        packages.read(path)
        packages.unpack(path, root)


def test_a_run_that_is_interrupted_ends_its_programs(tmp_path, root):
    """Ctrl-C while a package is unpacked: no program of ours stays."""
    mark = tmp_path / "pid"
    program = ("import sys, pathlib\nfrom verbs_abi.userlands import packages\n"
               f"packages._READERS['.deb'] = lambda _: ['sh', '-c', 'echo $$ > {mark}; exec sleep 60']\n"
               f"packages.unpack(pathlib.Path('{deb(tmp_path / 'x.deb')}'), '{root}')\n")
    with subprocess.Popen([sys.executable, "-c", program], cwd=paths.SCRIPTS, stderr=subprocess.DEVNULL) as run:
        end = time.monotonic() + 30
        while not (mark.exists() and mark.read_text().strip()) and time.monotonic() < end:
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=30) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)
