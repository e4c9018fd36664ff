# SPDX-License-Identifier: BSD-2-Clause
"""Userlands that are not Debian releases: a prefix, package files, a source tree.

    --userland prefix:/opt/rdma       what is installed below that folder
    --userland deb:DIR|FILE,FILE…     .deb files: rdma-core's, and its C library's when it needs another
    --userland rpm:DIR|FILE,FILE…     .rpm files
    --userland src:DIR[,ioctl_mode=both|write|ioctl]     built here with ccache
    --userland NAME=prefix:/opt/rdma  with a name of one's own

The first use registers it: CACHE/registered/NAME.json, one file each, of the same form as those of matrix/userlands
(which may hold such userlands too). From then on its name does for cells, and what it consists of is checked at each
use against the digest that was noted.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import re

from verbs_abi import matrix, paths
from verbs_abi.errors import UserError
from verbs_abi.userlands import built, rooted, sources, unpacked

SPEC = re.compile(r"(?:(?P<name>[^=/:]*)=)?(?P<how>prefix|deb|rpm|src):(?P<what>.*)", re.S)
# A name of one's own stands in cells' names, in file names and behind --userland.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
KINDS = {"prefix": "prefix", "deb": "packages", "rpm": "packages", "src": "source"}
IOCTL_MODES = ("both", "write", "ioctl")


@dataclasses.dataclass(frozen=True)
class Local:
    """What a local userland's file says.

    path: of a prefix or source tree; files: rows {path, sha256} of package files.
    digest: of its libraries when it was registered (a prefix); None: not noted.
    """

    name: str
    kind: str
    title: str
    path: str | None = None
    files: tuple = ()
    ioctl_mode: str = "both"
    digest: str | None = None


def is_spec(text):
    """Does this name a place rather than a registered userland?"""
    return SPEC.fullmatch(text) is not None


def _slug(path):
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", path.name).strip("-") or "root"


def _default_name(how, place, more=""):
    digest = hashlib.sha256(f"{how}:{place}:{more}".encode()).hexdigest()[:6]
    return f"{how}-{_slug(pathlib.Path(place))}-{digest}"


def _package_files(how, what):
    if os.path.isdir(what):
        # Not by glob(), to which a folder that may not be read is an empty one.
        found = sorted(pathlib.Path(what, name) for name in os.listdir(what) if name.endswith(f".{how}"))
        if not found:
            raise UserError(f"--userland {how}:{what}: there is no .{how} file in that folder",
                            hint="Name a folder of package files, or the files with commas between them.")
    else:
        found = [pathlib.Path(text) for text in ([what] if os.path.isfile(what) else what.split(",")) if text]
    for path in found:
        if path.suffix != f".{how}":
            raise UserError(f"--userland {how}:…: {path} is no .{how} file")
        if not path.is_file():
            raise UserError(f"--userland {how}:…: there is no file {path}")
    rows = {}
    for path in found:  # a file that is named twice is one
        rows.setdefault(unpacked.sha256(path), str(path.resolve()))
    return [{"path": path, "sha256": digest} for digest, path in rows.items()]


def _source(what):
    place, *options = [what] if os.path.isdir(what) else what.split(",")
    mode = "both"
    for option in options:
        key, _, value = option.partition("=")
        if key != "ioctl_mode" or value not in IOCTL_MODES:
            raise UserError(f"--userland src:{what}: unknown option '{option}'",
                            hint="There is ioctl_mode=" + "|".join(IOCTL_MODES))
        mode = value
    return place, mode


def describe(text):
    """The data of the file that registers this place."""
    match = SPEC.fullmatch(text)
    how, what = match["how"], match["what"]
    if not what.strip(","):
        raise UserError(f"--userland {text}: no place is named", hint=f"For example {how}:/some/folder")
    if match["name"] is not None and not NAME.fullmatch(match["name"]):
        raise UserError(f"--userland {text}: '{match['name']}' cannot be a userland's name",
                        hint="A name has letters, digits and . _ + -, starts with a letter or digit, and is not longer than 100.")
    if built.is_name(f"{match['name']}="):
        raise UserError(f"--userland {text}: names with {built.MARK} mean userlands that are built with others' headers",
                        hint="Choose another name.")
    data = {"name": match["name"], "kind": KINDS[how], "title": f"{how} {what}", "stack": "rdma-core", "arch": "x86_64"}
    if how in ("deb", "rpm"):
        data["files"] = _package_files(how, what)
        place = pathlib.Path(data["files"][0]["path"]).parent
        data["name"] = data["name"] or _default_name(how, place, "".join(row["sha256"] for row in data["files"]))
        return data
    place, mode = _source(what) if how == "src" else (what, None)
    path = pathlib.Path(os.path.realpath(place))
    if not path.is_dir():
        raise UserError(f"--userland {text}: there is no folder {path}")
    data["path"] = str(path)
    if mode:
        data["ioctl_mode"] = mode
        sources.check_tree(path)
    else:
        data["digest"] = rooted.find(path, text).digest
    data["name"] = data["name"] or _default_name(how, path, mode if mode not in (None, "both") else "")
    if mode not in (None, "both") and not match["name"]:
        data["name"] += f"-{mode}"
    return data


def register(text):
    """Registers a place; returns the userland's name."""
    try:
        data = describe(text)
    except OSError as error:
        raise UserError(f"--userland {text}: {error.filename or text}: {error.strerror}") from error
    name = data["name"]
    folder = matrix.registered_dir()
    if (paths.matrix_dir() / "userlands" / f"{name}.json").exists():
        raise UserError(f"--userland {text}: '{name}' is a userland of the matrix already", hint="Choose another name.")
    path, content = folder / f"{name}.json", matrix.formatted(data)
    try:
        if not path.exists() or path.read_text() != content:
            folder.mkdir(parents=True, exist_ok=True)
            # Whole or not at all: a broken file here would end every command that looks at userlands.
            scratch = folder / f"{name}.{os.getpid()}.new"
            try:
                scratch.write_text(content)
                scratch.replace(path)
            finally:
                scratch.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"--userland {text} cannot be registered in {folder}: {error.strerror}",
                        hint="VERBS_ABI_CACHE names another cache folder.") from error
    matrix.get("userlands", name)  # the schema has a say
    return name


