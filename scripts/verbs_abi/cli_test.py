# SPDX-License-Identifier: BSD-2-Clause
"""The command line, started as users start it: through the launcher."""

import json
import os
import shutil
import subprocess

import pytest

from verbs_abi import cli, listing, paths


def start(*words, launcher=paths.LAUNCHER, cwd="/", **env):
    return subprocess.run(
        [str(launcher), *words],
        cwd=cwd,
        env={**os.environ, **env},
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )


def test_help_names_every_command():
    result = start("--help")
    assert result.returncode == 0
    for name, _, what in cli.present():
        assert f"  {name}" in result.stdout and what in result.stdout
    assert start("help").stdout == result.stdout
    assert "usage: verbs-abi list" in start("help", "list").stdout


def test_no_command_is_a_usage_error():
    result = start()
    assert (result.returncode, result.stdout) == (2, "")
    assert "usage: verbs-abi COMMAND" in result.stderr


def test_an_unknown_command_brings_the_nearest_names():
    result = start("lst")
    assert result.returncode == 2
    assert result.stderr == "verbs-abi: unknown command 'lst'\nNearest: list, test\n"


def test_unknown_options_and_axes_are_usage_errors():
    assert start("--kernel").returncode == 2
    assert "unknown option '--kernel'" in start("--kernel").stderr
    assert start("list", "--frob", "kernels").returncode == 2
    result = start("list", "kernel")
    assert (result.returncode, result.stderr) == (
        2,
        "verbs-abi: unknown list 'kernel'\nNearest: kernels\n",
    )


def test_list_alone_tells_what_can_be_listed():
    result = start("list")
    assert result.returncode == 0
    named = [line.split()[0] for line in result.stdout.splitlines()[1:]]
    assert [row["name"] for row in json.loads(start("list", "--json").stdout)] == named
    assert {"kernels", "userlands", "cells", "rules"} <= set(named)
    for name in named:
        assert name in listing.LISTS and listing.ABOUT[name] in result.stdout


@pytest.mark.parametrize("command, actions", (("facts", ("extract", "diff", "list")), ("oracle", ("record", "check"))))
def test_a_command_without_its_action_tells_the_actions(command, actions):
    result = start(command)
    assert (result.returncode, result.stdout) == (2, "")
    for action in actions:
        assert f"\n    {action}" in result.stderr
    wrong = start(command, "frob")
    assert wrong.returncode == 2 and "invalid choice: 'frob'" in wrong.stderr


@pytest.mark.parametrize("words", (
    ("list", "cells", "--kernel"), ("run", "--kernel"), ("explain",), ("world", "--kernel"),
    ("exec", "--provider", "rxe", "--kernel")))
def test_a_kernel_that_is_only_a_parent_is_told_to_be_none_to_run_on(words):
    name = "deb-44.0/linux-6.1/rxe" if words == ("explain",) else "linux-6.1"
    result = start(*words, name, *(("--", "true") if words[0] == "exec" else ()))
    assert (result.returncode, result.stdout) == (2, "")
    first, second = result.stderr.splitlines()
    assert first == "verbs-abi: 'linux-6.1' is no kernel to run on: its file only holds what others have in common"
    assert "debian-6.1.192" in second


