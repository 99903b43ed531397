"""Combines small collectives that do not depend on one another, as XLA's combiners of collectives do.

Each collective takes at least its latency, so one of many operands is quicker than many.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from neuron_tools.compiler.codegen.types import memory_dtype
from neuron_tools.compiler.graph import operands_of
from neuron_tools.compiler.hlo import Module, Operation, TensorType

MOST_BYTES = 30 * 2**20
"""Of one that was combined. Source: XLA, `xla_gpu_all_reduce_combine_threshold_bytes` and those of the others
(xla/debug_options_flags.cc)."""
MOST_OPERANDS = 256
"""Source: XLA, the combiners' `combine_threshold_count` (xla/service/gpu/gpu_compiler.cc)."""
COMBINED = frozenset({"all_reduce", "all_gather", "reduce_scatter"})
_CHANNEL = "channel_handle"


def combine_collectives(module: Module) -> Module:
    """Let collectives of one kind over the same ranks be one, up to `MOST_BYTES` of results."""
    chosen = [operation for operation in module.operations if operation.opcode in COMBINED]
    if len(chosen) < 2:
        return module
    batches = [batch.operations for batch in _Batches(module).chosen() if len(batch.operations) > 1]
    return _with_combined(module, batches) if batches else module


@dataclass
class _Batch:
    """Collectives that become one.

    Attributes:
        operations: In order.
        byte_count: Of their results.
        before: Bits of the batches that must have run before.
    """

    operations: list[Operation]
    byte_count: int
    before: int


class _Batches:
    """Chooses what is combined, in order: an operation joins the newest batch that it can.

    Which batches come before a value is a number with a bit for each: a batch's own members follow from it
    when they need none of it.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self._batches: list[_Batch] = []
        self._open: dict[Hashable, int] = {}
        self._before: dict[int, int] = {}

    def chosen(self) -> list[_Batch]:
        """All batches, also those of one operation."""
        for operation in self._module.operations:
            before = self._needed(operation)
            if operation.opcode in COMBINED:
                before = 1 << self._join(operation, self._closed(before))
            self._before.update(dict.fromkeys(operation.results, before))
        return self._batches

    def _needed(self, operation: Operation) -> int:
        before = 0
        for value in operands_of(operation):
            before |= self._before.get(value, 0)
        return before

    def _closed(self, before: int) -> int:
        """With the batches that those come after, which may have become more since."""
        for number in _bits(before):
            before |= self._batches[number].before
        return before

    def _join(self, operation: Operation, before: int) -> int:
        """The number of the operation's batch."""
        key, byte_count = self._key(operation), self._byte_count(operation)
        number = self._open.get(key, -1)
        if number >= 0 and not before >> number & 1 and self._has_room(number, operation, byte_count):
            batch = self._batches[number]
            batch.operations.append(operation)
            batch.byte_count += byte_count
            self._let_follow(number, before)
            return number
        self._batches.append(_Batch([operation], byte_count, before))
        self._open[key] = number = len(self._batches) - 1
        return number

    def _has_room(self, number: int, operation: Operation, byte_count: int) -> bool:
        batch = self._batches[number]
        operands = sum(len(each.operands) for each in batch.operations) + len(operation.operands)
        return batch.byte_count + byte_count <= MOST_BYTES and operands <= MOST_OPERANDS

    def _let_follow(self, number: int, before: int) -> None:
        """A batch, and what follows it, comes after some more."""
        for other, batch in enumerate(self._batches):
            if other == number or batch.before >> number & 1:
                batch.before |= before

    def _key(self, operation: Operation) -> Hashable:
        """What operations have in common that may become one.

        A channel's number is each one's own; that there is one says whether groups are of partitions.
        """
        attributes = sorted((name, repr(value)) for name, value in operation.attributes.items()
                            if name != _CHANNEL)  # fmt: skip
        has_channel = operation.attributes.get(_CHANNEL, {}).get("handle", 0) > 0
        bodies = tuple(inner.opcode for region in operation.regions for inner in region.operations)
        dtypes = frozenset(self._type(value).dtype for value in operation.operands)
        ratios = tuple(self._ratio(*pair) for pair in zip(operation.operands, operation.results))
        return operation.opcode, tuple(attributes), has_channel, bodies, dtypes, ratios[:1]

    def _ratio(self, operand: int, result: int) -> float:
        """Without replica groups the ranks are told by how much larger or smaller the result is."""
        counts = [max(1, self._type(value).element_count) for value in (operand, result)]
        return counts[1] / counts[0]

    def _byte_count(self, operation: Operation) -> int:
        types = [self._type(value) for value in operation.results]
        return sum(each.element_count * memory_dtype(each.dtype).byte_count for each in types)

    def _type(self, value: int) -> TensorType:
        return self._module.values[value].type


def _with_combined(module: Module, batches: list[list[Operation]]) -> Module:
    """Each batch as one operation where its last one stood, and what uses it after that."""
    combined = {batch[-1].results: _combined(batch) for batch in batches}
    gone = {each.results for batch in batches for each in batch[:-1]}
    operations = [combined.get(each.results, each) for each in module.operations if each.results not in gone]
    return replace(module, operations=tuple(_delayed(operations)))


def _delayed(operations: Sequence[Operation]) -> Iterator[Operation]:
    """Operations as they stand, but for those whose operands are made later: they follow."""
    makers = {value: at for at, operation in enumerate(operations) for value in operation.results}
    waits = [{makers[value] for value in operands_of(each) if value in makers} for each in operations]
    followers: dict[int, list[int]] = {}
    for at, needed in enumerate(waits):
        for other in needed:
            followers.setdefault(other, []).append(at)
    ready = [at for at, needed in enumerate(waits) if not needed]
    while ready:
        done = heapq.heappop(ready)
        yield operations[done]
        for at in followers.get(done, ()):
            waits[at].remove(done)
            if not waits[at]:
                heapq.heappush(ready, at)


def _combined(batch: list[Operation]) -> Operation:
    return replace(
        batch[-1],
        operands=tuple(value for each in batch for value in each.operands),
        results=tuple(value for each in batch for value in each.results),
        framework=tuple(dict.fromkeys(row for each in batch for row in each.framework)),
    )


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest
