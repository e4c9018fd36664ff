# SPDX-License-Identifier: BSD-2-Clause
"""How programs are started in a userland."""

import os
import subprocess

import pytest

from verbs_abi.errors import UserError
from verbs_abi.userlands import elf, userland

LIB = "usr/lib/x86_64-linux-gnu"
SLEEP = "/usr/bin/sleep"


def make(folder, own_libc=False):
    root, libc = folder / "root", folder / "libc"
    for path in (root / "usr/bin", root / LIB / "libibverbs", root / "etc/libibverbs.d"):
        path.mkdir(parents=True)
    return userland.Userland(
        name="deb-test",
        stack="rdma-core",
        arch="x86_64",
        source_version="65.0-1",
        digest="0",
        root=root,
        libc_root=libc if own_libc else None,
        library_dirs=(root / LIB, root / LIB / "libibverbs", *([libc / LIB] if own_libc else [])),
        loader=libc / LIB / "ld-linux-x86-64.so.2" if own_libc else None,
        providers_dir=root / LIB / "libibverbs",
        config_dir=root / "etc/libibverbs.d",
        include_dir=root / "usr/include",
        plugin_suffix="rdmav65",
        private_abi="IBVERBS_PRIVATE_65",
        versions={},
        substituted=(),
    )


def script(path, first_line, mode=0o755):
    path.write_text(f"{first_line}\necho hello\n")
    path.chmod(mode)
    return str(path)


def test_on_the_machines_libc_the_shim_is_preloaded_before_everything_else(tmp_path):
    here = make(tmp_path)
    argv, env = here.command(
        [SLEEP, "1"],
        "/b/libshim.so",
        {"LD_PRELOAD": "/x.so", "LD_LIBRARY_PATH": "/mine:", "A": "b"},
    )
    assert argv == [SLEEP, "1"]
    assert env["LD_PRELOAD"] == "/b/libshim.so:/x.so"
    assert env["LD_LIBRARY_PATH"] == f"{here.root}/{LIB}:{here.root}/{LIB}/libibverbs:/mine"
    assert env["VERBS_ABI_REDIRECT"] == (
        f"/etc/libibverbs.d={here.root}/etc/libibverbs.d:"
        f"/{LIB}/libibverbs={here.root}/{LIB}/libibverbs"
    )
    assert env["A"] == "b"
    assert "VERBS_ABI_LOADER" not in env and "VERBS_ABI_LIBRARY_PATH" not in env


def test_an_own_libc_is_used_through_its_own_loader_and_kept_out_of_the_environment(
    tmp_path,
):
    here = make(tmp_path, own_libc=True)
    argv, env = here.command([SLEEP, "1"], "/b/libshim.so", {"LD_LIBRARY_PATH": "/mine"})
    dirs = f"{here.root}/{LIB}:{here.root}/{LIB}/libibverbs:{here.libc_root}/{LIB}:/mine"
    assert argv == [
        str(here.loader),
        "--preload",
        "/b/libshim.so",
        "--library-path",
        dirs,
        "--argv0",
        SLEEP,
        SLEEP,
        "1",
    ]
    assert env["LD_LIBRARY_PATH"] == "/mine"
    assert "LD_PRELOAD" not in env
    assert env["VERBS_ABI_LOADER"] == str(here.loader)
    assert env["VERBS_ABI_LIBRARY_PATH"] == dirs


def test_a_loader_of_an_outer_userland_does_not_leak_into_one_without(tmp_path):
    _, env = make(tmp_path).command(
        [SLEEP], None, {"VERBS_ABI_LOADER": "/x", "VERBS_ABI_LIBRARY_PATH": "/y"}
    )
    assert "VERBS_ABI_LOADER" not in env and "VERBS_ABI_LIBRARY_PATH" not in env


def test_a_shim_whose_path_has_a_space_is_preloaded_by_its_name(tmp_path):
    for own_libc in (False, True):
        here = make(tmp_path / str(own_libc), own_libc)
        argv, env = here.command([SLEEP], "/b uild/libshim.so", {})
        text = argv[argv.index("--library-path") + 1] if own_libc else env["LD_LIBRARY_PATH"]
        assert text.endswith(":/b uild")
        assert (
            argv[argv.index("--preload") + 1] if own_libc else env["LD_PRELOAD"]
        ) == "libshim.so"


