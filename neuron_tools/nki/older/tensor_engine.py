"""Matmuls and transposes, as results."""

from __future__ import annotations

from typing import Any

from neuron_tools.nki import isa
from neuron_tools.nki.isa.enums import engine as engines
from neuron_tools.nki.isa.issue import ready
from neuron_tools.nki.language.creation import ndarray
from neuron_tools.nki.language.math import matmul_result
from neuron_tools.nki.language.movement import in_sbuf
from neuron_tools.nki.language.results import Restriction, result
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.older.results import result_type
from neuron_tools.nki.tensor import NkiTensor


def nc_matmul(
    stationary: NkiTensor,
    moving: NkiTensor,
    *,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    tile_position: tuple[int, ...] = (),
    tile_size: tuple[int, ...] = (),
    mask: Any = None,
    perf_mode: Any = None,
) -> NkiTensor:
    """stationary.T @ moving in PSUM; `psum += nc_matmul(...)` accumulates."""
    ready()
    chosen = _perf_mode(perf_mode)
    halves = 2 if chosen is not isa.matmul_perf_mode.none else 1
    shape = (
        stationary.size // stationary.shape[0] // halves,
        moving.size // moving.shape[0] // halves,
    )
    return matmul_result(
        stationary, moving, shape, mask, is_stationary_onezero=is_stationary_onezero,
        is_moving_onezero=is_moving_onezero, is_transpose=is_transpose, tile_position=tile_position,
        tile_size=tile_size, perf_mode=chosen,
    )  # fmt: skip


def _perf_mode(given: Any) -> isa.matmul_perf_mode:
    if given is None:
        return isa.matmul_perf_mode.none
    if isinstance(given, isa.matmul_perf_mode):
        return given
    return isa.matmul_perf_mode.double_row if "double" in str(given) else isa.matmul_perf_mode.none


def nc_transpose(
    data: NkiTensor,
    *,
    mask: Any = None,
    dtype: Any = None,
    engine: engines = engines.unknown,
) -> NkiTensor:
    """data.T: in PSUM from the Tensor engine, in SBUF from the Vector engine (at most 32 x 32)."""
    rows, columns = data.shape[0], data.size // data.shape[0]
    small = rows <= 32 and columns <= 32
    on_vector = engine is engines.vector or (engine is engines.unknown and small)
    kind = result_type(dtype, data.dtype)
    left = Restriction(data.shape, mask)

    def emit(target: NkiTensor) -> None:
        source = left.part(data)
        place = target
        if left.rectangle is not None and data.ndim == 2:
            place = target.within((left.rectangle[1], left.rectangle[0]))
        if on_vector:
            isa.nc_transpose(place, source, engines.vector)
            return
        source = in_sbuf(source)
        if place.buffer is MemoryRegion.psum:
            isa.nc_transpose(place, source, engines.tensor)
            return
        staged = ndarray(place.shape, data.dtype, MemoryRegion.psum)
        isa.nc_transpose(staged, source, engines.tensor)
        isa.tensor_copy(place, staged)

    region = MemoryRegion.sbuf if on_vector else MemoryRegion.psum
    return result((columns, rows), kind, emit, region, left=left)
