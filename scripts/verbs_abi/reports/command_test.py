# SPDX-License-Identifier: BSD-2-Clause
"""verbs-abi report: whole, with a shard missing, with something else."""

import pytest

from verbs_abi import cli
from verbs_abi.reports import command, store
from verbs_abi.reports.conftest import digest, make_cell, make_results


def shard(tmp_path, text, kernel, **changes):
    """The folder of a shard's reports, with one cell."""
    results = make_results([make_cell("deb-44.0", kernel, "mlx5", **changes)])
    results["run"]["shards"] = [text]
    folder = tmp_path / text.replace("/", "-")
    folder.mkdir()
    store.write_atomically(folder / "results.json", store.dumps(results))
    return str(folder)


@pytest.mark.parametrize("second, status", [
    ({}, 0), ({"outcome": "broken", "verdict": "unexpected"}, 1),
    ({"outcome": None, "verdict": "not_run", "message": "it has gone", "trace_digest": None, "tests": []}, 2)])
def test_a_run_in_shards_ends_as_a_whole_one_does(tmp_path, second, status):
    folders = [shard(tmp_path, "1/2", "linux-5.4"), shard(tmp_path, "2/2", "linux-5.6", **second)]
    assert cli.main(["report", "--out", str(tmp_path / "out"), *folders]) == status
    merged = store.load(tmp_path / "out/results.json")
    assert [cell["kernel"] for cell in merged["cells"]] == ["linux-5.4", "linux-5.6"]
    assert (tmp_path / "out/junit.xml").exists() and (tmp_path / "out/summary.md").exists()


def test_a_missing_shard_is_no_success(tmp_path, capsys):
    folders = [shard(tmp_path, "3/12", "linux-5.4"), shard(tmp_path, "12/12", "linux-5.6")]
    assert cli.main(["report", "--out", str(tmp_path / "out"), *folders]) == 2
    assert "no result of the shards 1/12, 2/12, 4/12, 5/12," in capsys.readouterr().err
    assert command.lacking(["1/2", "2/2"]) == command.lacking([]) == []


def test_what_cannot_be_used_is_said_and_nothing_is_written(tmp_path, capsys):
    first = shard(tmp_path, "1/2", "linux-5.4")
    other = make_results([make_cell("deb-44.0", "linux-5.6", "mlx5")])
    other["provenance"]["shim"] = digest("another")
    store.write_atomically(tmp_path / "other.json", store.dumps(other))
    (tmp_path / "text.json").write_text("text")
    for bad, words in (("other.json", "/provenance/shim: "), ("none.json", "none.json: No such file"), ("", "results.json: No such"),
                       ("text.json", "text.json")):
        assert cli.main(["report", "--out", str(tmp_path / "out"), first, str(tmp_path / bad)]) == 2
        assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").touch()
    assert cli.main(["report", "--out", str(tmp_path / "file"), first]) == 2