def test_the_dynamic_linker_really_preloads_a_shim_from_a_path_with_a_space(tmp_path):
    folder = tmp_path / "with space"
    folder.mkdir()
    (folder / "shim.c").write_text(
        '#include <unistd.h>\n__attribute__((constructor)) static void hello(void) '
        '{ (void)!write(1, "shim\\n", 5); }\n'
    )
    shim = folder / "libshim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(shim), str(folder / "shim.c")], check=True)
    argv, env = make(tmp_path).command(["/usr/bin/true"], shim, dict(os.environ))
    assert (
        subprocess.run(argv, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
        == "shim\n"
    )


def test_the_roots_own_programs_come_first(tmp_path, monkeypatch):
    here = make(tmp_path)
    other = tmp_path / "bin"
    other.mkdir()
    for name in ("ibv_devices", "only_there"):
        script(other / name, "#!/bin/sh")
    mine = script(here.root / "usr/bin/ibv_devices", "#!/bin/sh")
    monkeypatch.setenv("PATH", f"{other}:{os.environ['PATH']}")
    assert here.find_program("ibv_devices") == mine
    assert here.find_program("only_there") == str(other / "only_there")
    with pytest.raises(UserError, match="no program 'nowhere' in userland 'deb-test' nor in PATH"):
        here.find_program("nowhere")
    with pytest.raises(UserError, match="no program /nowhere/x"):
        here.find_program("/nowhere/x")


def test_a_script_is_started_with_its_interpreter_so_that_the_loader_can_take_it(tmp_path):
    here = make(tmp_path, own_libc=True)
    path = script(here.root / "usr/bin/ibstatus", "#! /bin/sh -e")
    argv, _ = here.command(["ibstatus", "mlx5_0"], None, {})
    assert argv[-5:] == ["/bin/sh", "/bin/sh", "-e", path, "mlx5_0"]


def test_programs_that_nothing_can_be_preloaded_into_are_named(tmp_path):
    here = make(tmp_path)
    (tmp_path / "x.c").write_text("int main(void) { return 0; }\n")
    static = tmp_path / "static"
    subprocess.run(["cc", "-static", "-o", str(static), str(tmp_path / "x.c")], check=True)
    with pytest.raises(
        elf.NotInterceptable, match=f"not interceptable: {static} is statically linked"
    ):
        here.command([str(static)], None, {})

    dynamic = tmp_path / "dynamic"
    subprocess.run(["cc", "-o", str(dynamic), str(tmp_path / "x.c")], check=True)
    here.command([str(dynamic)], None, {})
    image = dynamic.read_bytes()
    musl = tmp_path / "musl"
    musl.write_bytes(
        image.replace(b"/lib64/ld-linux-x86-64.so.2", b"/lib/ld-musl-x86_64.so.1\0\0\0")
    )
    musl.chmod(0o755)
    with pytest.raises(
        elf.NotInterceptable, match="runs on another C library .*/lib/ld-musl-x86_64.so.1"
    ):
        here.command([str(musl)], None, {})
    other = tmp_path / "other"
    other.write_bytes(image[:18] + b"\xb7\x00" + image[20:])  # EM_AARCH64
    other.chmod(0o755)
    with pytest.raises(elf.NotInterceptable, match="is not an x86-64 program"):
        here.command([str(other)], None, {})
    with pytest.raises(elf.NotInterceptable, match="neither an ELF program nor a script"):
        here.command([script(tmp_path / "text", "hello")], None, {})
    loop = tmp_path / "loop"
    script(loop, f"#!{loop}")
    with pytest.raises(elf.NotInterceptable, match="scripts upon scripts"):
        here.command([str(loop)], None, {})


def test_its_own_pyverbs_comes_before_the_machines(tmp_path):
    here = make(tmp_path)
    assert "PYTHONPATH" not in here.command([SLEEP], None, {})[1]
    (here.root / "usr/lib/python3/dist-packages/pyverbs").mkdir(parents=True)
    assert here.command([SLEEP], None, {"PYTHONPATH": "/mine"})[1]["PYTHONPATH"] == (
        f"{here.root}/usr/lib/python3/dist-packages:/mine"
    )
