"""Sizes of convolutions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.hlo import Operation
from neuron_tools.frozen import frozen

FEW_CHANNELS = 32
"""Fewer input channels than this leave the array so empty that taps are put on partitions too."""
MANY_TAPS = 64
"""Gradients of kernels (the window is the image) of more taps than this put them on partitions as well."""


@frozen
class Window:
    """Sizes of a convolution.

    Attributes:
        images, groups: Batch size; feature groups (each a product of its own).
        inputs, outputs: Channels per group.
        taps: Kernel positions; `tap_rows` of them along the outermost spatial axis.
        input_pixels, output_pixels: Per image; `input_row` and `output_row` along the innermost axis,
            `input_rows` and `output_rows` along the outermost one.
        stride: Of the outermost spatial axis.
        channels_last: The image's channels lie together in memory.
        packs_taps: Taps share the partitions with channels.
        dilations: Of the image along each axis (transposed convolutions): one in so many pixels is not zero.
        tap_spacing: Image rows from one row of taps to the next.
    """

    images: int
    groups: int
    inputs: int
    outputs: int
    taps: int
    tap_rows: int
    input_pixels: int
    output_pixels: int
    input_row: int
    output_row: int
    input_rows: int
    output_rows: int
    stride: int
    channels_last: bool
    packs_taps: bool = False
    dilations: tuple[int, ...] = ()
    tap_spacing: int = 1

    @property
    def dilation(self) -> int:
        """One in so many pixels of the image is not zero."""
        return math.prod(self.dilations)

    @property
    def makes_kernel_gradient(self) -> bool:
        """Whether the window is as large as an image, and slides over few places: a kernel's gradient."""
        return self.taps > max(MANY_TAPS, self.output_pixels)

    @property
    def column_elements(self) -> int:
        """Elements of a channel of the result."""
        return self.images * self.output_pixels

    @property
    def flops(self) -> int:
        """2 x multiply-accumulates, padding included, the zeros of a dilated image not."""
        taps = -(-self.taps // self.dilation)
        return 2 * self.images * self.groups * self.outputs * self.output_pixels * self.inputs * taps


def describe_window(
    context: Context, operands: Sequence[int], result: int, attributes: Mapping[str, Any]
) -> Window:
    """Sizes of a convolution from its dimension numbers."""
    numbers = attributes["dimension_numbers"]
    image, kernel = (context.type_of(value).shape for value in operands[:2])
    output = context.type_of(result).shape
    spatial = sorted((name for name in numbers["input"] if name.isdigit()), key=int)
    image_extents = [image[numbers["input"].index(name)] for name in spatial] or [1]
    output_extents = [output[numbers["output"].index(name)] for name in spatial] or [1]
    kernel_extents = [kernel[numbers["kernel"].index(name)] for name in spatial] or [1]
    groups, inputs, taps = (
        _groups(attributes), kernel[numbers["kernel"].index("i")], math.prod(kernel_extents)
    )  # fmt: skip
    strides = tuple(attributes.get("window_strides", ())) or (1,)
    window = Window(
        images=output[numbers["output"].index("b")], groups=groups,
        inputs=inputs,
        outputs=max(1, output[numbers["output"].index("f")] // groups),
        taps=taps, tap_rows=kernel_extents[0],
        input_pixels=math.prod(image_extents), output_pixels=math.prod(output_extents),
        input_row=image_extents[-1], output_row=output_extents[-1],
        input_rows=image_extents[0], output_rows=output_extents[0], stride=int(strides[0]),
        channels_last=numbers["input"][-1] == "f",
        dilations=tuple(map(int, attributes.get("lhs_dilation", ()))),
        tap_spacing=int((tuple(attributes.get("rhs_dilation", ())) or (1,))[0]),
    )  # fmt: skip
    has_few_channels = inputs < FEW_CHANNELS and taps > 1
    return replace(window, packs_taps=has_few_channels or window.makes_kernel_gradient)


def feature_groups(operation: Operation) -> int:
    """Products that a convolution is, each of its own channels."""
    return _groups(operation.attributes)


def _groups(attributes: Mapping[str, Any]) -> int:
    return int(attributes.get("feature_group_count", 1)) * int(attributes.get("batch_group_count", 1))
