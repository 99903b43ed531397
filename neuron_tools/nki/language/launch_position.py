"""The running instance's place in its launch grid, and the grid's own types."""

from __future__ import annotations

from typing import Any

from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.errors import NkiValidationError


def program_id(axis: int = 0) -> int:
    """Position of this instance on an axis of the launch grid; 0 where there is no grid.

    Raises:
        NkiValidationError: The grid has no such axis.
    """
    ids = tracing.active().program_ids
    _require_axis(axis, len(ids))
    return ids[axis] if axis < len(ids) else 0


def num_programs(axes: Any = 0) -> Any:
    """Instances on an axis of the launch grid (a tuple for several axes).

    Raises:
        NkiValidationError: The grid has no such axis.
    """
    grid = tracing.active().grid
    if axes is None:
        return tracing.grid_size(grid)
    if isinstance(axes, (tuple, list)):
        return tuple(num_programs(axis) for axis in axes)
    _require_axis(axes, len(grid))
    return grid[axes] if axes < len(grid) else 1


def _require_axis(axis: int, axes: int) -> None:
    """Refuse an axis that a launch grid does not have; without one, any is of one instance."""
    if axis < 0 or 0 < axes <= axis:
        raise NkiValidationError(
            f"the kernel runs on a launch grid of {axes} axes, which has no axis {axis}; call it with "
            "kernel[grid] of more axes, or ask for one that is there",
            tracing.where(),
        )


def program_ndim() -> int:
    """Axes of the launch grid; 0 where the kernel was called without one."""
    return len(tracing.active().grid)


class CoreCount:
    """`nl.nc(2)`: a number of NeuronCores to spread an axis of the grid over."""

    def __init__(self, count: int) -> None:
        self.count = int(count)

    def __mul__(self, other: int) -> SpreadDimension:
        return SpreadDimension(self.count * int(other), self.count)

    __rmul__ = __mul__


class SpreadDimension(int):
    """An axis of the grid that is spread over several NeuronCores."""

    cores: int

    def __new__(cls, extent: int, cores: int) -> SpreadDimension:
        """An axis of `extent` instances over `cores` NeuronCores."""
        made = super().__new__(cls, extent)
        made.cores = cores
        return made


def nc(count: int) -> CoreCount:
    """A number of NeuronCores (older dialect)."""
    return CoreCount(count)


def spmd_dim(*extents: int | CoreCount) -> int:
    """An axis of the grid made of sub-axes, one of which may be spread over NeuronCores (older dialect).

    Its extent is the product: `spmd_dim(3, nc(2))` has six instances, as `3 * nc(2)` has.
    """
    total, cores = 1, 0
    for extent in extents:
        if isinstance(extent, CoreCount):
            cores = extent.count
            total *= extent.count
        else:
            total *= int(extent)
            cores = getattr(extent, "cores", cores)
    return SpreadDimension(total, cores) if cores else total
