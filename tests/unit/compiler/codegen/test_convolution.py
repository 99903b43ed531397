"""Convolutions: what they multiply, and what stays in SBUF between them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from neuron_tools import hardware
from neuron_tools.compiler.compile import compile_module
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.records.program import Memory, Opcode, Program, TensorKind
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import CORE, function, module, tensor, tile_races
from tests.unit.compiler.operators import lowered

CHANNELS, SIDE = 256, 28


def convolved(result: str, image: str, kernel: str, types: tuple[str, str, str], pad: int) -> str:
    """A line of a module: a convolution of stride 1."""
    return (
        f"%{result} = stablehlo.convolution(%{image}, %{kernel}) "
        "dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], "
        f"window = {{stride = [1, 1], pad = [[{pad}, {pad}], [{pad}, {pad}]], rhs_dilate = [1, 1]}} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
        f": ({types[0]}, {types[1]}) -> {types[2]}"
    )


def block(images: int, **options: bool) -> Program:
    """Two convolutions and the sum with what the first of them read, which a third made."""
    image = tensor((images, CHANNELS, SIDE, SIDE), "bf16")
    small, large = tensor((CHANNELS, CHANNELS, 1, 1), "bf16"), tensor((CHANNELS, CHANNELS, 3, 3), "bf16")
    text = function(
        f"%a: {image}, %u: {small}, %v: {large}, %w: {small}", image,
        convolved("x", "a", "u", (image, small, image), 0),
        convolved("y", "x", "v", (image, large, image), 1),
        convolved("z", "y", "w", (image, small, image), 0),
        f"%r = stablehlo.add %z, %x : {image}",
    )  # fmt: skip
    made = module(text, parameter_kinds=["input", "weight", "weight", "weight"])
    return compile_module(made, CORE, CompilerOptions(**options))


def intermediate_bytes(program: Program) -> int:
    """Bytes of intermediate results that go to HBM or come from there."""
    kinds = np.array([item.kind for item in program.tensors])
    return int(program.dmas["bytes"][kinds[program.dmas["tensor"]] == TensorKind.INTERMEDIATE].sum())


@pytest.mark.parametrize("images", [1, 3])
def test_what_the_next_convolution_and_a_sum_read_stays_in_sbuf(images):
    program = block(images)
    assert intermediate_bytes(program) == 0
    assert tile_races(program) == 0
    apart = block(images, keep_on_chip=False)
    assert intermediate_bytes(apart) > 0
    assert simulate(program, CORE).duration_ps < simulate(apart, CORE).duration_ps


def test_what_does_not_fit_goes_through_hbm():
    assert intermediate_bytes(block(32)) > 0


def normalised(*, inline: bool) -> Program:
    """A convolution and its batch norm at inference: (x - mean) / sqrt(variance) * scale + shift."""
    image, kernel = tensor((1, CHANNELS, SIDE, SIDE)), tensor((CHANNELS, CHANNELS, 1, 1))
    vector = tensor((CHANNELS,))
    spread = f"dims = [1] : ({vector}) -> {image}"
    text = function(
        f"%a: {image}, %w: {kernel}, %m: {vector}, %v: {vector}, %g: {vector}, %s: {vector}", image,
        convolved("x", "a", "w", (image, kernel, image), 0),
        f"%i = stablehlo.rsqrt %v : {vector}",
        *(f"%{name}b = stablehlo.broadcast_in_dim %{name}, {spread}" for name in ("m", "i", "g", "s")),
        f"%c = stablehlo.subtract %x, %mb : {image}",
        f"%n = stablehlo.multiply %c, %ib : {image}",
        f"%t = stablehlo.multiply %n, %gb : {image}",
        f"%r = stablehlo.add %t, %sb : {image}",
    )  # fmt: skip
    made = module(text, parameter_kinds=["input", *["weight"] * 5])
    return compile_module(made, CORE, CompilerOptions(inline_weights=inline))


def test_a_batch_norm_of_stored_statistics_is_one_scale_and_one_shift():
    folded, apart = normalised(inline=True), normalised(inline=False)
    assert len(folded.hlo) == 1
    assert len(apart.hlo) > 1
    vectors = [item.kind for item in folded.tensors if item.shape == (CHANNELS,)]
    assert vectors.count(TensorKind.CONSTANT) == 2
    loaded = folded.dmas[folded.dmas["destination_memory"] == Memory.SBUF]["bytes"].sum()
    assert loaded < apart.dmas[apart.dmas["destination_memory"] == Memory.SBUF]["bytes"].sum()


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_an_image_made_of_tokens_is_turned_and_not_loaded_pixel_by_pixel(dtype):
    tokens, image = tensor((2, SIDE, SIDE, CHANNELS), dtype), tensor((2, CHANNELS, SIDE, SIDE), dtype)
    kernel = tensor((CHANNELS, CHANNELS, 1, 1), dtype)
    text = function(
        f"%t: {tokens}, %k: {kernel}", image,
        f"%i = stablehlo.transpose %t, dims = [0, 3, 1, 2] : ({tokens}) -> {image}",
        convolved("r", "i", "k", (image, kernel, image), 0),
    )  # fmt: skip
    program = compile_module(module(text), CORE)
    plain = compile_module(
        module(
            function(f"%i: {image}, %k: {kernel}", image, convolved("r", "i", "k", (image, kernel, image), 0))
        ),
        CORE,
    )
    loads = program.dmas[program.dmas["source_memory"] == Memory.HBM]
    assert loads["descriptor_bytes"].min() >= 256
    assert simulate(program, CORE).duration_ps < 3 * simulate(plain, CORE).duration_ps


@pytest.mark.parametrize(("kernel", "pad", "stride"), [(3, 1, 2), (4, 1, 2), (2, 0, 2), (6, 1, 3)])
def test_the_gradient_of_a_strided_convolutions_image_multiplies_no_zeros(kernel, pad, stride):
    image = torch.empty(8, 128, 36, 36, dtype=torch.bfloat16, device="meta")
    weight = torch.empty(128, 128, kernel, kernel, dtype=torch.bfloat16, device="meta")
    options = ([stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1)
    result = torch.ops.aten.convolution(image, weight, None, *options)
    backward = torch.ops.aten.convolution_backward.default
    there = lowered(torch.ops.aten.convolution.default, image, weight, None, *options)
    back = lowered(backward, result, image, weight, None, *options, [True, False, False])
    forward, gradient = (multiplied_columns(compile_module(each, CORE)) for each in (there, back))
    assert 0.95 < gradient / forward < 1.25


def multiplied_columns(program: Program) -> int:
    """Columns that pass the Tensor engine."""
    return int(program.instructions["elements"][program.instructions["opcode"] == Opcode.MATMUL].sum())


def gradient_of_kernel(images: int, channels: int, side: int, dtype: torch.dtype) -> Program:
    """The gradient of a 3 x 3 kernel."""
    image = torch.empty(images, channels, side, side, dtype=dtype, device="meta")
    kernel = torch.empty(channels, channels, 3, 3, dtype=dtype, device="meta")
    options = (None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False])
    backward = torch.ops.aten.convolution_backward.default
    return compile_module(lowered(backward, image, image, kernel, *options), hardware.get("trn1"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_of_kernels_load_a_gradient_once_for_all_taps(dtype):
    program = gradient_of_kernel(16, 64, 56, dtype)
    size = 16 * 64 * 56 * 56 * dtype.itemsize
    loaded = program.dmas[program.dmas["source_memory"] == Memory.HBM]
    assert loaded["bytes"].sum() <= 4.1 * size  # the image's rows three times


def along_one_axis(channels: int, pixels: int, taps: int, stride: int = 1, groups: int = 1) -> Program:
    """A convolution over one axis, as of sound, padded by half a kernel."""
    made = (pixels + 2 * (taps // 2) - taps) // stride + 1
    image, result = tensor((1, channels, pixels), "bf16"), tensor((1, channels, made), "bf16")
    kernel = tensor((channels, channels // groups, taps), "bf16")
    text = function(
        f"%a: {image}, %k: {kernel}", result,
        "%r = stablehlo.convolution(%a, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], "
        f"window = {{stride = [{stride}], pad = [[{taps // 2}, {taps // 2}]]}} "
        f"{{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} "
        f": ({image}, {kernel}) -> {result}",
    )  # fmt: skip
    return compile_module(module(text), CORE)


def loaded(program: Program, shape: tuple[int, ...]) -> np.ndarray:
    """The DMA rows that load tensors of a shape."""
    wanted = [index for index, item in enumerate(program.tensors) if item.shape == shape]
    into_sbuf = program.dmas["destination_memory"] == Memory.SBUF
    return program.dmas[into_sbuf & np.isin(program.dmas["tensor"], wanted)]


@pytest.mark.parametrize("stride", [1, 2])
def test_columns_of_one_long_row_load_the_part_that_they_meet(stride):
    rows = loaded(along_one_axis(512, 16_000, 3, stride), (1, 512, 16_000))
    size = 2 * 512 * 16_000
    assert size <= rows["bytes"].sum() <= 1.1 * size


def test_a_long_kernel_that_slides_over_a_longer_row_is_no_kernels_gradient():
    program = along_one_axis(768, 249, 128, groups=16)
    assert loaded(program, (1, 768, 249))["descriptor_bytes"].min() >= 249
    drawn = CORE.dma_bandwidth * CORE.dma_streaming_efficiency
    streamed_s = 8 * 128 * 250 / (CORE.tensor_clock_ghz * 1e9)
    bound_s = streamed_s + 2 * 768 * 48 * 128 / drawn
    assert simulate(program, CORE).duration_ps * 1e-12 <= 2 * bound_s
