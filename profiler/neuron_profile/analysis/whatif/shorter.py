"""The work of a padded batch if its sequences were shorter: fewer tiles of what carries positions.

A tensor carries positions where its shape begins with the batch and has the sequences' length, or with both
merged. Work is in proportion to as many lengths as the tensor of an operator with most of them has: once for
a layer, twice for the scores of attention.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.whatif.change import Variant, of_both_cores
from neuron_profile.analysis.whatif.lookups import looks_up
from neuron_profile.analysis.whatif.reordered import places_among_alike
from neuron_tools.arrays import Floats
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import Program, Tensor, TensorKind
from neuron_tools.records.simulation import Simulation
from neuron_tools.simulator import simulate
from neuron_tools.simulator.cost_scale import CostScale

_DIMENSIONS = re.compile(r"\[([\d,]*)\]")


@frozen
class Shortening:
    """Sequences of another length.

    Attributes:
        rows: Sequences of a batch.
        length: Positions of each, padding included.
        shorter: Positions that would do.
    """

    rows: int
    length: int
    shorter: int

    def lengths_in(self, shape: Sequence[int]) -> int:
        """How many of a tensor's dimensions count positions."""
        if not shape:
            return 0
        if shape[0] == self.rows * self.length:
            return 1
        of_batch = shape[0] == self.rows or (self.rows > 1 and len(shape) > 2 and shape[0] % self.rows == 0)
        found = list(shape[1:]).count(self.length)
        return min(found, len(shape) - 2 or 1) if of_batch else 0

    def share_of(self, shapes: Iterable[Sequence[int]], *, are_halves: bool = False) -> float:
        """The part of the work on such tensors that would be left, 0 to 1.

        Args:
            shapes: The tensors.
            are_halves: Whether each may be the half that one of two physical cores has.
        """
        count = self._lengths_in_half if are_halves else self.lengths_in
        lengths: int = max(map(count, shapes), default=0)
        return float((self.shorter / self.length) ** lengths)

    def _lengths_in_half(self, shape: Sequence[int]) -> int:
        wholes = ((*shape[:axis], 2 * size, *shape[axis + 1 :]) for axis, size in enumerate(shape))
        return self.lengths_in(shape) or max(map(self.lengths_in, wholes), default=0)


def in_shorter(variant: Variant, shortening: Shortening) -> Variant:
    """The variant with as many tiles and transfers less as its sequences become shorter."""
    program, is_shared = variant.program, variant.core.logical_core_size > 1
    by_hlo = _by_operation(program, shortening, is_shared)
    table, dmas = program.instructions, program.dmas
    own = shortening.share_of(tensor.shape for tensor in program.tensors)
    of_tensor = np.array([_left_of(tensor, shortening, is_shared) for tensor in program.tensors] or [1.0])
    of_tensor[_weights(program)] = 1.0
    moved = np.where(dmas["tensor"] >= 0, of_tensor[np.maximum(dmas["tensor"], 0)], own)
    looked_up = looks_up(program)
    moved[looked_up] = _at(by_hlo, dmas["hlo"], own)[looked_up]
    scale = CostScale(
        _first_tiles(_at(by_hlo, table["hlo"], own), table["hlo"], table["engine"], table["opcode"]),
        _first_tiles(moved, dmas["tensor"], dmas["source_memory"], dmas["destination_memory"]),
    )
    return replace(variant, scale=variant.scale.times(scale))


def shorter_share(program: Program, core: NeuronCore, shortening: Shortening) -> float:
    """Time of a program with shorter sequences over its time now, 0 to 1.

    It ends with the last row that still does something: those behind it cost nothing, but wait all the same.
    """
    unchanged = Variant(program, core, CostScale.unchanged(program))
    scale = of_both_cores(unchanged, lambda variant: in_shorter(variant, shortening)).scale
    if scale.is_unchanged:
        return 1.0
    base, shorter = simulate(program, core), simulate(program, core, scale=scale)
    factors = scale.of_cores(program)
    ends_ps = _ends_ps(shorter)[np.concatenate([factors.instructions, factors.dmas]) > 0]
    around_ps = int(base.duration_ps) - int(_ends_ps(base).max(initial=0))
    return min(1.0, (int(ends_ps.max(initial=0)) + around_ps) / max(int(base.duration_ps), 1))


def _ends_ps(simulation: Simulation) -> npt.NDArray[np.int64]:
    """When each instruction of all physical cores ends, then each transfer."""
    cores = simulation.of_cores
    return np.concatenate([*(each.end_ps for each in cores), *(each.dma_end_ps for each in cores)])


def _weights(program: Program) -> list[int]:
    """Operands of a matrix product that have the shape of another one: just one of them carries positions."""
    if len(program.framework) > 1 or not any(each.model_flops for each in program.hlo):
        return []
    shapes = [
        tensor.shape if tensor.kind in (TensorKind.INPUT, TensorKind.WEIGHT) else ()
        for tensor in program.tensors
    ]
    return [row for row, shape in enumerate(shapes) if len(shape) == 2 and shape in shapes[:row]]


def _left_of(tensor: Tensor, shortening: Shortening, is_shared: bool) -> float:
    """The part of a tensor that is left; what only the program sees may be one physical core's half."""
    is_half = is_shared and tensor.kind is TensorKind.INTERMEDIATE
    return shortening.share_of([tensor.shape], are_halves=is_half)


def _by_operation(program: Program, shortening: Shortening, is_shared: bool) -> Floats:
    """The part that each HLO operation has left; of an operator that runs alone, that of its tensors."""
    if len(program.framework) <= 1:
        return np.full(len(program.hlo), shortening.share_of(tensor.shape for tensor in program.tensors))
    shapes = (map(_sizes, _DIMENSIONS.findall(hlo.shape)) for hlo in program.hlo)
    return np.array([shortening.share_of(each, are_halves=is_shared) for each in shapes])


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split(",") if size]


def _at(by_hlo: Floats, rows: npt.NDArray[np.signedinteger[Any]], other: float) -> Floats:
    return (
        np.where(rows >= 0, by_hlo[np.maximum(rows, 0)], other) if len(by_hlo) else np.full(len(rows), other)
    )


def _first_tiles(share: Floats, *keys: npt.NDArray[Any]) -> Floats:
    """(rows,) cost factors that leave of rows with equal keys the first, as many as their share asks for."""
    factors = np.ones(len(share))
    if not len(share):
        return factors
    place, alike = places_among_alike(*keys)
    wanted = share * alike
    kept = np.ceil(wanted - 1e-9)
    factors[:] = np.where(place < kept, wanted / np.maximum(kept, 1), 0.0)
    return factors
