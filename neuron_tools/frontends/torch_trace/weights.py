"""Other weights for a model that was traced without them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import torch

from neuron_tools.frontends.torch_trace.compiling import WEIGHTS
from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.inline_weights import read_artifact
from neuron_tools.frontends.torch_trace.ranked_program import DESCRIPTION, RankedCall
from neuron_tools.neff import Neff


def replace_weights(
    model: torch.jit.ScriptModule, weights: Mapping[str, torch.Tensor] | torch.nn.Module
) -> None:
    """Give a traced model other weights; nothing is compiled.

    Args:
        model: Traced with its weights apart.
        weights: By the names that they have in the original model, or a model that has them.

    Raises:
        TraceError: The model's weights are in its archives, or one of the new ones has another shape or type,
            or none has a name of the model's.
    """
    new = weights.state_dict() if isinstance(weights, torch.nn.Module) else weights
    places = dict(_places(model))
    if not places:
        raise TraceError(
            "The model's weights are part of its archive: trace it with inline_weights_to_neff=False to "
            "replace them."
        )
    chosen = {name: tensor for name, tensor in new.items() if name in places}
    if not chosen:
        raise TraceError(
            f"None of the weights is one of the model's, which are {', '.join(places)}: pass the state_dict "
            "of the model that was traced."
        )
    for name, tensor in chosen.items():
        _check(name, places[name], tensor)
    with torch.no_grad():
        for name, tensor in chosen.items():
            places[name].copy_(tensor)


def _places(model: torch.jit.ScriptModule) -> Iterator[tuple[str, torch.Tensor]]:
    """Each weight's name and the buffer that holds it."""
    for module in model.modules():
        buffers = dict(module.named_buffers(recurse=False))
        if "artifact" in buffers:
            neff = read_artifact(buffers["artifact"])
            names = _names(neff)
            yield from ((name, buffers[f"weight_{index}"]) for index, name in enumerate(names))


def _names(neff: Neff) -> Sequence[str]:
    """Of the weights that are not in an archive, in their order."""
    if DESCRIPTION in neff.attachments:
        return RankedCall.of(neff).weights
    names: list[str] = json.loads(neff.attachments.get(WEIGHTS, b"[]"))
    return names


def _check(name: str, old: torch.Tensor, new: torch.Tensor) -> None:
    if old.shape != new.shape or old.dtype != new.dtype:
        raise TraceError(
            f"The weight {name} was compiled as {_shown(old)} and cannot become {_shown(new)}: give it one "
            "of the same shape and type, or trace the model again."
        )


def _shown(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
