"""`nki.isa`: the instructions of the NeuronCore's engines, destination first."""

from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.isa.copies import memset, tensor_copy, tensor_copy_predicated
from neuron_tools.nki.isa.dma import dma_compute, dma_copy, dma_transpose
from neuron_tools.nki.isa.elementwise import exponential, reciprocal, tensor_tensor
from neuron_tools.nki.isa.enums import (
    dge_mode,
    dma_engine,
    engine,
    gpsimd_engine,
    matmul_perf_mode,
    nc_version,
    oob_mode,
    reduce_cmd,
    scalar_engine,
    tensor_engine,
    unknown_engine,
    vector_engine,
)
from neuron_tools.nki.isa.gpsimd import (
    affine_select,
    iota,
    local_gather,
    nc_n_gather,
    nonzero_with_count,
    sequence_bounds,
    tensor_partition_reduce,
    topk,
)
from neuron_tools.nki.isa.instruction import NkiInstruction, dependency
from neuron_tools.nki.isa.matmul import nc_matmul, nc_matmul_mx, nc_transpose
from neuron_tools.nki.isa.multicore import core_barrier, sendrecv
from neuron_tools.nki.isa.random_numbers import (
    dropout,
    rand2,
    rand_get_state,
    rand_set_state,
    rng,
    set_rng_seed,
)
from neuron_tools.nki.isa.range_select import range_select, select_reduce
from neuron_tools.nki.isa.recurrence import tensor_scalar_cumulative, tensor_tensor_scan
from neuron_tools.nki.isa.reduction import tensor_reduce, tensor_scalar_reduce
from neuron_tools.nki.isa.scalar import activate2, activation, activation_reduce
from neuron_tools.nki.isa.search import max8, nc_find_index8, nc_match_replace8
from neuron_tools.nki.isa.sequencer import (
    register_alloc,
    register_load,
    register_move,
    register_store,
    scalar_load,
    scalar_store,
)
from neuron_tools.nki.isa.shuffle import nc_stream_shuffle, quantize_mx
from neuron_tools.nki.isa.statistics import bn_aggr, bn_stats
from neuron_tools.nki.isa.target import get_nc_sub_version, get_nc_version
from neuron_tools.nki.isa.tensor_scalar import scalar_tensor_tensor, tensor_scalar
from neuron_tools.nki.registers import VirtualRegister
from neuron_tools.nki.scalars import NkiScalar

__all__ = [
    "NkiInstruction", "NkiScalar",
    "NkiValidationError", "VirtualRegister", "activate2", "activation", "activation_reduce",
    "affine_select", "bn_aggr", "bn_stats", "core_barrier", "dependency", "dge_mode", "dma_compute",
    "dma_copy", "dma_engine", "dma_transpose", "dropout", "engine", "exponential", "get_nc_sub_version",
    "get_nc_version", "gpsimd_engine", "iota", "local_gather", "matmul_perf_mode", "max8", "memset",
    "nc_find_index8", "nc_match_replace8", "nc_matmul", "nc_matmul_mx", "nc_n_gather", "nc_stream_shuffle",
    "nc_transpose", "nc_version", "nonzero_with_count", "oob_mode", "quantize_mx", "rand2", "rand_get_state",
    "rand_set_state", "range_select", "reciprocal", "reduce_cmd", "register_alloc", "register_load",
    "register_move", "register_store", "rng", "scalar_engine", "scalar_load", "scalar_store",
    "scalar_tensor_tensor", "select_reduce",
    "sendrecv", "sequence_bounds", "set_rng_seed", "tensor_copy", "tensor_copy_predicated", "tensor_engine",
    "tensor_partition_reduce", "tensor_reduce", "tensor_scalar", "tensor_scalar_cumulative",
    "tensor_scalar_reduce", "tensor_tensor", "tensor_tensor_scan", "topk", "unknown_engine", "vector_engine",
]  # fmt: skip
