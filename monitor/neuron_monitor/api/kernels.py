"""The monitor's inner loops: the compiled ones where they could be built, else those in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuron_monitor.api.python_kernels import (
        added_words,
        chosen_words,
        core_rates,
        reached_at,
        read_changed,
        words,
    )
else:
    try:
        from neuron_monitor.api._kernels import (
            added_words,
            chosen_words,
            core_rates,
            reached_at,
            read_changed,
            words,
        )
    except ImportError:
        from neuron_monitor.api.python_kernels import (
            added_words,
            chosen_words,
            core_rates,
            reached_at,
            read_changed,
            words,
        )

__all__ = ["added_words", "chosen_words", "core_rates", "reached_at", "read_changed", "words"]
