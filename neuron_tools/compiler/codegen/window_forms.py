"""How convolutions of few channels, or of windows as large as the image, fill the partitions.

One pixel's channels would leave most partitions empty, or make a tap of each pixel. Three ways fill them:

- taps: every tap of every channel has a partition, which loads the pixels that the tap meets;
- rows: every row of the window has one, which holds whole rows of the image; the taps of a row are read from
  there one after the other, so nothing is loaded for each of them;
- pixels: for gradients of kernels, whose contraction runs over pixels: the image is turned once so that the
  channels of a pixel, and with them those of the taps beside it, lie together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.joined_batches import Joined
from neuron_tools.compiler.codegen.operands import Operand, neighbours
from neuron_tools.compiler.codegen.transpose import turn_matrices
from neuron_tools.compiler.codegen.windows import MANY_TAPS, Window
from neuron_tools.compiler.hlo import TensorType
from neuron_tools.frozen import frozen
from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.simulator.dma_costs import stretch_time_ns

FORMS = ("taps", "rows", "pixels")

Numbers = Mapping[str, tuple[str, ...]]


@frozen
class _Way:
    """What one way costs.

    Attributes:
        moved: (elements, how many of them lie together) of each thing that is moved.
        depth_tiles: Passes of all columns through the array.
    """

    moved: tuple[tuple[int, int], ...]
    depth_tiles: int

    def nanoseconds(self, window: Window, item: int, core: NeuronCore) -> float:
        """The longer of moving everything and multiplying."""
        moving = sum(
            elements / run * stretch_time_ns(core, run * item, strided=False) for elements, run in self.moved
        )
        rows = -(-window.outputs // core.tensor_columns)
        speed = 1.0 if item <= 2 else core.tensor_speed_f32
        streaming = self.depth_tiles * rows * window.column_elements / core.tensor_clock_ghz / speed
        return max(moving / core.dma_engines, streaming)


def quickest_form(core: NeuronCore, window: Window, item: int, kernel_runs: Mapping[str, int]) -> str:
    """The quickest of `FORMS`.

    Args:
        core: What runs it.
        window: Sizes of a convolution that puts taps on partitions.
        item: Bytes of an element.
        kernel_runs: Elements of the kernel that are loaded in one piece, of each form.
    """
    tiles, columns = core.tensor_rows, window.column_elements
    depth, rows = window.inputs * window.taps, window.inputs * window.tap_rows
    reached = window.output_row * window.stride
    turned = window.inputs * window.images * window.input_pixels
    tap_columns, rows_read = window.taps // window.tap_rows, columns // window.output_row
    images = {
        "taps": ((depth * columns * window.stride, reached),),
        "rows": ((rows * rows_read * window.input_row, window.input_row),),
        "pixels": (
            (depth * columns, pixels_together(window)), (turned, window.input_pixels), (turned, window.images)
        ),
    }  # fmt: skip
    passes = {"rows": tap_columns * -(-rows // tiles)}
    kernel = window.outputs * window.inputs * window.taps
    ways = {
        form: _Way((*images[form], (kernel, kernel_runs[form])), passes.get(form, -(-depth // tiles)))
        for form in FORMS
    }
    return min(FORMS, key=lambda form: ways[form].nanoseconds(window, item, core))


def by_rows(window: Window) -> Window:
    """The window with its rows beside the channels: what is left of it are the taps of a row."""
    return replace(
        window, inputs=window.inputs * window.tap_rows, taps=window.taps // window.tap_rows, tap_rows=1,
        input_pixels=window.output_pixels // window.output_row * window.input_row, stride=1, packs_taps=False,
        dilations=window.dilations[-1:],
    )  # fmt: skip


def joined_groups(core: NeuronCore, window: Window) -> Joined | None:
    """Feature groups that run as one product, as alone they would leave the array empty.

    Kernels stand on the diagonal of a wider one; gradients of kernels are made of all channels together, and
    each output keeps those of its own group.
    """
    gradient = window.taps > MANY_TAPS
    columns = window.column_elements
    wide, most = window.outputs if gradient else max(window.inputs, window.outputs), core.tensor_columns
    if gradient:
        most = min(most, wide * (core.psum_banks // 2 * core.psum_bank_bytes // (4 * columns)))
    fitting = [count for count in range(2, most // wide + 1) if window.groups % count == 0]
    return Joined(fitting[-1], not gradient, window.outputs, columns) if fitting else None


def over_groups(window: Window, joined: Joined) -> Window:
    """The window with as many groups as one as run together; of gradients of kernels only fewer groups."""
    count = joined.count
    if not joined.along_depth:
        return window
    return replace(
        window, groups=window.groups // count, inputs=window.inputs * count, outputs=window.outputs * count,
        packs_taps=False,
    )  # fmt: skip


def pixels_together(window: Window, groups: int = 1) -> int:
    """Elements of a turned image that a partition loads in one piece: channels, and those of the taps beside.

    Args:
        window: Sizes of the convolution.
        groups: Feature groups that run together.
    """
    row = window.output_row if window.stride == 1 and groups == window.groups else 1
    return window.images * groups * row


def turned_image(
    context: Context, image: Operand, numbers: Numbers, window: Window, groups: int, hlo: int
) -> Operand:
    """The image with the channels of each pixel together: as it lies, or turned in HBM.

    Args:
        context: Where code goes.
        image: The image as it is.
        numbers: Names of the convolution's dimensions.
        window: Sizes of the convolution.
        groups: Feature groups that run together.
        hlo: The row that turning it belongs to.
    """
    pixels = replace(image, turned=False, run=pixels_together(window, groups), is_vector=False)
    factors = context.plan.views.layout(image.value).dims[numbers["input"].index("b")]
    if image.root < 0 or (factors and factors[-1][1] == 1):
        return pixels
    outer, channels = window.inputs, window.images * window.groups
    location = context.location(image.root)
    copy = context.scratch(
        f"pixels.{image.value}", TensorType((outer, window.input_pixels, channels), location.type.dtype)
    )
    turn_matrices(context, location, copy, (outer, channels, window.input_pixels), hlo)
    return replace(pixels, turned_copy=copy)


def plane_by_plane(context: Context, image: Operand, numbers: Numbers, window: Window, hlo: int) -> Operand:
    """The image with the pixels of each channel together: as it lies, or turned in HBM.

    An image that was put together from tokens has its channels together, and would be loaded pixel by pixel.

    Args:
        context: Where code goes.
        image: The image as it is.
        numbers: Names of the convolution's dimensions.
        window: Sizes of the convolution.
        hlo: The row that turning it belongs to.
    """
    layout = context.plan.views.layout(image.value)
    dims = dict(zip(numbers["input"], layout.dims))
    pixels = [factor for name, factors in dims.items() if name.isdigit() for factor in factors]
    channels = window.inputs * window.groups
    together = neighbours([*dims["f"], *pixels]) == channels * window.input_pixels
    if window.channels_last or image.root < 0 or image.run > 1 or neighbours(dims["f"]) != channels:
        return image
    if (
        not together
        or context.type_of(image.root).element_count != context.type_of(image.value).element_count
    ):
        return image
    location = context.location(image.root)
    sizes = window.images, window.input_pixels, channels
    type_ = TensorType((sizes[0], sizes[2], sizes[1]), location.type.dtype)
    copy = context.scratch(f"planes.{image.value}", type_)
    turn_matrices(context, location, copy, sizes, hlo)
    return replace(image, run=window.input_pixels, turned_copy=copy)
