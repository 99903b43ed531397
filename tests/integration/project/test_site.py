"""The documentation site: every page is in it, links lead where the pages stand there, and it builds."""

import importlib.util
import re
import subprocess
import sys

import pytest

from tests.integration.project.checkout import ROOT


@pytest.fixture(scope="module")
def site():
    spec = importlib.util.spec_from_file_location("build_site", ROOT / "scripts/build_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_in_one_chapter(site):
    listed = " ".join(site.CHAPTERS.values()).split()
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    outside = {name.removesuffix(".md") for name in site.OUTSIDE.values() if name.endswith(".md")}
    assert len(listed) == len(set(listed))
    assert set(listed) == (pages | outside) - {"index"}


@pytest.mark.parametrize(
    ("text", "origin", "expected"),
    [
        ("[a](docs/nki.md#x)", "README.md", "[a](nki.md#x)"),
        ("[a](../CHANGELOG.md)", "docs/nki.md", "[a](changes.md)"),
        ("[a](https://example.org/docs/)", "README.md", "[a](https://example.org/docs/)"),
        ("```text\n[a](docs/nki.md)\n```", "README.md", "```text\n[a](docs/nki.md)\n```"),
    ],
)
def test_links_follow_the_pages(site, text, origin, expected):
    assert site.with_links(text, origin) == expected


def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path):
    command = [sys.executable, ROOT / "scripts/build_site.py", tmp_path / "site"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    for page in (tmp_path / "site").glob("*.html"):
        loaded = re.findall(r"<(?:script|img|link|iframe)[^>]*(?:src|href)=\"(\w+:)?//", page.read_text())
        assert not loaded, page.name
    assert "open_profile" in (tmp_path / "site/python-api.html").read_text()
