"""Finds Chromium for tests that need a real browser, and opens it without reaching for the network."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
LAUNCH_MS = 120_000
HOW_TO_INSTALL = "Browser tests need Chromium: apt-get install chromium, and pip install playwright."


def chromium_path() -> str:
    """Path of the browser; without one, skips the test, but fails it in CI."""
    places = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    found = (shutil.which(name, path=places) for name in NAMES)
    return next(filter(None, found), None) or _missing()


@contextmanager
def open_browser() -> Iterator[Any]:
    """A headless Chromium (a playwright `Browser`); one at a time in a process."""
    path = chromium_path()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, headless=True, args=list(FLAGS), timeout=LAUNCH_MS
        )
        try:
            yield browser
        finally:
            browser.close()


def _missing() -> str:
    if os.environ.get("CI"):
        pytest.fail(HOW_TO_INSTALL)
    pytest.skip(HOW_TO_INSTALL)
