"""`torch_xla.experimental.scan_layers`: equal layers one after the other, compiled once as a loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from .scan import scan  # found as torch_xla


def scan_layers(
    layers: Iterable[torch.nn.Module],
    input_data: Any,
    partition_fn: Any = None,
    is_layer_pure: bool = False,
) -> Any:
    """Call layers one after the other, each with what the one before gave.

    Args:
        layers: Of one structure, which compute the same but for their parameters and buffers.
        input_data: What the first takes: tensors in any nest.
        partition_fn: As of `scan`.
        is_layer_pure: Likewise.

    Returns:
        What the last gives.

    Raises:
        ValueError: The layers have parameters or buffers of different names, shapes or types, or write to
            their buffers.
        XlaError: As of `scan`.
    """
    modules = list(layers)
    if not modules:
        return input_data
    states = [dict([*module.named_parameters(), *module.named_buffers()]) for module in modules]
    _check_alike(states)
    stacked = {name: torch.stack([state[name] for state in states]) for name in states[0]}
    first = modules[0]

    def layer(carried: Any, state: Mapping[str, torch.Tensor]) -> tuple[Any, None]:
        return torch.func.functional_call(first, dict(state), carried, strict=True), None

    if not stacked:
        for module in modules:
            input_data = module(input_data)
        return input_data
    return scan(layer, input_data, stacked, partition_fn, is_layer_pure)[0]


def _check_alike(states: Sequence[Mapping[str, torch.Tensor]]) -> None:
    kinds = [
        {name: f"{list(tensor.shape)} {tensor.dtype}" for name, tensor in state.items()} for state in states
    ]
    for number, kind in enumerate(kinds):
        if kind != kinds[0]:
            name = min(dict(kind.items() ^ kinds[0].items()))
            raise ValueError(
                f"Layer {number} and the first differ in {name} ({kind.get(name, 'absent')} and "
                f"{kinds[0].get(name, 'absent')}): scan_layers needs layers of one structure."
            )
