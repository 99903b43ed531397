"""Instruction costs over instruction tables: how long until the next one, how long until the result.

The rules and their sources are data of `neuron_tools.hardware.instruction_costs`; here they are turned
into arrays and evaluated.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints, Table
from neuron_tools.hardware import NeuronCore
from neuron_tools.hardware.instruction_costs import OTHER, CostRule, cost_rules, performance_modes
from neuron_tools.records.program import DType, Engine, Opcode

if TYPE_CHECKING:
    from neuron_tools.simulator.cost_kernel import CostTables


def instruction_costs(instructions: Table, core: NeuronCore) -> tuple[Ints, Ints]:
    """Cost of every instruction at full rate, waiting for nothing.

    A DMA_TRIGGER gets only its engine's plain cost here: its queue decides (`dma_costs.trigger_costs`).

    Args:
        instructions: (rows,) of INSTRUCTION_DTYPE.
        core: The core that runs them.

    Returns:
        (interval_ps, latency_ps), int64 of shape (rows,): picoseconds until the next instruction of the
        engine may start, and until the result is written.
    """
    from neuron_tools.simulator.cost_kernel import evaluate_costs

    interval_ps, latency_ps = evaluate_costs(instructions, cost_tables(core))
    return interval_ps, latency_ps


def shared_ports(instructions: Table, core: NeuronCore) -> npt.NDArray[np.uint8]:
    """Ports that each instruction must have for itself, as bits of `cost_kernel`; shape (rows,), uint8.

    All 0 where only one of the engines that share a port is used: nothing can then stand in its way.
    """
    used = np.bincount(instructions["engine"], minlength=len(Engine)) > 0
    sbuf = core.vector_gpsimd_sbuf_port if used[Engine.VECTOR] and used[Engine.GPSIMD] else 0
    psum = core.vector_scalar_psum_port if used[Engine.VECTOR] and used[Engine.SCALAR] else 0
    if not sbuf and not psum:
        return np.zeros(len(instructions), np.uint8)
    from neuron_tools.simulator import cost_kernel

    return np.asarray(cost_kernel.shared_ports(instructions, cost_tables(core), sbuf, psum))


def is_estimate(instructions: Table, core: NeuronCore) -> npt.NDArray[np.bool_]:
    """Whether the cost of each instruction rests on an estimate instead of a published figure."""
    rules, rule_of = _rule_index(core.generation)
    estimates = np.array([rule.is_estimate for rule in rules])
    return np.asarray(estimates[rule_of[instructions["engine"], instructions["opcode"]]])


@lru_cache(maxsize=16)
def cost_tables(core: NeuronCore) -> CostTables:
    """The rules of a core as the arrays that the compiled kernel reads; kept, so not to be changed."""
    from neuron_tools.simulator import cost_kernel

    rules, rule_of = _rule_index(core.generation)
    clocks = (
        core.tensor_clock_ghz,
        core.vector_clock_ghz,
        core.scalar_clock_ghz,
        core.gpsimd_clock_ghz,
        core.sync_clock_ghz,
    )
    return cost_kernel.CostTables(
        rule_of=rule_of,
        rules=np.array([_numbers(rule, cost_kernel.MODES) for rule in rules]),
        speeds=_speeds(core.generation, cost_kernel.MODES, cost_kernel.SITUATIONS),
        ps_per_cycle=1000.0 / np.array(clocks),
        dtype_bytes=np.array([dtype.byte_count for dtype in DType], np.int64),
        matmul_passes=_matmul_passes(core),
        load_passes=np.array([core.tensor_f32_load_passes, core.tensor_f32_transpose_load_passes], float),
    )


@lru_cache(maxsize=8)
def _rule_index(generation: int) -> tuple[tuple[CostRule, ...], Ints]:
    """The rules in order, and the row of the rule of each (engine, opcode)."""
    rules = cost_rules(generation)
    rows = {key: row for row, key in enumerate(rules)}
    rule_of = np.empty((len(Engine), len(Opcode)), np.int64)
    for engine in Engine:
        for opcode in Opcode:
            own = rows.get((engine.name, opcode.name))
            rule_of[engine, opcode] = rows[engine.name, OTHER] if own is None else own
    return tuple(rules.values()), rule_of


def _numbers(rule: CostRule, modes: tuple[str, ...]) -> tuple[float, ...]:
    return (
        rule.cycles_per_element,
        float(modes.index(rule.mode)),
        rule.minimum_cycles,
        rule.interval_cycles,
        rule.latency_cycles,
        rule.sbuf_source_cycles,
    )


def _speeds(generation: int, modes: tuple[str, ...], situations: tuple[str, ...]) -> npt.NDArray[np.float64]:
    speeds = np.ones((len(modes), len(situations)))
    for (of_generation, mode, situation), speed in performance_modes().items():
        if of_generation == generation:
            speeds[modes.index(mode), situations.index(situation)] = speed
    return speeds


def _matmul_passes(core: NeuronCore) -> npt.NDArray[np.float64]:
    passes = np.ones((len(DType), 3))
    speeds = core.tensor_speed_f32, core.tensor_speed_f32_transpose, core.tensor_speed_f32_row
    passes[DType.F32] = 1 / np.array(speeds)
    passes[DType.FP8] = 1 / core.tensor_speed_fp8
    return passes
