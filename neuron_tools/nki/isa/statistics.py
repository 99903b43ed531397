"""Mean and variance in one pass."""

from __future__ import annotations

import numpy as np

from neuron_tools.nki.isa.issue import (
    refuse,
)
from neuron_tools.nki.isa.prologue import instruction
from neuron_tools.nki.isa.table import Call, Instruction, Operand
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import single, write
from neuron_tools.records.program import Engine, Opcode


def _check_stats(call: Call) -> None:
    dst, elements = call.form("dst"), call.form("data").elements
    limit = call.trace.core.matmul_moving_columns
    if elements > limit:
        raise refuse(f"bn_stats takes at most {limit} elements per partition, got {elements}")
    if dst.elements != 6:
        raise refuse(f"bn_stats gives 6 elements per partition, but dst has shape {dst.shape}")


@instruction(Instruction(
    "bn_stats", Opcode.BN_STATS, (Engine.VECTOR,), (Operand("dst", written=True), Operand("data")),
    rule=_check_stats,
))  # fmt: skip
def bn_stats(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> None:
    """Count, mean and variance x count of the even and of the odd elements of each partition.

    Args:
        dst: (P, 6) tile.
        data: (P, N) tile, N <= 512.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    values = single(data).reshape(data.form.partitions, -1)
    columns = []
    for half in (values[:, 0::2], values[:, 1::2]):
        count = half.shape[1]
        mean = half.mean(axis=1) if count else np.zeros(len(half), np.float32)
        spread = half.var(axis=1) * count if count else np.zeros(len(half), np.float32)
        columns += [np.full(len(half), count, np.float32), mean, spread]
    write(dst, np.stack(columns, axis=1))


def _check_triples(call: Call) -> None:
    dst, data = call.form("dst"), call.form("data")
    if data.elements % 3 or dst.elements != 2:
        raise refuse(
            f"bn_aggr takes triples and gives 2 elements per partition, got shapes {data.shape} and "
            f"{dst.shape}"
        )


@instruction(Instruction(
    "bn_aggr", Opcode.BN_AGGREGATE, (Engine.VECTOR,), (Operand("dst", written=True), Operand("data")),
    rule=_check_triples,
))  # fmt: skip
def bn_aggr(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> None:
    """Mean and variance of each partition from triples of `bn_stats`.

    Args:
        dst: (P, 2) tile: mean, variance.
        data: (P, 3 n) tile: count, mean, variance x count.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: The elements are not triples.
    """
    triples = single(data).reshape(data.form.partitions, -1, 3)
    count, mean, spread = triples[:, :, 0], triples[:, :, 1], triples[:, :, 2]
    total = count.sum(axis=1)
    overall = (count * mean).sum(axis=1) / total
    variance = (spread + count * (mean - overall[:, None]) ** 2).sum(axis=1) / total
    write(dst, np.stack([overall, variance], axis=1))
