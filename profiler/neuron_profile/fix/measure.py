"""Measures an edit: in a copy of the tree, the patched program is captured again, its values compared."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from neuron_profile.analysis.advice.advise import advise
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.compilation import find_compilations
from neuron_profile.analysis.whatif.run import WhatIf
from neuron_profile.fix.proposal import Proposal
from neuron_profile.fix.values import Agreement, RunValues, compare_values
from neuron_tools.__main__ import DEFAULT_TARGET, TIMED_VARIABLE
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile, open_profile

LARGEST_TREE_BYTES = 512 << 20
LEFT_OUT = (".git", ".venv", "venv", "node_modules", "__pycache__", "*.nprof", ".mypy_cache", ".ruff_cache")
_PYTHON = re.compile(r"(python|pypy)[\d.]*$")


class CannotMeasureError(NeuronToolsError):
    """The patched program cannot be captured again; the sentence says why."""


@frozen
class Measured:
    """What an edit gives.

    Attributes:
        promised_ns: What the finding says that it gives, with the fixed clock; None = not simulated.
        before_ns, after_ns: Time of the program, with compilations where the finding is about them.
        agreement: Whether the values are the same.
    """

    promised_ns: int | None
    before_ns: int
    after_ns: int
    agreement: Agreement

    @property
    def gain_ns(self) -> int:
        """Time saved."""
        return self.before_ns - self.after_ns

    @property
    def holds(self) -> bool:
        """Whether it is faster and computes the same."""
        return self.gain_ns > 0 and self.agreement.equal


@frozen
class Program:
    """A Python program that can be run again.

    Attributes:
        arguments: Script and arguments.
        target: What was simulated.
        options: Further options of `neuron-profile capture` with which it was captured.
    """

    arguments: tuple[str, ...]
    target: str
    options: tuple[str, ...]


def program_of(profile: Profile, tree: Path) -> Program:
    """The program that a profile was captured of.

    Raises:
        CannotMeasureError: It is no Python script below the tree.
    """
    facts = profile.metadata
    command = [str(part) for part in facts.get("command", ())]
    if command and _PYTHON.match(Path(command[0]).name):
        command = command[1:]
    if not command or not command[0].endswith(".py"):
        raise CannotMeasureError(
            "Only a program of the form `python SCRIPT.py ARGUMENTS` can be captured again: use --diff to "
            "see the edit alone."
        )
    script = (tree / command[0]).resolve()
    if not script.is_file() or not script.is_relative_to(tree):
        raise CannotMeasureError(
            f"The script {command[0]} is not below {tree}: run this where the program was captured, or name "
            "its folder with --tree."
        )
    options = ["--lnc", str(facts.get("lnc") or 1)]
    for setting in facts.get("settings", ()):
        options += ["--set", str(setting)]
    target = str(facts.get("target") or DEFAULT_TARGET)
    return Program((str(script.relative_to(tree)), *command[1:]), target, tuple(options))


def measure(profile: Profile, proposal: Proposal, tree: Path) -> Measured:
    """Capture the program again, patched, and compare.

    Args:
        tree: The folder that is copied; the program runs in its copy.

    Raises:
        CannotMeasureError: The program cannot be run again, or fails with the edit.
    """
    tree = tree.resolve()
    if not proposal.path.resolve().is_relative_to(tree):
        raise CannotMeasureError(f"{proposal.path} is not below {tree}: name its folder with --tree.")
    program = program_of(profile, tree)
    with _copy(tree) as copy:
        before, promised_ns = _before(profile, proposal.finding, program, copy)
        values = _values(program, copy)
        (copy / proposal.path.resolve().relative_to(tree)).write_text(proposal.edit.text)
        after = _total_ns(_captured(program, copy, "after"), proposal.finding)
        agreement = compare_values(values, _values(program, copy), proposal.edit.tolerance)
    return Measured(promised_ns, before, after, agreement)


def _before(profile: Profile, finding: Finding, program: Program, copy: Path) -> tuple[int, int | None]:
    """Time as it was, and the promise: of the profile, or of another capture where its clock was measured."""
    if profile.metadata.get("host_clock") == "fixed":
        return _total(profile, finding), finding.gain_ns
    with open_profile(_captured(program, copy, "before")) as again:
        promises = [each.gain_ns for each in advise(again) if _is_same(each, finding)]
        return _total(again, finding), promises[0] if promises else None


def _is_same(one: Finding, other: Finding) -> bool:
    same_file = Path(one.place.file).name == Path(other.place.file).name
    return one.rule == other.rule and one.place.line == other.place.line and same_file


def _total_ns(path: Path, finding: Finding) -> int:
    with open_profile(path) as profile:
        return _total(profile, finding)


def _total(profile: Profile, finding: Finding) -> int:
    """Time of the whole program; with its compilations, where they are what the finding is about."""
    compiling_ns = 0
    if finding.rule == "recompilation":
        compiling_ns = sum(each.compile_ns for each in find_compilations(profile))
    return WhatIf(profile).recorded_ns() + compiling_ns


@contextmanager
def _copy(tree: Path) -> Iterator[Path]:
    """A copy of a folder, without what is not its own; gone afterwards.

    Raises:
        CannotMeasureError: It is too large.
    """
    ignored = shutil.ignore_patterns(*LEFT_OUT)
    total = 0
    for folder, folders, files in os.walk(tree):
        left_out = ignored(folder, [*folders, *files])
        folders[:] = [name for name in folders if name not in left_out]
        total += sum(os.lstat(os.path.join(folder, name)).st_size for name in files if name not in left_out)
        if total > LARGEST_TREE_BYTES:
            raise CannotMeasureError(
                f"{tree} has more than {LARGEST_TREE_BYTES >> 20} MiB to copy: name a smaller folder with "
                "--tree, or use --diff to see the edit alone."
            )
    with tempfile.TemporaryDirectory(prefix="neuron-fix-") as folder:
        copy = Path(folder).resolve() / tree.name
        shutil.copytree(tree, copy, ignore=ignored, symlinks=True)
        yield copy


def _captured(program: Program, copy: Path, name: str) -> Path:
    """A capture of the program with the fixed clock."""
    path = copy.parent / f"{name}.nprof"
    options = ["--target", program.target, *program.options, "--host-clock", "fixed", "-o", str(path)]
    command = ["-m", "neuron_profile.cli", "capture", *options, "--", sys.executable, *program.arguments]
    _run([sys.executable, *command], copy, "captured again", {})
    return path


def _values(program: Program, copy: Path) -> RunValues:
    """What the program computes."""
    path = copy.parent / "values.npz"
    command = [sys.executable, "-m", "neuron_profile.fix.value_run", str(path), *program.arguments]
    printed = _run(command, copy, "run for its values", {TIMED_VARIABLE: program.target})
    with np.load(path) as arrays:
        return RunValues(dict(arrays), printed)


def _run(command: Sequence[str], folder: Path, what: str, variables: Mapping[str, str]) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": "0", **variables}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise CannotMeasureError(f"The program failed when it was {what} (status {done.returncode}): {last}")
    return done.stdout
