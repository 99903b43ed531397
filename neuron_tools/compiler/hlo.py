"""The compiler's view of a StableHLO module: plain Python records, whichever MLIR binding it came from.

Front ends produce it (`neuron_tools.compiler.stablehlo` reads MLIR into it), passes rewrite it, code
generation turns it into a Program.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from neuron_tools.frozen import frozen
from neuron_tools.records.program import FrameworkOperation


@frozen
class TensorType:
    """Shape and element type ("f32", "bf16", "f16", "f64", "f8E4M3FN", "i1", "i8".."i64", "ui8"..)."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def element_count(self) -> int:
        """Number of elements; 1 for a scalar."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@frozen
class Value:
    """An SSA value; `id` is its index in Module.values (or Region.values)."""

    id: int
    type: TensorType
    name: str = ""


@frozen
class Region:
    """A nested computation (reduce body, while condition/body, ...); values are ids of the same Module."""

    parameters: tuple[int, ...]
    operations: tuple[Operation, ...]
    results: tuple[int, ...]


@frozen
class Operation:
    """One StableHLO operation. `opcode` has no dialect prefix ("dot_general"); ids index Module.values."""

    opcode: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    framework: tuple[int, ...] = ()  # rows of Module.framework this operation came from
    regions: tuple[Region, ...] = ()


@dataclass(frozen=True)
class Module:
    """A whole computation: parameters -> operations (in a valid order) -> results.

    Attributes:
        aliases: (position of a result, position of a parameter) pairs: the result may take over the
            parameter's memory, whose old content nobody reads afterwards (in-place operators, donation).
        in_order: Operations run in the order in which they stand, as far as fusion leaves it.
    """

    name: str
    values: tuple[Value, ...]
    parameters: tuple[int, ...]
    operations: tuple[Operation, ...]
    results: tuple[int, ...]
    framework: tuple[FrameworkOperation, ...]
    parameter_kinds: tuple[str, ...] = ()  # "input" or "weight" per parameter; empty = all "input"
    parameter_names: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    aliases: tuple[tuple[int, int], ...] = ()
    in_order: bool = False

    def shape_of(self, value: int) -> tuple[int, ...]:
        """Shape of a value."""
        return self.values[value].type.shape
