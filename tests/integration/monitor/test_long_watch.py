"""A monitor that runs for long: samples, rules and reports over simulated days."""

import tempfile
from pathlib import Path

import pytest

from benchmarks.long_watch import watch

SAMPLES = 20_000
MOST_GROWN_BYTES = 1 << 20
# The cost of a sample is that of the machine too: another program's share of its caches comes and goes.
MOST_RATIO = 1.5


@pytest.mark.slow
def test_the_last_samples_cost_what_the_first_did_and_leave_nothing_behind():
    with tempfile.TemporaryDirectory() as folder:
        told = watch(Path(folder), SAMPLES)
    assert told.grown_bytes <= MOST_GROWN_BYTES
    assert told.last_ns <= MOST_RATIO * told.first_ns
