"""How long executions would take as one: its engines overlap, and values between them stay on the chip."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuron_profile.analysis.advice.context import Context, ProgramUse
from neuron_profile.analysis.advice.line_calls import Call, spans_of
from neuron_tools.arrays import Floats, Ints
from neuron_tools.records.program import Memory
from neuron_tools.simulator.throughput import union

_ENGINES = 256


def fused_ns(context: Context, groups: Sequence[Sequence[Call]]) -> Ints:
    """(executions,) device times, where each execution of a group takes what the group takes as one.

    That is the active time of the engine with most to do, with what comes before it and behind it: the first
    load of the first execution, and what the last one stores after its last computation. It is at least the
    time of the group's shortest execution. Those of no group take what they took.
    """
    assert context.what_if is not None
    assert context.executions is not None
    durations: Ints = context.executions.end_ns - context.executions.start_ns
    group = np.repeat(np.arange(len(groups)), [len(calls) for calls in groups])
    span = context.what_if.launching_spans(spans_of([call for calls in groups for call in calls]))
    executions = np.flatnonzero(span >= 0)
    group = group[span[executions]]
    engines, shortest = np.zeros((len(groups), _ENGINES)), np.full(len(groups), np.iinfo(np.int64).max)
    np.add.at(engines, group, _engines_ns(context)[executions])
    np.minimum.at(shortest, group, durations[executions])
    around = _around_ns(context)
    first, last = np.full(len(groups), len(durations) - 1), np.zeros(len(groups), np.int64)
    np.minimum.at(first, group, executions)
    np.maximum.at(last, group, executions)
    whole = engines.max(axis=1) + around[first, 0] + around[last, 1]
    durations[executions] = np.maximum(np.rint(whole).astype(np.int64), shortest)[group]
    return durations


def added_up_ns(context: Context, groups: Sequence[Sequence[Call]], needed: Sequence[Sequence[Call]]) -> Ints:
    """(executions,) device times, where the last execution of a group takes what the needed ones do in turn.

    Args:
        groups: Calls of each group.
        needed: Those of them whose work remains, whose values another launch would hold in memory too.
    """
    assert context.what_if is not None
    assert context.executions is not None
    durations: Ints = context.executions.end_ns - context.executions.start_ns
    span = context.what_if.launching_spans(spans_of([call for calls in groups for call in calls]))
    owner = np.repeat(np.arange(len(groups)), [len(calls) for calls in groups])
    remains = np.array([call in kept for calls, kept in zip(groups, needed) for call in calls], bool)
    executions = np.flatnonzero(span >= 0)
    taken = np.where(remains[span[executions]], durations[executions], 0)
    sums = np.bincount(owner[span[executions]], taken, len(groups)).astype(np.int64)
    durations[executions] = sums[owner[span[executions]]]
    return durations


def busy_share(
    context: Context, groups: Sequence[Sequence[Call]], chosen: Sequence[Sequence[Call]]
) -> Floats:
    """(executions,) part of the time, 0-1, in which the busiest engine is active, of a group's chosen calls.

    It is 1 for executions of no group.
    """
    assert context.what_if is not None
    assert context.executions is not None
    span = context.what_if.launching_spans(spans_of([call for calls in groups for call in calls]))
    owner = np.repeat(np.arange(len(groups)), [len(calls) for calls in groups])
    is_chosen = np.array([call in some for calls, some in zip(groups, chosen) for call in calls], bool)
    executions = np.flatnonzero(span >= 0)
    group, counted = owner[span[executions]], is_chosen[span[executions]]
    durations = (context.executions.end_ns - context.executions.start_ns)[executions]
    busy = np.bincount(group, counted * _engines_ns(context).max(axis=1)[executions], len(groups))
    share = np.minimum(busy / np.maximum(np.bincount(group, counted * durations, len(groups)), 1), 1.0)
    shares = np.ones(len(context.executions))
    shares[executions] = np.where(share > 0, share, 1.0)[group]
    return shares


def joined_gain_ns(context: Context, groups: Sequence[Sequence[Call]], durations_ns: Ints) -> int:
    """What the program gains where each group is one launch.

    Args:
        groups: Calls of each.
        durations_ns: (executions,) device times then; that of a group is that of its last execution.
    """
    assert context.what_if is not None
    removed = spans_of([call for group in groups for call in group[:-1]])
    return context.what_if.recorded_ns() - context.what_if.without_spans_ns(removed, durations_ns)


def _engines_ns(context: Context) -> Floats:
    """(executions, engines) active time of each engine in each execution."""
    assert context.executions is not None
    active = np.zeros((len(context.executions), _ENGINES))
    for use in context.programs:
        active[context.executions.of_program(use.key)] = _active_ns(use)
    return active


def _around_ns(context: Context) -> Floats:
    """(executions, 2) time until the first load is done, and from the last computation to the end."""
    assert context.executions is not None
    around = np.zeros((len(context.executions), 2))
    for use in context.programs:
        table, times = use.program.instructions, use.simulation
        loads = use.program.dmas["destination_memory"] == int(Memory.SBUF)
        computes = table["dma"] < 0
        if loads.any() and computes.any():
            tail_ps = int(times.duration_ps) - int(times.end_ps[computes].max())
            of_use = int(times.dma_end_ps[loads].min()) / 1000, tail_ps / 1000
            around[context.executions.of_program(use.key)] = of_use
    return around


def _active_ns(use: ProgramUse) -> Floats:
    engine, times = use.program.instructions["engine"], use.simulation
    active = np.zeros(_ENGINES)
    for number in np.unique(engine).tolist():
        start, end = union(times.start_ps[engine == number], times.end_ps[engine == number])
        active[number] = float((end - start).sum()) / 1000
    return active
