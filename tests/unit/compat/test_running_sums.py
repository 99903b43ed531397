"""The kernel of running sums that samplers of tokens call."""

from __future__ import annotations

import pytest
import torch

from neuron_tools.compat.neuronxcc.nki._private_kernels import cumsum as module
from neuron_tools.compat.torch_neuronx.nki_jit import nki_jit
from neuron_tools.nki.errors import NkiError


@pytest.mark.parametrize("shape", [(2, 256), (130, 300), (3, 1)])
def test_each_row_is_summed_from_part_to_part(shape, monkeypatch):
    monkeypatch.setattr(module, "COLUMNS", 128)
    data = torch.rand(shape, generator=torch.Generator().manual_seed(0)).to("neuron")
    sums = torch.zeros_like(data)
    nki_jit()(module.cumsum)(data, sums, axis=1)
    torch.testing.assert_close(sums.cpu(), data.cpu().cumsum(1))


def test_another_axis_is_refused():
    data = torch.ones(2, 4, device="neuron")
    with pytest.raises(NkiError, match="sums along axis 1, not 0: transpose"):
        nki_jit()(module.cumsum)(data, torch.zeros_like(data), axis=0)
