"""Refuses tensors that the device cannot hold, in a sentence: quantised element types and sparse layouts."""

from __future__ import annotations

from typing import Any, NoReturn

from neuron_tools.errors import NeuronToolsError

_REASONS = {
    "QuantizedPrivateUse1": (
        "has no quantised element types",
        "Use torch.bfloat16 or torch.float8_e4m3fn on the device, or keep this tensor on the CPU.",
    ),
    "SparsePrivateUse1": ("has strided tensors only", "Call to_dense() first, or compute it on the CPU."),
    "SparseCsrPrivateUse1": ("has strided tensors only", "Call to_dense() first, or compute it on the CPU."),
}
"""Dispatch key -> (what the device is not, what to do)."""
_registered: list[Any] = []


class ForeignTensorError(NeuronToolsError, NotImplementedError):
    """An operator was asked to make or use a tensor of a kind that the device does not have."""


def refuse_foreign_tensors() -> None:
    """Register a refusal for every operator on such tensors; does nothing the second time."""
    import torch

    if _registered:
        return
    library = torch.library.Library("_", "IMPL")
    for key in _REASONS:
        library.fallback(_refusal(key), key)
    _registered.append(library)


def _refusal(key: str) -> Any:
    reason, remedy = _REASONS[key]

    def refuse(operator: Any, *args: Any, **kwargs: Any) -> NoReturn:
        name = operator._schema.name
        raise ForeignTensorError(f"{name}: the neuron device {reason}. {remedy}")

    return refuse
