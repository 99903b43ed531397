"""What an edit of an example's kernel is predicted to change, against a fresh capture of the edited file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import neuron_tools
from neuron_explorer.api.preview_process import PreviewProcess
from neuron_explorer.api.previews import Previews
from neuron_explorer.api.source_costs import read_source_costs
from neuron_explorer.library import ProfileLibrary

EXAMPLES = Path(__file__).parents[3] / "examples/nki"
ROWS = "np.ones((1024, 2048), np.float32)"
CALLS = {
    "softmax.py": ("softmax_fused", f"({ROWS},)"),
    "matmul.py": ("matmul_resident", "inputs()"),
    "attention.py": ("attention_pipelined", "inputs()"),
    "layernorm.py": ("layernorm_stats", f"({ROWS},)"),
}


class Edit(NamedTuple):
    """A text of a function of a file, and what is written instead."""

    file: str
    function: str
    old: str
    new: str


EDITS = (
    Edit("softmax.py", "softmax_fused", "operand0=total)", "operand0=total, engine=nisa.scalar_engine)"),
    Edit(
        "softmax.py",
        "softmax_fused",
        "nisa.dma_copy(dst=tile, src=a[row : row + 128])",
        "nisa.dma_copy(dst=tile[:, :512], src=a[row : row + 128, :512])\n"
        "        nisa.dma_copy(dst=tile[:, 512:], src=a[row : row + 128, 512:])",
    ),
    Edit("matmul.py", "matmul_resident", "engines[n % 2]", "nisa.vector_engine"),
    Edit(
        "matmul.py",
        "matmul_resident",
        "slice(0, rows)))",
        "slice(0, rows // 2)))\n        left[-1] = load(lhs_t, part, slice(0, rows))",
    ),
    Edit("matmul.py", "store", "dtype=result.dtype", "dtype=nl.float32"),
    Edit("attention.py", "attention_pipelined", "values, 8)", "values, 2)"),
    Edit("attention.py", "scores_of", "engine=nisa.vector_engine", "engine=nisa.scalar_engine"),
    Edit("attention.py", "weighted", "engine=nisa.scalar_engine", "engine=nisa.vector_engine"),
    Edit(
        "layernorm.py",
        "finish",
        "    nisa.activation(",
        "    nisa.tensor_copy(dst=tile, src=tile)\n    nisa.activation(",
    ),
    Edit(
        "layernorm.py",
        "layernorm_stats",
        "tile, stats, moments =",
        "spare = tile_of(width)\n        nisa.dma_copy(dst=spare, src=a[row : row + 128])\n"
        "        tile, stats, moments =",
    ),
)


def edited(edit: Edit) -> str:
    """The file's text after the edit."""
    text = (EXAMPLES / edit.file).read_text()
    start = text.index(f"def {edit.function}(")
    assert edit.old in text[start:]
    return text[:start] + text[start:].replace(edit.old, edit.new, 1)


@pytest.fixture(scope="module")
def process() -> Iterator[PreviewProcess]:
    process = PreviewProcess()
    yield process
    process.close()


@pytest.fixture(scope="module")
def previews(process: PreviewProcess) -> Iterator[Previews]:
    with ProfileLibrary() as library:
        yield Previews(library, process)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples, and a script for each that calls one kernel."""
    folder = tmp_path_factory.mktemp("examples")
    for name in (*CALLS, "report.py"):
        shutil.copy(EXAMPLES / name, folder)
    for name, (kernel, arguments) in CALLS.items():
        module = Path(name).stem
        script = f"from {module} import *\nfrom {module} import {kernel}\n\n{kernel}(*{arguments})\n"
        (folder / f"run_{name}").write_text(script)
    return folder


def capture(folder: Path, name: str, profile: str) -> Path:
    """Capture the script of an example."""
    path = folder / profile
    if not path.exists():
        command = [sys.executable, "-m", "neuron_profile.cli", "capture", "--host-clock", "fixed"]
        command += ["-o", str(path), "--", sys.executable, f"run_{name}"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return path


def line_times(profile: Path, file: Path) -> tuple[float, dict[int, float]]:
    """Device time, and that of each line of a file."""
    with neuron_tools.open_profile(profile) as opened:
        costs = read_source_costs(opened)
    return costs.device_ns, {line: work.device_ns for line, work in costs.files[str(file)].own_code.items()}


def times_of(answer: dict[str, Any]) -> dict[int, float]:
    """The time of each line of an answer."""
    return {row["line"]: row["own_code"]["device_ns"] for row in answer["lines"]}


@pytest.mark.slow
@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: f"{edit.file}:{edit.function}")
def test_an_edit_is_predicted_as_a_fresh_capture_shows_it(
    edit: Edit, folder: Path, previews: Previews
) -> None:
    file = folder / edit.file
    captured = file.read_text()
    base = capture(folder, edit.file, f"{file.stem}.nprof")
    with neuron_tools.open_profile(base) as profile:
        predicted = previews.preview(profile, str(file), edited(edit))
    assert predicted["problems"] == []
    file.write_text(edited(edit))
    try:
        fresh, lines = line_times(capture(folder, edit.file, f"{abs(hash(edit))}.nprof"), file)
    finally:
        file.write_text(captured)
    before, _ = line_times(base, file)
    change = fresh - before
    assert predicted["before"]["device_ns"] == pytest.approx(before)
    assert predicted["after"]["device_ns"] - before == pytest.approx(change, rel=0.05, abs=0.001 * before)
    shown = times_of(predicted["after"])
    for line in shown.keys() | lines.keys():
        assert shown.get(line, 0.0) == pytest.approx(lines.get(line, 0.0), rel=0.05, abs=0.005 * fresh)
