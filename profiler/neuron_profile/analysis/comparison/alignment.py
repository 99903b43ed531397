"""Which operation of one profile is which of another."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping

from neuron_profile.analysis.comparison.operations import OperationKey

Pair = tuple[OperationKey | None, OperationKey | None]
_INDEX = re.compile(r"\d+")
_WRAPPERS = ("OptimizedModule", "_orig_mod", "module")


def align(base: Iterable[OperationKey], new: Iterable[OperationKey], *, in_order: bool = False) -> list[Pair]:
    """Pairs of operations; what has no partner stands alone.

    Equal keys first; then keys that agree in less and less: wrapper modules added or removed, a module
    renamed beside equal operations, an operation moved to another module. A pair is made only where it is the
    one choice.

    Args:
        in_order: The keys of both are in order of time, and their modules are named by different tools: what
            both have equally often is paired one after the other.
    """
    left, right = dict.fromkeys(base), dict.fromkeys(new)
    pairs: list[Pair] = []
    for signature in _SIGNATURES:
        for key, partner in _unique(left, right, signature):
            pairs.append((key, partner))
            del left[key], right[partner]
    for key, partner in _one_by_one(left, right) if in_order else ():
        pairs.append((key, partner))
        del left[key], right[partner]
    pairs += [(key, None) for key in left]
    pairs += [(None, key) for key in right]
    return pairs


def _unique(
    left: Mapping[OperationKey, None],
    right: Mapping[OperationKey, None],
    signature: Callable[[OperationKey], Hashable],
) -> list[tuple[OperationKey, OperationKey]]:
    groups: defaultdict[Hashable, tuple[list[OperationKey], list[OperationKey]]] = defaultdict(
        lambda: ([], [])
    )
    for key in left:
        groups[signature(key)][0].append(key)
    for key in right:
        groups[signature(key)][1].append(key)
    return [(ours[0], theirs[0]) for ours, theirs in groups.values() if len(ours) == len(theirs) == 1]


def _one_by_one(
    left: Mapping[OperationKey, None], right: Mapping[OperationKey, None]
) -> list[tuple[OperationKey, OperationKey]]:
    """Operations that both have equally often, in order."""
    groups: defaultdict[tuple[str, bool], tuple[list[OperationKey], list[OperationKey]]] = defaultdict(
        lambda: ([], [])
    )
    for place, keys in enumerate((left, right)):
        for key in keys:
            groups[_base_name(key.operation), key.backward][place].append(key)
    return [
        pair for ours, theirs in groups.values() if len(ours) == len(theirs) for pair in zip(ours, theirs)
    ]


def _short_module(module: str) -> str:
    return "/".join(part for part in module.split("/") if part and part not in _WRAPPERS)


def _base_name(operation: str) -> str:
    """`aten::addmm.out` -> `addmm`; JAX's names end with the primitive."""
    return operation.split("/")[-1].split("::")[-1].split(".")[0].rstrip("_")


_SIGNATURES: tuple[Callable[[OperationKey], Hashable], ...] = (
    lambda key: key,
    lambda key: (_short_module(key.module), _base_name(key.operation), key.backward),
    lambda key: (_short_module(key.module).rpartition("/")[2], _base_name(key.operation), key.backward),
    lambda key: (
        _INDEX.findall(key.module)[-1:],
        _base_name(key.operation),
        key.backward,
        key.module.count("/"),
    ).__repr__(),
    lambda key: (_base_name(key.operation), key.backward),
)
