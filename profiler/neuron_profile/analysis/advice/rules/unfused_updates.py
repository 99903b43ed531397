"""An optimizer updates its parameters one by one, each with launches of its own."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.advice.line_calls import PlacedCall, runs
from neuron_profile.analysis.advice.piecewise import Patterns, pieces_of, without

MINIMUM_PARAMETERS = 4


def find(context: Context) -> Iterator[Finding]:
    """A finding per loop over parameters, or step of an optimizer, that launches the same for each of them.

    The gain is that of launching it for one, as `foreach=True` does for all together.
    """
    patterns = Patterns(context)

    def owner(placed: PlacedCall) -> Hashable | None:
        known = patterns.of(placed.file)
        loop = known.updates.get(placed.line) or (placed.line if placed.line in known.steps else None)
        return loop and (placed.file, loop)

    for pieces in pieces_of(runs(context, owner), MINIMUM_PARAMETERS).values():
        yield from without(
            context, "unfused_updates", "{pieces} updates of parameters are launched one by one",
            "Update all parameters together: an optimizer of torch.optim with foreach=True, torch._foreach_* "
            "functions in a loop of your own, or torch.compile around the step.", pieces,
        )  # fmt: skip
