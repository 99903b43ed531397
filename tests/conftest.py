"""Applies to every test: how `pytest -n` shares tests out among processes."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

BROWSER = "tests/browser/"
BROWSERS = (BROWSER, "tests/vscode/")
# How long an example takes says how busy the machine is.
settings.register_profile(
    "any machine", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")
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


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep Python's garbage collector from the million objects that modules and tests are.

    They stay to the end: to look through them once takes half a second, and it would time and again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_sessionfinish() -> None:
    """Let what was collected go, as libraries complain of what outlives the interpreter."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give a test that drives a real Chromium a second try: load can starve a browser for a minute.

    pytest's summary tells which ones needed it.
    """
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1))


def _settings() -> dict[str, Any]:
    """What one test could leave changed for those that run after it in the same process."""
    settings: dict[str, Any] = {"folder": os.getcwd()}
    settings |= {name: value for name, value in os.environ.items() if name.startswith(("NEURON_", "JAX_"))}
    if (torch := sys.modules.get("torch")) is not None:
        settings["torch dtype"] = torch.get_default_dtype()
        settings["torch deterministic"] = torch.are_deterministic_algorithms_enabled()
    if (devices := sys.modules.get("neuron_tools.device.api.devices")) is not None:
        settings["device properties"] = devices._properties
    if (jax := sys.modules.get("jax")) is not None:
        settings["jax x64"] = jax.config.jax_enable_x64
    return settings


@pytest.fixture(scope="module", autouse=True)
def settings_stay_as_found() -> Iterator[None]:
    """Fail the module that changes a setting of the whole process, not the one that meets it later."""
    before = _settings()
    yield
    after = _settings()
    changed = [name for name, value in before.items() if after.get(name) != value]
    added = [name for name in after.keys() - before.keys() if name.isupper()]
    assert not changed + added, f"changed and not restored: {', '.join(changed + added)}"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One headless Chromium (a playwright `Browser`) for all tests that need a browser."""
    from tests.browser.chromium import open_browser

    with open_browser() as browser:
        yield browser
