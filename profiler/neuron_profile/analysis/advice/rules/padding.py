"""Sequences are padded to a length that few of them need, and everything is computed for the padding too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from neuron_profile.analysis.advice.context import Context, Times
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.padded_batches import PaddedBatch, padded_batches, padding_lines
from neuron_profile.analysis.whatif.shorter import Shortening, shorter_share
from neuron_profile.reports.quantities import percent

MINIMUM_SHARE = 0.01
MINIMUM_PADDING = 0.2
"""Part of the positions that nobody needs, from which on a batch is looked at."""


def find(context: Context) -> Iterator[Finding]:
    """A finding per line that pads: the gain is that of the length that each batch needs.

    Where batches are as long as their longest sequence already, it is that of batches of like lengths; graphs
    that are compiled have one length for all batches.
    """
    if context.what_if is None:
        return
    by_place: defaultdict[Place, list[PaddedBatch]] = defaultdict(list)
    batches = padded_batches(context.profile)
    for batch in batches:
        by_place[_padding_place(context, batch)].append(batch)
    total_ns = context.what_if.recorded_ns()
    for place, found in by_place.items():
        positions = sum(each.padding.rows * each.padding.length for each in found)
        needed = sum(each.padding.rows * each.padding.mean for each in found)
        if 1 - needed / positions < MINIMUM_PADDING:
            continue
        durations = _shorter_ns(context, batches, found)
        recorded = context.what_if.executions.end_ns - context.what_if.executions.start_ns
        gain_ns = total_ns - context.what_if.total_ns(durations)
        if gain_ns >= MINIMUM_SHARE * total_ns:
            yield Finding(
                "padding",
                f"{percent(1 - needed / positions)} of what {len(found)} batches hold is padding",
                _change(found),
                place,
                gain_ns=gain_ns,
                device_gain_ns=int((recorded - durations).sum()),
                total_ns=total_ns,
                evidence={
                    "batches": len(found),
                    "padded_length": max(each.padding.length for each in found),
                    "longest_needed": max(each.padding.longest for each in found),
                    "mean_needed": round(needed / sum(each.padding.rows for each in found)),
                },
            )


def _change(batches: Sequence[PaddedBatch]) -> str:
    if _are_as_long_as_needed(batches):
        return (
            "Put sequences of like lengths into one batch: sort by length, or draw batches from buckets of "
            "lengths, and shuffle the batches."
        )
    return (
        "Pad each batch to its longest sequence, or to the next of a few lengths where the model is "
        "compiled; sort by length, so that batches hold like ones."
    )


def _are_as_long_as_needed(batches: Sequence[PaddedBatch]) -> bool:
    return all(each.padding.longest == each.padding.length for each in batches)


def _padding_place(context: Context, batch: PaddedBatch) -> Place:
    """The line that pads, where the file of the copy has just one; else the line that copies."""
    lines = padding_lines(context.texts.lines(batch.file))
    return Place(batch.file, lines[0] if len(lines) == 1 else batch.line)


def _shorter_ns(context: Context, batches: Sequence[PaddedBatch], found: Sequence[PaddedBatch]) -> Times:
    """(executions,) device times where the batches found are as short as they can be."""
    assert context.what_if is not None
    executions = context.what_if.executions
    durations: Times = executions.end_ns - executions.start_ns
    known: dict[tuple[tuple[int, int], Shortening], float] = {}
    for position, batch in enumerate(_batch_of_each(context, batches)):
        if batch is None or batch not in found:
            continue
        key = (int(executions.process[position]), int(executions.executable[position]))
        is_eager = key in executions.eager
        shortening = _shortening(batch, found, is_eager)
        if (key, shortening) not in known:
            known[key, shortening] = shorter_share(executions.program(key), executions.core, shortening)
        durations[position] = round(durations[position] * known[key, shortening])
    return durations


def _shortening(batch: PaddedBatch, found: Sequence[PaddedBatch], is_eager: bool) -> Shortening:
    padding = batch.padding
    if _are_as_long_as_needed(found):
        shorter = padding.mean + (padding.longest - padding.mean) // len(found)
    else:
        shorter = padding.longest if is_eager else max(each.padding.longest for each in found)
    return Shortening(padding.rows, padding.length, min(max(shorter, 1), padding.length))


def _batch_of_each(context: Context, batches: Sequence[PaddedBatch]) -> Iterator[PaddedBatch | None]:
    """For each execution the batch that was copied last before it ran."""
    assert context.what_if is not None
    executions = context.what_if.executions
    for process, start_ns in zip(executions.process.tolist(), executions.start_ns.tolist()):
        before = [each for each in batches if each.process == process and each.start_ns <= start_ns]
        yield before[-1] if before else None
