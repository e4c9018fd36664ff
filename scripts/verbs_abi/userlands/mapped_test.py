# SPDX-License-Identifier: BSD-2-Clause
"""Strays among the mapped libraries are found."""

from verbs_abi.userlands import mapped

ROOT = "/cache/u/root"
LIBC = "/cache/u/libc"
LIB = "usr/lib/x86_64-linux-gnu"


def maps(*paths):
    lines = [
        "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 ",
        "7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0 [vdso]",
    ]
    for path in paths:
        lines += [
            f"7f0000010000-7f0000011000 {mode} 00000000 fe:00 1234                       {path}"
            for mode in ("r--p", "r-xp")
        ]
    return "\n".join(lines)


def test_a_userland_with_only_its_own_libraries_is_ok():
    found = mapped.check(
        maps(
            f"{ROOT}/{LIB}/libibverbs.so.1.14.44.0",
            f"{ROOT}/{LIB}/libibverbs/librxe-rdmav34.so",
            f"/{LIB}/libc.so.6",
            "/usr/bin/ibv_devinfo",
            "/usr/lib/x86_64-linux-gnu/libz.so.1",
        ),
        ROOT,
    )
    assert found.ok
    assert found.own == (
        f"{ROOT}/{LIB}/libibverbs.so.1.14.44.0",
        f"{ROOT}/{LIB}/libibverbs/librxe-rdmav34.so",
    )


def test_each_kind_of_rdma_library_from_elsewhere_is_a_stray():
    for name in (
        "libibverbs.so.1.14.44.0",
        "librdmacm.so.1.3.44.0",
        "libibumad.so.3.2.44.0",
        "libibmad.so.5.5.44.0",
        "libibnetdisc.so.5.0.44.0",
        "libmlx5.so.1.24.44.0",
        "libmlx4.so.1.0.44.0",
        "libefa.so.1.2.44.0",
        "libmana.so.1.0.44.0",
        "libhns.so.1.0.56.1",
        "libionic.so.1.0.65.0",
        "libnl-3.so.200.26.0",
        "libnl-route-3.so.200.26.0",
        "libcxgb4-rdmav34.so",
    ):
        found = mapped.check(maps(f"{ROOT}/{LIB}/libibverbs.so.1", f"/{LIB}/{name}"), ROOT)
        assert found.strays == (f"/{LIB}/{name}",), name
        assert not found.ok
        assert f"/{LIB}/{name}" in str(found)


def test_a_folder_whose_name_only_starts_like_the_root_is_elsewhere():
    assert not mapped.check(maps(f"{ROOT}2/{LIB}/libibverbs.so.1"), ROOT).ok


def test_a_deleted_library_is_judged_by_where_it_was():
    assert mapped.check(maps(f"/{LIB}/libibverbs.so.1 (deleted)"), ROOT).strays == (
        f"/{LIB}/libibverbs.so.1",
    )


def test_paths_with_spaces_are_read_whole():
    assert mapped.check(maps(f"/a b/{LIB}/libibverbs.so.1"), "/a b").own == (
        f"/a b/{LIB}/libibverbs.so.1",
    )


def test_an_own_libc_must_be_the_one_that_is_mapped():
    own = (f"{LIBC}/{LIB}/libc.so.6", f"{LIBC}/{LIB}/ld-linux-x86-64.so.2")
    assert mapped.check(maps(*own), ROOT, LIBC).ok
    for stray in (
        f"/{LIB}/libc.so.6",
        "/lib64/ld-linux-x86-64.so.2",
        f"/{LIB}/libm.so.6",
        f"/{LIB}/libpthread-2.31.so",
    ):
        assert mapped.check(maps(*own, stray), ROOT, LIBC).strays == (stray,)


def test_a_libc_in_the_root_is_a_stray_where_the_machines_is_used():
    assert mapped.check(maps(f"{ROOT}/{LIB}/libc.so.6"), ROOT).strays == (
        f"{ROOT}/{LIB}/libc.so.6",
    )
