"""Why a graph is compiled although one like it was: another shape, another constant, other operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_tools.frontends.torch_lowering.layout import StoredTensor
from neuron_tools.frontends.torch_xla.graph import GraphSignature, ValueNumber


def cause_of(signature: GraphSignature, known: Sequence[GraphSignature]) -> str:
    """One sentence.

    Args:
        signature: The new graph's.
        known: Those of the graphs that were compiled before, oldest first.
    """
    targets = signature.targets
    like = next((other for other in reversed(known) if other.targets == targets), None)
    if like is None:
        return "new operations" if known else "first graph"
    return _other_shape(signature, like) or _other_constant(signature, like) or "other results are kept"


def _other_shape(new: GraphSignature, old: GraphSignature) -> str | None:
    for position, (now, before) in enumerate(zip(new.inputs, old.inputs)):
        if now.layout != before.layout:
            return f"new shape: input {position} is {_shown(now.layout)}, not {_shown(before.layout)}"
    return None if len(new.inputs) == len(old.inputs) else "new operations"


def _other_constant(new: GraphSignature, old: GraphSignature) -> str | None:
    pairs: Any = zip(new.operations, old.operations)
    for (now, _), (before, _) in pairs:
        for value, earlier in zip(now[2], before[2]):
            if value != earlier and not isinstance(value, ValueNumber):
                return f"new constant: {now[0].name()} has {_constant(value)}, not {_constant(earlier)}"
        if now[3] != before[3]:
            return f"new shape: {now[0].name()} makes another"
    return None


def _constant(key: Any) -> str:
    return str(key[1]) if isinstance(key, tuple) else "a tensor"


def _shown(layout: StoredTensor) -> str:
    return f"{str(layout.dtype).removeprefix('torch.')}[{','.join(map(str, layout.sizes))}]"
