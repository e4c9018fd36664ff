# SPDX-License-Identifier: BSD-2-Clause
"""Is this results.json what the schema says, and does it agree with itself?"""

from __future__ import annotations

import functools
import json
import pathlib

from . import model

SCHEMA_VERSION = 1
REPORTS_DIR = pathlib.Path(__file__).resolve().parents[3] / "reports"
SCHEMA_FILE = REPORTS_DIR / "results.schema.json"

_MAX_PROBLEMS = 20  # more do not help the reader, and a wrong writer repeats itself in every cell


class ResultsError(ValueError):
    """Results that are not what they should be; `problems` holds (JSON pointer, sentence)."""

    def __init__(self, source, problems):
        self.source = str(source)
        self.problems = list(problems)
        shown = [
            f"  {pointer or '(top)'}: {text}" for pointer, text in self.problems[:_MAX_PROBLEMS]
        ]
        if len(self.problems) > _MAX_PROBLEMS:
            shown.append(f"  … and {len(self.problems) - _MAX_PROBLEMS} more")
        super().__init__(
            f"{self.source}: not valid results ({SCHEMA_FILE.name}, version {SCHEMA_VERSION})\n"
            + "\n".join(shown)
        )


def pointer_to(path):
    """The JSON pointer (RFC 6901) of a path of keys and indexes."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


@functools.lru_cache(maxsize=1)
def schema():
    with open(SCHEMA_FILE, encoding="utf-8") as file:
        return json.load(file)


@functools.lru_cache(maxsize=1)
def _validators():
    """The validator of everything but cells, and that of one cell.

    The cells are checked one by one, equal ones once: a run of thousands of cells holds the same
    tests over and over, and checking is the slowest part of writing the reports.
    """
    import jsonschema  # here, so that the command works before set-up has brought the package in

    whole = schema()
    frame = dict(whole, properties=dict(whole["properties"], cells={"type": "array"}))
    defs = whole["$defs"]
    cell = dict(defs["cell"], properties=dict(defs["cell"]["properties"], tests={"type": "array"}))
    make = jsonschema.Draft202012Validator
    return (
        make(frame),
        make(dict(cell, **{"$defs": defs})),
        make(dict(defs["test"], **{"$defs": defs})),
    )


def _problem(error, path):
    # A failed anyOf says only that nothing matched. A branch that got further than the value's own
    # type is the one that was meant, and its deepest error says what to do.
    if error.validator == "anyOf":
        inside = [one for one in error.context if one.relative_path]
        if inside:
            error = max(inside, key=lambda one: len(one.absolute_path))
    text = error.message
    if len(text) > 300:  # the message quotes the value, which may be a whole cell
        text = text[:140] + " … " + text[-140:]
    return pointer_to([*path, *error.absolute_path]), text


def _schema_problems(results):
    frame, cell_validator, test_validator = _validators()
    for error in frame.iter_errors(results):
        yield _problem(error, [])
    cells = results.get("cells") if isinstance(results, dict) else None
    if not isinstance(cells, list):
        return
    good_tests = set()
    good_shapes = set()
    for index, cell in enumerate(cells):
        shape = _shape(cell)
        if shape is None or shape not in good_shapes:
            errors = list(cell_validator.iter_errors(cell))
            if not errors and shape is not None:
                good_shapes.add(shape)
            for error in errors:
                yield _problem(error, ["cells", index])
        tests = cell.get("tests") if isinstance(cell, dict) else None
        if not isinstance(tests, list):
            continue
        for position, test in enumerate(tests):
            key = json.dumps(test, sort_keys=True)
            if key in good_tests:
                continue
            errors = list(test_validator.iter_errors(test))
            if not errors:
                good_tests.add(key)
            for error in errors:
                yield _problem(error, ["cells", index, "tests", position])


def _shape(cell):
    """A key under which cells are equally valid; None when the cell must be looked at itself.

    Numbers, digests, names and the command line differ in nearly every cell and are checked here.
    Everything else stands in the key as it is.
    """
    if not isinstance(cell, dict):
        return None
    rest = {}
    for key, value in cell.items():
        check = _VARYING.get(key)
        if check is None:
            rest[key] = value
        elif not check(value):
            return None
        else:
            rest[key] = "*"
    return json.dumps(rest, sort_keys=True)


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def _is_name(value):
    return isinstance(value, str) and value != "" and "/" not in value and not _has_space(value)


def _has_space(value):
    return any(character.isspace() for character in value)


def _is_id(value):
    return (
        isinstance(value, str)
        and not _has_space(value)
        and value.count("/") >= 2
        and "" not in value.split("/")
    )


def _is_plain_digest(value):
    return (
        isinstance(value, str)
        and len(value) == 71
        and value.startswith("sha256:")
        and not (set(value[7:]) - set("0123456789abcdef"))
    )


# Each check accepts no more than the schema does; what it does not accept is left to the schema.
_VARYING = {
    "id": _is_id,
    "userland": _is_name,
    "kernel": _is_name,
    "provider": _is_name,
    "exec": lambda value: isinstance(value, str) and value != "",
    "duration_ms": _is_number,
    "trace_digest": _is_plain_digest,
    "world_digest": _is_plain_digest,
    "tests": lambda value: isinstance(value, list),
}


def _sense_problems(results):
    """What a schema cannot say: ids, counts, and parts that must fit each other."""
    seen = {}
    for index, cell in enumerate(results["cells"]):
        where = pointer_to(["cells", index, "id"])
        plain = model.plain_id(cell)
        scenario = cell.get("scenario")
        allowed = [plain] + ([f"{plain}@{scenario}"] if scenario else [])
        if cell["id"] not in allowed:
            yield where, (
                f"{cell['id']!r} does not fit the cell's axes, "
                f"expected {' or '.join(map(repr, allowed))}"
            )
        if cell["id"] in seen:
            yield where, f"{cell['id']!r} stands already at /cells/{seen[cell['id']]}"
        seen.setdefault(cell["id"], index)
    counted = model.summarise(results["cells"], results["summary"]["wall_s"])
    for key, value in counted.items():
        if results["summary"][key] != value:
            yield pointer_to(
                ["summary", key]
            ), f"{results['summary'][key]} told, {value} counted from cells"
    for kernel, drivers in results.get("oracle", {}).items():
        for driver, agreement in drivers.items():
            if agreement["agree"] > agreement["cases"]:
                yield pointer_to(["oracle", kernel, driver, "agree"]), (
                    f"{agreement['agree']} agree of {agreement['cases']} cases"
                )


def validate(results, source="results"):
    """Returns `results`; raises ResultsError naming every wrong place by its JSON pointer."""
    version = results.get("schema_version") if isinstance(results, dict) else None
    if isinstance(version, int) and not isinstance(version, bool) and version != SCHEMA_VERSION:
        raise ResultsError(
            source,
            [
                (
                    "/schema_version",
                    f"{version} is not known here, expected {SCHEMA_VERSION}: "
                    "use the verbs-abi that wrote this file",
                )
            ],
        )
    problems = list(_schema_problems(results)) or list(_sense_problems(results))
    if problems:
        raise ResultsError(source, problems)
    return results
