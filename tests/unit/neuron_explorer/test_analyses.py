import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuron_explorer import analyses
from neuron_explorer.analyses import Analyses, analysis
from neuron_explorer.jobs import CancelledError, WatchedProfile
from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_tools.errors import NeuronToolsError

PATIENCE_S = 120.0
COUNT = "SELECT count(*) AS n FROM Instruction"


@pytest.fixture
def path(make_profile) -> Path:
    return make_profile()


@pytest.fixture
def found(path: Path) -> Iterator[Analyses]:
    with ProfileLibrary([path]) as library:
        yield Analyses(library)


@pytest.fixture(autouse=True)
def own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyses, "_ANALYSES", dict(analyses._ANALYSES))


def test_an_analysis_is_computed_once(found: Analyses, path: Path) -> None:
    calls = []
    analysis("calls", "Calling")(lambda profile, text: calls.append(text) or len(calls))
    wanted = profile_id(path)
    assert [
        found.now(wanted, "calls", "a"),
        found.now(wanted, "calls", "b"),
        found.now(wanted, "calls", "a"),
    ] == [
        1,
        2,
        1,
    ]


def test_a_range_has_results_of_its_own(found: Analyses, path: Path) -> None:
    analysis("rows", "Counting")(lambda profile: profile.query(COUNT)["n"][0].as_py())
    analysis("all-rows", "Counting", of_whole=True)(lambda profile: profile.query(COUNT)["n"][0].as_py())
    wanted = profile_id(path)
    assert found.now(wanted, "rows") == 5
    assert found.now(wanted, "rows", range_ns=(1200, 1300)) == 2
    assert found.now(wanted, "all-rows", range_ns=(1200, 1300)) == 5


def test_work_on_a_range_that_nobody_waits_for_stops_and_begins_anew(found, path, monkeypatch) -> None:
    """Who goes on to another range leaves work behind; who comes back gets the result nevertheless."""
    monkeypatch.setattr(analyses, "ABANDONED_S", -1.0)
    begun, goes_on = [], threading.Event()

    def work(profile: WatchedProfile) -> str:
        begun.append(goes_on.wait(PATIENCE_S))
        profile.query(COUNT)
        return "done"

    analysis("work", "Working", is_heavy=True)(work)
    wanted, range_ns = profile_id(path), (1000, 1300)
    job = found.job(wanted, "work", range_ns=range_ns)
    goes_on.set()
    assert job.wait(PATIENCE_S)
    assert job.was_abandoned
    monkeypatch.setattr(analyses, "ABANDONED_S", PATIENCE_S)
    assert found.now(wanted, "work", range_ns=range_ns) == "done"
    assert len(begun) == 2


def test_a_heavy_analysis_of_a_range_need_not_wait_where_ranges_are_light(found, path) -> None:
    goes_on = threading.Event()
    analysis("slow", "Working", is_heavy=True)(lambda profile: goes_on.wait(PATIENCE_S))
    analysis("light", "Working", is_heavy=True, is_light_of_ranges=True)(lambda profile: "done")
    wanted = profile_id(path)
    slow = found.job(wanted, "slow")
    assert found.now(wanted, "light", range_ns=(1000, 1300)) == "done"
    goes_on.set()
    assert slow.wait(PATIENCE_S)


def test_many_ranges_do_not_stay_open(found: Analyses, path: Path) -> None:
    analysis("rows", "Counting")(lambda profile: profile.query(COUNT)["n"][0].as_py())
    for end in range(1001, 1001 + 3 * analyses.SLICES):
        assert found.now(profile_id(path), "rows", range_ns=(1000, end)) >= 1
    assert len(found._slices) == analyses.SLICES


def test_a_failure_is_kept_until_it_is_tried_again(found: Analyses, path: Path) -> None:
    outcomes = [NeuronToolsError("no"), None]

    def fail_first(profile: object) -> str:
        error = outcomes.pop(0)
        if error is not None:
            raise error
        return "done"

    analysis("fails", "Failing")(fail_first)
    for _ in range(2):
        with pytest.raises(NeuronToolsError, match="no"):
            found.now(profile_id(path), "fails")
    found.retry(profile_id(path), "fails")
    assert found.now(profile_id(path), "fails") == "done"


def test_heavy_work_runs_one_at_a_time_and_is_cancelled_while_it_waits(found: Analyses, path: Path) -> None:
    go_on, begun = threading.Event(), threading.Event()

    def first(profile: object) -> str:
        begun.set()
        go_on.wait(PATIENCE_S)
        return "first"

    analysis("first", "First", is_heavy=True)(first)
    analysis("second", "Second", is_heavy=True)(lambda profile: "second")
    wanted = profile_id(path)
    running = found.job(wanted, "first")
    assert begun.wait(PATIENCE_S)
    waiting = found.job(wanted, "second")
    assert not waiting.is_done
    waiting.progress.cancel()
    assert waiting.wait(PATIENCE_S)
    assert isinstance(waiting.error, CancelledError)
    go_on.set()
    assert running.wait(PATIENCE_S)
    assert running.result == "first"
    assert found.job(wanted, "second") is waiting
    found.retry(wanted, "second")
    assert found.now(wanted, "second") == "second"


def test_closing_the_library_ends_what_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyses, "CLOSING_S", PATIENCE_S)
    begun = threading.Event()

    def count(profile: WatchedProfile) -> int:
        begun.set()
        return profile.query("SELECT count(*) AS n FROM range(100000000000) a, range(1000) b")["n"][0].as_py()

    analysis("count", "Counting")(count)
    with ProfileLibrary([path]) as library:
        job = Analyses(library).job(profile_id(path), "count")
        assert begun.wait(PATIENCE_S)
    assert job.is_done
    assert isinstance(job.error, CancelledError)


def test_a_forgotten_profile_is_computed_again(found: Analyses, path: Path) -> None:
    calls = []
    analysis("calls", "Calling")(lambda profile: calls.append(1) or len(calls))
    found.now(profile_id(path), "calls")
    found.forget(profile_id(path))
    assert found.now(profile_id(path), "calls") == 2
