from pathlib import Path

import pytest

from tests.integration.commands.capturing import Workplace


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    """An empty working directory."""
    return Workplace(tmp_path)
