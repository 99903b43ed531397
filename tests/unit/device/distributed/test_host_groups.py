"""Groups on gloo of a job of which not all ranks run: made without waiting, and called as asked."""

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from neuron_tools.device.distributed import job
from neuron_tools.device.distributed.host_groups import standing_in
from neuron_tools.device.distributed.job import Job

BACKEND = "neuron"


@pytest.fixture
def part_of(monkeypatch) -> Iterator[object]:
    """Makes this process rank 0 of a job, with a default group of `backend`."""

    def begin(whole: Job, backend: str) -> None:
        monkeypatch.setattr(job, "current", lambda: whole)
        make = standing_in(c10d._new_process_group_helper, whole, BACKEND)
        monkeypatch.setattr(c10d, "_new_process_group_helper", make)
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=whole.ranks)

    yield begin
    dist.destroy_process_group()


@pytest.mark.parametrize("backend", ["gloo", "cpu:gloo,neuron:neuron"])
def test_a_job_whose_other_ranks_do_not_run_waits_for_none(part_of, backend):
    part_of(Job(4, (0,)), backend)
    everyones: list[object] = [None] * 4
    dist.all_gather_object(everyones, "own")
    assert everyones == ["own"] * 4
    assert dist.get_backend_config() == str(c10d.BackendConfig(c10d.Backend(backend)))


def test_a_group_of_part_of_the_job_is_called_gloo(part_of):
    part_of(Job(4, (0,)), BACKEND)
    group = dist.new_group([0, 2], backend="gloo")
    total = torch.ones(2)
    dist.all_reduce(total, group=group)
    assert total.tolist() == [2.0, 2.0]
    assert (dist.get_backend(group), dist.get_backend()) == ("gloo", BACKEND)


def test_ranks_outside_a_group_have_none(part_of):
    part_of(Job(4, (0,)), BACKEND)
    assert dist.new_group([1, 2], backend="gloo") == dist.GroupMember.NON_GROUP_MEMBER


def test_a_group_of_ranks_that_run_is_gloos_own(part_of):
    part_of(Job(4, (0,)), BACKEND)
    group = dist.new_group([0], backend="gloo")
    assert isinstance(group._get_backend(torch.device("cpu")), dist.ProcessGroupGloo)
