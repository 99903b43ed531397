"""Gradients of modules that no optimizer updates are computed in every backward pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.advice.line_calls import Call, PlacedCall, calls_in_order, spans_of
from neuron_profile.analysis.advice.piecewise import MINIMUM_SHARE
from neuron_profile.analysis.trained_modules import trained_modules
from neuron_profile.analysis.whatif.executions import Origin

_PRODUCTS = ("aten::mm", "aten::bmm")


def find(context: Context) -> Iterator[Finding]:
    """A finding where the first modules of a model are not trained: the gain is that of ending there.

    Only of operators that run one by one, and where the text names the modules that its optimizers update.
    """
    what_if = context.what_if
    if what_if is None or context.executions is None:
        return
    calls = calls_in_order(context)
    trained = _trained(context, calls)
    if not trained:
        return
    superfluous, frozen = _superfluous(calls, _origins(context, calls), trained)
    if not superfluous:
        return
    total_ns = what_if.recorded_ns()
    gain_ns = total_ns - what_if.without_spans_ns(spans_of(superfluous))
    if gain_ns >= MINIMUM_SHARE * total_ns:
        ((file, line), _) = Counter((each.file, each.line) for each in frozen).most_common(1)[0]
        names = sorted({each.layer for each in frozen})
        yield Finding(
            "frozen_gradients",
            f"Gradients of {names[0]} are computed, but no optimizer updates it",
            "Say that this part is not trained: requires_grad_(False) on its module before the loop, or call "
            "it under torch.no_grad(). The backward pass then ends where it begins.",
            Place(file, line),
            gain_ns=gain_ns,
            total_ns=total_ns,
            evidence={"modules": names, "calls": len(superfluous)},
        )  # fmt: skip


def _trained(context: Context, calls: Sequence[PlacedCall]) -> frozenset[str]:
    """What the optimizers of the program's files update."""
    files = sorted({placed.file for placed in calls if placed.file})
    return frozenset().union(*(trained_modules(context.texts.lines(file)) for file in files))


def _origins(context: Context, calls: Sequence[PlacedCall]) -> dict[int, Origin]:
    """Where each call's execution came from, by the position of the call."""
    assert context.what_if is not None
    assert context.executions is not None
    launched = context.what_if.launching_spans(spans_of([placed.call for placed in calls]))
    found: dict[int, Origin] = {}
    for execution, position in enumerate(launched.tolist()):
        origins = context.executions.origins(execution) if position >= 0 else ()
        if origins:
            found[position] = origins[0]
    return found


def _superfluous(
    calls: Sequence[PlacedCall], origins: dict[int, Origin], trained: frozenset[str]
) -> tuple[list[Call], list[Origin]]:
    """Of each backward pass what comes behind the last trained module, and where frozen ones were called.

    A call of autograd's thread has no line of its own. The last trained module also makes the gradient of
    its input, with the first of its two products.
    """
    superfluous: list[Call] = []
    frozen: list[Origin] = []
    numbered = groupby(enumerate(calls), lambda each: (each[1].call.process, bool(each[1].file)))
    for (_, has_line), group in numbered:
        run = [position for position, _ in group]
        last = None if has_line else _last_trained(run, origins, trained)
        if last is None:
            continue
        rest = run[last + 1 :]
        own = [origins[each] for each in rest if each in origins and _is_module(origins[each].layer)]
        if own:
            frozen += own
            superfluous += [calls[each].call for each in [*_of_input(run[: last + 1], calls, origins), *rest]]
    return superfluous, frozen


def _last_trained(run: Sequence[int], origins: dict[int, Origin], trained: frozenset[str]) -> int | None:
    """Place in a run of the last call of a module that is trained."""
    places = [
        place for place, each in enumerate(run) if each in origins and _is_in(origins[each].layer, trained)
    ]
    return places[-1] if places else None


def _of_input(run: Sequence[int], calls: Sequence[PlacedCall], origins: dict[int, Origin]) -> list[int]:
    """The product that makes the gradient of the last module's input."""
    layer = origins[run[-1]].layer
    own = [each for each in run if each in origins and origins[each].layer == layer]
    products = [each for each in own if calls[each].call.name in _PRODUCTS]
    return products[-2:-1]


def _is_in(layer: str, modules: frozenset[str]) -> bool:
    return any(layer == module or layer.startswith(module + "/") for module in modules)


def _is_module(layer: str) -> bool:
    """Whether a layer is a module's, not a script's or an optimizer's."""
    return bool(layer) and not layer.endswith(".py") and not layer.startswith("/optimizer")
