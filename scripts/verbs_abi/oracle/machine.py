# SPDX-License-Identifier: BSD-2-Clause
"""What discovery sees on a real kernel, and what real programs of each userland say there."""

import re

from verbs_abi.cells import trace
from verbs_abi.oracle import boot
from verbs_abi.oracle import cpio
from verbs_abi.oracle import kernels
from verbs_abi.oracle import shapes

TREES = ("/sys/class/infiniband /sys/class/infiniband/rxe0 /sys/class/infiniband_verbs "
         "/sys/class/infiniband_verbs/uverbs0 /sys/class/infiniband_mad "
         "/sys/class/infiniband_mad/umad0 /dev/infiniband")

DUMPS = f"""
vabi-dump-static netlink 0 > /out/netlink.txt 2>&1
vabi-dump-static tree {TREES} > /out/sysfs.txt 2>&1
"""

# Where the recorder stands in a userland's root. What it wants of libdl and libpthread is in libc from glibc 2.34 on,
# and there these are empty.
RECORDER = "usr/lib/libverbs_abi_recorder.so"
PRELOAD = f"/{RECORDER}:libdl.so.2:libpthread.so.0"

# A ping-pong's server and client in one guest; the client's status is the answer. What they ask of the kernel is
# written down by the recorder, as trace.USERLAND.PROGRAM.ROLE.
PROGRAMS = """
say() { echo "== $*"; }
# traced USERLAND PROGRAM ROLE COMMAND…
traced() {
  root=/u/$1 VERBS_ABI_RECORD=/out/trace.$1.$2.$3; shift 3
  export VERBS_ABI_RECORD
  LD_PRELOAD=@RECORDER@ chroot "$root" timeout 120 "$@"
}
pingpong() {
  say "$1 $2"
  traced "$1" "$2" server "/usr/bin/$2" -d rxe0 -g 1 -n 20 > /tmp/server 2>&1 &
  server=$!
  tries=0
  while [ "$tries" -lt 400 ] && kill -0 "$server" && ! grep -q ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6; do
    tries=$((tries + 1)); usleep 100000
  done
  (traced "$1" "$2" client "/usr/bin/$2" -d rxe0 -g 1 -n 20 10.0.0.1); echo "client status $?"
  wait "$server"; echo "server status $?"
  cat /tmp/server
}
for name in $(ls /u); do
  for folder in dev sys proc out; do mkdir -p "/u/$name/$folder"; mount --bind "/$folder" "/u/$name/$folder"; done
  {
    say "$name ibv_devices"; chroot "/u/$name" timeout 60 /usr/bin/ibv_devices; echo "status $?"
    say "$name ibv_devinfo -v"; (traced "$name" ibv_devinfo program /usr/bin/ibv_devinfo -v); echo "status $?"
    for kind in rc uc ud srq; do pingpong "$name" "ibv_${kind}_pingpong"; done
  } > "/out/userland-$name.txt" 2>&1
done
""".replace("@RECORDER@", PRELOAD)

LIBC = ("libc.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libm.so.6", "libgcc_s.so.1",
        "ld-linux-x86-64.so.2")
USEFUL = ("usr/bin/", "usr/sbin/", "usr/lib/x86_64-linux-gnu/", "lib/x86_64-linux-gnu/",
          "usr/lib64/", "lib64/", "etc/")

MASKED = (
    (re.compile(r"QPN 0x[0-9a-f]+"), "QPN …"),
    (re.compile(r"PSN 0x[0-9a-f]+"), "PSN …"),
    (re.compile(r"bytes in [0-9.]+ seconds = [0-9.]+ Mbit/sec"), "bytes in …"),
    (re.compile(r"iters in [0-9.]+ seconds = [0-9.]+ usec/iter"), "iters in …"),
)


def _add_root(archive, place, root):
    """A root's useful files with everything below usr, as the links lib and lib64 say."""
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if not name.startswith(USEFUL) or "/include/" in name or "/python3" in name or \
                name.endswith((".a", ".la", ".py")) or "/pkgconfig/" in name:
            continue
        target = name if name.startswith(("usr/", "etc/")) else f"usr/{name}"
        if path.is_symlink():
            resolved = path.resolve()
            if resolved.is_file():
                archive.file(f"{place}/{target}", resolved.read_bytes(), 0o755)
        elif path.is_file():
            archive.file(f"{place}/{target}", path.read_bytes(), path.stat().st_mode & 0o777)


def userland_archive(recorder=None, names=None):
    """An archive with every userland below /u, each able to run in a chroot; with the recorder (a path) in it."""
    import pathlib
    from verbs_abi import userlands
    archive = cpio.Archive()
    for name in names or [name for name in userlands.usual() if name.startswith("deb-")]:
        userland = userlands.get(name)
        place = f"u/{name}"
        archive.link(f"{place}/lib", "usr/lib")
        if recorder:
            archive.file(f"{place}/{RECORDER}", recorder.read_bytes(), 0o755)
        archive.link(f"{place}/lib64", "usr/lib64")
        if userland.libc_root:
            _add_root(archive, place, pathlib.Path(userland.libc_root))
        else:
            for library in LIBC:
                path = pathlib.Path("/lib/x86_64-linux-gnu") / library
                if path.exists():
                    archive.file(f"{place}/usr/lib/x86_64-linux-gnu/{library}",
                                 path.resolve().read_bytes(), 0o755)
        if userland.root != userland.libc_root:
            _add_root(archive, place, pathlib.Path(userland.root))
        loader = next((path for base in (userland.libc_root, pathlib.Path("/")) if base
                       for path in (pathlib.Path(base) / "usr/lib64/ld-linux-x86-64.so.2",
                                    pathlib.Path(base) / "lib64/ld-linux-x86-64.so.2",
                                    pathlib.Path(base) /
                                    "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
                       if path.exists()), None)
        if loader is None:
            raise kernels.OracleError(f"userland {name} has no dynamic linker for a guest")
        archive.file(f"{place}/usr/lib64/ld-linux-x86-64.so.2", loader.resolve().read_bytes(),
                     0o755)
    return archive.data()


def _traces(result):
    """{"USERLAND PROGRAM ROLE": records} of a guest."""
    return {name.removeprefix("trace.").rpartition(".ibv_")[0] + " ibv_" +
            name.rpartition(".ibv_")[2].replace(".", " "): trace.parse(result.text(name))
            for name in sorted(result.files) if name.startswith("trace.")}


def masked(text):
    for pattern, word in MASKED:
        text = pattern.sub(word, text)
    return text


def record(kernel, with_programs=True, report=lambda text: None):
    """{file name: text} of one kernel; boots it once, again when that fails."""
    extra = []
    if with_programs:
        from verbs_abi.run import pass_through
        from verbs_abi.setup import build
        extra.append(userland_archive(pass_through.recorder(build.ensure(targets=(pass_through.TARGET,)))))
    script = DUMPS + (PROGRAMS if with_programs else "")
    for attempt in (1, 2):
        result = boot.run(kernel, script, extra=extra, timeout=1200)
        if result.ended == "done" and result.text("netlink.txt"):
            texts = {name: masked(result.text(name)) for name in sorted(result.files) if name.endswith(".txt")}
            if with_programs:
                texts["traces.txt"] = shapes.store(_traces(result))
            return texts
        report(f"{kernel}: the boot for programs {result.ended} (attempt {attempt})")
    raise kernels.OracleError(f"{kernel}: the programs' boot {result.ended} twice; console: "
                              f"{result.console[-800:]}")
