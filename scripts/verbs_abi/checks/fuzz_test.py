# SPDX-License-Identifier: BSD-2-Clause
"""Running libFuzzer, with a program that only pretends to be one."""

import pytest

from verbs_abi.checks import fuzz
from verbs_abi.errors import UserError

PRETENDS = """#!/bin/sh
if [ -n "$VABI_FUZZ_SEEDS" ]; then {seed}; exit 0; fi
for argument; do case $argument in -artifact_prefix=*) prefix=${{argument#*=}} ;; esac; done
echo '#1000	pulse  cov: 1200 ft: 3400 corp: 5/100b'
{find}
echo 'Done 4321 runs in 60 second(s)'
"""


def build(tmp_path, seed="echo x >$VABI_FUZZ_SEEDS/one", find=":"):
    program = tmp_path / "build" / fuzz.PROGRAM
    program.parent.mkdir(parents=True)
    program.write_text(PRETENDS.format(seed=seed, find=find))
    program.chmod(0o755)
    (tmp_path / "run").mkdir()
    return tmp_path / "build", tmp_path / "run"


def test_executions_and_coverage_are_told(tmp_path):
    assert fuzz.run(*build(tmp_path))[:3] == (4321, 1200, None)


def test_an_input_that_was_found_is_kept(tmp_path):
    folder, place = build(tmp_path, find="printf bad >${prefix}crash-1")
    _, _, kept, _ = fuzz.run(folder, place)
    assert kept == folder / "crash-1" and kept.read_text() == "bad"


def test_no_seeds_are_an_error(tmp_path):
    with pytest.raises(UserError, match="uverbs_fuzz wrote no seeds"):
        fuzz.run(*build(tmp_path, seed=":"))
