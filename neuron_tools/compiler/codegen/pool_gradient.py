"""Code generation for the backward of max pooling, from the places of the maxima.

A row of an image that is `step` rows into a stride is looked at by few rows of windows, and so all elements
that lie alike, a *phase*, take the gradients of the same few taps. For each tap the windows whose maximum
lies there give theirs, the others zero: chosen by a comparison, or multiplied by its result where the Vector
engine does both as fast (an infinite gradient is NaN in the others then, an overflow either way). A phase
with several taps has these beside each other and adds them up. Planes, or bands of them,
lie on partitions, and a phase is written where its elements lie, so that the image is stored in one piece.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.engines import instruction_ns, needs_port
from neuron_tools.compiler.codegen.slot import Slot, Transfer
from neuron_tools.compiler.codegen.tables import SQUARE
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.opcodes import POOLING_SIZES
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.frozen import frozen
from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode

TILES = 8
"""Tiles that a loop should have, so that loading, computing and storing overlap."""
RESULT_ELEMENTS = 4096
"""Of the image, on one partition."""
SUM_BANKS = 4
"""Of PSUM, for sums of one tile: as many let the next one begin."""
_PLACE = DType.BF16
"""Holds the number of a tap within its window; of what lies outside it is only known that it is another."""


@frozen
class Pooling:
    """Sizes of a pooling.

    Attributes:
        planes: Images times channels.
        windows: Number of windows along each spatial axis; `extents` the same of elements.
        kernel, stride, padding, dilation: Along each spatial axis.
    """

    planes: int
    windows: tuple[int, ...]
    extents: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    @classmethod
    def of(cls, shape: Sequence[int], windows: Sequence[int], attributes: Mapping[str, Any]) -> Pooling:
        """The pooling of an image's shape and a gradient's."""
        sizes = [tuple(attributes[name]) for name in POOLING_SIZES]
        rank = len(sizes[0])
        return cls(math.prod(shape[:-rank]), tuple(windows[-rank:]), tuple(shape[-rank:]), *sizes)

    def phases(self) -> list[int]:
        """How many taps reach the elements of each phase that any tap reaches."""
        along = map(self._taps, range(len(self.kernel)))
        return [count for counts in product(*along) if (count := math.prod(counts))]

    @property
    def halo(self) -> int:
        """Rows of windows that a band needs beyond its own."""
        return (self.kernel[0] - 1) * self.dilation[0] // self.stride[0]

    @property
    def is_covered(self) -> bool:
        """Whether each element lies in a window."""
        return all(
            all(self._taps(axis)) and (count - 1) * stride + (size - 1) * gap + 1 - pad >= extent
            for axis, (count, stride, size, gap, pad, extent) in enumerate(
                zip(self.windows, self.stride, self.kernel, self.dilation, self.padding, self.extents)
            )
        )

    @property
    def fits_words(self) -> bool:
        """Whether two bytes hold each place of a plane."""
        return math.prod(self.extents) <= 1 << 8 * DType.U16.byte_count

    def _taps(self, axis: int) -> list[int]:
        """Along one axis: of the elements in each place of a stride, how many taps reach them."""
        size, step = self.kernel[axis], self.stride[axis]
        places = [(tap * self.dilation[axis] - self.padding[axis]) % step for tap in range(size)]
        return [places.count(place) for place in range(step)]


@frozen
class _Tiling:
    """Pieces on partitions: a band of a plane each, or several whole planes.

    Attributes:
        pieces: In all; `together` of them on a partition.
        windows: Of a piece, with its halo; `elements` those of the image.
    """

    pieces: int
    together: int
    windows: int
    elements: int
    partitions: int

    @classmethod
    def of(cls, pooling: Pooling, partitions: int) -> _Tiling:
        """Bands small enough to fit, and so many that loading, computing and storing overlap."""
        elements = math.prod(pooling.extents)
        wanted = max(-(-elements // RESULT_ELEMENTS), -(-partitions * TILES // (2 * pooling.planes)))
        rows = pooling.windows[0]
        height = -(-rows // max(1, min(wanted, rows)))
        bands = -(-rows // height)
        together = max(1, min(
            pooling.planes // (partitions * TILES), RESULT_ELEMENTS // elements
        )) if bands == 1 else 1  # fmt: skip
        halo = pooling.halo if bands > 1 else 0
        inner = math.prod(pooling.windows[1:])
        return cls(
            pooling.planes * bands, together, (height + halo) * inner, -(-elements // bands), partitions
        )

    @property
    def iterations(self) -> int:
        """Tiles of the loop."""
        return -(-self.pieces // (self.partitions * self.together))

    def on_partitions(self) -> np.ndarray:
        """(iterations,) partitions that each tile has."""
        full = self.partitions * self.together
        left = self.pieces - np.arange(self.iterations) * full
        return -(-np.minimum(left, full) // self.together)

    def shared_out(self, total: int) -> np.ndarray:
        """(iterations,) elements of each tile, of so many in all."""
        ends = np.cumsum(self.on_partitions())
        return np.diff(np.rint(ends * (total / ends[-1])).astype(np.int64), prepend=0)


def generate_max_pool_gradient(context: Context, group: Group) -> None:
    """Emit one loop over planes: operands are the gradient, the image and the places of the maxima."""
    operation = group.operations[0]
    gradient, places, result = operation.operands[0], operation.operands[-1], operation.results[0]
    hlo, target = context.hlo(group), context.define(result)
    pooling = Pooling.of(target.type.shape, context.type_of(gradient).shape, operation.attributes)
    tiling = _Tiling.of(pooling, context.core.sbuf_partitions)
    loop = TileLoop(context, tiling.iterations, hlo)
    body = _Body(context, loop, tiling)
    made = body.image(body.loaded(gradient), body.loaded(places), pooling, chip_dtype(target.type.dtype))
    elements = tiling.shared_out(target.type.element_count)
    run = tiling.elements * tiling.together
    stored = loop.store(made, target.store(context.store_queue(), elements, run, tiling.on_partitions()))
    loop.emit()
    context.complete(result, loop.completion(stored))


class _Body:
    """The steps of one tile."""

    def __init__(self, context: Context, loop: TileLoop, tiling: _Tiling) -> None:
        self._context = context
        self._loop = loop
        self._tiling = tiling
        self._partitions = tiling.on_partitions()
        self._windows = tiling.windows * tiling.together
        self._elements = tiling.elements * tiling.together
        self._first = np.arange(loop.iterations) == 0
        self._units: Slot | None = None

    def loaded(self, value: int) -> Slot:
        """An operand's windows; of 64-bit places the engines read the lower words."""
        place = self._context.location(value)
        dtype = chip_dtype(place.type.dtype)
        slot = self._slot("operand", dtype, extra_buffers=1, words=place.dtype.byte_count // dtype.byte_count)
        slot.tensor = place.tensor
        elements = self._tiling.shared_out(self._tiling.pieces * self._tiling.windows)
        queue = self._context.load_queue(place)
        transfer: Transfer = place.load(queue, elements, self._windows, self._partitions)
        self._loop.load(slot, transfer, after=place.tokens)
        return slot

    def image(self, gradient: Slot, places: Slot, pooling: Pooling, dtype: DType) -> Slot:
        """The image's gradient."""
        plan = _Plan.of(self._context.core, self._windows, pooling, gradient.dtype)
        if plan.places is not places.dtype:
            narrow = self._slot("narrow places", plan.places)
            self._step(Opcode.TENSOR_COPY, (places,), narrow, engine=Engine.SCALAR)
            places = narrow
        origin = self._slot("origins", plan.places, stationary=True)
        self._loop.step(
            Engine.GPSIMD, Opcode.IOTA, writes=(origin,), elements=self._windows, active=self._first
        )
        tap = self._slot("taps", _PLACE)
        self._step(Opcode.TENSOR_TENSOR, (places, origin), tap)
        made = self._loop.slot("image", self._elements * dtype.byte_count, dtype)
        if not pooling.is_covered:
            self._step(Opcode.MEMSET, (), made, engine=Engine.GPSIMD, elements=self._elements)
        engines = iter(plan.comparing)
        for count, adder in zip(pooling.phases(), plan.adding):
            parts = made if count == 1 else self._slot("parts", gradient.dtype, words=count)
            for place in range(count):
                self._part(tap, gradient, parts, next(engines), begins=count > 1 and place == 0)
            if adder is Engine.TENSOR:
                self._sums(parts, made, count)
            elif count > 1:
                self._step(Opcode.TENSOR_REDUCE, (parts,), made, elements=self._windows * count, joins=True)
        return made

    def _sums(self, parts: Slot, made: Slot, count: int) -> None:
        """Parts added up in PSUM, as products with the identity, and put in their place."""
        core, loop = self._context.core, self._loop
        bank = core.psum_bank_bytes // DType.F32.byte_count
        loop.step(
            Engine.TENSOR, Opcode.LDWEIGHTS, reads=(self._identity(parts.dtype),), columns=core.tensor_columns
        )
        for begin in range(0, self._windows, bank):
            width = min(bank, self._windows - begin)
            sums = loop.slot("sums", width * DType.F32.byte_count, DType.F32, memory=Memory.PSUM)
            for _ in range(count):
                loop.step(
                    Engine.TENSOR, Opcode.MATMUL, reads=(parts,), writes=(sums,), partitions=self._partitions,
                    columns=core.tensor_columns, elements=width, accumulates=True, flags=Flag.ACCUMULATE,
                )  # fmt: skip
            loop.step(
                Engine.SCALAR, Opcode.TENSOR_COPY, reads=(sums,), writes=(made,), partitions=self._partitions,
                elements=width, accumulates=True,
            )  # fmt: skip

    def _identity(self, dtype: DType) -> Slot:
        if self._units is None:
            columns = self._context.core.tensor_columns
            self._units = self._loop.slot("identity", columns * dtype.byte_count, dtype, stationary=True)
            self._loop.step(
                Engine.GPSIMD, Opcode.IOTA, writes=(self._units,), elements=columns, active=self._first
            )
        return self._units

    def _part(self, tap: Slot, gradient: Slot, parts: Slot, engine: Engine | None, *, begins: bool) -> None:
        """The gradients of windows whose maximum lies at one tap; no engine: the product compares itself.

        The Scalar engine compares by the square of the difference, and what is zero chooses. GpSimd compares
        and multiplies at one time.
        """
        if engine in (None, Engine.GPSIMD):
            self._step(
                Opcode.SCALAR_TENSOR_TENSOR, (tap, gradient), parts, engine=engine or Engine.VECTOR,
                joins=not begins, strided=False,
            )  # fmt: skip
            return
        chosen = self._slot("chosen", _PLACE)
        if engine is Engine.SCALAR:
            self._step(Opcode.ACTIVATE, (tap,), chosen, engine=engine, activation=SQUARE)
        else:
            self._step(Opcode.TENSOR_SCALAR, (tap,), chosen)
        self._step(Opcode.SELECT_REDUCE, (chosen, gradient), parts, joins=not begins)

    def _slot(self, name: str, dtype: DType, *, words: int = 1, **options: Any) -> Slot:
        return self._loop.slot(name, self._windows * dtype.byte_count * words, dtype, **options)

    def _step(
        self, opcode: Opcode, reads: tuple[Slot, ...], made: Slot, *, engine: Engine = Engine.VECTOR,
        elements: int = 0, activation: str = "", joins: bool = False, strided: bool | None = None,
    ) -> None:  # fmt: skip
        strided = joins if strided is None else strided
        self._loop.step(
            engine, opcode, reads=reads, writes=(made,), partitions=self._partitions,
            elements=elements or self._windows, activation=activation, accumulates=joins,
            flags=Flag.STRIDED if strided else Flag.NONE,
        )  # fmt: skip


@frozen
class _Plan:
    """The engine of each tap's comparison (None, GpSimd: it is part of a product), and of each phase's sum.

    Attributes:
        places: Type in which places are compared; the Scalar engine narrows what was loaded wider.
    """

    places: DType
    comparing: tuple[Engine | None, ...]
    adding: tuple[Engine, ...]

    @classmethod
    def of(cls, core: NeuronCore, windows: int, pooling: Pooling, dtype: DType) -> _Plan:
        """The Tensor engine adds, the others compare, where the Vector engine has more to do."""

        def cost(engine: Engine, opcode: Opcode, elements: int, of: DType) -> float:
            return instruction_ns(core, engine, opcode, elements, of)

        phases = pooling.phases()
        choose = cost(Engine.VECTOR, Opcode.SELECT_REDUCE, windows, dtype)
        multiply = cost(Engine.VECTOR, Opcode.SCALAR_TENSOR_TENSOR, windows, dtype)
        multiplied = sum(count for count in phases if count > 1) if multiply <= choose else 0
        vector = multiplied * multiply + (sum(phases) - multiplied) * choose
        sums = [
            count > 1 and cost(Engine.VECTOR, Opcode.TENSOR_REDUCE, windows * count, dtype)
            for count in phases
        ]
        vector += sum(sums)
        subtract = cost(Engine.VECTOR, Opcode.TENSOR_TENSOR, windows, DType.I32)
        narrower = cost(Engine.VECTOR, Opcode.TENSOR_TENSOR, windows, DType.U16)
        narrow = cost(Engine.SCALAR, Opcode.TENSOR_COPY, windows, DType.I32)
        narrows = narrow <= vector + narrower < vector + subtract and pooling.fits_words
        vector += narrower if narrows else subtract
        tensor, scalar = 0.0, narrow if narrows else 0.0
        adding = [Engine.VECTOR] * len(phases)
        banks = -(-windows * DType.F32.byte_count // core.psum_bank_bytes)
        for place in sorted(range(len(phases)), key=lambda place: -phases[place]):
            product = phases[place] * cost(Engine.TENSOR, Opcode.MATMUL, windows, dtype)
            has_room = (adding.count(Engine.TENSOR) + 1) * banks <= SUM_BANKS
            if has_room and phases[place] > 1 and tensor + product <= vector - sums[place]:
                adding[place] = Engine.TENSOR
                tensor, vector = tensor + product, vector - sums[place]
                scalar += cost(Engine.SCALAR, Opcode.TENSOR_COPY, windows, DType.F32)
        compare = cost(Engine.VECTOR, Opcode.TENSOR_SCALAR, windows, _PLACE)
        square = cost(Engine.SCALAR, Opcode.ACTIVATE, windows, _PLACE)
        beside: dict[Engine | None, _Busy] = {}
        if not needs_port(core, Engine.VECTOR, Opcode.SELECT_REDUCE, dtype):
            product = cost(Engine.GPSIMD, Opcode.SCALAR_TENSOR_TENSOR, windows, dtype)
            beside[Engine.GPSIMD] = (-min(choose, multiply), 0.0, product)
        multiplying: dict[Engine | None, _Busy] = {None: (0.0, 0.0, 0.0)}
        choosing: dict[Engine | None, _Busy] = {
            Engine.SCALAR: (0.0, square, 0.0), Engine.VECTOR: (compare, 0.0, 0.0)
        }  # fmt: skip
        busy: _Busy = (vector, scalar, 0.0)
        comparing: list[Engine | None] = []
        for count in phases:
            ways = multiplying if multiplied and count > 1 else choosing
            for _ in range(count):
                engine, busy = _least_busy({**ways, **beside}, busy)
                comparing.append(engine)
        return cls(DType.U16 if narrows else DType.I32, tuple(comparing), tuple(adding))


_Busy = tuple[float, float, float]
"""Time of the Vector, the Scalar and the GpSimd engine for a tile, ns."""


def _least_busy(ways: Mapping[Engine | None, _Busy], before: _Busy) -> tuple[Engine | None, _Busy]:
    """The way after which the busiest engine has least to do, and what all have to do then."""

    def after(way: Engine | None) -> _Busy:
        vector, scalar, gpsimd = (old + new for old, new in zip(before, ways[way]))
        return vector, scalar, gpsimd

    engine = min(ways, key=lambda way: (max(after(way)), sum(after(way))))
    return engine, after(engine)
