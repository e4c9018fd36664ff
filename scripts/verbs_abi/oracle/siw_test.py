# SPDX-License-Identifier: BSD-2-Clause
"""siw's module: which packages it is made from, what the compiler gets, what is told."""

import subprocess

import pytest

from verbs_abi.oracle import apt, kernels, siw


def test_a_kernel_without_a_row_is_told(tmp_path):
    unpacked = kernels.Unpacked(kernels.find("debian-5.10.223"), tmp_path)
    with pytest.raises(kernels.OracleError, match="debian-5.10.223: kernels.json does not say"):
        siw.build(unpacked)


def test_the_source_is_of_the_kernels_own_version():
    kernel = kernels.find("debian-6.12.117")
    assert kernel.siw["source"].partition("=")[2].startswith("6.12.117-")
    assert "6.12.117" in kernel.siw["kbuild"]


def test_a_package_of_another_version_in_the_cache_is_not_taken(tmp_path, monkeypatch):
    suites = apt.Suites(["trixie"], tmp_path)
    debs = suites.root / "debs"
    debs.mkdir(parents=True)
    (debs / "linux-source-6.12_6.12.118-1_all.deb").touch()
    monkeypatch.setattr(suites, "update", lambda: None)

    def run(program, *words, cwd=None):
        assert words[-1] == "linux-source-6.12=6.12.117-1"
        (cwd / "linux-source-6.12_6.12.117-1_all.deb").touch()

    monkeypatch.setattr(suites, "_run", run)
    found = suites.download(["linux-source-6.12=6.12.117-1"])
    assert [path.name for path in found.values()] == ["linux-source-6.12_6.12.117-1_all.deb"]


def test_an_older_compiler_gets_the_options_that_it_knows(tmp_path):
    (tmp_path / "gcc").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "cc").write_text(siw.COMPILER)
    for name in ("gcc", "cc"):
        (tmp_path / name).chmod(0o755)
    said = subprocess.run([tmp_path / "cc", "-c", "-fmin-function-alignment=16", "-DA=b c"],
                          env={"PATH": f"{tmp_path}:/bin"}, text=True, capture_output=True,
                          check=True, timeout=20).stdout
    assert said.splitlines() == ["-c", "-falign-functions=16", "-DA=b c"]
