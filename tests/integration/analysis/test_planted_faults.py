"""A planted fault is the first finding, at its line, and its simulated gain is what mending it gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import neuron_tools
from neuron_profile.analysis.advice.advise import advise
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.compilation import find_compilations
from neuron_profile.analysis.whatif.run import WhatIf
from tests.integration.analysis.headlines import headline
from tests.integration.analysis.planted_faults import FAULTS, Fault

TOLERANCE = 0.15


def findings_and_time(folder: Path, name: str, text: str) -> tuple[tuple[Finding, ...], int, int]:
    """Findings, time of the program, time that compiling took."""
    script = folder / f"{name}.py"
    script.write_text(text)
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", "-o", f"{name}.nprof"]
    answer = subprocess.run(
        [*command, "--host-clock", "fixed", "--", sys.executable, str(script)],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout + answer.stderr
    with neuron_tools.open_profile(folder / f"{name}.nprof") as profile:
        compiling_ns = sum(compilation.compile_ns for compilation in find_compilations(profile))
        return advise(profile), WhatIf(profile).recorded_ns(), compiling_ns


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_planted_fault(fault: Fault, tmp_path: Path) -> None:
    findings, faulty_ns, compiling_ns = findings_and_time(tmp_path, "faulty", fault.faulty)
    _, mended_ns, still_compiling_ns = findings_and_time(tmp_path, "mended", fault.mended)
    if fault.rule == "recompilation":  # compiling stands beside the program's time
        faulty_ns, mended_ns = faulty_ns + compiling_ns, mended_ns + still_compiling_ns
    first = findings[0]
    assert first.rule == fault.rule, [(found.rule, found.gain_ns, str(found.place)) for found in findings]
    assert (Path(first.place.file).name, first.place.line) == ("faulty.py", fault.line)
    assert first.gain_ns == pytest.approx(faulty_ns - mended_ns, rel=TOLERANCE)
    told = headline(tmp_path / "faulty.nprof")
    assert f"at faulty.py:{fault.line}. Fixing it saves" in told
