# SPDX-License-Identifier: BSD-2-Clause
import argparse
import contextlib
import json

import jsonschema
import pytest

from verbs_abi import errors, paths
from verbs_abi.facts import command
from verbs_abi.facts import passed as names_passed


@pytest.fixture(name="ran")
def fixture_ran(monkeypatch):
    """The arguments that the program was given; it ends with `ran.status`."""

    class Ran:
        words = None
        status = 0

    ran = Ran()

    def run(words):
        ran.words = words
        return ran.status

    monkeypatch.setattr(command, "run", run)
    return ran


def call(*words):
    parser = argparse.ArgumentParser()
    command.register(parser.add_subparsers(required=True))
    arguments = parser.parse_args(["facts", *words])
    return arguments.handler(arguments)


@pytest.mark.parametrize(
    "given, passed",
    [
        ("extract /usr/include", "extract /usr/include"),
        ("extract x.deb --name n -o out", "extract --name n -o out x.deb"),
        ("diff a b", "diff a b"),
        ("diff a b --json", "diff --json a b"),
        # Kernels whose headers are another snapshot's, and one that is a snapshot.
        ("diff linux-4.16 debian-6.1.192", "diff rdma-core-v17 debian-6.1.192"),
        ("show gvisor-rdmaproxy x", "show debian-6.12.117 x"),
        ("diff --markdown a b", "diff --markdown a b"),
        ("diff a b --against l", "diff a b --only PASSED"),
        ("headers a out", "headers a out"),
        ("modules /lib/modules", "modules /lib/modules"),
        ("modules x --against a --base v --json", "modules --against a --base v --json x"),
        ("modules x --name n -o d", "modules --name n -o d x"),
        ("layout l.so m.so --against a", "layout --against a l.so m.so"),
        ("layout l.so --against a --against b --json", "layout --against a --against b --json l.so"),
        ("show a x.y z --i386", "show --i386 a x.y z"),
        ("history", "history"),
        ("history a b", "history a b"),
        ("list", "list"),
    ],
)
def test_arguments_reach_the_program(ran, given, passed, monkeypatch):
    monkeypatch.setattr(names_passed, "listed", lambda _: contextlib.nullcontext("PASSED"))
    assert call(*given.split()) == 0
    assert ran.words == passed.split()


@pytest.mark.parametrize("status", [0, 1, 2])
def test_exit_status_is_the_programs(ran, status):
    ran.status = status
    assert call("list") == status


def test_a_crash_is_named(ran):
    ran.status = -11
    with pytest.raises(errors.UserError, match="vabi-facts was ended by signal 11"):
        call("list")


def test_usage_errors_do_not_reach_the_program(ran, capsys):
    with pytest.raises(SystemExit) as ended:
        call("diff", "a")
    assert ended.value.code == 2
    assert "B" in capsys.readouterr().err
    assert ran.words is None


def stored(pattern):
    return sorted(path for path in command.REFERENCE.glob(pattern) if ".schema." not in path.name)


def validator(name):
    schema = load(command.REFERENCE / f"{name}.schema.json")
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def load(path):
    return json.loads(path.read_text())


@pytest.mark.parametrize("kind, pattern", [("snapshot", "*.json"), ("header", "headers/**/*.json")])
def test_stored_facts_follow_their_schema(kind, pattern):
    check = validator(kind)
    files = stored(pattern)
    assert len(files) > 50
    for path in files:
        wrong = next(check.iter_errors(load(path)), None)
        assert wrong is None, f"{path.relative_to(paths.ROOT)}: {wrong.message[:200]}"


def test_the_schema_refuses_what_is_wrong():
    check = validator("header")
    header = {"format": 1, "header": "rdma/x.h", "includes": [], "decls": [{"macro": "A"}]}
    assert check.is_valid(header)
    wrong = ({"macro": "A", "value": "1"}, {"struct": "s"}, {"other": 1}, {"macro": "A", "x": 1})
    for decl in wrong:
        assert not check.is_valid({**header, "decls": [decl]})
