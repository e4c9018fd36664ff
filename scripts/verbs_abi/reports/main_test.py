# SPDX-License-Identifier: BSD-2-Clause
"""Shards to one report, as CI does it."""

from . import store
from .__main__ import main
from .conftest import digest, make_cell, make_results


def shard(tmp_path, number, kernels, **changes):
    results = make_results([make_cell("deb-44.0", kernel, "mlx5", **changes) for kernel in kernels])
    results["run"]["shards"] = [f"{number}/2"]
    path = tmp_path / f"shard{number}.json"
    store.write_atomically(path, store.dumps(results))
    return results, str(path)


def test_shards_become_one_report(tmp_path, capsys):
    _, first = shard(tmp_path, 1, ["linux-5.4"])
    _, second = shard(tmp_path, 2, ["linux-5.6"], outcome="broken", verdict="unexpected")
    out = tmp_path / "out"
    assert main([str(out), second, first]) == 1
    merged = store.load(out / "results.json")
    assert [cell["kernel"] for cell in merged["cells"]] == ["linux-5.4", "linux-5.6"]
    said = capsys.readouterr().out
    assert "unexpected: deb-44.0/linux-5.6/mlx5: broken" in said
    assert f"Report: {out}/index.html" in said
    # Its own result is as good a part as any.
    assert main([str(out), first, second, str(out / "results.json")]) == 1
    assert store.load(out / "results.json")["cells"] == merged["cells"]
    assert main([str(tmp_path / "good"), first]) == 0


def test_what_cannot_be_used_is_said_and_nothing_is_written(tmp_path, capsys):
    results, first = shard(tmp_path, 1, ["linux-5.4"])
    results["provenance"]["shim"] = digest("another")
    other = tmp_path / "other.json"
    store.write_atomically(other, store.dumps(results))
    for bad, words in ((other, "/provenance/shim: "), (tmp_path / "none.json", "No such file")):
        assert main([str(tmp_path / "out"), first, str(bad)]) == 2
        assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
