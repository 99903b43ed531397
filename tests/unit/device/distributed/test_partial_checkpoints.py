"""A checkpoint of a job of which not all ranks run: told, and nothing written."""

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch.distributed import checkpoint
from torch.distributed.checkpoint import state_dict_saver

from neuron_tools.device.distributed.job import Job
from neuron_tools.device.distributed.partial_checkpoints import saving_whole


@pytest.fixture
def group() -> Iterator[None]:
    """Of this process alone, as rank 0."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def save(whole, folder, monkeypatch, **options):
    own = saving_whole(state_dict_saver._save_state_dict, whole)
    monkeypatch.setattr(state_dict_saver, "_save_state_dict", own)
    return checkpoint.save({"weight": torch.ones(2)}, checkpoint_id=folder, **options)


@pytest.mark.usefixtures("group")
def test_where_a_rank_is_missing_nothing_is_written_and_a_sentence_says_so(tmp_path, monkeypatch):
    with pytest.warns(RuntimeWarning, match="No checkpoint is written: 1 of the ranks"):
        saved = save(Job(2, (1,)), tmp_path / "step-1", monkeypatch)
    assert saved.state_dict_metadata == {}
    assert not (tmp_path / "step-1").exists()


@pytest.mark.usefixtures("group")
def test_a_group_of_ranks_that_run_saves_as_ever(tmp_path, monkeypatch):
    save(Job(2, (0,)), tmp_path / "step-1", monkeypatch)
    found = {"weight": torch.zeros(2)}
    checkpoint.load(found, checkpoint_id=tmp_path / "step-1")
    assert found["weight"].tolist() == [1.0, 1.0]


@pytest.mark.usefixtures("group")
def test_what_one_rank_saves_for_itself_is_written(tmp_path, monkeypatch):
    save(Job(2, (1,)), tmp_path / "step-1", monkeypatch, no_dist=True)
    assert (tmp_path / "step-1" / ".metadata").exists()


def test_what_one_process_saves_without_a_job_is_written(tmp_path, monkeypatch):
    """PyTorch's older function hands its arguments on by place."""
    own = saving_whole(state_dict_saver._save_state_dict, Job(2, (1,)))
    monkeypatch.setattr(state_dict_saver, "_save_state_dict", own)
    writer = checkpoint.FileSystemWriter(tmp_path / "step-1")
    with pytest.warns(FutureWarning):
        checkpoint.save_state_dict({"weight": torch.ones(2)}, writer, no_dist=True)
    assert (tmp_path / "step-1" / ".metadata").exists()
