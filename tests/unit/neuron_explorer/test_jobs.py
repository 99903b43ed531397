import threading

import pytest

from neuron_explorer.jobs import CancelledError, Job, Progress, WatchedProfile
from neuron_tools import open_profile
from neuron_tools.profile.reader import QueryError

PATIENCE_S = 120.0
LONG = "SELECT count(*) FROM range(100000000000) a"


def test_a_job_keeps_its_result() -> None:
    job = Job(lambda progress: 7, "seven")
    assert job.wait(PATIENCE_S)
    assert (job.result, job.error, job.is_done) == (7, None, True)


def test_a_job_keeps_its_error() -> None:
    def fail(progress: Progress) -> None:
        raise ValueError("no")

    job = Job(fail, "fail")
    assert job.wait(PATIENCE_S)
    assert isinstance(job.error, ValueError)


def test_a_running_query_is_interrupted(make_profile) -> None:
    running = threading.Event()

    def count(progress: Progress) -> None:
        running.set()
        WatchedProfile(profile, progress).query(LONG)

    with open_profile(make_profile()) as profile:
        job = Job(count, "count")
        assert running.wait(PATIENCE_S)
        assert job.stop(PATIENCE_S)
        assert isinstance(job.error, CancelledError)
        assert profile.query("SELECT 1 AS one").to_pylist() == [{"one": 1}]


def test_a_pause_ends_where_the_job_is_cancelled() -> None:
    begun = threading.Event()

    def wait(progress: Progress) -> None:
        begun.set()
        progress.pause(PATIENCE_S)

    job = Job(wait, "wait")
    assert begun.wait(PATIENCE_S)
    assert job.stop(PATIENCE_S)
    assert isinstance(job.error, CancelledError)


def test_a_cancelled_job_does_not_query(make_profile) -> None:
    progress = Progress()
    progress.cancel()
    with open_profile(make_profile()) as profile, pytest.raises(CancelledError):
        WatchedProfile(profile, progress).query("SELECT 1")


def test_a_watched_profile_is_the_profile(make_profile) -> None:
    with open_profile(make_profile()) as profile:
        watched = WatchedProfile(profile, Progress())
        assert watched.path == profile.path
        assert watched.tables() == profile.tables()
        assert watched.summary() == profile.summary()
        assert watched.source_files() == profile.source_files()
        assert watched.tracks() is profile.tracks()
        with pytest.raises(QueryError):
            watched.query("DROP TABLE Instruction")
