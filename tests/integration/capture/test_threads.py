"""Several Python threads that use one NeuronCore."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import neuron_tools
from neuron_tools.profile.verify import verify
from tests.integration.commands.capturing import Workplace

SCRIPT = """\
import threading
import torch


def work():
    x = torch.randn(64, 64, device="neuron")
    for _ in range(150):
        x = torch.tanh(x @ x)


threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_executions_stand_in_the_order_in_which_they_ran(tmp_path: Path) -> None:
    workplace = Workplace(tmp_path)
    workplace.script("threads.py", SCRIPT)
    answer = workplace.capture(
        sys.executable, "threads.py", options=("-o", "run.nprof", "--eager-fusion", "off")
    )
    assert answer.returncode == 0, answer.stderr
    with neuron_tools.open_profile(tmp_path / "run.nprof") as profile:
        rows = profile.query(
            "SELECT execution_start_ts AS start, execution_end_ts AS stop FROM ExecutionInfo"
            " ORDER BY execution_index"
        ).to_pylist()
        assert len(rows) == 3 * (1 + 2 * 150)
        assert all(first["stop"] <= second["start"] for first, second in pairwise(rows))
        assert verify(profile) == []
