"""Single operators of PyTorch as modules, and the rate at which a core moves their bytes."""

from __future__ import annotations

from typing import Any

from neuron_tools.compiler.hlo import Module
from neuron_tools.frontends.torch_eager.operation import lower_operation
from tests.unit.frontends.signatures import describe_call

DRAWN_BY_A_CORE = 272e9
"""Bytes a second: 16 DMA engines of 17 GB/s (aws-neuron-sdk, nki-dma-bandwidth-guide.rst)."""


def lowered(target: Any, *arguments: Any, **options: Any) -> Module:
    """One call of an operator, as the device lowers it."""
    return lower_operation(target.name(), describe_call(target, arguments, options))
