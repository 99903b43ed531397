"""Random numbers: the engines' generators, seeded; the stream is ours, not the chip's bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.nki.isa.enums import engine as engines
from neuron_tools.nki.isa.instruction import NkiInstruction
from neuron_tools.nki.isa.issue import (
    compute_step,
    form_of,
    issue,
    ready,
    refuse,
    require_on_chip,
    require_same_size,
)
from neuron_tools.nki.kinds import Kind
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import Tracer
from neuron_tools.nki.values import column, exact, write
from neuron_tools.simulator.program import Engine, Opcode

_WORDS = "random-state"


def _random_kind(trace: Tracer, call: Any, name: str, dst: NkiTensor, engine: Engine) -> Kind:
    form = form_of(dst)
    assert form is not None
    key = (call, form, engine)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip(name, dst=form)
        kind = trace.add_kind(key, Kind(name, (compute_step(engine, Opcode.RANDOM, form),)))
    return kind


def rng(dst: NkiTensor, engine: engines = engines.unknown, name: str | None = None) -> NkiInstruction:
    """Fill an integer tile with random bits.

    Raises:
        NkiValidationError: The tile does not hold integers.
    """
    trace = ready()
    kind = _random_kind(trace, rng, "rng", dst, engine.chosen or Engine.VECTOR)
    if not dst.dtype.is_integer:
        raise refuse(f"rng fills integer tiles, got {dst.dtype}")
    issue(trace, kind, dst)
    if trace.values:
        bits = trace.random.integers(0, 2**32, dst.shape, np.uint32)
        write(dst, bits.astype(np.dtype(f"u{dst.dtype.itemsize}")).view(dst.dtype.dtype))
    return NkiInstruction(trace)


def rand2(dst: NkiTensor, min: Any, max: Any, name: str | None = None) -> NkiInstruction:
    """Fill a tile with numbers uniform in [min, max) (NeuronCore-v4).

    Raises:
        NkiValidationError: The core is older than NeuronCore-v4.
    """
    trace = ready()
    if trace.core.generation < 4:
        raise refuse(f"rand2 needs NeuronCore-v4 or newer, the target is {trace.core.name}")
    uniform(dst, min, max)
    return NkiInstruction(trace)


def uniform(dst: NkiTensor, low: Any, high: Any) -> None:
    """Fill a tile with numbers uniform in [low, high)."""
    trace = ready()
    kind = _random_kind(trace, uniform, "rand", dst, Engine.VECTOR)
    issue(trace, kind, dst)
    if trace.values:
        partitions, rank = dst.form.partitions, len(dst.shape)
        start = column(low, partitions, rank)
        span = column(high, partitions, rank) - start
        write(dst, start + span * trace.random.random(dst.shape, np.float32))


def set_rng_seed(src_seeds: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Seed the Vector engine's generator from a [1, 1] tile."""
    trace = ready()
    form_of(src_seeds)
    if trace.values:
        trace.random = np.random.default_rng(int(exact(src_seeds).reshape(-1)[0]) & 0xFFFFFFFF)
    return NkiInstruction(trace)


def rand_set_state(
    src_seeds: NkiTensor, engine: engines = engines.unknown, name: str | None = None
) -> NkiInstruction:
    """Seed an engine's generator from a uint32 tile of its state words."""
    trace = ready()
    form_of(src_seeds)
    if trace.values:
        words = exact(src_seeds).astype(np.uint32)
        trace.shared[_WORDS] = words.copy()
        trace.random = np.random.default_rng([int(word) for word in words.reshape(-1)[:64]])
    return NkiInstruction(trace)


def rand_get_state(
    dst: NkiTensor, engine: engines = engines.unknown, name: str | None = None
) -> NkiInstruction:
    """The state words that seed an engine's generator."""
    trace = ready()
    kind = _random_kind(trace, rand_get_state, "rand_get_state", dst, engine.chosen or Engine.GPSIMD)
    issue(trace, kind, dst)
    if trace.values:
        words = trace.shared.get(_WORDS)
        if words is None or words.size != dst.size:
            words = trace.random.integers(0, 2**32, dst.shape, np.uint32)
        write(dst, words.reshape(dst.shape))
    return NkiInstruction(trace)


def dropout(dst: NkiTensor, data: NkiTensor, prob: Any, name: str | None = None) -> NkiInstruction:
    """dst = data with elements replaced by 0, each with probability `prob` (a number or a tile (P, 1)).

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    forms = form_of(dst), form_of(data), form_of(prob)
    key = (dropout, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip("dropout", dst=forms[0], data=forms[1])
        require_same_size("dropout", dst.form, data.form, "dst and data")
        kind = trace.add_kind(
            key, Kind("dropout", (compute_step(Engine.VECTOR, Opcode.DROPOUT, dst.form, data.form),))
        )
    issue(trace, kind, dst, data, prob)
    if trace.values:
        values = exact(data)
        kept = trace.random.random(values.shape, np.float32) >= column(prob, values.shape[0], values.ndim)
        write(dst, np.where(kept, values, np.zeros((), values.dtype)))
    return NkiInstruction(trace)
