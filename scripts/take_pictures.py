"""Takes the pictures of the documentation: the Explorer's pages of a profile, in headless Chromium.

python scripts/take_pictures.py demo/compiled.nprof      after `make demo` and `make test`
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
VIEWPORT = {"width": 1200, "height": 700}
PAGES = {
    "explorer-overview": "/",
    "explorer-source": "/source",
    "explorer-time": "/time",
    "explorer-roofline": "/roofline",
    "explorer-advice": "/advice",
}


@contextmanager
def explorer(profile: Path) -> Iterator[str]:
    """The address of an Explorer that serves the profile."""
    command = [sys.executable, "-m", "neuron_explorer.cli", str(profile), "-p", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            found = re.search(r"http://\S+", server.stdout.readline())
            if found is None:
                sys.exit("take_pictures: the Explorer did not start; see its message above.")
            yield found[0]
        finally:
            server.terminate()


def take(page: Page, name: str) -> None:
    """Save what the page shows once its plots are drawn."""
    page.wait_for_load_state("networkidle")
    page.screenshot(path=PICTURES / f"{name}.png")
    print(f"docs/pictures/{name}.png")


def main() -> None:
    """Take every picture."""
    parser = argparse.ArgumentParser(description="Takes the pictures of the documentation.")
    parser.add_argument("profile", type=Path)
    profile = parser.parse_args().profile
    PICTURES.mkdir(exist_ok=True)
    with explorer(profile) as address, sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=VIEWPORT)
        page.goto(address)
        origin = re.match(r"http://[^/]+", address)
        assert origin is not None
        for name, path in PAGES.items():
            page.goto(origin[0] + path)
            take(page, name)
        browser.close()


if __name__ == "__main__":
    main()
