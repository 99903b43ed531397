"""What `scripts/pytorch_examples.py` makes for the examples, and what it says of them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

import pytorch_examples
import pytorch_examples_data

OUTPUT = """Traceback (most recent call last):
  File "main.py", line 1, in <module>
ValueError: of the example

run.nprof  python main.py
"""


def test_the_error_of_an_example_is_told_not_the_summary_after_it() -> None:
    assert pytorch_examples._last_error(OUTPUT) == "ValueError: of the example"


@pytest.mark.parametrize(
    ("device_ns", "own_share", "problem", "passed"),
    [(1.0, 1.0, "", True), (0.0, 1.0, "", False), (1.0, 0.98, "", False), (1.0, 1.0, "it ended", False)],
)
def test_an_example_passes_that_ran_on_the_device_at_its_own_lines(
    device_ns: float, own_share: float, problem: str, passed: bool
) -> None:
    outcome = pytorch_examples.Outcome("mnist", problem, device_ns, own_share, 1.0)
    assert outcome.passed == passed


def test_digits_have_mnists_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mnist").mkdir()
    monkeypatch.chdir(tmp_path / "mnist")
    pytorch_examples_data.prepare_digits()
    data = (tmp_path / "data" / "MNIST" / "raw" / "train-images-idx3-ubyte").read_bytes()
    magic, count, height, width = np.frombuffer(data[:16], ">i4")
    assert (magic, height, width) == (2051, 28, 28)
    assert len(data) == 16 + count * height * width


def test_papers_cite_papers_of_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pytorch_examples_data.prepare_citations()
    papers = {line.split("\t")[0] for line in Path("cora/cora.content").read_text().splitlines()}
    cited = Path("cora/cora.cites").read_text().split()
    assert papers >= set(cited)
