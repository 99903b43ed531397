"""What a capture that still runs has written by now: whether it goes on, and its newest finished step."""

from __future__ import annotations

from typing import Any

from neuron_explorer import results
from neuron_explorer.page import View
from neuron_profile.analysis.time.steps import Steps


def live_answer(view: View) -> dict[str, Any]:
    """The answer to `/workspace/live/PROFILE`.

    Returns:
        `complete`; `end_ns` of what was written; `steps`, how many are finished; `newest`, the last of them:
        {"number", "start_ns", "end_ns"}, or null.

    Raises:
        NeuronToolsError: The profile cannot be read.
    """
    profile = view.profile
    steps: Steps = view.result(results.STEPS)
    newest = steps.steps[-1] if steps.steps else None
    return {
        "complete": profile.complete,
        "end_ns": profile.time_range_ns()[1],
        "steps": len(steps.steps),
        "newest": newest and {"number": newest.number, "start_ns": newest.begin_ns, "end_ns": newest.end_ns},
    }
