# SPDX-License-Identifier: BSD-2-Clause
import pytest

from verbs_abi.errors import UserError
from verbs_abi.facts import consumers

OBSOLETE = {"headers": ["infiniband/old.h"], "error": "obsolete", "reason": "it says so itself"}
ENUMS = {"headers": ["*"], "error": "different enumeration types", "reason": "defect of the enumeration",
         "without": ["-Wno-deprecated-enum-enum-conversion", "-Wno-deprecated-anon-enum-enum-conversion"]}


@pytest.fixture(name="check")
def fixture_check(tmp_path):
    """Checks an include folder with these headers, with g++ as C++17 and C++20."""
    def check(headers, rows=(), **more):
        for name, text in headers.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return consumers.check(tmp_path, compilers=("g++",), standards=("c++17", "c++20"), rows=list(rows), **more)
    return check


def failed(found):
    return [(result.header, result.standard) for result in found if result.unexpected]


def test_good_headers_compile_alone_and_together(check):
    found = check({"infiniband/a.h": "#pragma once\nint a();\n", "rdma/b.h": '#include <infiniband/a.h>\n'})
    assert failed(found) == [] and len(found) == 6
    assert "6 of 6 programs compile" in consumers.tell("x", found)


def test_a_header_that_needs_another_one_fails_alone(check):
    found = check({"infiniband/a.h": "typedef int type_a;\n", "infiniband/b.h": "type_a b();\n"})
    assert failed(found) == [("infiniband/b.h", "c++17"), ("infiniband/b.h", "c++20")]
    assert "infiniband/b.h:1:1: error: 'type_a' does not name a type" in consumers.tell("x", found)


def test_headers_that_quarrel_fail_together(check):
    found = check({"infiniband/a.h": "struct s { int x; };\n", "infiniband/b.h": "struct s { int y; };\n"})
    assert failed(found) == [(consumers.TOGETHER, "c++17"), (consumers.TOGETHER, "c++20")]


def test_c_words_fail(check):
    assert failed(check({"infiniband/a.h": "int f(int class);\n"}))


def test_what_is_known_is_expected_and_what_stands_behind_it_is_not(check):
    enums = "enum a { A = 1 };\nenum b { B = 2 };\nenum { C = A | B };\n"
    found = check({"infiniband/e.h": enums}, [ENUMS])
    assert failed(found) == []
    assert [result.reason for result in found if result.error] == ["defect of the enumeration"] * 2
    assert "2 programs [g++ c++20]: defect of the enumeration" in consumers.tell("x", found)
    assert ("infiniband/e.h", "c++20") in failed(check({"infiniband/e.h": enums + "int f(int x) { }\n"}, [ENUMS]))


def test_a_header_that_warns_of_itself_is_left_out_of_the_whole(check):
    found = check({"infiniband/old.h": "#warning this is obsolete\n", "infiniband/a.h": ""}, [OBSOLETE])
    assert failed(found) == []
    assert {result.header for result in found if result.error} == {"infiniband/old.h"}


def test_folders_without_headers_and_missing_compilers_are_told(check, tmp_path):
    with pytest.raises(UserError, match="has no headers in infiniband/ or rdma/"):
        consumers.check(tmp_path)
    (tmp_path / "rdma").mkdir()
    (tmp_path / "rdma/a.h").touch()
    with pytest.raises(UserError, match="no-such-compiler"):
        consumers.check(tmp_path, compilers=("no-such-compiler",))
