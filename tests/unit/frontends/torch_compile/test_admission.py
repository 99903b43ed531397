"""Devices that PyTorch's own checks let pass."""

from __future__ import annotations

import pytest
import torch

from neuron_tools.frontends.torch_compile.admission import admit


def test_a_device_is_added_to_the_lists_of_a_check_and_of_what_it_defines() -> None:
    def check(device: str) -> bool:
        def inner() -> bool:
            return device in ("cuda", "xpu")

        return inner() and device not in {"cuda", "mps"}

    assert not check("neuron")
    admit(check, "neuron")
    assert [check(device) for device in ("xpu", "neuron", "cpu")] == [True, False, False]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_scan_in_its_default_mode_has_the_values_of_its_generic_mode(compiled: bool) -> None:
    from torch._higher_order_ops import associative_scan

    def scan(values: torch.Tensor) -> torch.Tensor:
        return associative_scan(torch.maximum, values, 0, reverse=True)

    values = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
    found = (torch.compile(scan) if compiled else scan)(values.to("neuron"))
    assert torch.equal(found.cpu(), values.flip(0).cummax(0).values.flip(0))
