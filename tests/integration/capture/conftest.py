from pathlib import Path

import pytest

from tests.integration.capture.programs import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """An empty working directory."""
    return Folder(tmp_path)
