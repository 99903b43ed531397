"""The rows of whole models, and the programs that stand for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.whole_model_rows.judged import Case, Prediction, summary
from benchmarks.whole_model_rows.row import newest, rows
from benchmarks.whole_models import predicted


def test_every_row_names_its_source_and_version() -> None:
    assert all(row.source and row.version and row.value > 0 for row in rows())


@pytest.mark.parametrize(("model", "batch", "version"), [("vit", 1, "2.21.0"), ("bert", 8, "2.27.0")])
def test_the_newest_software_is_what_counts(model: str, batch: int, version: str) -> None:
    assert newest(model, "inf2", batch, "latency").version == version


def cases(*pairs: tuple[float, float, float]) -> list[tuple[Case, Prediction]]:
    """Cases of (measured, simulated, roofline) times."""
    row = newest("vit", "inf2", 1, "latency")
    return [
        (Case(row, lambda: Prediction(0, 0), measured), Prediction(simulated, roofline))
        for measured, simulated, roofline in pairs
    ]


def test_a_row_that_was_kept_is_not_predicted_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []

    def predict() -> Prediction:
        asked.append(1)
        return Prediction(110, 50)

    case = Case(newest("vit", "inf2", 1, "latency"), predict, 100)
    for _ in range(2):
        assert [found for _, found in predicted([case], tmp_path / "rows.jsonl")] == [Prediction(110, 50)]
    assert asked == [1]
    assert capsys.readouterr().err.count("vit, batch 1, inf2: +10.0 %") == 2


def test_the_summary_tells_median_worst_row_order_and_who_is_nearer() -> None:
    figures = {item.name: item for item in summary(cases((100, 110, 50), (200, 160, 190), (300, 300, 40)))}
    assert figures["median error"].value == pytest.approx(10)
    assert figures["largest error"].value == pytest.approx(20)
    assert figures["rows nearer than the roofline"].value == 2
    assert figures["rank correlation"].value == pytest.approx(1)
    assert figures["rank correlation"].holds
    peer = figures["rank correlation"].peer
    assert peer is not None
    assert peer.value < 1
