"""Operators whose result's size is in their arguments' values run on the device all the same."""

from __future__ import annotations

from tests.integration.capture.programs import Folder, last_line


def test_elements_are_repeated_as_often_as_values_say(folder: Folder) -> None:
    answer = folder.python(
        """
import torch, neuron_tools
rows, counts = torch.arange(8.0).reshape(4, 2), torch.tensor([2, 0, 3, 1])
with neuron_tools.profile("run.nprof", host_clock="fixed"):
    there = rows.to("neuron").requires_grad_()
    repeated = there.repeat_interleave(counts.to("neuron"), 0)
    repeated.square().sum().backward()
    none = torch.repeat_interleave(torch.zeros(0, dtype=torch.int64, device="neuron"))
rows.requires_grad_()
wanted = rows.repeat_interleave(counts, 0)
wanted.square().sum().backward()
print(torch.equal(repeated.cpu(), wanted), torch.equal(there.grad.cpu(), rows.grad), none.shape[0])
"""
    )
    assert last_line(answer.stdout) == "True True 0"
    profile = folder.profile("run.nprof")
    assert not profile.query('SELECT message FROM "Warning"').to_pylist()


def test_numbers_are_counted_as_far_as_they_go(folder: Folder) -> None:
    answer = folder.python(
        """
import torch, neuron_tools
numbers, weights = torch.tensor([3, 0, 3, 1]), torch.tensor([0.5, 1, 2, 4])
def counts(numbers, weights):
    longer = torch.bincount(numbers, minlength=9)
    return [torch.bincount(numbers[:0]), torch.bincount(numbers), torch.bincount(numbers, weights), longer]
with neuron_tools.profile("run.nprof", host_clock="fixed"):
    found = counts(numbers.to("neuron"), weights.to("neuron"))
print(all(torch.equal(mine.cpu(), cpus) for mine, cpus in zip(found, counts(numbers, weights))))
try:
    torch.bincount(numbers.to("neuron") - 2)
except RuntimeError as error:
    print("non-negative" in str(error))
"""
    )
    assert answer.stdout.split()[-2:] == ["True", "True"]
    profile = folder.profile("run.nprof")
    assert not profile.query('SELECT message FROM "Warning"').to_pylist()
