"""Applies to every test: browser tests share one process, so that one Chromium serves them all."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put browser tests into one group of `pytest-xdist`'s."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.xdist_group("browser"))
