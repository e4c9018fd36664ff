# SPDX-License-Identifier: BSD-2-Clause
"""Broken matrix files are told with file, place and what was expected."""

import json

import pytest

from verbs_abi import matrix
from verbs_abi.errors import UserError

SCHEMA = {
    "type": "object",
    "required": ["name", "level"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "level": {"type": "integer", "description": "a number of steps"},
        "list": {"type": "array", "items": {"enum": ["a", "b"]}},
    },
}


@pytest.fixture(name="folder")
def _folder(tmp_path, monkeypatch):
    monkeypatch.setenv("VERBS_ABI_MATRIX", str(tmp_path / "matrix"))
    monkeypatch.setenv("VERBS_ABI_CACHE", str(tmp_path / "cache"))
    (tmp_path / "matrix/overlays").mkdir(parents=True)
    (tmp_path / "matrix/schema").mkdir()
    (tmp_path / "matrix/schema/overlays.json").write_text(json.dumps(SCHEMA))
    return tmp_path / "matrix/overlays"


def broken(folder, text, name="x"):
    path = folder / f"{name}.json"
    path.write_text(text)
    with pytest.raises(matrix.MatrixError) as caught:
        matrix.load("overlays")
    assert str(caught.value).startswith(f"{path}: ")
    return caught.value.where, str(caught.value)


def test_files_are_entries_in_the_order_of_their_numbers(folder):
    for name in ("linux-4.16", "linux-4.4", "debian-6.1", "linux-10.1"):
        (folder / f"{name}.json").write_text(json.dumps({"name": name, "level": 1}))
    assert list(matrix.load("overlays")) == ["debian-6.1", "linux-4.4", "linux-4.16", "linux-10.1"]
    assert matrix.names("overlays") == list(matrix.load("overlays"))
    assert matrix.get("overlays", "linux-4.4").data == {"name": "linux-4.4", "level": 1}


def test_an_empty_axis_is_no_error(folder):
    assert matrix.load("plans") == {}
    with pytest.raises(UserError, match="unknown plan 'quick'"):
        matrix.get("plans", "quick")


def test_a_syntax_error_has_its_line(folder):
    where, text = broken(folder, '{"name": "x",\n "level": }')
    assert where == "line 2, column 11"
    assert "Expected: a JSON file" in text


def test_other_broken_files_are_told_too(folder):
    assert broken(folder, '["x"]')[0] == "line 1"
    assert broken(folder, '{"name": "x", "level": 1, "level": 2}')[0] == 'key "level"'
    assert broken(folder, '{"name": "y", "level": 1}')[0] == "/name"
    (folder / "x.json").unlink()
    assert broken(folder, "{}", name="a b")[0] == "file name"


def test_a_file_that_is_not_utf8_is_told(folder):
    (folder / "x.json").write_bytes(b'{"name": "\xff"}')
    with pytest.raises(matrix.MatrixError, match="byte 10: is not UTF-8"):
        matrix.load("overlays")


def test_what_the_schema_forbids_has_a_json_pointer_and_what_was_expected(folder):
    where, text = broken(folder, '{"name": "x", "level": 1, "list": ["a", "c"]}')
    assert where == "/list/1" and "Expected: one of a, b" in text
    where, text = broken(folder, '{"name": "x", "level": "1"}')
    assert where == "/level" and "Expected: integer: a number of steps" in text
    where, text = broken(folder, '{"name": "x"}')
    assert where == "/" and "Expected: the keys name, level" in text
    where, text = broken(folder, '{"name": "x", "level": 1, "lebel": 1}')
    assert where == "/" and "Expected: only the keys name, level, list" in text


def test_a_file_that_passed_is_checked_again_when_it_or_the_schema_changes(folder):
    path = folder / "x.json"
    path.write_text('{"name": "x", "level": 1}')
    matrix.load("overlays")
    broken(folder, '{"name": "x", "level": true}')
    path.write_text('{"name": "x", "level": 1}')
    schema = folder.parent / "schema/overlays.json"
    schema.write_text(json.dumps({**SCHEMA, "required": ["list"]}))
    matrix._schema.cache_clear()
    with pytest.raises(matrix.MatrixError, match="'list' is a required property"):
        matrix.load("overlays")


def test_pointers_escape_their_separators():
    assert matrix.pointer(["a/b", 0, "c~d"]) == "/a~1b/0/c~0d"


def test_formatted_text_reads_back_as_the_same(tmp_path):
    data = {"name": "x", "rows": [{"a": 1}, {"b": [2]}], "plain": [1, 2], "empty": []}
    path = tmp_path / "x.json"
    path.write_text(matrix.formatted(data))
    assert matrix.read_json(path) == data
    assert '\n    {"a": 1},\n    {"b": [2]}\n' in path.read_text()


@pytest.mark.parametrize("axis", matrix.AXES)
def test_the_projects_own_files_are_in_order(axis):
    for name, entry in matrix.load(axis).items():
        assert entry.data.get("name", name) == name


@pytest.mark.parametrize("text, problem", (
    ("[" * 100_000, "is nested too deeply"),
    ('{"level": ' + "9" * 5000 + "}", "Exceeds the limit"),
    ('{"level": NaN}', "NaN is no number of JSON"),
    ("", "Expecting value"),
    ("\ufeff{}", "BOM"),
))
def test_what_no_reader_takes_is_told(folder, text, problem):
    assert problem in broken(folder, text)[1]


def test_what_is_no_file_is_told_with_its_path(folder):
    path = folder / "x.json"
    path.mkdir()
    with pytest.raises(UserError, match="x.json: Is a directory\nExpected: a JSON file"):
        matrix.load("overlays")
    path.rmdir()
    path.symlink_to(path)
    with pytest.raises(UserError, match="x.json: Too many levels of symbolic links"):
        matrix.load("overlays")


def test_half_of_a_surrogate_pair_can_be_told(folder):
    _, text = broken(folder, '{"name": "x", "level": "\\ud800"}')
    assert "\\ud800" in text and text.encode()
