"""The closed form of what a rank of TorchTitan's Llama 3 keeps and brings to collectives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

import torchtitan_layouts
from torchtitan_layouts import Exchange, Layout

SMALL = Layout("small", "llama3", 8, 16, 4, 2, 10, 4, sharded=4, tensor=2)
"""On a rank: q, o 4 x 8 and 8 x 4; k, v 2 x 8; w1, w3 8 x 8; w2 8 x 8; two norms of 8; 5 of 10 words."""


def test_parameters_are_gathered_with_the_rows_that_fill_the_last_shard() -> None:
    block = 4 * 8 + 2 * (4 * 8) + 8 * 4 + 3 * 64 + 2 * 8  # k and v: 2 rows, padded to 4
    assert SMALL.gathered(SMALL.block) == block
    assert SMALL.gathered(SMALL.embedding) == 8 * 8  # 5 rows, padded to 8


def test_a_block_is_gathered_twice_in_a_step_and_scattered_once() -> None:
    elements = SMALL.gathered(SMALL.block)
    exchanges = SMALL.exchanges()
    assert exchanges[Exchange("AllGather", 4, 2 * elements // 4, 2 * elements)] == 4
    assert exchanges[Exchange("ReduceScatter", 4, 4 * elements, elements)] == 2
    assert exchanges[Exchange("AllGather", 2, 2 * 4 * 8 // 2, 2 * 4 * 8)] == 14


def test_the_last_shards_are_smaller_or_empty() -> None:
    first, last = SMALL.optimizer_bytes(0), SMALL.optimizer_bytes(7)
    rows = 2 * 2 + 2 * 2  # one row of k and v of both blocks, two of embedding and head: rank 7 has none
    assert first - last == 2 * 4 * 8 * rows


def test_a_rank_keeps_its_share_of_each_parameter_in_single_precision() -> None:
    """On rank 0 of 4: one row of q, w1, w2, w3 and k, v; two of o (8 / 4), of norms and of the 5 words."""
    block = 8 + 2 * 8 + 2 * 4 + 2 * (2 * 8) + 2 * 8 + 2 * 2
    assert SMALL.parameter_bytes() == 4 * (2 * block + 2 * (2 * 8) + 2)
    assert SMALL.optimizer_bytes() == 2 * SMALL.parameter_bytes() + 4 * (2 * 9 + 3)


def test_gradients_are_kept_with_the_rows_that_fill_the_last_shards() -> None:
    """k and v: 2 rows for 4 ranks, padded to 4; 5 words to 8: also on the last rank."""
    block = 4 * 8 + 2 * (4 * 8) + 8 * 4 + 3 * 64 + 2 * 8
    assert SMALL.gradient_bytes() == 4 * (2 * block + 2 * (8 * 8) + 8) // 4


def test_of_each_checkpointed_block_a_ranks_part_of_the_sequence_is_kept() -> None:
    assert SMALL.block_input_bytes() == 2 * (2 * 4 * 8 // 2)


def test_without_a_checkout_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(torchtitan_layouts.FOLDER, raising=False)
    assert torchtitan_layouts.FOLDER in torchtitan_layouts.missing()


def test_a_layout_that_does_not_exist_is_one_sentence(monkeypatch, capsys) -> None:
    monkeypatch.setattr(torchtitan_layouts, "missing", lambda: "")
    monkeypatch.setattr(torchtitan_layouts.sys, "argv", ["torchtitan_layouts.py", "llama9"])
    assert torchtitan_layouts.main() == 2
    assert capsys.readouterr().err.startswith(
        "Error: there is no layout llama9; choose from llama3_debugmodel"
    )


def test_a_training_that_fails_is_one_sentence(monkeypatch, capsys, tmp_path) -> None:
    package = tmp_path / "torchtitan"
    package.mkdir()
    (package / "train.py").write_text("raise SystemExit(3)")
    monkeypatch.setenv(torchtitan_layouts.FOLDER, str(tmp_path))
    monkeypatch.setattr(torchtitan_layouts.sys, "argv", ["torchtitan_layouts.py", "llama3_debugmodel"])
    assert torchtitan_layouts.main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Error: llama3_debugmodel was not trained (exit status ")
    assert torchtitan_layouts.PACKAGES in line
