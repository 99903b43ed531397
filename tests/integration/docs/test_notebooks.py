"""The notebooks of `examples/notebooks`, run from the first cell to the last in an empty folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.integration.docs.pages import ROOT, memory_folder

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}", prepend=":")
    cells = nbformat.read(notebook, as_version=4)
    client = nbclient.NotebookClient(cells, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    with memory_folder() as devices:
        monkeypatch.setenv("NEURON_SYSFS_ROOT", devices)
        client.execute()
    printed = "".join(output.get("text", "") for cell in cells.cells for output in cell.get("outputs", ()))
    assert "Error" not in printed
    assert "Traceback" not in printed


def test_notebooks_are_kept_without_outputs() -> None:
    assert NOTEBOOKS
    for notebook in NOTEBOOKS:
        for cell in nbformat.read(notebook, as_version=4).cells:
            assert not cell.get("outputs")
            assert cell.get("execution_count") is None
