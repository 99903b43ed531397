"""Calls that XLA's partitioner does not know: it is told here to cut them along their first axes alone.

Each device does the call with its part of the batches; XLA moves operands to where they are needed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence, Set
from functools import cache
from typing import Any

import numpy as np

from neuron_tools.frozen import frozen

WHOLE_CALL, PART_OF_CALL = "neuron_tools.batched_call", "neuron_tools.part_of_call"
"""Targets of the custom call that a partitioner is given, and of the one that each device does."""
_CONFIG = re.compile(r"call (\d+), batch axes (\d+)")


@frozen
class BatchedCall:
    """Which call it is, as its custom call says it.

    Attributes:
        number: Whatever the caller knows it by.
        axes: How many of its first axes are batches in all operands and results. An operand may have one
            element along such an axis, which then serves all.
    """

    number: int
    axes: int

    @property
    def config(self) -> str:
        """The custom call's `backend_config`."""
        return f"call {self.number}, batch axes {self.axes}"

    @classmethod
    def parse(cls, config: Any) -> BatchedCall:
        """Read `config`, be it text or bytes.

        Raises:
            ValueError: It is none.
        """
        match = _CONFIG.search(config.decode() if isinstance(config, bytes) else str(config))
        if match is None:
            raise ValueError(f"not the configuration of a batched call: {config!r}")
        return cls(int(match[1]), int(match[2]))


@cache
def register() -> None:
    """Tell XLA's partitioner of this process how such calls are cut."""
    from jaxlib import xla_client

    xla_client.register_custom_call_partitioner(
        WHOLE_CALL, _of_user, _partition, _of_operands, can_side_effecting_have_replicated_sharding=True
    )


