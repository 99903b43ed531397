"""The campaigns on damaged inputs and hostile queries: a few of each here, thousands by the benchmark."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from benchmarks.untrusted_inputs import campaign as campaigns, child
from benchmarks.untrusted_inputs.campaign import Outcome, campaign
from benchmarks.untrusted_inputs.damage import MOST_CHANGES, damaged
from benchmarks.untrusted_inputs.queries import Statements
from benchmarks.untrusted_inputs.readers import READERS, Damaged, Reader
from benchmarks.untrusted_inputs.servers import ask
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


@pytest.mark.parametrize(("kind", "few"), [("HTTP request", 100), ("monitor's tree", FEW)])
def test_servers_answer_damaged_requests_and_nodes(tmp_path: Path, kind: str, few: int) -> None:
    reader, sound, made = READERS[kind], tmp_path / "sound", tmp_path / "made"
    reader.make(made)
    shutil.copytree(made, sound)
    statuses = set()
    for number in range(few):
        spoilt = reader.damage(made, random.Random(number))
        reader.read(made, spoilt)
        if kind == "HTTP request":
            statuses.add(ask(made / "run.nprof", spoilt.read_bytes()) // 100)
        reader.mend(made, spoilt, sound)
    assert kind != "HTTP request" or statuses >= {2, 4}


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


def _planted(*, faults: str, refused: str) -> Reader:
    """Reads a file of one letter; some letters are a fault of the reader, others are refused."""

    def make(folder: Path) -> None:
        (folder / "letter").write_text("A")

    def read(folder: Path, spoilt: Path) -> None:
        letter = (folder / "letter").read_text()
        if letter in faults:
            raise KeyError(letter)
        if letter in refused:
            raise NeuronToolsError(f"{letter} is no letter.")

    def together(inputs: Sequence[Damaged], folder: Path) -> list[Damaged]:
        taken = [each for each in inputs if each.spoilt.read_text() not in refused]
        for each in taken:
            read(each.folder, each.spoilt)
        return taken

    return Reader(make, ("letter",), read, together=together)


@pytest.fixture
def endings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[str, str]]]:
    """How the inputs of a planted reader end, of which the seeds "0 A" and so on make the letters."""
    monkeypatch.setattr(Reader, "damage", _put_letter)

    def run(letters: str, together: int, *, faults: str = "", refused: str = "") -> list[tuple[str, str]]:
        monkeypatch.setitem(READERS, "planted", _planted(faults=faults, refused=refused))
        seeds = [f"0 {letter}" for letter in letters]
        attempts = child._files("planted", seeds, tmp_path, together)
        return [(attempt.what, child._ending(attempt.run)) for attempt in attempts]

    return run


def _put_letter(self: Reader, folder: Path, chance: random.Random) -> Path:
    (folder / "letter").write_text(_LETTER_OF[chance.random()])
    return folder / "letter"


_LETTER_OF = {random.Random(f"0 {letter}").random(): letter for letter in "ABCDEFGHIJ"}


def test_a_planted_fault_is_found_among_inputs_that_are_read_together(
    endings: Callable[..., list[tuple[str, str]]],
) -> None:
    told = endings("ABCDEFG", 5, faults="D")
    finding = "finding: KeyError: 'D'"
    assert told == [
        ("0 A", "read"), ("0 B to 0 E together", finding), ("0 B", "read"), ("0 C", "read"), ("0 D", finding),
        ("0 E", "read"), ("0 F", "read"), ("0 G to 0 G together", "read"), ("0 G", "read"),
    ]  # fmt: skip


def test_inputs_that_are_not_read_together_are_tried_alone(
    endings: Callable[..., list[tuple[str, str]]],
) -> None:
    told = endings("ABCD", 4, refused="BD")
    assert told == [
        ("0 A", "read"), ("0 B to 0 D together", "read"), ("0 B", "refused"), ("0 C", "read"),
        ("0 D", "refused"),
    ]  # fmt: skip


def test_inputs_that_end_a_process_together_are_a_finding_and_tried_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = (
        "import json; print(json.dumps({'input': '0 1 to 0 9 together', 'together': 9, 'peak_kib': 1}),"
        " flush=True)"
    )
    outcome = Outcome("planted")
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, bufsize=0) as process:
        assert campaigns._follow(process, outcome, 60.0) == 9
    assert (outcome.tried, outcome.findings) == (0, ["ended the process: 0 1 to 0 9 together"])
    calls = []

    def tried(outcome: Outcome, count: int, deadline_s: float, together: int) -> int:
        calls.append((count, together))
        outcome.tried += count if together == 1 else 1
        return 9 if len(calls) == 1 else 0

    monkeypatch.setattr(campaigns, "_try_some", tried)
    campaign("planted", 10, 60.0)
    assert calls == [(10, campaigns.TOGETHER), (9, 1)]
