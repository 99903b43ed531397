"""A planted fault of the host is the first finding: at its line, and with what the host was doing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import neuron_tools
from neuron_profile.analysis.advice.advise import advise
from tests.integration.analysis.headlines import headline

FOLDER = Path(__file__).parents[3] / "examples" / "faults" / "host"
KINDS = {
    "slow_getitem": ("host_activity", "data_loading"),
    "slow_collate": ("host_activity", "data_loading"),
    "too_few_workers": ("host_activity", "data_loading"),
    "pickling": ("host_activity", "pickling"),
    "printing": ("host_activity", "input_output"),
    "logging_to_disk": ("host_activity", "input_output"),
    "retracing": ("host_activity", "tracing"),
    "item_in_hook": ("host_synchronisation", None),
    "clipping_loop": ("host_bound", "python"),
    "checkpoint_in_step": ("host_activity", "input_output"),
    "garbage_collection": ("host_activity", "garbage_collection"),
    "lock_between_threads": ("host_activity", "lock"),
}
"""The rule of the first finding, and the kind of activity that it tells."""

CAUSES = {
    "slow_getitem": "while the host loads data",
    "slow_collate": "while the host loads data",
    "too_few_workers": "while the host loads data",
    "pickling": "while the host pickles",
    "printing": "while the host reads or writes",
    "logging_to_disk": "while the host reads or writes",
    "retracing": "while the host traces a function",
    "item_in_hook": "The host waits for the device",
    "clipping_loop": "The device waits for the host",
    "checkpoint_in_step": "while the host reads or writes",
    "garbage_collection": "while the host collects garbage",
    "lock_between_threads": "while the host waits for another thread",
}
"""What the sentence above the workspace's panels says of the cause."""


def test_every_fault_is_looked_for() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(KINDS) == set(CAUSES)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_fault_of_the_host(name: str, tmp_path: Path) -> None:
    script, profile = FOLDER / f"{name}.py", tmp_path / "faulty.nprof"
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", "-o", str(profile)]
    answer = subprocess.run(
        [*command, "--", sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stdout[-2000:] + answer.stderr[-2000:]
    with neuron_tools.open_profile(profile) as opened:
        findings = advise(opened)
    first = findings[0]
    told = [(found.rule, found.evidence.get("kind"), found.gain_ns, str(found.place)) for found in findings]
    lines = script.read_text().splitlines()
    fault = 1 + next(number for number, text in enumerate(lines) if text.endswith("# fault"))
    assert (first.rule, first.evidence.get("kind")) == KINDS[name], told
    assert (Path(first.place.file).name, first.place.line) == (script.name, fault), told
    above_all_panels = headline(profile)
    assert f"at {script.name}:{fault}. Fixing it saves" in above_all_panels
    assert CAUSES[name] in above_all_panels
