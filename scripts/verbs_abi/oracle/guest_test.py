# SPDX-License-Identifier: BSD-2-Clause
"""What goes into a guest: scripts that parse, modules in the order that they need."""

import lzma
import shutil
import subprocess

import pytest

from verbs_abi.errors import UserError
from verbs_abi.oracle import boot, journey, kernels, machine, vm

INIT = kernels.SOURCE_ROOT / "scripts/verbs_abi/oracle/guest_init.sh"
SHELL = [shutil.which("busybox"), "sh"] if shutil.which("busybox") else ["sh"]


@pytest.mark.parametrize("script", [INIT.read_text(), boot.ADD_RXE, machine.DUMPS,
                                    machine.PROGRAMS, journey.SCRIPT],
                         ids=["init", "rxe", "dumps", "programs", "nvmeof"])
def test_the_guests_scripts_parse(script):
    result = subprocess.run([*SHELL, "-n"], input=script, text=True, capture_output=True,
                            check=False, timeout=20)
    assert result.stderr == "" and result.returncode == 0


def make_kernel(tmp_path):
    kernel = kernels.Kernel("k", "1.2-amd64", (), (), "")
    unpacked = kernels.Unpacked(kernel, tmp_path)
    folder = unpacked.root / "lib/modules/1.2-amd64"
    (folder / "kernel").mkdir(parents=True)
    for name in ("ib_core", "ib-uverbs", "rdma_rxe"):
        (folder / f"kernel/{name}.ko").write_bytes(name.encode())
    (folder / "kernel/crc32_generic.ko.xz").write_bytes(lzma.compress(b"crc"))
    (folder / "modules.dep").write_text(
        "kernel/ib_core.ko:\nkernel/ib-uverbs.ko: kernel/ib_core.ko\n"
        "kernel/rdma_rxe.ko: kernel/ib-uverbs.ko kernel/ib_core.ko\nkernel/crc32_generic.ko.xz:\n")
    (folder / "modules.softdep").write_text("softdep rdma_rxe pre: crc32_generic nothing\n")
    return unpacked


def test_modules_come_after_what_they_need_and_unpacked(tmp_path):
    modules = make_kernel(tmp_path).modules(("rdma_rxe", "not_in_this_kernel"))
    assert modules == [("crc32_generic", b"crc"), ("ib_core", b"ib_core"),
                       ("ib_uverbs", b"ib-uverbs"), ("rdma_rxe", b"rdma_rxe")]


def test_a_kernel_without_an_image_is_told(tmp_path):
    with pytest.raises(kernels.OracleError, match="k: its packages hold no vmlinuz"):
        make_kernel(tmp_path).image()


def test_an_unknown_kernel_names_the_nearest():
    with pytest.raises(UserError) as error:
        kernels.find("debian-6.1.19")
    assert "debian-6.1.192" in str(error.value)


def test_without_qemu_the_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(vm.shutil, "which", lambda name: None)
    with pytest.raises(kernels.OracleError, match="qemu-system-x86"):
        vm.boot(make_kernel(tmp_path), [])


def test_what_differs_from_run_to_run_is_masked():
    assert machine.masked("  local address:  LID 0x0000, QPN 0x000011, PSN 0x12ab, GID ::1\n"
                          "163840 bytes in 0.05 seconds = 26.21 Mbit/sec\n") == \
        "  local address:  LID 0x0000, QPN …, PSN …, GID ::1\n163840 bytes in …\n"
