from __future__ import annotations

from pathlib import Path

import pytest

from neuron_tools.device.driver.machine import Machine


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where a tree may be made."""
    return tmp_path / "sysfs"


@pytest.fixture
def machine() -> Machine:
    """Two chips of four cores."""
    return Machine("trn2", "trn2.test", 2, 4, 96 << 30, 2, ((1,), (0,)))
