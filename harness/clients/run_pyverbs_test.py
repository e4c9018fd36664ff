# SPDX-License-Identifier: BSD-2-Clause
"""The runner itself, on a folder of tests that need no device."""

import gzip
import importlib.util
import json
import pathlib
import subprocess
import sys

RUNNER = pathlib.Path(__file__).with_name("run_pyverbs.py")
PARSER = """
class Parser:
    def parse_args(self):
        import sys
        self.seen = list(sys.argv[1:])
        sys.argv[1:] = []
parser = Parser()
"""
TESTS = """
import os, time, unittest
class One(unittest.TestCase):
    def test_good(self): pass
    def test_bad(self): self.assertEqual(1, 2)
    def test_left_out(self): raise unittest.SkipTest("no such device")
    def test_falls(self): os.abort()
    def test_stays(self): time.sleep(60)
    def test_forks(self): os.waitpid(os.fork() or os._exit(0), 0)
    def test_wants_to_be_refused(self):
        with self.assertRaises(OSError): raise OSError(22, "no")
    def test_told_of_the_device(self):
        from args_parser import parser
        self.assertEqual(parser.seen, ["--dev", "mlx5_7"])
"""


def test_each_test_is_told_of_whatever_it_does(tmp_path):
    (tmp_path / "args_parser.py").write_text(PARSER)
    (tmp_path / "test_one.py.gz").write_bytes(gzip.compress(TESTS.encode()))
    (tmp_path / "test_two.py").write_text("import no_such_module\n")
    ended = subprocess.run([sys.executable, str(RUNNER), str(tmp_path), "--dev", "mlx5_7", "--seconds", "2",
                            "--jobs", "2"], text=True, capture_output=True, timeout=60, check=True)
    rows = {row["test"]: row for row in map(json.loads, ended.stdout.splitlines())}
    results = {name.rpartition(".")[2]: row["result"] for name, row in rows.items()}
    assert results == {"test_good": "passed", "test_bad": "failed", "test_left_out": "skipped",
                       "test_falls": "crashed", "test_stays": "hung", "test_told_of_the_device": "passed", "test_wants_to_be_refused": "passed", "test_forks": "passed",
                       "test_two": "failed"}
    assert rows["test_one.One.test_left_out"]["message"] == "no such device"
    assert rows["test_one.One.test_falls"]["message"] == "SIGABRT"
    assert rows["test_one.One.test_wants_to_be_refused"]["expects_error"]
    assert not rows["test_one.One.test_good"]["expects_error"]
    assert {name.rpartition(".")[2]: len(row.get("pids", [])) for name, row in rows.items()} == dict.fromkeys(
        results, 1) | {"test_two": 0, "test_forks": 2}
    assert "1 != 2" in rows["test_one.One.test_bad"]["message"]


def test_what_must_be_alone_is_one_workers():
    spec = importlib.util.spec_from_file_location("run_pyverbs", RUNNER)
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    names = ["a", "cm1", "b", "cm2", "c", "cm3"]
    shares = runner.share({name: name for name in names}, 2, "cm*")
    assert [name for name in shares[0] if name.startswith("cm")] == ["cm1", "cm2", "cm3"]
    assert sorted(shares[0] + shares[1]) == sorted(names) and {"a", "c"} <= set(shares[0])
