"""Takes the pictures of the documentation: the Explorer's pages of a profile, in headless Chromium.

python scripts/take_pictures.py demo/compiled.nprof demo/eager.nprof     after `make demo` and `make test`
python scripts/take_pictures.py a.nprof -o /tmp/shots --theme dark       to look at pages while working
python scripts/take_pictures.py a.nprof b.nprof -o /tmp/shots --arrangements   each in light, dark, two sizes

Each picture is the first view that a user gets. The first profile is shown; the second, if there is one, is
what the page Diff compares it with.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from neuron_explorer.library import profile_id
from neuron_explorer.workspace.arrangements import ARRANGEMENTS

Theme = Literal["light", "dark"]

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SIZES = ((1280, 800), (1920, 1080))
THEMES: tuple[Theme, ...] = ("light", "dark")
QUERY = "SELECT engine, opcode, count(*) AS instructions FROM Instruction GROUP BY ALL ORDER BY 3 DESC"
PARAMETERS = {"operators": {"by": "operation"}, "query": {"sql": QUERY}}
PAGES: dict[str, tuple[str, dict[str, str]]] = {
    "profiles": ("/", {}),
    **{
        name: (f"/{name}", PARAMETERS.get(name, {}))
        for name in (
            "workspace", "overview", "timeline", "hierarchy", "regions", "source", "operators", "roofline",
            "requests", "memory", "tensors", "communication", "advice", "diff", "query", "export",
        )
    },
}  # fmt: skip
UNFINISHED = ".state.loading, .dash-graph:not(:has(.main-svg)), [data-table]:not(:has(table))"
IS_DRAWN = """() =>
    [...(window.neuronTimelines?.values() ?? [])].every((timeline) => timeline.statistics().isSharp)
    && !document.querySelector(".ag-root-wrapper:not(:has(.ag-row))")"""
DRAWING_MS = 2500  # grids and the timeline draw on after their data has come


@contextmanager
def explorer(profiles: Sequence[Path]) -> Iterator[str]:
    """The address of an Explorer that serves the profiles."""
    command = [sys.executable, "-m", "neuron_explorer.cli", *map(str, profiles), "-p", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            found = re.search(r"http://\S+", server.stdout.readline())
            if found is None:
                sys.exit("take_pictures: the Explorer did not start; see its message above.")
            yield found[0]
        finally:
            server.terminate()


def take(page: Page, target: Path) -> None:
    """Save what the page shows once it is complete."""
    page.wait_for_selector("#page > *", state="attached")  # a section may have nothing to say
    is_complete = False
    while not is_complete:  # panels come one after the other: complete is what stays so
        page.wait_for_selector(UNFINISHED, state="detached", timeout=120_000)
        page.wait_for_function(IS_DRAWN, timeout=120_000)
        page.wait_for_timeout(DRAWING_MS)
        is_complete = page.locator(UNFINISHED).count() == 0
    page.screenshot(path=target)
    print(target)


def addresses(profiles: Sequence[Path], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name and address of each page."""
    base = {"base": profile_id(profiles[1])} if len(profiles) > 1 else {}
    for name in names or PAGES:
        path, parameters = PAGES[name]
        extra = base if name == "diff" else {}
        shown = {"profile": profile_id(profiles[0]), **parameters, **extra}
        yield name, f"{path}?{urlencode(shown)}"


def take_pages(browser: Browser, address: str, options: argparse.Namespace) -> None:
    """Save each page in one theme and size."""
    page, origin = opened(browser, address, options.theme, SIZES[0])
    for name, path in addresses(options.profiles, options.pages):
        page.goto(origin + path)
        take(page, options.output / f"explorer-{name}.png")


def take_arrangements(browser: Browser, address: str, options: argparse.Namespace) -> None:
    """Save each arrangement of the workspace in both themes and sizes."""
    for theme, size in product(THEMES, SIZES):
        page, origin = opened(browser, address, theme, size)
        for arrangement in ARRANGEMENTS:
            shown = {"profile": profile_id(options.profiles[0]), "a": arrangement.name}
            page.goto(f"{origin}/workspace?{urlencode(shown)}")
            take(page, options.output / f"{arrangement.name}-{theme}-{size[0]}.png")
        page.context.close()


def opened(browser: Browser, address: str, theme: Theme, size: tuple[int, int]) -> tuple[Page, str]:
    """A page that has been let in, and the Explorer's address without the token."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=theme)
    page = context.new_page()
    page.goto(address)
    return page, "{0.scheme}://{0.netloc}".format(urlsplit(address))


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description="Takes the pictures of the documentation.")
    parser.add_argument("profiles", type=Path, nargs="+")
    parser.add_argument("-o", "--output", type=Path, default=PICTURES)
    parser.add_argument("--pages", nargs="*", choices=list(PAGES), default=[], help="only these")
    parser.add_argument("--theme", choices=THEMES, default="light")
    parser.add_argument("--arrangements", action="store_true", help="the workspace's, in each theme and size")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    with explorer(options.profiles) as address, sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        (take_arrangements if options.arrangements else take_pages)(browser, address, options)
        browser.close()


if __name__ == "__main__":
    main()
