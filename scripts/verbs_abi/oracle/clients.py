# SPDX-License-Identifier: BSD-2-Clause
"""rdma-core's own tests (pyverbs) on a real kernel's rxe, and the same tests on the fake one's: which pass, fail and
are skipped. Both sides run the same packages' tests in harness/clients/run_pyverbs.py."""

import collections
import dataclasses
import fnmatch
import json
import pathlib
import subprocess
import sys

from verbs_abi import userlands
from verbs_abi.oracle import agreement
from verbs_abi.oracle import apt
from verbs_abi.oracle import boot
from verbs_abi.oracle import cpio
from verbs_abi.oracle import kernels
from verbs_abi.oracle import machine
from verbs_abi.oracle import store

FILE = "clients-pyverbs.txt"
USERLAND = "deb-44.0"  # the release whose Python the machine's own bookworm has
SUITE = ("bookworm",)
PYTHON = ("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libexpat1", "zlib1g", "libffi8",
          "libuuid1", "libpython3.11")
TESTS = "usr/share/doc/rdma-core/tests"
RUNNER = kernels.SOURCE_ROOT / "harness" / "clients" / "run_pyverbs.py"

# Under emulation, a test that takes half a second here takes half a minute.
GUEST_SECONDS = 90

SCRIPT = f"""
root=/u/{USERLAND}
for folder in dev sys proc out; do mkdir -p "$root/$folder"; mount --bind "/$folder" "$root/$folder"; done
mkdir -p "$root/tmp"
PYTHONDONTWRITEBYTECODE=1 chroot "$root" /usr/bin/python3.11 /run_pyverbs.py /{TESTS} --dev rxe0 --jobs 2 \\
  --seconds {GUEST_SECONDS} > /out/pyverbs.jsonl
"""


def _archive():
    """The userland with Python, pyverbs and the tests in it."""
    archive = cpio.Archive()
    place = f"u/{USERLAND}"
    unpacked = apt.cache_dir() / "oracle" / "python"
    for deb in apt.Suites(SUITE).download(PYTHON).values():
        apt.unpack(deb, unpacked)
    library = unpacked / "usr/lib/python3.11"
    if sys.version_info[:2] == (3, 11):  # compiling takes a guest a minute
        subprocess.run([sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash",
                        str(library)], check=False, timeout=300, stdout=subprocess.DEVNULL)
    for path in sorted(unpacked.rglob("*")):
        name = path.relative_to(unpacked).as_posix()
        name = name if name.startswith(("usr/", "etc/")) else f"usr/{name}"
        if name.startswith("usr/share/") or path.is_dir():
            continue
        archive.file(f"{place}/{name}", path.resolve().read_bytes(), path.stat().st_mode & 0o777)
    userland = userlands.get(USERLAND)
    for folder in (userland.python_path, userland.root / TESTS):
        archive.tree(folder, f"{place}/{pathlib.Path(folder).relative_to(userland.root).as_posix()}")
    archive.file(f"{place}/run_pyverbs.py", RUNNER.read_bytes())
    return archive.data()


def results(lines):
    """{test: (result, message)} of the runner's lines."""
    rows = (json.loads(line) for line in lines.splitlines() if line.startswith("{"))
    return {row["test"]: (row["result"], row["message"] or "") for row in rows}


def pack(found):
    """As it is stored: "TEST RESULT message", a line a test."""
    return "".join(f"{test} {result} {' '.join(message.split())}".rstrip() + "\n"
                   for test, (result, message) in sorted(found.items()))


def unpack(text):
    rows = (line.split(" ", 2) for line in text.splitlines())
    return {row[0]: (row[1], row[2] if len(row) > 2 else "") for row in rows}


def pyverbs(kernel, report=lambda text: None):
    """{file: text} of one kernel. Tried twice."""
    extra = [machine.userland_archive(None, [USERLAND]), _archive()]
    for attempt in (1, 2):
        result = boot.run(kernel, SCRIPT, extra=extra, timeout=3600)
        found = results(result.text("pyverbs.jsonl"))
        if result.ended == "done" and found:
            counted = collections.Counter(one for one, _ in found.values())
            report(f"{kernel}: {len(found)} tests of pyverbs: " +
                   ", ".join(f"{count} {one}" for one, count in counted.most_common()))
            return {FILE: pack(found)}
        report(f"{kernel}: the boot for pyverbs {result.ended} (attempt {attempt}) "
               f"{result.text('stderr')[-300:]}")
    raise kernels.OracleError(f"{kernel}: pyverbs did not run in the guest ({result.ended}); console: "
                              f"{result.console[-800:]}")


def recorded(room=store.ROOM):
    """The recordings that have pyverbs' results."""
    return [name for name in store.names(room) if (store.Recording(name, room).folder / FILE).exists()]


def ask(kernel, fake, only="*", jobs=2):
    """{test: (result, message)} on the fake kernel; fake: a check.FakeMachine. only: a pattern of tests' names."""
    folder = userlands.get(USERLAND).root / TESTS
    status, output, _ = fake.run(kernel, USERLAND, "/usr/bin/python3", RUNNER, folder, "--dev", "rxe0", "--jobs", jobs,
                                 "--only", only)
    found = results(output)
    if not found:
        raise kernels.OracleError(f"{kernel}: pyverbs did not run on the fake kernel (exit status {status}): "
                                  f"{output[-800:]}")
    return found


@dataclasses.dataclass
class Compared:
    """How many tests end as on the real kernel, of how many; otherwise: a row each of those that do not."""

    kernel: str
    same: int
    count: int
    otherwise: list

    @property
    def unexplained(self):
        return [row for row in self.otherwise if not row["reason"]]


def compare(kernel, fake, room=store.ROOM, only="*"):
    """The Compared of one kernel; only: a pattern of tests' names. A test that ends otherwise is run again by itself: a
    busy machine takes longer than a test may wait."""
    path = store.Recording(kernel, room).folder / FILE
    if not path.exists():
        raise kernels.OracleError(f"{kernel}: pyverbs is not recorded; record it with `verbs-abi oracle record "
                                  f"--journey pyverbs --kernel {kernel}`")
    real = {test: row for test, row in unpack(path.read_text()).items() if fnmatch.fnmatchcase(test, only)}
    if not real:
        raise kernels.OracleError(f"{kernel}: none of pyverbs' tests is called {only}")
    reasons, found = agreement.Reasons(room), ask(kernel, fake, only)
    otherwise = []
    for test, (result, message) in real.items():
        if test in found and found[test][0] != result:
            found.update(ask(kernel, fake, test, 1))
        said, why = found.get(test, ("absent", ""))
        if said != result:
            otherwise.append({"test": test, "real": result, "real_message": message, "fake": said, "fake_message": why,
                              "reason": reasons.of_test(kernel, test)})
    return Compared(kernel, len(real) - len(otherwise), len(real), otherwise)


def tell(compared, out=print):
    """Each test that ends otherwise, and the sum."""
    for row in compared.otherwise:
        real, fake = (f"{row[side]}{' (' + row[side + '_message'] + ')' if row[side + '_message'] else ''}"
                      for side in ("real", "fake"))
        out(f"  {row['test']}: real {real}, fake {fake}")
        if row["reason"]:
            out(f"    why {row['reason']}")
    out(f"{compared.kernel}: {compared.same} of {compared.count} tests of pyverbs end as on the real kernel, "
        f"{100 * compared.same / compared.count:.1f} %")
