# SPDX-License-Identifier: BSD-2-Clause
"""The four real releases, from Debian's archive or the cache: each runs on its own libraries alone.
"""

import os
import re
import subprocess

import pytest

from verbs_abi import userlands
from verbs_abi.userlands import archive, definition

# As Debian's package contents say: version, the plug-ins' private ABI, their number.
RELEASES = {
    "deb-33.2": ("33.2-1", "rdmav33", 15),
    "deb-44.0": ("44.0-2", "rdmav34", 17),
    "deb-56.1": ("56.1-1", "rdmav34", 17),
    "deb-65.0": ("65.0-1.1", "rdmav65", 18),
}

LOAD_EVERYTHING = """
import ctypes, glob, sys
for name in ("libibverbs.so.1", "librdmacm.so.1", "libibumad.so.3"):
    ctypes.CDLL(name, ctypes.RTLD_GLOBAL)
for path in sorted(glob.glob(sys.argv[1] + "/*.so")):
    ctypes.CDLL(path)
print(open("/proc/self/maps").read())
"""


@pytest.fixture(name="release", params=RELEASES, scope="module")
def _release(request):
    return userlands.get(request.param)


def run(userland, argv, **changes):
    argv, env = userland.command(argv, None, {**os.environ, **changes})
    return subprocess.run(argv, env=env, text=True, capture_output=True, timeout=60, check=False)


def test_a_release_is_what_its_name_says(release):
    version, suffix, providers = RELEASES[release.name]
    if not release.substituted:
        assert release.source_version == version
        assert release.plugin_suffix == suffix
        assert len(list(release.providers_dir.glob(f"lib*-{suffix}.so"))) == providers
        assert len(list(release.config_dir.glob("*.driver"))) == providers
    assert (release.include_dir / "infiniband/verbs.h").is_file()
    library = (release.root / "usr/lib/x86_64-linux-gnu/libibverbs.so.1").read_bytes()
    assert release.private_abi.encode() + b"\0" in library or release.substituted
    assert f"lib%s-{release.plugin_suffix}.so".encode() in library


def test_every_provider_of_a_release_loads_with_only_its_own_libraries(release):
    result = run(release, ["/usr/bin/python3", "-c", LOAD_EVERYTHING, str(release.providers_dir)])
    assert result.returncode == 0, result.stderr
    found = release.mapped_ok(result.stdout)
    assert found.ok, found
    names = {os.path.basename(path).split(".so")[0] for path in found.own}
    assert {
        "libibverbs",
        "librdmacm",
        "libmlx5",
        f"librxe-{release.plugin_suffix}",
        "libnl-3",
        "libnl-route-3",
    } <= names


def test_another_releases_library_is_noticed(release):
    other = userlands.get("deb-44.0" if release.name != "deb-44.0" else "deb-33.2")
    result = run(release, ["/usr/bin/python3", "-c", LOAD_EVERYTHING, str(release.providers_dir)])
    theirs = str(other.root / "usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.0")
    line = f"7f0000010000-7f0000011000 r-xp 00000000 fe:00 1234 {theirs}\n"
    assert release.mapped_ok(result.stdout + line).strays == (theirs,)


def test_its_tools_run_from_its_root(release):
    listed = run(release, ["ibv_devices"], LD_TRACE_LOADED_OBJECTS="1")
    maps = "\n".join(
        f"7f0000010000-7f0000011000 r-xp 00000000 fe:00 1 {path}"
        for path in re.findall(r"(/\S+) \(0x", listed.stdout)
    )
    found = release.mapped_ok(maps)
    assert found.ok, found
    assert any("libibverbs.so.1" in path for path in found.own)
    # Whatever this machine has of devices: the program gets as far as looking for them.
    result = run(release, ["ibv_devices"])
    assert result.returncode in (0, 1)
    assert "device" in result.stdout + result.stderr


@pytest.fixture(name="shim", scope="module")
def _shim(tmp_path_factory):
    folder = tmp_path_factory.mktemp("with space")
    (folder / "shim.c").write_text(
        "#include <unistd.h>\n__attribute__((constructor)) static void hello(void)\n"
        '{ (void)!write(1, "shim\\n", 5); }\n'
    )
    shim = folder / "libshim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, folder / "shim.c"], check=True)
    return shim


def test_a_shim_is_preloaded_into_its_programs_and_scripts(release, shim, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho $0 $1\n")
    script.chmod(0o755)
    for words, expected in ((["/usr/bin/true"], "shim\n"), ([script, "x"], f"shim\n{script} x\n")):
        argv, env = release.command(list(map(str, words)), shim)
        result = subprocess.run(
            argv, env=env, text=True, capture_output=True, timeout=60, check=False
        )
        assert (result.stdout, result.returncode) == (expected, 0), result.stderr


def test_the_shipped_definitions_agree_with_themselves():
    for name, wanted in definition.load_all().items():
        parts = {package.part for package in wanted.packages}
        assert parts == ({"root", "libc"} if wanted.own_libc else {"root"}), name
        arch = archive.DEBIAN_ARCH[wanted.arch]
        for package in wanted.packages:
            if package.source == wanted.source:
                assert package.version == wanted.source_version, package
            version = package.version.split(":")[-1]
            assert package.file.endswith(f"/{package.name}_{version}_{arch}.deb"), package
