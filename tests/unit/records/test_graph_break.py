"""A graph's end survives being told as a warning."""

from __future__ import annotations

import pytest

from neuron_tools.records.graph_break import GraphBreak

HINT = "Set `a.b = True` or `export A=1`."


@pytest.mark.parametrize("own", [("/user/train.py", 4), ("/lib/a b.py", 12)])
@pytest.mark.parametrize("hint", ["", HINT])
@pytest.mark.parametrize("reason", ["Unsupported Tensor.item() call", "Two words: one. Another"])
def test_a_message_tells_all(own, hint, reason):
    broken = GraphBreak("/lib/a b.py", 12, *own, reason, hint)
    assert GraphBreak.told(broken.message) == broken


def test_other_warnings_tell_none():
    assert GraphBreak.told("aten::det has no native lowering.") is None
