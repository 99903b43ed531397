"""`neuronxcc.nki.isa`: the older spelling of the instructions, which return their result.

A result is held back until it is stored (`tile[...] = nisa.activation(...)`) and then computed straight into
its place; every call takes a mask.
"""

from __future__ import annotations

from typing import Any

from neuron_tools.nki import isa
from neuron_tools.nki.isa.issue import refuse
from neuron_tools.nki.older.copies import (
    dma_copy,
    dma_transpose,
    tensor_copy,
    tensor_copy_dynamic_dst,
    tensor_copy_dynamic_src,
    tensor_copy_predicated,
)
from neuron_tools.nki.older.elementwise import (
    activation,
    activation_reduce,
    dropout,
    memset,
    reciprocal,
    scalar_tensor_tensor,
    tensor_scalar,
    tensor_scalar_reduce,
    tensor_tensor,
)
from neuron_tools.nki.older.reduction import (
    bn_aggr,
    bn_stats,
    tensor_partition_reduce,
    tensor_reduce,
    tensor_tensor_scan,
)
from neuron_tools.nki.older.search import (
    local_gather,
    max8,
    nc_find_index8,
    nc_match_replace8,
    nc_stream_shuffle,
)
from neuron_tools.nki.older.selection import (
    affine_select,
    iota,
    range_select,
    select_reduce,
    sequence_bounds,
)
from neuron_tools.nki.older.tensor_engine import (
    nc_matmul,
    nc_transpose,
)
from neuron_tools.nki.operators import FP32_MINIMUM


def builtin_custom_op(*_arguments: Any, **_options: Any) -> None:
    """Refused: a custom operator's code runs on the chip only.

    Raises:
        NkiValidationError: Always.
    """
    raise refuse("builtin_custom_op runs a library built for the chip, which cannot run on the host")


class fp32:
    """Constants of fp32: `nisa.fp32.min`."""

    min = FP32_MINIMUM
    max = -FP32_MINIMUM


dma_engine = isa.engine.dma
_SAME = (
    "dge_mode", "engine", "get_nc_version", "gpsimd_engine", "nc_version", "oob_mode", "reduce_cmd",
    "scalar_engine", "tensor_engine", "unknown_engine", "vector_engine",
)  # fmt: skip
LATER = (
    "core_barrier", "dma_compute", "matmul_perf_mode", "nc_matmul_mx", "nc_n_gather", "nonzero_with_count",
    "quantize_mx", "rand2", "rand_get_state", "rand_set_state", "rng", "sendrecv", "set_rng_seed",
    "tensor_scalar_cumulative",
)  # fmt: skip
"""What the last releases of the older package had already, spelled as in the present dialect."""
globals().update({name: getattr(isa, name) for name in (*_SAME, *LATER)})

__all__ = (  # noqa: PLE0604  # names of a list
    *_SAME, *LATER,
    "activation", "activation_reduce", "affine_select", "bn_aggr", "bn_stats", "builtin_custom_op",
    "dma_copy", "dma_engine", "dma_transpose", "dropout", "fp32",
    "iota", "local_gather", "max8", "memset", "nc_find_index8", "nc_match_replace8",
    "nc_matmul", "nc_stream_shuffle", "nc_transpose", "range_select",
    "reciprocal", "scalar_tensor_tensor", "select_reduce", "sequence_bounds",
    "tensor_copy", "tensor_copy_dynamic_dst", "tensor_copy_dynamic_src", "tensor_copy_predicated",
    "tensor_partition_reduce", "tensor_reduce", "tensor_scalar", "tensor_scalar_reduce",
    "tensor_tensor", "tensor_tensor_scan",
)  # fmt: skip
NAMES = __all__
"""What `neuronxcc.nki.isa` offers."""
