"""Rows of a program in the order, and on the engines, that the back end's scheduler gives them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuron_profile.analysis.whatif.reordered import triggers
from neuron_tools.arrays import Ints
from neuron_tools.backend.costs import ENGINES, KindCosts
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import Engine, Memory, Program
from neuron_tools.simulator.dma_costs import dma_costs, trigger_costs
from neuron_tools.simulator.errors import ProgramError
from neuron_tools.simulator.instruction_costs import instruction_costs


def rescheduled(program: Program, core: NeuronCore, edges: Ints, said: Ints) -> tuple[Program, Ints]:
    """The program with the choices of engines made anew, and its rows in the order of issue.

    Args:
        program: What ran.
        core: On what.
        edges: (edges, 2) a row, and what it waits for: a row, or rows + a DMA.
        said: The rows that remain, in the order in which a kernel would say them.

    Raises:
        ProgramError: The rows wait for each other.
    """
    from neuron_tools.backend.order_kernel import successors
    from neuron_tools.backend.schedule import SIGNAL_PS, TRANSFER_PS
    from neuron_tools.backend.schedule_kernel import list_schedule

    count = len(said)
    turn = np.full(len(program.instructions), -1, np.int64)
    turn[said] = np.arange(count)
    before, after = turn[triggers(program)[edges[:, 1]]], turn[edges[:, 0]]
    start, edge_of, incoming = successors(count, before, after)
    costs = _costs(program, core, said)
    issued, engine = list_schedule(
        np.arange(count, dtype=np.int32), np.arange(count), costs.interval, costs.latency, costs.preferred,
        costs.transfer, costs.loads, start, edge_of, after, np.zeros(len(edges), np.int8), incoming,
        SIGNAL_PS, TRANSFER_PS,
    )  # fmt: skip
    if len(issued) < count:
        raise ProgramError("The rows wait for each other.")
    instructions = program.instructions.copy()
    instructions["engine"][said] = engine
    return replace(program, instructions=instructions), said[issued]


def _costs(program: Program, core: NeuronCore, rows: Ints) -> KindCosts:
    """What the scheduler takes each row to cost, on each engine that may run it."""
    table = program.instructions[rows]
    choice = np.where(table["open_engines"] > 0, table["open_engines"], 1 << table["engine"])
    interval, latency = (np.full((len(rows), ENGINES), -1, np.int64) for _ in range(2))
    for engine in Engine:
        here = (choice >> int(engine)) & 1 == 1
        placed = table[here]
        placed["engine"] = int(engine)
        interval[here, engine], latency[here, engine] = instruction_costs(placed, core)
    moves = table["dma"] >= 0
    dma, on = table["dma"][moves], table["engine"][moves]
    interval[moves, on] = latency[moves, on] = trigger_costs(program, core)[0][dma]
    transfer, loads = np.full(len(rows), -1, np.int64), np.zeros(len(rows), bool)
    moving = dma_costs(program, core)
    transfer[moves] = moving["work"][dma] // moving["cap"][dma]
    loads[moves] = program.dmas["destination_memory"][dma] != int(Memory.HBM)
    scalar_may = interval[:, Engine.SCALAR] >= 0
    preferred = np.where(scalar_may, int(Engine.SCALAR), table["engine"]).astype(np.int64)
    return KindCosts(interval, latency, preferred, transfer, loads)