def test_a_reader_that_went_away_is_no_traceback():
    result = subprocess.run(
        [
            "bash",
            "-c",
            'set -o pipefail; "$1" list userlands --json | head -c 1; exit ${PIPESTATUS[0]}',
            "-",
            str(paths.LAUNCHER),
        ],
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert result.returncode in (0, 141)
    assert "Traceback" not in result.stderr and "Exception" not in result.stderr


@pytest.mark.parametrize("where, status, told", (
    (">&-", 0, ""), (">&- 2>&-", 0, ""), (">/dev/full", 2, "verbs-abi: output: No space left on device\n")))
def test_output_that_goes_nowhere_is_no_traceback(where, status, told):
    result = subprocess.run(["sh", "-c", f'exec "$1" list kernels {where}', "-", str(paths.LAUNCHER)], text=True,
                            capture_output=True, timeout=60, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (status, "", told)


@pytest.mark.parametrize("settings", (
    {"LC_ALL": "C"}, {"LC_ALL": "en_US.ISO-8859-1"}, {"TERM": "dumb"}, {"COLUMNS": "20"}, {"NO_COLOR": "1"}))
def test_any_terminal_and_any_name_will_do(settings):
    assert start("list", "overlays", **settings).returncode == 0
    result = start("list", b"kernel\xc3\xb6\xff\x1b[31m", **settings)
    assert result.returncode == 2
    assert result.stderr.startswith("verbs-abi: unknown list 'kernel") and "\x1b" not in result.stderr


@pytest.mark.parametrize(
    "axis", ("kernels", "userlands", "providers", "overlays", "scenarios", "plans")
)
def test_lists_are_tables_for_people_and_json_for_programs(axis):
    rows = json.loads(start("list", axis, "--json").stdout)
    lines = start("list", axis).stdout.splitlines()
    assert lines[0].startswith("name")
    assert [line.split()[0] for line in lines[1:]] == [row["name"] for row in rows]


def test_cells_are_listed_as_a_plan_has_them_or_as_named():
    rows = json.loads(start("list", "cells", "--json").stdout)
    assert len(rows) == len({row["id"] for row in rows})
    some = json.loads(start("list", "cells", "--kernel", "linux-4.16", "--provider", "rxe", "--json").stdout)
    assert some == [
        row for row in rows if row["kernel"] == "linux-4.16" and "rxe" in row["provider"]
    ]
    # Of no plan: made from what is named.
    lines = start("list", "cells", "--kernel", "linux-4.16", "--provider", "rxe", "--overlay", "errno@CREATE_QP=EIO")
    assert lines.stdout == "id\ndeb-44.0/linux-4.16/rxe/errno@CREATE_QP=EIO\n"


@pytest.mark.parametrize(
    "words, wrong, nearest",
    (
        (("--plan", "quik"), "plan 'quik'", "quick"),
        (("--kernel", "linux-416"), "kernel 'linux-416'", "linux-4.16"),
        (("--provider", "mlx"), "provider 'mlx'", "mlx5"),
        (("--provider", "mlx5+rxx"), "provider 'rxx'", "rxe"),
        (("--userland", "deb-44"), "userland 'deb-44'", "deb-44.0"),
        (("--overlay", "no-netlnk"), "overlay 'no-netlnk'", "no-netlink"),
        (("--scenario", "journy"), "scenario 'journy'", "journey"),
    ),
)
def test_wrong_names_of_cells_bring_the_nearest(words, wrong, nearest):
    for command in (("list", "cells"), ("run",)):
        result = start(*command, *words)
        first, second = result.stderr.splitlines()
        assert (result.returncode, result.stdout) == (2, "")
        assert first == f"verbs-abi: unknown {wrong}"
        assert second.startswith(f"Nearest: {nearest}")


def test_userlands_are_listed_with_their_state(tmp_path):
    rows = json.loads(start("list", "userlands", "--json", VERBS_ABI_CACHE=str(tmp_path)).stdout)
    assert {row["name"]: row["state"] for row in rows} == dict.fromkeys(
        ("deb-33.2", "deb-44.0", "deb-44.0-i386", "deb-56.1", "deb-65.0"), "not fetched"
    )


@pytest.fixture(name="copy", scope="module")
def _copy(tmp_path_factory):
    """A copy of the launcher and its package below a path with a space and a quote."""
    root = tmp_path_factory.mktemp("copy") / "a b's tree"
    shutil.copytree(paths.SCRIPTS, root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(paths.LAUNCHER, root / "verbs-abi")
    return root


def test_it_runs_from_any_folder_through_links_and_with_spaces_in_its_path(copy, tmp_path):
    (tmp_path / "absolute").symlink_to(copy / "verbs-abi")
    (tmp_path / "relative").symlink_to("absolute")
    for launcher in (copy / "verbs-abi", tmp_path / "absolute", tmp_path / "relative"):
        assert start("list", "plans", launcher=launcher, cwd=tmp_path).stdout == "name  cells  about\n"
    assert start("list", "plans", launcher="./verbs-abi", cwd=copy).stdout == "name  cells  about\n"
    result = subprocess.run(
        ["sh", "-c", 'PATH=$1:$PATH; verbs-abi list plans', "-", str(copy)],
        cwd="/",
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert result.stdout == "name  cells  about\n"


def test_python_files_and_variables_of_the_caller_are_not_its_own(tmp_path):
    for name in ("json.py", "verbs_abi.py", "argparse.py"):
        (tmp_path / name).write_text("raise SystemExit('wrong module')\n")
    result = start("list", "plans", cwd=tmp_path, PYTHONPATH=str(tmp_path), PYTHONHOME="/nowhere")
    assert result.returncode == 0, result.stderr


def test_overlays_tell_the_values_that_they_take():
    told = start("list", "overlays").stdout
    assert "; VALUE: a kind of mapping, as the trace names it" in told
    assert all(row["what"].startswith(row["about"]) for row in json.loads(start("list", "overlays", "--json").stdout))
