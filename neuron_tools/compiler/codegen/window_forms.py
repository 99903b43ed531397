"""How convolutions of few channels, or of windows as large as the image, fill the partitions.

One pixel's channels would leave most partitions empty, or make a tap of each pixel. Four ways fill them:

- taps: every tap of every channel has a partition, which loads the pixels that the tap meets;
- rows: every row of the window has one, or several rows together have, which holds whole rows of the image;
  the taps of a row are read from there one after the other, so nothing is loaded for each of them;
- pixels: for gradients of kernels, whose contraction runs over pixels: the image is turned once so that the
  channels of a pixel, and with them those of the taps beside it, lie together;
- columns: likewise, but a partition holds a column of the image for all rows of the window, which read it
  from there one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.joined_batches import Joined
from neuron_tools.compiler.codegen.operands import Operand, neighbours
from neuron_tools.compiler.codegen.transpose import turn_matrices
from neuron_tools.compiler.codegen.windows import Window
from neuron_tools.compiler.hlo import TensorType
from neuron_tools.frozen import frozen
from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.simulator.dma_costs import stretch_time_ns

HELD_SHARE = 0.25
"""Part of SBUF that the image's rows may take where several rows of the window have a partition together."""

Numbers = Mapping[str, tuple[str, ...]]


@frozen
class Form:
    """How partitions are filled: with so many rows of the window on each."""

    name: str
    rows: int = 1

    def held_rows(self, window: Window) -> int:
        """Rows of an image that a partition holds: those that its rows of the window meet."""
        return window.output_pixels // window.output_row + (self.rows - 1) * window.tap_spacing


def forms_of(core: NeuronCore, window: Window, item: int) -> tuple[Form, ...]:
    """All forms that a window may have; several rows to a partition only where what they meet lies together.

    Args:
        core: What runs it.
        window: Sizes of a convolution that puts taps on partitions.
        item: Bytes of an element.
    """
    block = core.psum_banks // 2 * core.psum_bank_bytes // 4
    images = -(-min(window.column_elements, block) // window.output_pixels)
    room = core.sbuf_bytes_per_partition * HELD_SHARE // (images * window.input_row * item)
    together = (Form("rows", count) for count in range(2, window.tap_rows) if window.tap_rows % count == 0)
    has_rows = window.stride == 1 and window.input_row < window.input_pixels
    fitting = [form for form in together if has_rows and form.held_rows(window) <= room]
    return Form("taps"), Form("rows"), *fitting, *kernel_gradient_forms(window)


def kernel_gradient_forms(window: Window) -> tuple[Form, ...]:
    """The forms in which pixels are on partitions; columns only of images that have several rows."""
    has_columns = window.makes_kernel_gradient and window.taps > window.tap_rows > 1
    return (Form("pixels"), Form("columns")) if has_columns else (Form("pixels"),)


@frozen
class _Way:
    """What one way costs.

    Attributes:
        moved: (elements, how many of them lie together) of each thing that is moved.
        depth_tiles: Passes of all columns through the array.
    """

    moved: tuple[tuple[int, int], ...]
    depth_tiles: int

    def nanoseconds(self, window: Window, item: int, core: NeuronCore) -> tuple[float, float]:
        """The longer of moving everything and multiplying, and that of moving."""
        moving = sum(
            elements / run * stretch_time_ns(core, run * item, strided=False) for elements, run in self.moved
        )
        rows = -(-window.outputs // core.tensor_columns)
        speed = 1.0 if item <= 2 else core.tensor_speed_f32
        streaming = self.depth_tiles * rows * window.column_elements / core.tensor_clock_ghz / speed
        return max(moving / core.dma_engines, streaming), moving / core.dma_engines


def quickest_form(core: NeuronCore, window: Window, item: int, kernel_runs: Mapping[Form, int]) -> Form:
    """The quickest of some forms.

    Args:
        core: What runs it.
        window: Sizes of a convolution that puts taps on partitions.
        item: Bytes of an element.
        kernel_runs: The forms, and elements of the kernel that are loaded in one piece of each.
    """
    kernel = window.outputs * window.inputs * window.taps

    def nanoseconds(form: Form) -> tuple[float, float]:
        moved, passes = _image_moved(form, window), _passes(form, window, core)
        return _Way((*moved, (kernel, kernel_runs[form])), passes).nanoseconds(window, item, core)

    return min(kernel_runs, key=nanoseconds)


def _image_moved(form: Form, window: Window) -> tuple[tuple[int, int], ...]:
    """(elements, how many of them lie together) of what is moved of the image."""
    depth, columns = window.inputs * window.taps, window.column_elements
    if form.name == "taps":
        return ((depth * columns * window.stride, window.output_row * window.stride),)
    if form.name == "rows":
        held = form.held_rows(window) * window.input_row
        partitions = window.inputs * window.tap_rows // form.rows
        return ((partitions * window.images * held, held if window.stride == 1 else window.input_row),)
    if covers_image(window):
        return ((depth * columns, window.input_pixels),)
    turned = window.inputs * window.images * window.input_pixels
    loaded = depth * columns
    if form.name == "columns":
        columned = by_columns(window)
        loaded = columned.inputs * columned.images * columned.input_pixels
    return (loaded, pixels_together(window)), (turned, window.input_pixels), (turned, window.images)


def _passes(form: Form, window: Window, core: NeuronCore) -> int:
    """Passes of all columns through the array."""
    if form.name == "columns":
        columned = by_columns(window)
        return columned.taps * -(-columned.inputs // core.tensor_rows)
    if form.name != "rows":
        return -(-window.inputs * window.taps // core.tensor_rows)
    partitions = window.inputs * window.tap_rows // form.rows
    return window.taps // window.tap_rows * form.rows * -(-partitions // core.tensor_rows)


def by_rows(window: Window, form: Form) -> Window:
    """The window with its rows beside the channels: what is left of it are the taps of the rows together."""
    partitions = window.tap_rows // form.rows
    return replace(
        window, inputs=window.inputs * partitions, taps=window.taps // partitions,
        tap_rows=(form.rows - 1) * window.tap_spacing + 1,
        input_pixels=form.held_rows(window) * window.input_row, stride=1, packs_taps=False,
        dilations=window.dilations[-1:],
    )  # fmt: skip


def by_columns(window: Window) -> Window:
    """The window with what its rows have beside the channels, and the places beside one another as images."""
    return replace(
        window, inputs=window.inputs * window.taps // window.tap_rows, taps=window.tap_rows,
        tap_rows=(window.tap_rows - 1) * window.tap_spacing + 1,
        images=window.column_elements // window.output_rows,
        input_pixels=window.input_rows, output_pixels=window.output_rows, input_row=1, output_row=1,
        packs_taps=False,
    )  # fmt: skip


def covers_image(window: Window) -> bool:
    """Whether all pixels of an image meet the window in its one place: nothing needs to be shifted."""
    return window.output_pixels == 1 and window.taps == window.input_pixels


def joined_groups(core: NeuronCore, window: Window) -> Joined | None:
    """Feature groups that run as one product, as alone they would leave the array empty.

    Kernels stand on the diagonal of a wider one; gradients of kernels are made of all channels together, and
    each output keeps those of its own group.
    """
    gradient = window.makes_kernel_gradient
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
    if covers_image(window) and groups == 1 and image.root >= 0 and image.run > 1:
        return replace(image, turned=True)
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
