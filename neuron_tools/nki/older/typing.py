"""`neuronxcc.nki.typing`: annotations of kernels, `nt.tensor[128, 512]`, `nt.mutable_tensor`."""

from __future__ import annotations

from typing import Any

from neuron_tools.nki.tensor import NkiTensor


class _Annotation:
    """An annotation that may be indexed and joined with `|`; it has no effect."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, _shape: Any) -> _Annotation:
        return self

    def __call__(self, *arguments: Any, **_options: Any) -> Any:
        return arguments[0] if arguments else self

    def __or__(self, _other: Any) -> _Annotation:
        return self

    __ror__ = __or__

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, NkiTensor)

    def __repr__(self) -> str:
        return f"nki.typing.{self.name}"


tensor = _Annotation("tensor")
mutable_tensor = _Annotation("mutable_tensor")
scalar = _Annotation("scalar")
mutable = _Annotation("mutable")
immutable = _Annotation("immutable")
