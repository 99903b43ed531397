"""Attention of one head in four stages: scores through HBM, on chip, with fewer waits, and pipelined.

neuron-profile capture -- python examples/nki/attention.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import ml_dtypes
import numpy as np

from neuron_tools import compat

compat.install()
sys.path.insert(0, str(Path(__file__).parent))

import nki
import nki.isa as nisa
import nki.language as nl
from report import compare

BLOCK, WIDE = 128, 512


def tile_of(shape, dtype, buffer=nl.sbuf):
    """An empty tile."""
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def load(source):
    """A tile in SBUF with a part of a tensor in HBM."""
    tile = tile_of(source.shape, source.dtype)
    nisa.dma_copy(dst=tile, src=source)
    return tile


def scores_of(query, keys, scale, engine=nisa.vector_engine):
    """scale * query.T @ keys for a block of queries: fp32 in SBUF, (BLOCK, sequence)."""
    scores = tile_of((BLOCK, keys.shape[1]), nl.float32)
    for start in range(0, keys.shape[1], WIDE):
        product = tile_of((BLOCK, WIDE), nl.float32, nl.psum)
        nisa.nc_matmul(dst=product, stationary=query, moving=keys[:, start : start + WIDE])
        nisa.tensor_scalar(
            dst=scores[:, start : start + WIDE], data=product, op0=nl.multiply, operand0=scale, engine=engine
        )
    return scores


def weights_of(scores, dtype):
    """exp(scores - maximum) of each row, and one over its sum."""
    top, total = tile_of((BLOCK, 1), nl.float32), tile_of((BLOCK, 1), nl.float32)
    weights = tile_of(scores.shape, dtype)
    nisa.tensor_reduce(dst=top, op=nl.maximum, data=scores, axis=1, negate=True)
    nisa.activation(
        dst=weights, op=nl.exp, data=scores, bias=top,
        reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )  # fmt: skip
    nisa.reciprocal(dst=total, data=total)
    return weights, total


def weighted(weights, total, values, group, engine=nisa.scalar_engine):
    """weights @ values / sum: blocks of weights are turned on the Tensor engine, `group` to one PSUM bank."""
    output = tile_of((BLOCK, values[0].shape[1]), nl.float32, nl.psum)
    for first in range(0, len(values), group):
        turned = tile_of((BLOCK, group * BLOCK), weights.dtype, nl.psum)
        for place in range(group):
            block = slice((first + place) * BLOCK, (first + place + 1) * BLOCK)
            nisa.nc_transpose(dst=turned[:, place * BLOCK : (place + 1) * BLOCK], data=weights[:, block])
        staged = tile_of(turned.shape, weights.dtype)
        nisa.tensor_copy(dst=staged, src=turned, engine=engine)
        for place in range(group):
            part = staged[:, place * BLOCK : (place + 1) * BLOCK]
            nisa.nc_matmul(dst=output, stationary=part, moving=values[first + place])
    result = tile_of(output.shape, nl.float32)
    nisa.tensor_scalar(dst=result, data=output, op0=nl.multiply, operand0=total)
    return result


@nki.jit
def attention_through_hbm(query_t, key_t, value):
    """The scores of all queries are written to HBM and read back before the softmax."""
    width, sequence = query_t.shape
    scale = width**-0.5
    result = nl.ndarray((sequence, width), dtype=nl.float32, buffer=nl.shared_hbm)
    kept = nl.ndarray((sequence, sequence), dtype=nl.float32, buffer=nl.private_hbm)
    keys = load(key_t)
    for row in range(0, sequence, BLOCK):
        nisa.dma_copy(
            dst=kept[row : row + BLOCK], src=scores_of(load(query_t[:, row : row + BLOCK]), keys, scale)
        )
    values = [load(value[start : start + BLOCK]) for start in range(0, sequence, BLOCK)]
    for row in range(0, sequence, BLOCK):
        weights, total = weights_of(load(kept[row : row + BLOCK]), value.dtype)
        nisa.dma_copy(dst=result[row : row + BLOCK], src=weighted(weights, total, values, 1))
    return result


def attention_in_blocks(query_t, key_t, value, group):
    """Each block of queries goes from scores to output without leaving the chip."""
    width, sequence = query_t.shape
    scale = width**-0.5
    result = nl.ndarray((sequence, width), dtype=nl.float32, buffer=nl.shared_hbm)
    keys = load(key_t)
    values = [load(value[start : start + BLOCK]) for start in range(0, sequence, BLOCK)]
    for row in range(0, sequence, BLOCK):
        scores = scores_of(load(query_t[:, row : row + BLOCK]), keys, scale)
        weights, total = weights_of(scores, value.dtype)
        nisa.dma_copy(dst=result[row : row + BLOCK], src=weighted(weights, total, values, group))
    return result


@nki.jit
def attention_on_chip(query_t, key_t, value):
    """The scores stay in SBUF; each turned block of weights is copied on its own."""
    return attention_in_blocks(query_t, key_t, value, 1)


@nki.jit
def attention_grouped(query_t, key_t, value):
    """Four turned blocks share a PSUM bank and one copy, so the Tensor engine waits a fourth as often."""
    return attention_in_blocks(query_t, key_t, value, 4)


@nki.jit
def attention_pipelined(query_t, key_t, value):
    """The next block's scores are multiplied while this block's softmax runs on the other engines."""
    width, sequence = query_t.shape
    result = nl.ndarray((sequence, width), dtype=nl.float32, buffer=nl.shared_hbm)
    keys = load(key_t)
    values = [load(value[start : start + BLOCK]) for start in range(0, sequence, BLOCK)]
    waiting = None
    for row in [*range(0, sequence, BLOCK), None]:
        scores = None
        if row is not None:
            scores = scores_of(load(query_t[:, row : row + BLOCK]), keys, width**-0.5)
        if waiting is not None:
            place, weights, total = waiting
            nisa.dma_copy(dst=result[place : place + BLOCK], src=weighted(weights, total, values, 8))
        if scores is not None:
            waiting = (row, *weights_of(scores, value.dtype))
    return result


@nki.jit
def attention_tunable(
    query_t,
    key_t,
    value,
    *,
    group: Literal[1, 2, 4, 8] = 1,
    ahead: Literal[0, 1, 2, 3] = 0,
    scaled_by: Literal["vector", "scalar"] = "vector",
    staged_by: Literal["vector", "scalar"] = "scalar",
    loads: Literal[1, 2, 4, 8] = 8,
):
    """For `neuron-profile tune`: blocks in a PSUM bank, blocks of scores ahead, engines, query loads."""
    engines = {"vector": nisa.vector_engine, "scalar": nisa.scalar_engine}
    width, sequence = query_t.shape
    result = nl.ndarray((sequence, width), dtype=nl.float32, buffer=nl.shared_hbm)
    keys = load(key_t)
    piece = sequence // loads
    queries = [load(query_t[:, start : start + piece]) for start in range(0, sequence, piece)]
    values = [load(value[start : start + BLOCK]) for start in range(0, sequence, BLOCK)]
    waiting = []
    for row in range(0, sequence + ahead * BLOCK, BLOCK):
        scores = None
        if row < sequence:
            query = queries[row // piece][:, row % piece : row % piece + BLOCK]
            scores = scores_of(query, keys, width**-0.5, engines[scaled_by])
            if not ahead:
                waiting.append((row, *weights_of(scores, value.dtype)))
        if len(waiting) > max(0, ahead - 1) or (waiting and row >= sequence):
            place, weights, total = waiting.pop(0)
            block = weighted(weights, total, values, group, engines[staged_by])
            nisa.dma_copy(dst=result[place : place + BLOCK], src=block)
        if ahead and scores is not None:
            waiting.append((row, *weights_of(scores, value.dtype)))
    return result


def inputs():
    """Queries and keys, turned, and values of one head."""
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((1024, 128)).astype(ml_dtypes.bfloat16) for _ in range(3))
    return np.ascontiguousarray(q.T), np.ascontiguousarray(k.T), v


if __name__ == "__main__":
    tensors = inputs()
    q, k, v = tensors[0].T, tensors[1].T, tensors[2]
    wide_q, wide_k, wide_v = (x.astype(np.float32) for x in (q, k, v))
    power = wide_q @ wide_k.T / np.sqrt(128)
    power = np.exp(power - power.max(axis=1, keepdims=True))
    expected = power @ wide_v / power.sum(axis=1, keepdims=True)
    compare(
        [attention_through_hbm, attention_on_chip, attention_grouped, attention_pipelined],
        tensors,
        expected,
        1e-2,
    )
    attention_pipelined(*tensors)
