"""Which ranks of a job run, and how they are told."""

import json

from neuron_tools.device.distributed.job import VARIABLE, Job, from_environment


def test_a_job_reaches_its_ranks_through_the_environment():
    job = Job(1024, (0, 128, 256))
    assert from_environment({VARIABLE: job.to_json()}) == job


def test_without_it_all_ranks_run():
    assert from_environment({}) is None


def test_places_in_a_group_are_those_of_the_ranks_that_run():
    assert Job(8, (0, 4)).places([0, 2, 4, 6]) == (0, 2)


def test_processes_are_numbered_by_the_ranks_that_run():
    job = Job(1024, (0, 128, 256))
    assert [job.process_place(rank) for rank in job.running] == [0, 1, 2]


def test_an_answer_names_the_ranks_that_differ(tmp_path, monkeypatch):
    ended = []
    monkeypatch.setattr("os._exit", ended.append)
    Job(8, (0,), str(tmp_path / "ranks.json")).answer([4, 0])
    assert json.loads((tmp_path / "ranks.json").read_text()) == [0, 4]
    assert ended == [0]
