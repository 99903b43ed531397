"""Code generation for convolutions: a matrix product per kernel tap, accumulated in PSUM.

The kernel is stationary (input channels on partitions, output channels as columns), the image moves past
it: for every tap the same SBUF tile is read through a shifted, strided access pattern, so nothing is
copied. Convolutions of very few input channels put several taps on the partitions instead. Between the pixels
of a dilated image (transposed convolutions) lie zeros, which are neither stored nor multiplied: a tap adds to
those results alone under which it meets a pixel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.estimate import generate_estimate
from neuron_tools.compiler.codegen.joined_batches import Joined, joined_sizes
from neuron_tools.compiler.codegen.loop import work_of
from neuron_tools.compiler.codegen.matmul import Matmul
from neuron_tools.compiler.codegen.operand_blocks import content_version
from neuron_tools.compiler.codegen.operands import Operand, Sizes, neighbours
from neuron_tools.compiler.codegen.residency import image_order
from neuron_tools.compiler.codegen.residents import Resident
from neuron_tools.compiler.codegen.slot import Slot, Transfer
from neuron_tools.compiler.codegen.stored_weights import as_stored
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.codegen.window_forms import (
    Form,
    Numbers,
    by_columns,
    by_rows,
    forms_of,
    joined_groups,
    kernel_gradient_forms,
    over_groups,
    plane_by_plane,
    quickest_form,
    turned_image,
)
from neuron_tools.compiler.codegen.windows import Window, describe_window
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.compiler.views import Factor
from neuron_tools.records.program import Memory


def generate_convolution(context: Context, group: Group) -> None:
    """Emit a convolution and its epilogue; unknown layouts get an estimate."""
    operation = group.operations[0]
    numbers = operation.attributes.get("dimension_numbers")
    if not isinstance(numbers, Mapping):
        generate_estimate(context, group)
        return
    window = describe_window(context, operation.operands, operation.results[0], operation.attributes)
    hlo = context.hlo(
        group, opcode="convolution" if len(group.operations) == 1 else "fusion", model_flops=window.flops,
        weights=[window.flops / 128, *work_of(context, group)[1:]],
    )  # fmt: skip
    for output in group.outputs:
        context.define(output)
    image, kernel = operation.operands[:2]
    right = _image(context, image, numbers, window)
    joined = joined_groups(context.core, window)
    if joined is not None:
        window = over_groups(window, joined)
    keeps_columns = joined is not None and not joined.along_depth
    forms = forms_of(context.core, window, right.dtype.byte_count)
    if keeps_columns:
        forms = kernel_gradient_forms(window)
    form = _form(context, kernel, right, numbers, window, forms)
    if form.name == "rows":
        if window.stride == 1:
            right = replace(right, run=min(right.run, form.held_rows(window) * window.input_row))
        window = by_rows(window, form)
    sizes = Sizes(window.groups, window.outputs, window.inputs * window.taps, window.column_elements)
    left = _kernel(context, kernel, numbers, form, turns=joined is None or keeps_columns)
    if form.name in ("pixels", "columns"):
        right = turned_image(context, right, numbers, window, joined.count if joined else 1, hlo)
        sizes = joined_sizes(sizes, joined) if joined else sizes
        if form.name == "pixels":
            Matmul(context, group, left, right, sizes, hlo, joined).generate()
            return
        window = by_columns(replace(window, images=sizes.columns // window.output_pixels))
        Convolution(context, group, left, right, sizes, hlo, window, joined).generate()
        return
    right = plane_by_plane(context, right, numbers, window, hlo)
    if joined is None:
        left = _as_read(context, left, window)
    Convolution(context, group, left, right, sizes, hlo, window, joined).generate()


def _form(
    context: Context, kernel: int, image: Operand, numbers: Numbers, window: Window, forms: Iterable[Form]
) -> Form:
    """How the partitions are filled where channels alone do not: see `window_forms`; else without a name."""
    if not window.packs_taps:
        return Form("")
    item, runs = image.dtype.byte_count, {}
    for form in forms:
        operand = _kernel(context, kernel, numbers, form)
        runs[form] = (operand if form.name == "pixels" else _as_read(context, operand, window)).run
    return quickest_form(context.core, window, item, runs)


def _as_read(context: Context, kernel: Operand, window: Window) -> Operand:
    """A kernel inside the artifact as the product wants it; that of feature groups as the model has it."""
    if window.groups > 1:
        return kernel
    return as_stored(context, kernel, window.inputs * window.taps, window.outputs)


def _kernel(context: Context, value: int, numbers: Numbers, form: Form, *, turns: bool = True) -> Operand:
    """The kernel, turned where what is contracted lies closer together than the outputs.

    All taps that have no partitions of their own are loaded together. What goes to the diagonal of several
    groups is loaded to its partitions as it is, and never `turns`.
    """
    dims = dict(zip(numbers["kernel"], context.plan.views.layout(value).dims))
    *outer, row = sorted((name for name in dims if name.isdigit()), key=int) or ("",)
    apart = {"": (), "rows": outer, "columns": (*outer[1:], row)}.get(form.name, (*outer, row))
    contracted = [factor for name in ("i", *apart) for factor in dims.get(name, ())]
    taps = [factor for name in (*outer, row) if name not in apart for factor in dims.get(name, ())]
    if form.rows > 1:
        taps += [(min(form.rows, extent), stride) for extent, stride in dims[outer[0]][-1:]]
    turned = turns and form.name != "rows" and _least_stride(contracted) < _least_stride(dims["o"])
    run = neighbours([*taps, *(contracted if turned else dims["o"])])
    return _operand(context, value, turned=turned, run=run)


def _least_stride(factors: Sequence[Factor]) -> float:
    return min((stride for _, stride in factors), default=math.inf)


def _image(context: Context, value: int, numbers: Numbers, window: Window) -> Operand:
    """The image, channels of which are on partitions: turned by DMA where they lie together."""
    if window.channels_last:
        bytes_ = chip_dtype(context.type_of(value).dtype).byte_count
        return _operand(context, value, turned=bytes_ <= 2, run=window.inputs)
    dims = dict(zip(numbers["input"], context.plan.views.layout(value).dims))
    pixels = [factor for name, factors in dims.items() if name.isdigit() for factor in factors]
    return _operand(context, value, turned=False, run=neighbours(pixels))


def _operand(context: Context, value: int, *, turned: bool, run: int) -> Operand:
    layout = context.plan.views.layout(value)
    dtype = chip_dtype(context.type_of(value if layout.root < 0 else layout.root).dtype)
    return Operand(value, layout.root, turned, max(1, run), dtype, False, layout.is_repeated)


class Convolution(Matmul):
    """A matrix product whose moving operand is an image read once for all taps."""

    def __init__(
        self,
        context: Context,
        group: Group,
        left: Operand,
        right: Operand,
        sizes: Sizes,
        hlo: int,
        window: Window,
        joined: Joined | None = None,
    ) -> None:
        self._window = window
        self._image = context.residency.find_order(right.root, image_order(context, group.operations[0]))
        super().__init__(context, group, left, right, sizes, hlo, joined)

    def _count_depth_tiles(self) -> int:
        window = self._window
        if window.packs_taps:
            return -(-window.inputs * window.taps // self._tile)
        return window.taps * -(-window.inputs // self._tile)

    @property
    def _searches_blocks(self) -> bool:
        return False

    def _depth(self, tile: int) -> Ints:
        """Input channels of a tap's tile; with packed taps, rows of the packed contraction."""
        window = self._window
        if window.packs_taps:
            return super()._depth(tile)
        left = window.inputs - self._image_tile(tile) * self._tile
        return np.clip(left, 0, self._tile)

    def _image_tile(self, tile: int) -> Ints:
        """(iterations,) tile of the image for a tile of the contraction: all taps of one, then the next."""
        taps = 1 if self._window.packs_taps else self._window.taps
        return (self._chunk * self._blocking.depth_tiles + tile) // taps

    def _less_depth(self, depth_tiles: int) -> int:
        """Whole tiles of channels, else so many taps of one that it is read a whole number of times."""
        taps = self._window.taps
        if self._window.packs_taps:
            return super()._less_depth(depth_tiles)
        if depth_tiles > taps:
            return -(-depth_tiles // taps // 2) * taps
        return max(count for count in range(1, max(depth_tiles, 2)) if taps % count == 0)

    def _moving_bytes(self, width: int, depth_tiles: int) -> int:
        """The image is held once, not once per tap."""
        if self._image:
            return 0
        return self._image_tiles(depth_tiles) * self._image_width(width) * self._right.dtype.byte_count

    def _image_tiles(self, depth_tiles: int) -> int:
        """Partition tiles of the image that `depth_tiles` of the contraction read."""
        return depth_tiles if self._window.packs_taps else -(-depth_tiles // self._window.taps)

    def _image_width(self, columns: int) -> int:
        """Input pixels under `columns` output pixels: their rows, and the rows that the kernel overlaps."""
        window = self._window
        if window.packs_taps:  # each partition holds one tap's shifted pixels
            return max(1, columns * window.stride)
        spread = window.dilations[0] if window.dilations else 1
        images = -(-columns // window.output_pixels)
        if window.input_row == window.input_pixels:  # one row: a part of it
            reached = columns * max(1, window.input_row // window.output_row) + images * window.taps
            return max(1, min(reached, images * window.input_pixels))
        rows = -(-columns // window.output_row)
        overlap = max(0, -(-window.tap_rows // spread) - window.stride) * images
        pixels = (-(-rows * window.stride // spread) + overlap) * window.input_row
        return max(1, min(pixels, images * window.input_pixels))

    def _met_columns(self, tile: int) -> Ints:
        """One in so many as pixels are not zero; where there are fewer taps than that, zeros too."""
        return -(-self._columns(tile) // min(self._window.dilation, self._depth_tiles))

    def _together(self, free: Ints, tiles: int) -> int:
        """Taps of a kernel that have no partitions of their own are loaded with the outputs."""
        window = self._window
        return super()._together(free, tiles) * (1 if window.packs_taps else min(tiles, window.taps))

    def _moving_block(self) -> list[Slot]:
        if self._image is not None:
            return self._image_in_sbuf(self._image)
        blocking = self._blocking
        width = min(blocking.column_tiles * self._moving, self._sizes.columns)
        held = self._image_width(width)
        tiles = self._image_tiles(blocking.depth_tiles)
        each = blocking.depth_tiles // tiles
        keys = [self._batch, self._column_block]
        if self._chunks > 1:
            keys += [self._image_tile(0) if each < self._window.taps else self._chunk, self._row_block]
        version = content_version(*keys)
        item = self._right.dtype.byte_count
        slots = []
        for index in range(tiles):
            slot = self._loop.slot("image", held * item, self._right.dtype, version=version)
            self._load_image(slot, index * each, held)
            slots.append(slot)
        return [slots[min(tile // each, tiles - 1)] for tile in range(blocking.depth_tiles)]

    def _image_in_sbuf(self, resident: Resident) -> list[Slot]:
        """The image that stayed in SBUF, a tile of channels per tile of the contraction."""
        slots: dict[tuple[int, ...], Slot] = {}
        found = []
        for tile in range(self._blocking.depth_tiles):
            version = np.minimum(self._image_tile(tile), len(resident.tiles) - 1)
            key = tuple(np.unique(version).tolist()) if self._chunks == 1 else (-tile - 1,)
            if key not in slots:
                slots[key] = resident.read(version)
                self._loop.given(slots[key])
                self._read_residents.append((resident, slots[key]))
            found.append(slots[key])
        return found

    def _load_image(self, slot: Slot, tile: int, held: int) -> None:
        if self._right.root < 0:
            return
        location = self._location(self._right)
        slot.tensor = location.tensor
        item = location.dtype.byte_count
        partitions = self._depth(tile)
        total = self._sizes.columns * self._window.input_pixels // max(1, self._window.output_pixels)
        wanted = np.full(len(self._chunk), min(held, total), np.int64)
        run = self._window.inputs if self._window.channels_last else min(held, self._right.run)
        active = self._loop.first_of(slot.version) & (partitions > 0)
        if self._window.packs_taps:
            wanted = np.full(len(self._chunk), held, np.int64)
        if self._right.is_repeated:
            self._spread(self._right, slot, partitions, wanted, active)
            return
        if self._window.packs_taps:
            run = self._window.output_row * self._window.stride
        transfer = Transfer(
            self._context.load_queue(location),
            Memory.HBM,
            Memory.SBUF,
            np.maximum(partitions * wanted, 1) * item,
            run * item,
            np.maximum(partitions, 1),
            location.purpose,
            location.dtype,
            location.tensor,
            transpose=self._right.method == "dma",
        )
        self._loop.load(slot, transfer, active=active, after=location.tokens)
