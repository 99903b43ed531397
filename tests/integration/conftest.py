"""Applies to all integration tests: what a logical core is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def single_cores() -> Iterator[None]:
    """One physical core for each logical one: counts and times that tests know by heart are those of one.

    What two do by default is tested in `capture/test_logical_cores.py`.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEURON_LOGICAL_NC_CONFIG", "1")
        yield
