# SPDX-License-Identifier: BSD-2-Clause
"""siw, the second driver that runs without hardware: Debian's kernels come without it, so it is built
out of tree from the linux-source package of the same version (kernels.json, "siw")."""

import os
import shutil
import subprocess

from verbs_abi.oracle import apt
from verbs_abi.oracle import boot
from verbs_abi.oracle import cpio
from verbs_abi.oracle import kernels

SUBTREE = "drivers/infiniband/sw/siw"
NEEDS = ("crc32c_generic", "crc32c_intel", "libcrc32c")  # libcrc32c finds what is there already

# Options of the packaged kernel's newer gcc that an older one writes otherwise.
COMPILER = r"""#!/bin/sh
for word; do
  shift
  case $word in -fmin-function-alignment=*) word=-falign-functions=${word#*=} ;; esac
  set -- "$@" "$word"
done
exec gcc "$@"
"""

ADD_SIW = f"""
while read -r module; do
  insmod "/extra/$module.ko" 2>/dev/null || echo "guest: module $module did not load"
done < /extra/order
{boot.ADD_ETH}
vabi-guest addlink siw0 siw eth0
"""


def build(unpacked):
    """The module's path; built once. Raises OracleError where the kernel has no row for it."""
    row = unpacked.kernel.siw
    if not row:
        raise kernels.OracleError(f"{unpacked.kernel.name}: kernels.json does not say how siw is "
                                  "built for it")
    room = unpacked.cache / "siw"
    target = room / "siw.ko"
    if target.exists():
        return target
    shutil.rmtree(room, ignore_errors=True)
    headers = _headers(unpacked.kernel, row, room)
    _source(unpacked.kernel, row, room)
    compiler = room / "cc"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    module = room / SUBTREE
    result = subprocess.run(
        ["make", f"-j{os.cpu_count()}", "-C", str(headers), f"M={module}", f"CC={compiler}",
         "CONFIG_RDMA_SIW=m", "modules"], text=True, capture_output=True, timeout=600, check=False)
    if result.returncode:
        raise kernels.OracleError(f"{unpacked.kernel.name}: siw does not build: "
                                  f"{result.stderr.strip()[-800:]}")
    subprocess.run(["strip", "--strip-debug", "-o", str(room / "siw.partial"),
                    str(module / "siw.ko")], check=True, timeout=60)
    (room / "siw.partial").rename(target)
    return target


def _headers(kernel, row, room):
    """A folder for `make -C`. The kernel's own kbuild programs want its suite's C library, so those
    of the same version for this machine's suite stand in their place."""
    root = room / "headers"
    for deb in apt.Suites(kernel.suites).download(row["headers"]).values():
        apt.unpack(deb, root)
    for deb in apt.Suites(row["kbuild_suites"]).download([row["kbuild"]]).values():
        apt.unpack(deb, root)
    sources = root / "usr" / "src"
    folder = sources / f"linux-headers-{kernel.release}"
    common = next(sources.glob("linux-headers-*-common"))
    kbuild = root / "usr" / "lib" / row["kbuild"]
    for place in (folder, common):
        for name in ("scripts", "tools"):
            (place / name).unlink(missing_ok=True)
            (place / name).symlink_to(kbuild / name)
    (folder / "Makefile").write_text(f"include {common}/Makefile\n")
    (folder / "vmlinux").unlink(missing_ok=True)  # without it no BTF is made, which nobody reads
    return folder


def _source(kernel, row, room):
    deb = next(iter(apt.Suites(kernel.suites).download([row["source"]]).values()))
    apt.unpack(deb, room / "source")
    packed = next((room / "source" / "usr" / "src").glob("linux-source-*.tar.xz"))
    subprocess.run(["tar", "-xJf", str(packed), "-C", str(room), "--strip-components=1",
                    "--wildcards", f"*/{SUBTREE}/*"], check=True, timeout=300)
    shutil.rmtree(room / "source")


def archive(unpacked):
    """What a guest needs beside its base archive: siw and its needs, in the order of loading."""
    base = {name for name, _ in unpacked.modules()}
    modules = [(name, data) for name, data in unpacked.modules(NEEDS) if name not in base]
    modules.append(("siw", build(unpacked).read_bytes()))
    result = cpio.Archive()
    for name, data in modules:
        result.file(f"extra/{name}.ko", data)
    result.file("extra/order", "".join(f"{name}\n" for name, _ in modules).encode())
    return result.data()


def packages(kernel):
    """{package: version} of what the module was built from."""
    debs = {**apt.Suites(kernel.suites).download([*kernel.siw["headers"], kernel.siw["source"]]),
            **apt.Suites(kernel.siw["kbuild_suites"]).download([kernel.siw["kbuild"]])}
    return {name.partition("=")[0]: apt.deb_field(deb, "Version") for name, deb in debs.items()}
