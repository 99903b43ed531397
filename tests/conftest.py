"""Applies to every test: how `pytest -n` shares tests out among processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

BROWSER = "tests/browser/"
BROWSERS = (BROWSER, "tests/vscode/")
# Tests publish nothing in the user's own tree of devices; those of the simulated driver name a folder.
os.environ["NEURON_SYSFS_ROOT"] = ""
# A shell starts what runs in its background without Ctrl-C, and the commands under test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of one file in one process, for their fixtures; browser tests too, for one Chromium."""
    from xdist.scheduler import LoadScopeScheduling

    class FileScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return BROWSER if nodeid.startswith(BROWSERS) else nodeid.split("::", 1)[0]

    return FileScheduling(config, log)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One headless Chromium (a playwright `Browser`) for all tests that need a browser."""
    from tests.browser.chromium import open_browser

    with open_browser() as browser:
        yield browser
