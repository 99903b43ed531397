"""Profiles that benchmarks measure keep the rules of real ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import long_capture, synthetic_profile
from neuron_tools import open_profile
from neuron_tools.profile.verify import verify


@pytest.mark.parametrize("write", [synthetic_profile.write, long_capture.write])
def test_no_rule_is_broken(write: Callable[[Path, int], None], tmp_path: Path) -> None:
    write(tmp_path / "run.nprof", 1)
    with open_profile(tmp_path / "run.nprof") as profile:
        assert profile.tables()["Instruction"] >= 100_000
        assert [str(breach) for breach in verify(profile)] == []
