"""The process that rehearses edits, replaced here by one that answers at once."""

from __future__ import annotations

import sys

import pytest

from neuron_explorer.api import preview_process
from neuron_explorer.api.preview_process import PreviewFailedError, PreviewProcess

ECHO = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["text"] == "end":
        break
    print(json.dumps({"number": request["number"], "kernels": [request["text"]]}), flush=True)
"""


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preview_process, "COMMAND", (sys.executable, "-c", ECHO))
    process = PreviewProcess()
    yield process
    process.close()


def test_each_question_gets_its_answer(process: PreviewProcess) -> None:
    assert process.answer_of(process.ask(text="one")) == {"kernels": ["one"]}
    assert process.answer_of(process.ask(text="two")) == {"kernels": ["two"]}


def test_a_process_that_ends_is_replaced(process: PreviewProcess) -> None:
    with pytest.raises(PreviewFailedError, match="ended"):
        process.answer_of(process.ask(text="end"))
    assert process.answer_of(process.ask(text="again")) == {"kernels": ["again"]}
