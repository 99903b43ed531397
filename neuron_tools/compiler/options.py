"""What may be chosen about a compilation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompilerOptions:
    """Options of `compile_module`.

    Attributes:
        fuse: Form groups of several operations; off, every operation is a loop of its own.
        auto_cast: "none", "matmul" or "all": which fp32 work runs in `auto_cast_type` (as neuronx-cc's
            `--auto-cast`).
        auto_cast_type: "bf16", "fp16" or "fp8".
        while_trip_count: Iterations assumed for a loop whose count is not known.
    """

    fuse: bool = True
    auto_cast: str = "none"
    auto_cast_type: str = "bf16"
    while_trip_count: int = 1
