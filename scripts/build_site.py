"""Builds the documentation site from docs/, the pages in the root and the docstrings: build_site.py [FOLDER]

On GitHub the pages are read where they stand, so their links lead from there; here the links follow the
pages. Every link is checked, what is broken fails the build, and the site loads nothing from elsewhere: it
opens from a folder. VERSIONS names the file that lists the releases whose sites stand beside this one.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import main as sphinx

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "LICENSE": "license.txt",
    "examples/plugins/README.md": "plugins.md",
}
"""Path in the repository, and in the site."""
CHAPTERS = {
    "Tutorials": "tutorial-pytorch pytorch-ways frameworks tutorial-jax tutorial-nki tutorial-distributed "
    "tutorial-vscode tutorial-monitor notebooks",
    "Profiles": "explorer timeline advice advice-scoreboard tune agents look-back distributed import-export "
    "public-traces compiled-artifacts serving vscode",
    "Monitor": "monitor monitor-fleet monitor-metrics simulated-driver",
    "Reference": "commands python-api profile-format operators nki public-kernels models plugins",
    "How it works": "architecture walks hardware compiler fidelity fidelity-rows security",
    "Project": "compatibility compared traces-compared changes contributing reporting",
}
API = {
    "neuron_tools.open_profile": "autofunction",
    "neuron_tools.profile": "autofunction",
    "neuron_tools.profile.reader.Profile": "autoclass",
}
"""Directive of Sphinx for each name that the Python API has."""
MEMBERS = {"autofunction": "", "autoclass": "   :members:\n"}
_LINK = re.compile(r"(\]\()([^)\s:#]+)((?:#[^)\s]*)?\))")
_FENCED = re.compile(r"(```.*?```)", re.DOTALL)
_API = re.compile(r"<!-- begin generated: api -->.*<!-- end generated: api -->", re.DOTALL)


def with_links(markdown: str, origin: str) -> str:
    """The text of a page that stands at `origin` in the repository, with links that hold in the site."""

    def follow(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), found[2]))
        return f"{found[1]}{OUTSIDE.get(path, path.removeprefix('docs/'))}{found[3]}"

    parts = _FENCED.split(markdown)
    parts[::2] = [_LINK.sub(follow, part) for part in parts[::2]]
    return "".join(parts)


def contents() -> str:
    """The table of contents: what the first page ends with."""
    trees = [
        "\n".join([f"```{{toctree}}\n:hidden:\n:caption: {title}\n", *pages.split(), "```"])
        for title, pages in CHAPTERS.items()
    ]
    return "\n\n".join(trees)


def reference() -> str:
    """Directives for what the package offers; Sphinx reads the docstrings."""
    directives = [f".. {kind}:: {name}\n{MEMBERS[kind]}" for name, kind in API.items()]
    return "\n".join(["```{eval-rst}", *directives, "```"])


def write_sources(folder: Path) -> None:
    """Lay out the pages as the site has them."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder)
    for page in folder.glob("*.md"):
        text = with_links(page.read_text(), f"docs/{page.name}").replace("```mermaid", "```text")
        page.write_text(_API.sub(lambda _: reference(), text) if page.name == "python-api.md" else text)
    for source, target in OUTSIDE.items():
        (folder / target).write_text(with_links((ROOT / source).read_text(), source))
    index = folder / "index.md"
    index.write_text(f"{index.read_text()}\n\n{contents()}\n")


def build(folder: Path) -> int:
    """Build the site into a folder; returns Sphinx's exit status."""
    sources = folder.with_name(f"{folder.name}-sources")
    write_sources(sources)
    options = ["-c", str(ROOT / "scripts/site"), "-b", "html", "-W", "--keep-going", "-q", "-E"]
    status = sphinx([*options, str(sources), str(folder)])
    shutil.rmtree(sources)
    return status


if __name__ == "__main__":
    # Reading docstrings must neither build the device nor start what plugins of PyTorch start.
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    sys.exit(build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/site")))
