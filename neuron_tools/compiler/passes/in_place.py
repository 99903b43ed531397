"""Finds updates that can be written into the memory of what they update, so that the rest stays as it is.

A scatter or a slice update takes over its operand's memory where nobody reads the old content any more: all
other readers come before it, and the operand is a value made here, or a parameter that the module's result
may take over (`Module.aliases`). Elsewhere the whole operand is copied first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from neuron_tools.compiler.graph import operands_of
from neuron_tools.compiler.hlo import Module
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.compiler.views import Views

UPDATES = frozenset({"scatter", "dynamic_update_slice"})
"""Operations whose first operand is what they update."""
_SHARING = frozenset({"while", "if", "case", "pieces"})
"""Groups whose results may lie in memory that is not theirs."""
_OUTSIDE = -1


def find_in_place(module: Module, groups: Sequence[Group], views: Views) -> dict[int, int]:
    """Result of an update -> the value whose memory it takes over.

    Args:
        module: What the groups were formed of.
        groups: All of them, each where its bit among the others' `ancestors` says.
        views: Of the module.
    """
    readers = _readers(module, groups, views)
    homes = _homes(module, views)
    own = {value for group in groups if group.kind not in _SHARING for value in group.shapes}
    found: dict[int, int] = {}
    for index in sorted(range(len(groups)), key=lambda i: -groups[i].ancestors.bit_count()):
        group = groups[index]
        operation = group.operations[0] if group.operations else None
        if operation is None or group.kind not in UPDATES or len(operation.results) != 1:
            continue
        result, updated = operation.results[0], views.of(operation.operands[0])
        root = updated.root
        may_change = updated.is_same and (root in own or homes.get(result) == root)
        read_twice = any(root in _memory_of(views, value) for value in operation.operands[1:])
        if may_change and not read_twice and _all_before(readers[root] - {index}, group):
            found[result] = root
            if root in own and result in homes:
                homes[root] = homes[result]
    return found


def _readers(module: Module, groups: Sequence[Group], views: Views) -> dict[int, set[int]]:
    """Value in memory -> groups that read it, by position; `_OUTSIDE` is whoever gets the results."""
    table: dict[int, set[int]] = {}
    for index, group in enumerate(groups):
        values = (value for operation in group.operations for value in operands_of(operation))
        _note(table, values, index, views)
    _note(table, module.results, _OUTSIDE, views)
    return table


def _note(table: dict[int, set[int]], values: Iterable[int], reader: int, views: Views) -> None:
    for value in values:
        for root in _memory_of(views, value):
            table.setdefault(root, set()).add(reader)


def _homes(module: Module, views: Views) -> dict[int, int]:
    """Value -> the parameter whose memory it may take over, as the module's results say."""
    homes: dict[int, int] = {}
    for result, parameter in module.aliases:
        view = views.of(module.results[result])
        if view.is_same:
            homes[view.root] = module.parameters[parameter]
    return homes


def _memory_of(views: Views, value: int) -> set[int]:
    """The values from whose memory a value may be read."""
    return {value, views.of(value).root, views.layout(value).root}


def _all_before(readers: Iterable[int], group: Group) -> bool:
    """Whether groups are complete before another one begins, because it needs what they make."""
    return all(reader != _OUTSIDE and group.ancestors >> reader & 1 for reader in readers)


def final_values(in_place: Mapping[int, int]) -> dict[int, int]:
    """Value whose memory is taken over -> the last value that is written there."""
    heirs = {updated: result for result, updated in in_place.items()}
    final: dict[int, int] = {}
    for value in heirs:
        last = value
        while last in heirs:
            last = heirs[last]
        final[value] = last
    return final
