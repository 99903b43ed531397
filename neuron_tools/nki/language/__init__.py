"""`nki.language`: tensors, loops, and functions over tiles. Names of both dialects."""

from __future__ import annotations

from neuron_tools.nki.dtypes import (
    DType,
    bfloat16,
    bool_,
    float4_e2m1fn_x4,
    float8_e4m3,
    float8_e4m3fn,
    float8_e4m3fn_x4,
    float8_e5m2,
    float8_e5m2_x4,
    float8_e8m0fnu,
    float16,
    float32,
    int8,
    int16,
    int32,
    int64,
    tfloat32,
    uint8,
    uint16,
    uint32,
)
from neuron_tools.nki.language.creation import (
    empty_like,
    full,
    ndarray,
    ones,
    rand,
    random_seed,
    shared_constant,
    shared_identity_matrix,
    zeros,
    zeros_like,
)
from neuron_tools.nki.language.launch_position import num_programs, program_id, program_ndim
from neuron_tools.nki.language.math import (
    abs,
    abs_max,
    abs_min,
    add,
    arctan,
    average,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    bypass,
    ceil,
    cos,
    divide,
    dropout,
    equal,
    erf,
    erf_dx,
    exp,
    floor,
    fmod,
    gelu,
    gelu_apprx_sigmoid,
    gelu_apprx_sigmoid_dx,
    gelu_apprx_tanh,
    gelu_apprx_tanh_dx,
    gelu_dx,
    greater,
    greater_equal,
    invert,
    left_shift,
    less,
    less_equal,
    log,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    matmul,
    maximum,
    minimum,
    mish,
    mod,
    multiply,
    negative,
    not_equal,
    power,
    prelu,
    reciprocal,
    relu,
    right_shift,
    rsqrt,
    sigmoid,
    sigmoid_dx,
    sign,
    silu,
    silu_dx,
    sin,
    softplus,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    tanh_dx,
    trunc,
    where,
)
from neuron_tools.nki.language.movement import (
    broadcast_to,
    copy,
    device_print,
    expand_dims,
    gather_flattened,
    load,
    load_transpose2d,
    store,
    transpose,
)
from neuron_tools.nki.language.reduce import all, max, mean, min, prod, rms_norm, softmax, sum, var
from neuron_tools.nki.language.structure import NKIObject, ds, no_reorder
from neuron_tools.nki.language.tile_sizes import tile_size
from neuron_tools.nki.loops import (
    affine_range,
    dynamic_range,
    fori_loop,
    sequential_range,
    static_range,
    while_loop,
)
from neuron_tools.nki.memory_region import MemoryRegion, is_hbm, is_on_chip, is_psum, is_sbuf
from neuron_tools.nki.tensor import NkiTensor

sbuf = MemoryRegion.sbuf
psum = MemoryRegion.psum
hbm = MemoryRegion.hbm
private_hbm = MemoryRegion.private_hbm
shared_hbm = MemoryRegion.shared_hbm
bool = bool_
range = sequential_range
"""`nl.range`: as Python's `range`."""

__all__ = sorted(name for name in dir() if not name.startswith("_") and name != "annotations")
