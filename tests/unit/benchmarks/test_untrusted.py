"""The campaigns on damaged inputs and hostile queries: a few of each here, thousands by the benchmark."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.untrusted_inputs import campaign as campaigns
from benchmarks.untrusted_inputs.campaign import campaign
from benchmarks.untrusted_inputs.damage import damaged
from benchmarks.untrusted_inputs.queries import Statements
from benchmarks.untrusted_inputs.readers import READERS
from neuron_tools.errors import NeuronToolsError

FEW = 8


def test_damaged_artifacts_are_read_or_refused_in_a_sentence(tmp_path: Path) -> None:
    reader, sound = READERS["artifact (.neff)"], tmp_path / "sound"
    sound.mkdir()
    reader.make(sound)
    refused = []
    for number in range(FEW):
        reader.damage(sound, tmp_path / "made", random.Random(number))
        try:
            reader.read(tmp_path / "made")
        except NeuronToolsError as error:
            refused.append(str(error))
    assert refused
    assert not any("\n" in sentence for sentence in refused)


def test_a_seed_makes_the_same_input_again() -> None:
    content = b'{"traceEvents": [{"ts": 1, "dur": 2}]}'
    made = [damaged(content, random.Random(number)) for number in range(50)]
    assert made == [damaged(content, random.Random(number)) for number in range(50)]
    assert len(set(made)) > FEW


def test_a_seed_makes_the_same_statements_again(tmp_path: Path) -> None:
    functions = [("lower", ["VARCHAR"]), ("abs", ["DOUBLE"])]
    made, again = (Statements(3, functions, tmp_path) for _ in range(2))
    statements = [made.next() for _ in range(200)]
    assert statements == [again.next() for _ in range(200)]
    assert any(str(tmp_path) in statement for statement in statements)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*READERS, "SQL"])
def test_a_campaign_finds_nothing(kind: str) -> None:
    outcome = campaign(kind, 40, 60.0, seed=1)
    assert (outcome.tried, outcome.findings) == (40, [])


def test_a_process_that_waits_or_computes_for_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaigns, "PATIENCE", 3)
    for program in ("import time; time.sleep(60)", "while True: pass"):
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
            assert not campaigns._tells(process, 0.2)
            process.kill()
    with subprocess.Popen([sys.executable, "-c", "print(1)"], stdout=subprocess.PIPE) as process:
        assert campaigns._tells(process, 10)
