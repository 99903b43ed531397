"""The campaign on killed captures: how it is planned and judged, and some kills."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from benchmarks.kill_moments import figures
from benchmarks.killed_captures import campaign as campaigns, left
from benchmarks.killed_captures.campaign import Kill, campaign, planned
from benchmarks.killed_captures.left import Ticks, judged
from benchmarks.killed_captures.scenes import ENDED, NOTES, PROFILE, SCENES
from neuron_tools.profile.store import layout

SECOND_NS = 1_000_000_000
KILLED_NS = 10 * SECOND_NS


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes what a killed program noted, and says what its profile is to hold."""

    def make(done_ns: list[int], kept: Ticks, *, claims: bool, executions: int = 9) -> Path:
        (tmp_path / PROFILE).mkdir()
        layout.write_manifest(tmp_path / PROFILE, layout.new_manifest({}, "test"))
        (tmp_path / NOTES.format(program=0)).write_bytes(np.array(done_ns, "<i8").tobytes() + b"half")
        monkeypatch.setattr(left, "_look", lambda profile: (claims, kept, executions))
        return tmp_path

    return make


def test_the_first_lost_tick_says_how_much_is_lost(killed) -> None:
    times = [KILLED_NS - SECOND_NS // 2, KILLED_NS - SECOND_NS // 4, KILLED_NS + 1]
    told = judged(killed(times, {(0, 0)}, claims=False), 1, KILLED_NS)
    assert (told.written, told.kept, told.lost_s, told.finding) == (2, 1, 0.25, "")


def test_more_than_a_second_lost_is_a_finding(killed) -> None:
    told = judged(killed([KILLED_NS - 2 * SECOND_NS], set(), claims=False), 1, KILLED_NS)
    assert told.finding == "2.00 s are lost"


def test_a_profile_must_not_claim_to_be_whole_before_its_programs_ended(killed) -> None:
    folder = killed([1], {(0, 0)}, claims=True)
    assert judged(folder, 1, KILLED_NS).finding == "it claims to be whole, and is not"
    (folder / f"{NOTES.format(program=0)}{ENDED}").touch()
    assert judged(folder, 1, KILLED_NS).finding == ""


def test_a_profile_that_does_not_open_is_a_finding(killed) -> None:
    folder = killed([1], {(0, 0)}, claims=False)
    (folder / PROFILE / layout.MANIFEST_NAME).write_text("{")
    (folder / PROFILE / "log" / "process-0000").mkdir(parents=True)
    assert "profile.json" in judged(folder, 1, KILLED_NS).finding


def test_ticks_without_their_work_are_a_finding(killed) -> None:
    folder = killed([1], {(0, 0)}, claims=False, executions=0)
    assert judged(folder, 1, KILLED_NS).finding == "AssertionError: 1 ticks have 0 executions"


def test_a_seed_plans_the_same_kills_again_of_every_kind() -> None:
    kills = [planned(3, number) for number in range(200)]
    assert kills == [planned(3, number) for number in range(200)]
    assert {kill.scene for kill in kills} == set(SCENES)
    assert len({kill.after_s for kill in kills}) == len(kills)


def test_a_kept_campaign_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Host:
        def __enter__(self) -> Host:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    made: list[int] = []

    def left_by(host: Host, kill: Kill) -> Kill:
        made.append(kill.number)
        return kill

    monkeypatch.setattr(campaigns, "_Host", Host)
    monkeypatch.setattr(campaigns, "_left", left_by)
    file = tmp_path / "kept.jsonl"
    campaign(3, kept_in=file)
    kills = campaign(5, kept_in=file)
    assert made == [0, 1, 2, 3, 4]
    assert [kill.number for kill in kills] == made
    assert all(asdict(kill) == asdict(planned(0, kill.number)) for kill in kills)


def test_figures_count_findings_by_kind() -> None:
    kills = [planned(0, number) for number in range(1, 5)]
    found = Kill(**{**asdict(kills[0]), "finding": "2.00 s are lost", "lost_s": 2.0})
    named = {figure.name: figure for figure in figures([found, *kills[1:]])}
    assert named[f"{found.scene}: findings"].value == 1
    assert named[f"{found.scene}: most lost"].holds is False


@pytest.mark.slow
def test_killed_captures_lose_less_than_a_second_and_claim_nothing_false() -> None:
    kills = campaign(8, seed=1, first=1)
    assert [kill.finding for kill in kills] == [""] * 8
    assert sum(kill.kept for kill in kills) > 0
