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
