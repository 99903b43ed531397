"""Where ranks meet of which not all run: at a store that waits for none, and that one process has."""

import socket
import warnings
from datetime import timedelta

import pytest
from torch.distributed.rendezvous import _create_c10d_store

from neuron_tools.device.distributed import job, rendezvous
from neuron_tools.device.distributed.job import Job

TIMEOUT = timedelta(seconds=5)
WHOLE = Job(4, (1, 3))


@pytest.fixture
def port() -> int:
    """One that nothing listens on."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        number: int = free.getsockname()[1]
        return number


def test_the_first_rank_that_runs_serves_and_waits_for_none(port):
    meet = rendezvous.meeting(_create_c10d_store, WHOLE)
    first, other = (meet("localhost", port, rank, 4, TIMEOUT) for rank in WHOLE.running)
    first.set("who", "rank 1")
    assert other.get("who") == b"rank 1"


def test_ranks_of_another_number_meet_as_ever():
    asked: list[int] = []
    meet = rendezvous.meeting(lambda *given: asked.append(given[3]), WHOLE)
    meet("localhost", 1, 0, 2, TIMEOUT)
    assert asked == [2]


def test_a_process_that_a_rank_starts_serves_no_second_store(port, monkeypatch):
    monkeypatch.setattr(job, "current", lambda: WHOLE)
    monkeypatch.setattr(rendezvous, "_servers", [])
    monkeypatch.setenv("NEURON_TOOLS_JOB_SERVED", "")
    monkeypatch.delenv("NEURON_TOOLS_JOB_SERVED")
    for name, value in {"RANK": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}.items():
        monkeypatch.setenv(name, value)
    rendezvous.serve()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rendezvous.serve()
    assert len(rendezvous._servers) == 1
