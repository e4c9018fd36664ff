# SPDX-License-Identifier: BSD-2-Clause
"""The runner itself, on a folder of tests that need no device."""

import gzip
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
                       "test_falls": "crashed", "test_stays": "hung", "test_told_of_the_device": "passed",
                       "test_two": "failed"}
    assert rows["test_one.One.test_left_out"]["message"] == "no such device"
    assert rows["test_one.One.test_falls"]["message"] == "SIGABRT"
    assert "1 != 2" in rows["test_one.One.test_bad"]["message"]
