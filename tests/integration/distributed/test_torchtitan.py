"""TorchTitan's own train.py as one rank of many: what it keeps and moves is what the shapes say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3] / "scripts"))

import torchtitan_layouts


@pytest.mark.slow
@pytest.mark.skipif(bool(torchtitan_layouts.missing()), reason=torchtitan_layouts.missing())
@pytest.mark.parametrize("name", ["llama3_debugmodel"])
def test_a_rank_is_as_the_closed_form(name: str) -> None:
    assert torchtitan_layouts.check(torchtitan_layouts.LAYOUTS[name]) == []
