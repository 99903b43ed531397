"""Random numbers: each engine has generators in every partition (`random_stream`) that kernels can seed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.nki.isa.enums import as_member, engine as engines
from neuron_tools.nki.isa.instruction import NkiInstruction
from neuron_tools.nki.isa.issue import (
    form_of,
    ready,
    refuse,
    require_memory,
    require_types,
)
from neuron_tools.nki.isa.prologue import instruction
from neuron_tools.nki.isa.table import Call, Instruction, Operand
from neuron_tools.nki.random_stream import LANES, WORDS, RandomStream, Words
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import Tracer, active
from neuron_tools.nki.values import column, exact, write
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.program import Engine, Memory, Opcode

_GENERATORS = {Engine.VECTOR: 4}
_STATE_SINCE = {Engine.GPSIMD: 3, Engine.VECTOR: 4}
_NEVER = 1 << 30


def _check_integers(call: Call) -> None:
    form = call.form("dst")
    if not form.dtype.is_integer:
        raise refuse(f"rng fills integer tiles, got {form.dtype}")


@instruction(Instruction(
    "rng", Opcode.RANDOM, (Engine.VECTOR, Engine.GPSIMD), (Operand("dst", written=True),), key=("engine",),
    rule=_check_integers,
))  # fmt: skip
def rng(dst: NkiTensor, engine: engines = engines.unknown, name: str | None = None) -> None:
    """Fill an integer tile with random bits.

    Raises:
        NkiValidationError: The tile does not hold integers.
    """
    bits = _drawn(as_member(engines, engine).chosen or Engine.VECTOR, dst)
    write(dst, bits.astype(np.dtype(f"u{dst.dtype.itemsize}")).view(dst.dtype.dtype))


@instruction(Instruction(
    "rand2", Opcode.RANDOM, (Engine.VECTOR,), (Operand("dst", written=True),), since=4,
))  # fmt: skip
def rand2(dst: NkiTensor, min: Any, max: Any, name: str | None = None) -> None:
    """Fill a tile with numbers uniform in [min, max) (NeuronCore-v4).

    Raises:
        NkiValidationError: The core is older than NeuronCore-v4.
    """
    _fill(dst, min, max)


@instruction(Instruction("rand", Opcode.RANDOM, (Engine.VECTOR,), (Operand("dst", written=True),)))
def uniform(dst: NkiTensor, low: Any, high: Any, name: str | None = None) -> None:
    """Fill a tile with numbers uniform in [low, high), on any core: what `nl.rand` becomes."""
    _fill(dst, low, high)


def _fill(dst: NkiTensor, low: Any, high: Any) -> None:
    partitions, rank = dst.form.partitions, len(dst.shape)
    start = column(low, partitions, rank)
    span = column(high, partitions, rank) - start
    write(dst, start + span * _uniform(Engine.VECTOR, dst))


def set_rng_seed(src_seeds: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Seed the Vector engine's generators from a [1, 1] tile, each partition's differently.

    Raises:
        NkiValidationError: The tile has more than one element.
    """
    trace = ready()
    form = form_of(src_seeds)
    if src_seeds.size != 1:
        raise refuse(f"set_rng_seed takes one 32-bit seed, got a tile of shape {src_seeds.shape}")
    require_types("set_rng_seed", ("uint32", "int32", "float32"), src_seeds=form)
    if trace.values:
        stream(trace, Engine.VECTOR).seed(int(exact(src_seeds).reshape(-1)[0]))
    return NkiInstruction(trace)


def rand_set_state(
    src_seeds: NkiTensor, engine: engines = engines.unknown, name: str | None = None
) -> NkiInstruction:
    """Seed an engine's generators: each partition of a uint32 tile gives the state of its own lane.

    Raises:
        NkiValidationError: The tile is not in SBUF, or not of 6 (GpSimd) or 24 (Vector) words a partition.
    """
    trace, chosen = ready(), as_member(engines, engine).chosen or Engine.GPSIMD
    form = form_of(src_seeds)
    assert form is not None
    require_memory("rand_set_state", Memory.SBUF, src_seeds=form)
    require_types("rand_set_state", ("uint32",), src_seeds=form)
    _require_words(trace, "rand_set_state", chosen, form)
    if trace.values:
        stream(trace, chosen).load(
            exact(src_seeds).astype(np.uint32).reshape(form.partitions, -1), form.line % LANES
        )
    return NkiInstruction(trace)


def _check_words(call: Call) -> None:
    _require_words(call.trace, call.record.name, call.engine, call.form("dst"))


@instruction(Instruction(
    "rand_get_state", Opcode.RANDOM, (Engine.GPSIMD, Engine.VECTOR),
    (Operand("dst", written=True, types=("uint32",)),), key=("engine",), rule=_check_words,
))  # fmt: skip
def rand_get_state(dst: NkiTensor, engine: engines = engines.unknown, name: str | None = None) -> None:
    """The state of an engine's generators, partition by partition: what `rand_set_state` takes.

    Raises:
        NkiValidationError: The tile is not of 6 (GpSimd) or 24 (Vector) words a partition.
    """
    state = stream(active(), as_member(engines, engine).chosen or Engine.GPSIMD)
    write(dst, state.words(dst.form.partitions, dst.form.line % LANES).reshape(dst.shape))


def _require_words(trace: Tracer, name: str, engine: Engine, form: ViewForm) -> None:
    """Refuse cores whose generators have no state to load, and tiles of another size."""
    if trace.core.generation < _STATE_SINCE.get(engine, _NEVER):
        raise refuse(f"{name} cannot reach the {engine.title} engine of {trace.core.name}")
    wanted = WORDS * _GENERATORS.get(engine, 1)
    if form.elements != wanted:
        raise refuse(f"{name} takes {wanted} words a partition on {engine.title}, got shape {form.shape}")


def stream(trace: Tracer, engine: Engine) -> RandomStream:
    """The generators of an engine, as the kernel has left them."""
    held: RandomStream | None = trace.random.get(engine)
    if held is None:
        held = trace.random[engine] = RandomStream(_GENERATORS.get(engine, 1), seed=int(engine))
    return held


def _drawn(engine: Engine, dst: NkiTensor) -> Words:
    """Random bits in the shape of a tile, each partition's from its own lane."""
    lanes, count = dst.shape[0], math.prod(dst.shape[1:])
    return stream(active(), engine).bits(lanes, count, dst.form.line % LANES).reshape(dst.shape)


def _uniform(engine: Engine, dst: NkiTensor) -> npt.NDArray[np.float32]:
    lanes, count = dst.shape[0], math.prod(dst.shape[1:])
    return stream(active(), engine).uniform(lanes, count, dst.form.line % LANES).reshape(dst.shape)


@instruction(Instruction(
    "dropout", Opcode.DROPOUT, (Engine.VECTOR,),
    (Operand("dst", written=True), Operand("data"), Operand("prob", optional=True, streamed=False)),
    same_size=(("dst", "data"),), same_type=(("dst", "data"),),
))  # fmt: skip
def dropout(dst: NkiTensor, data: NkiTensor, prob: Any, name: str | None = None) -> None:
    """dst = data with elements replaced by 0, each with probability `prob` (a number or a tile (P, 1)).

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    if isinstance(prob, (int, float)) and not 0 <= prob <= 1:
        raise refuse(f"dropout: prob is a probability from 0 to 1, got {prob}")
    values = exact(data)
    kept = _uniform(Engine.VECTOR, dst).reshape(values.shape) >= column(prob, values.shape[0], values.ndim)
    write(dst, np.where(kept, values, np.zeros((), values.dtype)))
