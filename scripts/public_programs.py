"""A pytest plugin that runs programs, and kernels with a reference in NumPy, as cases of their own.

A program is a case that passes where it ends well and none of the comparisons that it prints failed. A pair
is a kernel of AccelOpt's benchmark with its reference: one draw of its inputs, compared by AccelOpt's rules.
"""

from __future__ import annotations

import builtins
import importlib.util
import io
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from public_suites import SUITES

SUITE, TARGET, SECONDS = (f"PUBLIC_KERNELS_{name}" for name in ("SUITE", "TARGET", "SECONDS"))
_FAILED_COMPARISON = re.compile(r"\bdiffer\b|\b(match\w*|pass|close|correct\w*)\b\W*False", re.IGNORECASE)
"""How programs of public repositories print that their results are not those of the reference."""
_SHOWN_CHARACTERS = 1200
_ALLOWED_ERROR = 2e-5
"""Of the norm, as AccelOpt's harness has it (`NKIKernel.rel_tol`)."""
_KERNEL = "def kernel("
"""What AccelOpt's harness calls; other files beside the kernels have none."""


_PRODUCT = Path("/sys/devices/virtual/dmi/id/product_name")
"""Where tests look which instance they run on; a machine without the chip names another or none."""
_PRODUCTS = {"trn1": "trn1.32xlarge", "trn2": "trn2.48xlarge", "trn3": "trn3.48xlarge"}


def pytest_configure(config: pytest.Config) -> None:
    """Let tests find the name of an instance with the chips that are simulated."""
    read = builtins.open

    def open_as_there(file: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(file, (str, Path)) and Path(file) == _PRODUCT:
            return io.StringIO(_PRODUCTS[os.environ[TARGET]] + "\n")
        return read(file, *arguments, **options)

    builtins.open = open_as_there


class ProgramFailedError(Exception):
    """A program, or a kernel's comparison, did not end well."""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.File | None:
    """The case of a file that the suite runs as a program or compares with its reference."""
    suite = SUITES[os.environ[SUITE]]
    relative = os.path.relpath(file_path, parent.config.rootpath)
    if any(fnmatch(file_path.name, pattern) for pattern in ("__init__.py", *suite.tests)):
        return None
    if any(fnmatch(name, pattern) for pattern in suite.programs for name in (file_path.name, relative)):
        return Program.from_parent(parent, path=file_path)
    if suite.pairs and fnmatch(relative, suite.pairs[0]) and _KERNEL in file_path.read_text():
        return Pair.from_parent(parent, path=file_path)
    return None


class FileRun(pytest.Item):
    """The one case of a file."""

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where it is."""
        return self.path, None, self.name


class ProgramRun(FileRun):
    """A run of a program in a process of its own, in the program's folder."""

    def runtest(self) -> None:
        """Run it within the processor time of a case.

        Raises:
            ProgramFailedError: It ended with an error, or printed that results differ.
        """
        seconds = int(float(os.environ.get(SECONDS, "300")))
        command = [sys.executable, "-m", "neuron_tools", "--target", os.environ[TARGET], self.path.name]
        done = subprocess.run(
            command, cwd=self.path.parent, text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds)),
        )  # fmt: skip
        found = _FAILED_COMPARISON.search(done.stdout)
        if done.returncode:
            raise ProgramFailedError(f"exit code {done.returncode}: {_last_lines(done.stdout)}")
        if found:
            raise ProgramFailedError(
                f"it prints {found.group()!r}: {_last_lines(done.stdout[: found.end()])}"
            )


class PairRun(FileRun):
    """A kernel against its reference, as AccelOpt's harness compares them, for its first seed."""

    def runtest(self) -> None:
        """Compute both and compare them.

        Raises:
            ProgramFailedError: The harness calls the kernel incorrect.
        """
        harness = _loaded(self._benchmark() / "accelopt/eval_numpy.py")
        task, program = _loaded(self._reference()), _loaded(self.path)
        np.random.seed(0)  # the references draw from NumPy's own generator
        drawn = task.get_inputs()
        results = _simulate(program.kernel, task.transform_to_nki_inputs(drawn))
        wanted = task.forward(*drawn)
        found = harness.KernelProperties()
        given = task.transform_nki_outputs(results, wanted)
        harness.check_precision_and_correctness(str(self.path), given, wanted, found, _ALLOWED_ERROR)
        if not found.correct:
            raise ProgramFailedError(str(found.metadata))

    def _benchmark(self) -> Path:
        """AccelOpt's checkout."""
        pairs = SUITES[os.environ[SUITE]].pairs
        assert pairs is not None
        return self.config.rootpath / pairs[1]

    def _reference(self) -> Path:
        """The file that computes the same in NumPy: its operator is the kernel's name or folder."""
        named = {_operator(self.path), *self.path.parts}
        references = sorted((self._benchmark() / "NKIBench/reference").glob("*_numpy_*.py"))
        return next(file for file in references if _operator(file) in named)


class Program(pytest.File):
    """A file that is run."""

    case = "program"
    run: type[FileRun] = ProgramRun

    def collect(self) -> Iterator[pytest.Item]:
        """Its one case."""
        yield self.run.from_parent(self, name=self.case)


class Pair(Program):
    """A kernel for an operator of AccelOpt's benchmark."""

    case, run = "reference", PairRun


def _operator(file: Path) -> str:
    """What a file of the benchmark computes: its name without sizes and number."""
    return re.sub(r"(_[A-Z]+\d+)+(_numpy)?_\d+$", "", file.stem)


def _simulate(kernel: Any, inputs: Any) -> Any:
    from neuron_tools.nki.simulation import simulate_kernel

    return simulate_kernel(kernel, *inputs)


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _last_lines(text: str) -> str:
    return text.strip()[-_SHOWN_CHARACTERS:]
