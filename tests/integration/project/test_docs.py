import re
import runpy
import subprocess
import sys

import pytest

from tests.integration.project.checkout import ROOT

PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def outside_blocks(text):
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def outside_code(text):
    return re.sub(r"`[^`\n]*`", "", outside_blocks(text))


def anchors(page):
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", outside_blocks(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", outside_code(page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        if not linked.exists() or (anchor and anchor not in anchors(linked)):
            broken.append(target)
    assert not broken


def test_generated_pages_are_up_to_date():
    result = subprocess.run(
        [sys.executable, ROOT / "scripts/write_reference_docs.py", "--check"], capture_output=True, text=True
    )
    assert result.returncode == 0, f"{result.stdout}{result.stderr}Run `make docs`."


def test_a_stale_page_is_noticed():
    with_generated = runpy.run_path(str(ROOT / "scripts/write_reference_docs.py"))["with_generated"]
    page = "Words.\n<!-- begin generated: x -->\nold\n<!-- end generated: x -->\nMore.\n"
    assert with_generated(page, "x", "new") == page.replace("\nold\n", "\n\nnew\n")
    with pytest.raises(ValueError, match="markers"):
        with_generated("no markers", "x", "new")


def test_the_readme_names_commands_that_exist():
    from neuron_profile.cli import COMMANDS

    used = set(re.findall(r"^neuron-profile (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert used
    assert used <= set(COMMANDS)