@frozen
class _Cut:
    """How the batches lie over the devices.

    Attributes:
        counts: Into how many parts each batch axis is cut.
        devices: In the order of the parts; those that have the same are neighbours.
    """

    counts: tuple[int, ...]
    devices: tuple[int, ...]

    @property
    def parts(self) -> int:
        """How many there are."""
        return math.prod(self.counts)

    def sharding(self, shape: Any) -> Any:
        """How a tensor of the call lies, an `HloSharding`."""
        from jaxlib import xla_client

        extents = tuple(shape.dimensions())
        kept = [count if extent > 1 else 1 for count, extent in zip(self.counts, extents)]
        if math.prod(kept) == 1:
            return xla_client.HloSharding.replicate()
        axes = range(len(kept))
        order = [*(axis for axis in axes if kept[axis] > 1), *(axis for axis in axes if kept[axis] == 1)]
        grid = np.array(self.devices).reshape(*self.counts, -1).transpose(*order, len(order))
        tiles = [*kept, *[1] * (len(extents) - len(kept)), grid.size // math.prod(kept)]
        listed = ",".join(map(str, grid.ravel()))
        text = f"{{devices=[{','.join(map(str, tiles))}]{listed} last_tile_dim_replicate}}"
        return xla_client.HloSharding.from_string(text)


def _cut_of(sharding: Any, axes: int) -> _Cut | None:
    """How the batches of a tensor lie that lies so; None where it is whole."""
    if sharding is None or not sharding.is_tiled() or sharding.is_manual():
        return None
    tiles = tuple(sharding.tile_assignment_dimensions())
    grid = np.array(sharding.tile_assignment_devices()).reshape(*tiles[:axes], -1)
    return _Cut(tiles[:axes], tuple(int(device) for device in grid.ravel()))


def _chosen(shardings: Iterable[Any], shapes: Sequence[Any], axes: int) -> _Cut | None:
    """The cut into most parts among those of some tensors, along axes that all can be cut along."""
    extents = [tuple(shape.dimensions()) for shape in shapes]
    found = [_possible(cut, extents) for each in shardings if (cut := _cut_of(each, axes)) is not None]
    return max(found, key=lambda cut: cut.parts, default=None)


def _possible(cut: _Cut, extents: Sequence[Sequence[int]]) -> _Cut:
    """The same where the parts of all tensors belong together; along other axes these are whole.

    Parts may be padded where all have the same batches: what is done with the rest, nobody reads.
    """
    axes = range(len(cut.counts))
    kept = [axis for axis in axes if _can_cut({each[axis] for each in extents}, cut.counts[axis])]
    rest = [axis for axis in axes if axis not in kept]
    counts = tuple(count if axis in kept else 1 for axis, count in enumerate(cut.counts))
    ordered = np.array(cut.devices).reshape(*cut.counts, -1).transpose(*kept, *rest, len(cut.counts))
    return _Cut(counts, tuple(int(device) for device in ordered.ravel()))


def _can_cut(extents: Set[int], count: int) -> bool:
    several = extents - {1}
    return len(several) < 2 or all(extent % count == 0 for extent in several)


def _parts(shape: Any) -> list[Any]:
    return list(shape.tuple_shapes()) if shape.is_tuple() else [shape]


def _elements(shape: Any, sharding: Any) -> list[Any]:
    return list(sharding.tuple_elements()) if shape.is_tuple() else [sharding]


def _packed(shape: Any, cut: _Cut | None) -> Any:
    """The sharding of all results."""
    from jaxlib import xla_client

    whole = xla_client.HloSharding.replicate()
    each = [whole if cut is None else cut.sharding(part) for part in _parts(shape)]
    return xla_client.HloSharding.tuple_sharding(shape, each) if shape.is_tuple() else each[0]


def _of_user(user: Any, shape: Any, config: bytes) -> Any:
    """How results lie where this is how those who read them have them."""
    cut = _chosen(_elements(shape, user), _parts(shape), BatchedCall.parse(config).axes)
    return _packed(shape, cut)


def _of_operands(shapes: Sequence[Any], shardings: Sequence[Any], result: Any, config: bytes) -> Any:
    """How results lie where operands lie so."""
    cut = _chosen(shardings, [*shapes, *_parts(result)], BatchedCall.parse(config).axes)
    return _packed(result, cut)


def _partition(
    shapes: Sequence[Any], shardings: Sequence[Any], result: Any, result_sharding: Any, config: bytes
) -> tuple[bytes, list[Any], Any]:
    """What each device does, and how operands and results lie then."""
    call, results = BatchedCall.parse(config), _parts(result)
    found = [*_elements(result, result_sharding), *shardings]
    cut = _chosen(found, [*shapes, *results], call.axes) or _Cut((1,) * call.axes, (0,))
    taken = [cut.sharding(shape) for shape in shapes]
    types = [_type(cut.sharding(shape).tile(shape)) for shape in results]
    given = [_type(sharding.tile(shape)) for sharding, shape in zip(taken, shapes)]
    return _bytecode(call, given, types), taken, _packed(result, cut)


def _type(shape: Any) -> str:
    from jax._src.interpreters import mlir

    extents = "".join(f"{extent}x" for extent in shape.dimensions())
    with mlir.make_ir_context():
        return f"tensor<{extents}{mlir.dtype_to_ir_type(np.dtype(shape.numpy_dtype()))}>"


def _bytecode(call: BatchedCall, given: Sequence[str], made: Sequence[str]) -> bytes:
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    names = [f"%a{number}" for number in range(len(given))]
    bundle = f"%r:{len(made)}" if len(made) > 1 else "%r"
    results = [f"%r#{number}" for number in range(len(made))] if len(made) > 1 else ["%r"]
    taken = ", ".join(f"{name}: {kind}" for name, kind in zip(names, given))
    attributes = f'call_target_name = "{PART_OF_CALL}", backend_config = "{call.config}"'
    types = f"({', '.join(given)}) -> ({', '.join(made)})"
    text = f"""func.func @main({taken}) -> ({", ".join(made)}) {{
        {bundle} = "stablehlo.custom_call"({", ".join(names)}) {{{attributes}}} : {types}
        return {", ".join(results)} : {", ".join(made)}
    }}"""
    with mlir.make_ir_context():
        return mlir.module_to_bytecode(ir.Module.parse(text))
