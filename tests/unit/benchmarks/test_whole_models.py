"""The rows of whole models, and the programs that stand for them."""

from __future__ import annotations

import pytest

from benchmarks.whole_model_rows.row import newest, rows


def test_every_row_names_its_source_and_version() -> None:
    assert all(row.source and row.version and row.value > 0 for row in rows())


@pytest.mark.parametrize(("model", "batch", "version"), [("vit", 1, "2.21.0"), ("bert", 8, "2.27.0")])
def test_the_newest_software_is_what_counts(model: str, batch: int, version: str) -> None:
    assert newest(model, "inf2", batch, "latency").version == version
