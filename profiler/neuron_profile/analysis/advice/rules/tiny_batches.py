"""The rows of a batch are computed one by one, and joined afterwards."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.advice.line_calls import PlacedCall, calls_by_line, runs
from neuron_profile.analysis.advice.piecewise import Patterns, pieces_of, without

MINIMUM_ROWS = 4
JOINS = ("aten::cat", "aten::stack")


def find(context: Context) -> Iterator[Finding]:
    """A finding per line that computes rows, which the text joins again: the gain is that of one for all."""
    patterns = Patterns(context)

    def owner(placed: PlacedCall) -> Hashable | None:
        is_row = placed.line in patterns.of(placed.file).rows and placed.call.name not in JOINS
        return (placed.file, placed.line) if is_row else None

    by_line = calls_by_line(context)
    for (file, line), pieces in pieces_of(runs(context, owner), MINIMUM_ROWS).items():
        joined_at = patterns.of(file).rows[line]
        joins = [call for call in by_line.get((file, joined_at), ()) if call.name in JOINS]
        yield from without(
            context, "tiny_batches", "{pieces} rows are computed one by one and then joined",
            "Compute them as one batch: call it with the whole tensor, or with torch.vmap.", pieces, joins,
        )  # fmt: skip
