"""An optimizer updates its parameters one by one, each with launches of its own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.advice.line_calls import Call, PlacedCall, runs
from neuron_profile.analysis.advice.piecewise import Patterns, pieces_of, without

MINIMUM_PARAMETERS = 4
_STEPS = """
SELECT coalesce(process_idx, 0) AS process, start_ts AS begin_ns, end_ts AS end_ns
FROM HostSpan WHERE kind = 'optimizer' ORDER BY process, begin_ns
"""


def find(context: Context) -> Iterator[Finding]:
    """A finding per loop over parameters, or step of an optimizer, that launches the same for each of them.

    The gain is that of launching it for one, as `foreach=True` does for all together.
    """
    patterns, steps = Patterns(context), _Steps(context)

    def owner(placed: PlacedCall) -> Hashable | None:
        is_of_step = bool(placed.file) and steps.hold(placed.call)
        loop = placed.line if is_of_step else patterns.of(placed.file).updates.get(placed.line)
        return loop and (placed.file, loop)

    for pieces in pieces_of(runs(context, owner), MINIMUM_PARAMETERS).values():
        yield from without(
            context, "unfused_updates", "{pieces} updates of parameters are launched one by one",
            "Update all parameters together: an optimizer of torch.optim with foreach=True, torch._foreach_* "
            "functions in a loop of your own, or torch.compile around the step.", pieces,
        )  # fmt: skip


class _Steps:
    """When optimizers of torch.optim took their steps: of the line that calls a trainer, that is a part."""

    def __init__(self, context: Context) -> None:
        rows = context.profile.query(_STEPS).to_pylist()
        self._begins = [(row["process"], row["begin_ns"]) for row in rows]
        self._ends = [row["end_ns"] for row in rows]

    def hold(self, call: Call) -> bool:
        """Whether a call was made in a step."""
        place = bisect_right(self._begins, (call.process, call.start_ns)) - 1
        return place >= 0 and self._begins[place][0] == call.process and call.end_ns <= self._ends[place]
