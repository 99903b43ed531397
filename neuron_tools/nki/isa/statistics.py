"""Mean and variance in one pass."""

from __future__ import annotations

import numpy as np

from neuron_tools.backend.kinds import Kind
from neuron_tools.nki.isa.instruction import NkiInstruction
from neuron_tools.nki.isa.issue import (
    compute_step,
    form_of,
    issue,
    ready,
    refuse,
    require_on_chip,
)
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import single, write
from neuron_tools.records.program import Engine, Opcode


def bn_stats(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Count, mean and variance x count of the even and of the odd elements of each partition.

    Args:
        dst: (P, 6) tile.
        data: (P, N) tile, N <= 512.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    forms = form_of(dst), form_of(data)
    key = (bn_stats, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip("bn_stats", dst=dst.form, data=data.form)
        limit = trace.core.matmul_moving_columns
        if data.form.elements > limit:
            raise refuse(f"bn_stats takes at most {limit} elements per partition, got {data.form.elements}")
        if dst.form.elements != 6:
            raise refuse(f"bn_stats gives 6 elements per partition, but dst has shape {dst.shape}")
        step = compute_step(Engine.VECTOR, Opcode.BN_STATS, dst.form, data.form)
        kind = trace.add_kind(key, Kind("bn_stats", (step,)))
    issue(trace, kind, dst, data)
    if trace.values:
        values = single(data).reshape(data.form.partitions, -1)
        columns = []
        for half in (values[:, 0::2], values[:, 1::2]):
            count = half.shape[1]
            mean = half.mean(axis=1) if count else np.zeros(len(half), np.float32)
            spread = half.var(axis=1) * count if count else np.zeros(len(half), np.float32)
            columns += [np.full(len(half), count, np.float32), mean, spread]
        write(dst, np.stack(columns, axis=1))
    return NkiInstruction(trace)


def bn_aggr(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Mean and variance of each partition from triples of `bn_stats`.

    Args:
        dst: (P, 2) tile: mean, variance.
        data: (P, 3 n) tile: count, mean, variance x count.
        name: Kept for the profile.

    Raises:
        NkiValidationError: The elements are not triples.
    """
    trace = ready()
    forms = form_of(dst), form_of(data)
    key = (bn_aggr, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip("bn_aggr", dst=dst.form, data=data.form)
        if data.form.elements % 3 or dst.form.elements != 2:
            raise refuse(
                f"bn_aggr takes triples and gives 2 elements per partition, got shapes {data.shape} and "
                f"{dst.shape}"
            )
        step = compute_step(Engine.VECTOR, Opcode.BN_AGGREGATE, dst.form, data.form)
        kind = trace.add_kind(key, Kind("bn_aggr", (step,)))
    issue(trace, kind, dst, data)
    if trace.values:
        triples = single(data).reshape(data.form.partitions, -1, 3)
        count, mean, spread = triples[:, :, 0], triples[:, :, 1], triples[:, :, 2]
        total = count.sum(axis=1)
        overall = (count * mean).sum(axis=1) / total
        variance = (spread + count * (mean - overall[:, None]) ** 2).sum(axis=1) / total
        write(dst, np.stack([overall, variance], axis=1))
    return NkiInstruction(trace)