def from_entry(entry):
    """The Local in a matrix entry."""
    data = entry.data
    key = "files" if data["kind"] == "packages" else "path"
    if key not in data:
        raise matrix.MatrixError(entry.path, f"/{key}", "is missing", f"what a userland of the kind '{data['kind']}' is made of")
    return Local(entry.name, data["kind"], data["title"], data.get("path"), tuple(data.get("files", ())),
                 data.get("ioctl_mode", "both"), data.get("digest"))


def state(local):
    """(state, remark) for lists: ready, not fetched (it is unpacked or built at its first use), stale or gone."""
    if local.kind == "packages":
        lost = [row["path"] for row in local.files if not os.path.exists(row["path"])]
        if unpacked.Unpacked(local).ready():
            return "ready", ""
        return ("gone", f"{lost[0]} is no longer there") if lost else ("not fetched", "unpacked at its first use")
    if not os.path.isdir(local.path):
        return "gone", f"{local.path} is no longer there"
    if local.kind == "source":
        return ("ready", "") if sources.built(local) else ("not fetched", "built at its first use")
    try:
        digest = rooted.find(local.path, local.name).digest
    except UserError as error:
        return "gone", error.what
    except OSError as error:
        return "gone", f"{error.filename}: {error.strerror}"
    return ("ready", "") if digest == local.digest else ("stale", "other libraries than those that were registered")


def get(local):
    """The Userland, unpacked or built first where that is due."""
    try:
        return _get(local)
    except OSError as error:
        raise UserError(f"userland '{local.name}': {error.filename or local.path}: {error.strerror}") from error


def _get(local):
    if local.kind == "packages":
        return unpacked.Unpacked(local).get()
    if not os.path.isdir(local.path):
        raise UserError(f"userland '{local.name}' is gone: there is no folder {local.path}")
    if local.kind == "source":
        return sources.get(local)
    found = rooted.userland(local.name, local.path, version=version(local))
    if local.digest and found.digest != local.digest:
        raise UserError(f"userland '{local.name}': {local.path} holds other libraries than those that were registered",
                        details=[f"registered {local.digest}, found {found.digest}"],
                        hint=f"--userland {local.name}=prefix:{local.path} registers what is there now.")
    return found


def version(local):
    """"44.0", as its sources, its library's or its packages' file names say; "unknown"."""
    if local.kind == "packages":
        return unpacked.Unpacked(local).version()
    path = pathlib.Path(local.path)
    return sources.version(path) if local.kind == "source" else rooted.version(path, local.name)


def to_json(text):
    """For tests and the curious: what would be registered."""
    return json.dumps(describe(text), indent=1)
