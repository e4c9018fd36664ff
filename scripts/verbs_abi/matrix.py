# SPDX-License-Identifier: BSD-2-Clause
"""What is tested, as data: matrix/AXIS/NAME.json, one small file per kernel, userland, provider, ….

`load(axis)` reads all files of an axis, `get(axis, name)` one. A broken file ends the command with
its path, the line or the JSON pointer, and what was expected there. An axis may have a JSON schema,
matrix/schema/AXIS.json.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import pathlib
import re

from verbs_abi import errors, paths

# axis, what one of its entries is called
AXES = {
    "kernels": "kernel",
    "userlands": "userland",
    "sources": "source",
    "providers": "provider",
    "overlays": "overlay",
    "plans": "plan",
    "scenarios": "scenario",
    "baselines": "baseline",
    "expectations": "expectation",
}

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=@-]*")


@dataclasses.dataclass(frozen=True)
class Entry:
    """One file of the matrix."""

    axis: str
    name: str
    path: pathlib.Path
    data: dict


class MatrixError(errors.UserError):
    """A file of the matrix is broken. `where` is "line N" or a JSON pointer."""

    def __init__(self, path, where, problem, expected=None, hint=None):
        super().__init__(f"{path}: {where}: {problem}", hint=hint or f"Expected: {expected}")
        self.path = path
        self.where = where


def _no_duplicates(path):
    def build(pairs):
        result = {}
        for key, value in pairs:
            if key in result:
                raise MatrixError(
                    path, f'key "{key}"', "stands twice in one object", "each key once"
                )
            result[key] = value
        return result

    return build


def _no_constant(name):
    raise ValueError(f"{name} is no number of JSON")


def read_json(path):
    """The JSON object in a file, or MatrixError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise errors.UserError(f"{path}: {error.strerror}", hint="Expected: a JSON file") from error
    except UnicodeDecodeError as error:
        raise MatrixError(path, f"byte {error.start}", "is not UTF-8", "a JSON file") from error
    try:
        data = json.loads(text, object_pairs_hook=_no_duplicates(path), parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise MatrixError(
            path, f"line {error.lineno}, column {error.colno}", error.msg, "a JSON file"
        ) from error
    except RecursionError as error:
        raise MatrixError(path, "line 1", "is nested too deeply", "a JSON file") from error
    except ValueError as error:  # NaN, and numbers with thousands of digits
        raise MatrixError(path, "line 1", str(error).partition(";")[0], "a JSON file") from error
    if not isinstance(data, dict):
        raise MatrixError(path, "line 1", f"is a {type(data).__name__}", "a JSON object")
    return data


def pointer(parts):
    """RFC 6901 pointer of a path of keys and indices; the whole document is "/"."""
    escaped = [str(part).replace("~", "~0").replace("/", "~1") for part in parts]
    return "/" + "/".join(escaped)


def _expectation(error):
    """What a JSON schema error wanted, in words; schema texts may say it in "description"."""
    schema = error.schema if isinstance(error.schema, dict) else {}
    if error.validator == "required":
        return "the keys " + ", ".join(schema["required"])
    if error.validator == "additionalProperties":
        return "only the keys " + ", ".join(schema.get("properties", {}))
    if error.validator == "enum":
        return "one of " + ", ".join(map(str, schema["enum"]))
    if error.validator == "dependencies":
        return "; ".join(f"beside {key} also {', '.join(others)}" for key, others in schema["dependencies"].items())
    if error.validator == "type":
        wanted = schema["type"]
        kind = wanted if isinstance(wanted, str) else " or ".join(wanted)
        return f"{kind}: {schema['description']}" if "description" in schema else kind
    return schema.get("description") or f"{error.validator} {error.validator_value}"


def check(path, data, schema):
    """MatrixError for the first place where `data` is not as the JSON schema says."""
    import jsonschema  # a Debian package: not there before set-up is done

    found = sorted(
        jsonschema.Draft7Validator(schema).iter_errors(data),
        key=lambda error: [str(part) for part in error.absolute_path],
    )
    if found:
        # Of an anyOf, the branch that came furthest tells most.
        error = jsonschema.exceptions.best_match(found)
        raise MatrixError(path, pointer(error.absolute_path), error.message, _expectation(error))


@functools.cache
def _schema(folder, axis):
    path = folder / "schema" / f"{axis}.json"
    return read_json(path) if path.exists() else None


def registered_dir():
    """Where userlands are kept that this machine has and the matrix does not: a prefix, package files, a source tree."""
    return paths.cache_dir() / "registered"


def shipped(axis):
    """The names of an axis that the matrix itself has: what "*" in a plan means."""
    folder = paths.matrix_dir() / axis
    return sorted((path.stem for path in folder.glob("*.json")), key=_sort_key)


def _files(axis):
    folder = paths.matrix_dir() / axis
    found = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if axis == "userlands" and registered_dir().is_dir():
        found += sorted(registered_dir().glob("*.json"))
    return found


def _check_once(path, data, schema):
    """check(), skipped for contents that passed it before: importing jsonschema takes 0.1 s."""
    content = json.dumps([data, schema]).encode()
    stamp = paths.cache_dir() / "checked" / hashlib.sha256(content).hexdigest()
    if not stamp.exists():
        check(path, data, schema)
        with contextlib.suppress(OSError):  # a cache that may only be read, or is full: checked again the next time
            stamp.parent.mkdir(exist_ok=True)
            stamp.touch()


def _entry(axis, path):
    if not NAME.fullmatch(path.stem):
        raise MatrixError(
            path,
            "file name",
            f"'{path.stem}' cannot stand in a cell id",
            "letters, digits and ._+=@- only",
        )
    data = read_json(path)
    schema = _schema(paths.matrix_dir(), axis)
    if schema is not None:
        _check_once(path, data, schema)
    if data.get("name", path.stem) != path.stem:
        raise MatrixError(path, "/name", f"is {data['name']!r}", f'"{path.stem}", as the file')
    return Entry(axis, path.stem, path, data)


def _sort_key(name):
    """Numbers by value, so that linux-4.9 stands before linux-4.16."""
    return [
        (1, int(part), "") if part.isdigit() else (0, 0, part)
        for part in re.split(r"(\d+)", name)
        if part
    ]


def names(axis):
    """The names on an axis, without reading the files."""
    return sorted((path.stem for path in _files(axis)), key=_sort_key)


def load(axis):
    """{name: Entry} of an axis."""
    found = {path.stem: path for path in _files(axis)}
    return {name: _entry(axis, found[name]) for name in sorted(found, key=_sort_key)}


def lineage(kernel):
    """The entries of a kernel and all that it descends from, itself first."""
    met = set()
    while kernel:
        entry = get("kernels", kernel)
        if kernel in met:
            raise MatrixError(entry.path, "/parent", f"{kernel} descends from itself", "a kernel's name")
        met.add(kernel)
        yield entry
        kernel = entry.data.get("parent")


def get(axis, name):
    """One entry; an unknown name ends the command with the nearest ones."""
    for path in _files(axis):
        if path.stem == name:
            return _entry(axis, path)
    raise errors.unknown(AXES[axis], name, names(axis))


def formatted(data):
    """JSON text as the matrix is written: lists of rows with one row a line."""
    lines = []
    for key, value in data.items():
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            rows = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in value)
            lines.append(f"  {json.dumps(key)}: [\n{rows}\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
