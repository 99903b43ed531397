"""The campaigns on damaged inputs and hostile queries: a few of each here, thousands by the benchmark."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.untrusted_inputs import campaign as campaigns
from benchmarks.untrusted_inputs.campaign import campaign
from benchmarks.untrusted_inputs.damage import MOST_CHANGES, damaged
from benchmarks.untrusted_inputs.queries import Statements
from benchmarks.untrusted_inputs.readers import READERS, Reader
from neuron_tools.errors import NeuronToolsError

FEW = 8


def test_damaged_artifacts_are_read_or_refused_in_a_sentence(tmp_path: Path) -> None:
    reader, sound, made = READERS["artifact (.neff)"], tmp_path / "sound", tmp_path / "made"
    sound.mkdir()
    reader.make(sound)
    shutil.copytree(sound, made)
    refused = []
    for number in range(FEW):
        spoilt = reader.damage(made, random.Random(number))
        try:
            reader.read(made, spoilt)
        except NeuronToolsError as error:
            refused.append(str(error))
        reader.mend(made, spoilt, sound)
    assert refused
    assert not any("\n" in sentence for sentence in refused)


@pytest.mark.parametrize("changes", [None, "", "run"])
def test_an_input_is_made_from_the_sound_example_again(tmp_path: Path, changes: str | None) -> None:
    sound, made = tmp_path / "sound", tmp_path / "made"
    (sound / "run").mkdir(parents=True)
    contents = {"run/a": b"one", "run/b": b"two"}
    for name, content in contents.items():
        (sound / name).write_bytes(content)
    shutil.copytree(sound, made)
    reader = Reader(lambda folder: None, ("run/*",), lambda folder, spoilt: None, changes)
    spoilt = reader.damage(made, random.Random(1))
    assert {path for path in contents if (made / path).read_bytes() != contents[path]} == {
        str(spoilt.relative_to(made))
    }
    if changes is not None:
        (made / "run/new").touch()
    reader.mend(made, spoilt, sound)
    assert {str(path.relative_to(made)): path.read_bytes() for path in made.rglob("run/*")} == contents


def test_bytes_that_are_no_text_are_damaged_in_place_too() -> None:
    content = bytes(range(200))
    made = [damaged(content, random.Random(number)) for number in range(40)]
    in_place = [each for each in made if len(each) == len(content) and each != content]
    assert len(in_place) > FEW
    assert all(sum(a != b for a, b in zip(each, content)) <= 8 * MOST_CHANGES for each in in_place)


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
