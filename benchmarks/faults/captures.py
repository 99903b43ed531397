"""Captures programs one after the other in one process, which is far cheaper than a process for each."""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import re
import runpy
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import neuron_tools
from neuron_profile.analysis.advice.advise import advise
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.compilation import find_compilations
from neuron_profile.analysis.whatif.run import WhatIf
from neuron_profile.fix.propose import NoEditError, propose
from neuron_profile.fix.value_run import values_of
from neuron_profile.fix.values import RunValues
from neuron_tools import compat
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_USES_JAX = re.compile(r"^(import|from) jax\b", re.MULTILINE)


@frozen
class Patch:
    """The edit of a finding: the new text of its program, and by how much values may differ."""

    text: str
    tolerance: float


@frozen
class Captured:
    """What a program's capture says.

    Attributes:
        findings: The advice, best first.
        running_ns: Time of the program.
        compiling_ns: Time that compiling took beside it.
        values: What it computed.
    """

    findings: tuple[Finding, ...]
    running_ns: int
    compiling_ns: int
    values: RunValues
    patch: Patch | None

    def total_ns(self, rule: str) -> int:
        """The time that a rule's gain is a part of."""
        return self.running_ns + (self.compiling_ns if rule == "recompilation" else 0)


def capture(folder: Path, name: str, text: str) -> Captured:
    """Capture a program with the fixed clock, in this process.

    Args:
        folder: Takes the program and, for as long as it is read, its profile.
    """
    script, path = folder / f"{name}.py", folder / f"{name}.nprof"
    script.write_text(text)
    torch.manual_seed(0)
    if _USES_JAX.search(text):
        importlib.import_module("jax")  # what is imported after a recording began in this process is not seen
    printed = io.StringIO()
    with (
        _as_in_a_capture(),
        neuron_tools.profile(path, host_clock="fixed"),
        contextlib.redirect_stdout(printed),
    ):
        namespace = runpy.run_path(str(script), run_name="__main__")
    values = RunValues(_values(namespace), printed.getvalue())
    namespace.clear()
    torch._dynamo.reset()
    gc.collect()
    with neuron_tools.open_profile(path) as profile:
        captured = _read(profile, values)
    shutil.rmtree(path)
    return captured


def _read(profile: Profile, values: RunValues) -> Captured:
    findings = advise(profile)
    compiling_ns = sum(each.compile_ns for each in find_compilations(profile))
    return Captured(findings, WhatIf(profile).recorded_ns(), compiling_ns, values, _patch(profile, findings))


def _patch(profile: Profile, findings: tuple[Finding, ...]) -> Patch | None:
    """The edit of the first finding, where there is one."""
    if not findings:
        return None
    try:
        edit = propose(profile, findings[0]).edit
    except NoEditError:
        return None
    return Patch(edit.text, edit.tolerance)


def _values(namespace: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    with torch.no_grad():
        return values_of(namespace)


@contextlib.contextmanager
def _as_in_a_capture() -> Iterator[None]:
    """The modules that a captured program may import."""
    path = list(sys.path)
    compat.install()
    try:
        yield
    finally:
        sys.path[:] = path
