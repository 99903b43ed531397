"""Runs axe-core on a page: what it says of accessibility that is serious."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
RUN = (
    """(selector) => axe.run(document.querySelector(selector) ?? document, { resultTypes: ['violations'] })"""
)


def serious_breaches(page: Any, selector: str = "html") -> list[str]:
    """Serious and critical breaches within an element; without axe-core, skips the test."""
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: npm ci")
    page.evaluate(AXE.read_text())
    found = page.evaluate(RUN, selector)["violations"]
    return [
        f"{breach['id']}: {breach['nodes'][0]['html'][:160]}"
        for breach in found
        if breach["impact"] in ("serious", "critical")
    ]
