"""The monitor's inner loops: the compiled ones where they could be built, else those in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuron_monitor.api.python_kernels import (
        added,
        core_rates,
        interleaved,
        processor_ticks,
        reached_at,
        read_changed,
        read_page,
        table,
        words,
    )
else:
    try:
        from neuron_monitor.api._kernels import (
            added,
            core_rates,
            interleaved,
            processor_ticks,
            reached_at,
            read_changed,
            read_page,
            table,
            words,
        )
    except ImportError:
        from neuron_monitor.api.python_kernels import (
            added,
            core_rates,
            interleaved,
            processor_ticks,
            reached_at,
            read_changed,
            read_page,
            table,
            words,
        )

__all__ = [
    "added",
    "core_rates",
    "interleaved",
    "processor_ticks",
    "reached_at",
    "read_changed",
    "read_page",
    "table",
    "words",
]
