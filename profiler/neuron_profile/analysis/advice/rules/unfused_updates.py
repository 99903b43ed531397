"""An optimizer updates its parameters one by one, each with launches of its own."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.advice.line_calls import PlacedCall, runs
from neuron_profile.analysis.advice.piecewise import Patterns, pieces_of, without

MINIMUM_PARAMETERS = 4
_STEPS = """
SELECT DISTINCT coalesce(own.source_file, span.source_file, '') AS file,
    coalesce(own.source_line, span.source_line, 0) AS line
FROM HostSpan span LEFT JOIN Frontier own ON own.stack_frame_id = span.stack_frame_ids
WHERE span.kind = 'optimizer'
"""


def find(context: Context) -> Iterator[Finding]:
    """A finding per loop over parameters, or step of an optimizer, that launches the same for each of them.

    The gain is that of launching it for one, as `foreach=True` does for all together.
    """
    patterns, steps = Patterns(context), _steps(context)

    def owner(placed: PlacedCall) -> Hashable | None:
        is_step = (placed.file, placed.line) in steps
        loop = placed.line if is_step else patterns.of(placed.file).updates.get(placed.line)
        return loop and (placed.file, loop)

    for pieces in pieces_of(runs(context, owner), MINIMUM_PARAMETERS).values():
        yield from without(
            context, "unfused_updates", "{pieces} updates of parameters are launched one by one",
            "Update all parameters together: an optimizer of torch.optim with foreach=True, torch._foreach_* "
            "functions in a loop of your own, or torch.compile around the step.", pieces,
        )  # fmt: skip


def _steps(context: Context) -> frozenset[tuple[str, int]]:
    """Lines at which an optimizer of torch.optim takes its steps."""
    return frozenset((row["file"], row["line"]) for row in context.profile.query(_STEPS).to_pylist())
