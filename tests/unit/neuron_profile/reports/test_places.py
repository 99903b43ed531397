from pathlib import Path

import pytest

from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.reports.places import place


def test_paths_are_short_where_the_reader_knows_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert place(SourceLine(str(tmp_path / "src" / "train.py"), 3)) == "src/train.py:3"
    assert (
        place(SourceLine("/v/lib/python3.12/site-packages/torch/nn/linear.py", 12)) == "torch/nn/linear.py:12"
    )
    assert place(SourceLine("/root/.pyenv/versions/3.11.7/lib/python3.11/selectors.py", 415)) == (
        "python3.11/selectors.py:415"
    )
    assert place(SourceLine("/elsewhere/x.py", 1)) == "/elsewhere/x.py:1"
    assert place(SourceLine("<string>", 1)) == "<string>:1"


def test_long_paths_keep_their_end() -> None:
    text = place(SourceLine("/a/very/long/folder/of/mine/train.py", 123), 16)
    assert (len(text), text[0], text.endswith("train.py:123")) == (16, "…", True)
